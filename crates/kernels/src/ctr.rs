//! CTR (NIST SP 800-38A section 6.5) with a 128-bit big-endian counter that wraps.

use crate::aes::AesKey;
use crate::choose;
use crate::job::CipherJob;

/// Encrypts or decrypts, which is the same, every job, of any length. The IV is
/// left at the first counter not used: a part of a block uses one up.
pub fn apply(jobs: &mut [CipherJob<'_, AesKey>]) {
    choose!(ctr(jobs), ctr::apply(jobs))
}

/// The counter `blocks` further on.
pub fn counter_add(iv: &[u8; 16], blocks: u128) -> [u8; 16] {
    u128::from_be_bytes(*iv).wrapping_add(blocks).to_be_bytes()
}
