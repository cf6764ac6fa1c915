//! The atomics and cells that the lock-free parts stand on: std's, or loom's in a model.

#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicU64, Ordering};

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU64, Ordering};

/// A value with a cache line of its own, so that threads that write it do not slow those
/// that read its neighbours.
#[repr(align(64))]
pub(crate) struct Line<T>(pub(crate) T);
