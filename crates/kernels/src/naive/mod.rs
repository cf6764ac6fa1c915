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
mod gost28147;
mod hmac;
mod kuznyechik;
mod magma;
mod mgm;
mod modes;
mod sha2;
mod xts;

pub use aes::{aes_decrypt_block, aes_encrypt_block};
pub use authenc::authenc;
pub use chacha20poly1305::{chacha20_xor, chacha20poly1305_open, chacha20poly1305_seal, poly1305};
pub use gcm::{gcm_open, gcm_seal, ghash};
pub use gost28147::{
    gost28147_cfb_decrypt, gost28147_cfb_encrypt, gost28147_cnt, gost28147_divers,
    gost28147_ecb_decrypt, gost28147_ecb_encrypt, gost28147_imit,
};
pub use hmac::{hmac_sha256, hmac_sha512};
pub use kuznyechik::{
    kuznyechik_ctr, kuznyechik_decrypt_block, kuznyechik_ecb_decrypt, kuznyechik_ecb_encrypt,
    kuznyechik_encrypt_block,
};
pub use magma::{
    magma_ctr, magma_decrypt_block, magma_ecb_decrypt, magma_ecb_encrypt, magma_encrypt_block,
};
pub use mgm::{kuznyechik_mgm_open, kuznyechik_mgm_seal, magma_mgm_open, magma_mgm_seal};
pub use modes::{cbc_decrypt, cbc_encrypt, ctr_apply, ecb_decrypt, ecb_encrypt};
pub use sha2::{sha256, sha512};
pub use xts::{xts_decrypt, xts_encrypt};
