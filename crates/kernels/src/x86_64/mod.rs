//! Intrinsics of x86-64. The entries, in [`tier`] and [`key`], take the token of the
//! instructions they need; the kernels are written once over [`wide::Wide`].

pub(crate) mod authenc;
pub(crate) mod chacha;
pub(crate) mod gcm;
pub(crate) mod gcm_bare;
pub(crate) mod ghash;
pub(crate) mod gost28147;
pub(crate) mod hmac_few;
pub(crate) mod key;
pub(crate) mod kuznyechik;
pub(crate) mod mgm;
pub(crate) mod rounds;
pub(crate) mod sha256;
pub(crate) mod sha256_bmi2;
pub(crate) mod sha2_avx2;
pub(crate) mod sha2_wide;
pub(crate) mod sha512;
pub(crate) mod slots;
pub(crate) mod tier;
pub(crate) mod wide;
pub(crate) mod wipe;

mod bare;
pub(crate) mod block;
mod cbc;
mod cbc_lanes;
mod chacha_few;
pub(crate) mod chacha_lanes;
mod chacha_long;
mod chacha_narrow;
mod chacha_quads;
mod chacha_rows;
mod chacha_stream;
mod chacha_wide;
mod ctr;
mod ctr_windows;
mod cursor;
mod ecb;
pub(crate) mod memory;
mod order;
pub(crate) mod part;
pub(crate) mod poly1305;
mod poly1305_ifma;
mod poly1305_lanes;
mod poly1305_words;
mod rows;
mod short;
mod states;
mod tweaks;
mod xts;

pub(crate) use tier::{aes_bare, aes_ni, vaes, vaes512};
