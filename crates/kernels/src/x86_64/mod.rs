//! Intrinsics of x86-64. Each entry takes the token of the instructions it needs.

pub(crate) mod gcm;
mod gcm_lane;
pub(crate) mod ghash;
pub(crate) mod key;
