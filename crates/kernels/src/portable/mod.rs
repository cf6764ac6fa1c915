//! Constant-time implementations for every machine, over the RustCrypto crates.

pub(crate) mod aes;
pub(crate) mod chacha;
pub(crate) mod key;
pub(crate) mod sha2;
