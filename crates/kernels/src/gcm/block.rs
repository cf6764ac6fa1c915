//! Blocks as GHASH takes them.

use crate::aes::key::Block;

/// The sum of two blocks.
#[inline]
pub(crate) fn xor(a: &Block, b: &Block) -> Block {
    (u128::from_ne_bytes(*a) ^ u128::from_ne_bytes(*b)).to_ne_bytes()
}

/// Less than a block, with zeros behind it, in words of 64 bits: GHASH over one block loads it as
/// such at once, where a load over shorter stores would wait for them.
#[inline]
pub(super) fn padded(bytes: &[u8]) -> Block {
    let word = |from: usize| {
        let bytes = bytes.get(from..).unwrap_or_default();
        match bytes.first_chunk() {
            Some(whole) => u64::from_le_bytes(*whole),
            None => bytes
                .iter()
                .rev()
                .fold(0, |word, &byte| word << 8 | u64::from(byte)),
        }
    };
    (u128::from(word(8)) << 64 | u128::from(word(0))).to_le_bytes()
}
