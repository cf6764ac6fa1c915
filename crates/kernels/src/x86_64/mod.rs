//! Intrinsics of x86-64. Each entry takes the token of the instructions it needs.

pub(crate) mod key;
pub(crate) mod sha2;
pub(crate) mod sha256;
pub(crate) mod sha2_wide;
