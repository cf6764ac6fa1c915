//! The lanes that SHA-2 messages run in, side by side: how many, and by what instructions.

pub(crate) mod copy;
#[cfg(target_arch = "x86_64")]
mod features;
pub(crate) mod lanes;
pub(crate) mod message;

#[cfg(target_arch = "x86_64")]
pub(crate) use self::features::{sha256, sha512};
#[cfg(not(target_arch = "x86_64"))]
pub(crate) use crate::portable::sha2::{sha256, sha512};

#[cfg(test)]
mod tests;
