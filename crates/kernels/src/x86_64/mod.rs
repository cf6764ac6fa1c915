//! Intrinsics of x86-64. Each entry takes the token of the instructions it needs.

pub(crate) mod key;
pub(crate) mod sha256;
