//! Blocks as GHASH takes them.

use crate::aes::key::Block;

/// The sum of two blocks.
#[inline]
pub(crate) fn xor(a: &Block, b: &Block) -> Block {
    (u128::from_ne_bytes(*a) ^ u128::from_ne_bytes(*b)).to_ne_bytes()
}

/// Less than a block, with zeros behind it, in words of 64 bits: GHASH and Poly1305 load it as
/// such at once, where a load over shorter stores would wait for them. The words are put together
/// from two or three parts that overlap.
#[inline]
pub(crate) fn padded(bytes: &[u8]) -> Block {
    let len = bytes.len();
    let (low, high) = if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        // Shifted in two steps, since the length may be 8.
        let last = u64::from_le_bytes(*last) >> 1 >> (8 * (16 - len) - 1);
        (u64::from_le_bytes(*first), last)
    } else if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        let [first, last] = [first, last].map(|part| u64::from(u32::from_le_bytes(*part)));
        (first | last << (8 * (len - 4)), 0)
    } else if let (Some(first), Some(last)) = (bytes.first(), bytes.last()) {
        let [first, last] = [first, last].map(|byte| u64::from(*byte));
        let middle = u64::from(bytes[len / 2]);
        (
            first | middle << (8 * (len / 2)) | last << (8 * (len - 1)),
            0,
        )
    } else {
        (0, 0)
    };
    (u128::from(high) << 64 | u128::from(low)).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_is_padded_with_zeros() {
        let bytes: [u8; 15] = core::array::from_fn(|i| 0x81 + 7 * i as u8);
        for len in 0..16 {
            let mut expected = [0; 16];
            expected[..len].copy_from_slice(&bytes[..len]);
            assert_eq!(padded(&bytes[..len]), expected);
        }
    }
}
