//! Magma (GOST R 34.12-2015, RFC 8891), with ECB and CTR of GOST R 34.13-2015.

use super::modes::{counter_mode, per_block};

/// Section 4.1: the bijections pi_0 to pi_7 of nibbles, that of the rightmost first.
const PI: [[u8; 16]; 8] = [
    [12, 4, 6, 2, 10, 5, 11, 9, 14, 8, 13, 7, 0, 3, 15, 1],
    [6, 8, 2, 3, 9, 10, 5, 12, 1, 14, 4, 7, 11, 13, 0, 15],
    [11, 3, 5, 8, 2, 15, 10, 13, 14, 1, 7, 4, 12, 9, 6, 0],
    [12, 8, 2, 1, 13, 4, 15, 6, 7, 0, 10, 5, 3, 14, 9, 11],
    [7, 15, 5, 10, 8, 1, 6, 13, 0, 9, 3, 14, 11, 4, 2, 12],
    [5, 13, 15, 6, 9, 2, 12, 10, 11, 7, 8, 1, 4, 3, 14, 0],
    [8, 14, 2, 5, 6, 9, 1, 12, 15, 4, 11, 0, 13, 10, 3, 7],
    [1, 7, 14, 13, 0, 5, 8, 3, 4, 15, 10, 6, 9, 12, 11, 2],
];

/// g[k] of section 4.2.
fn round(k: u32, a: u32) -> u32 {
    let sum = a.wrapping_add(k);
    let substituted = (0..8).fold(0, |t, i| {
        t | u32::from(PI[i][(sum >> (4 * i) & 15) as usize]) << (4 * i)
    });
    substituted.rotate_left(11)
}

/// The 32 iteration keys of section 4.3.
fn expand(key: &[u8; 32]) -> [u32; 32] {
    let word = |i: usize| u32::from_be_bytes(key[4 * i..][..4].try_into().expect("4 bytes"));
    core::array::from_fn(|i| if i < 24 { word(i % 8) } else { word(31 - i) })
}

fn rounds(keys: impl Iterator<Item = u32>, block: &[u8; 8]) -> [u8; 8] {
    let (left, right) = block.split_at(4);
    let mut a1 = u32::from_be_bytes(left.try_into().expect("half of a block"));
    let mut a0 = u32::from_be_bytes(right.try_into().expect("half of a block"));
    for key in keys {
        (a1, a0) = (a0, round(key, a0) ^ a1);
    }
    // The last round does not change places: G* of section 4.2.
    let (left, right) = (a0.to_be_bytes(), a1.to_be_bytes());
    [left, right].concat().try_into().expect("two halves")
}

/// Section 4.4.1.
pub fn magma_encrypt_block(key: &[u8; 32], block: &[u8; 8]) -> [u8; 8] {
    rounds(expand(key).into_iter(), block)
}

/// Section 4.4.2.
pub fn magma_decrypt_block(key: &[u8; 32], block: &[u8; 8]) -> [u8; 8] {
    rounds(expand(key).into_iter().rev(), block)
}

/// GOST R 34.13-2015 section 5.1. `data` is a whole number of blocks.
pub fn magma_ecb_encrypt(key: &[u8; 32], data: &[u8]) -> Vec<u8> {
    per_block(data, |block| magma_encrypt_block(key, block))
}

/// GOST R 34.13-2015 section 5.1. `data` is a whole number of blocks.
pub fn magma_ecb_decrypt(key: &[u8; 32], data: &[u8]) -> Vec<u8> {
    per_block(data, |block| magma_decrypt_block(key, block))
}

/// GOST R 34.13-2015 section 5.2, from a whole counter block: an IV of 4 bytes
/// stands in its left half, over zeros. Encrypts and decrypts.
pub fn magma_ctr(key: &[u8; 32], counter: &[u8; 8], data: &[u8]) -> Vec<u8> {
    counter_mode(counter, data, |block| magma_encrypt_block(key, block))
}
