//! The reference that judges every kernel: each mode written down from its
//! standard, slow and obvious, with no dependency and nothing shared with the
//! kernels.
//!
//! Functions take slices and give fresh vectors. The AEAD `open` functions give
//! the plaintext with the tag that the message should have had, as the kernels
//! do; comparing it is the caller's part.
//!
//! For tests only: **nothing here is constant time**, and no key is wiped. A key
//! or data of a length that the standard does not allow is a panic.

mod aes;
mod authenc;
mod chacha20poly1305;
mod gcm;
mod hmac;
mod modes;
mod sha2;
mod xts;

pub use aes::{aes_decrypt_block, aes_encrypt_block};
pub use authenc::authenc;
pub use chacha20poly1305::{chacha20_xor, chacha20poly1305_open, chacha20poly1305_seal, poly1305};
pub use gcm::{gcm_open, gcm_seal, ghash};
pub use hmac::{hmac_sha256, hmac_sha512};
pub use modes::{cbc_decrypt, cbc_encrypt, ctr_apply, ecb_decrypt, ecb_encrypt};
pub use sha2::{sha256, sha512};
pub use xts::{xts_decrypt, xts_encrypt};
