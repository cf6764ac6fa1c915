//! Constant-time implementations for every machine, most over the RustCrypto crates. That of GOST
//! 28147-89 stands with the cipher, since the vector engines use it too.

pub(crate) mod aes;
pub(crate) mod cbc;
pub(crate) mod chacha;
pub(crate) mod ctr;
pub(crate) mod ecb;
pub(crate) mod gcm;
pub(crate) mod key;
pub(crate) mod kuznyechik;
mod planes;
pub(crate) mod sha2;
pub(crate) mod xts;
