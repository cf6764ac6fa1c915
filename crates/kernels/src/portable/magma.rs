//! Magma by bit planes: word `b` of plane `i` holds bit `b` of byte `i` of 64 blocks.

use zeroize::Zeroize;

use super::planes::{LANES, look_up, pack, unpack};
use crate::job::Direction;
use crate::magma::{Block, MagmaKey};

/// The bijections of RFC 8891 section 4.1, that of the lowest nibble first.
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

/// The bits of a word of every block, the lowest first.
type Word = [u64; 32];

/// Encrypts or decrypts each block under the key of the same place.
pub(crate) fn crypt(dir: Direction, keys: &[&MagmaKey], blocks: &mut [Block]) {
    for (keys, blocks) in keys.chunks(LANES).zip(blocks.chunks_mut(LANES)) {
        let mut round_keys = [[0; 32]; 8];
        for (lane, key) in keys.iter().enumerate() {
            for (bits, word) in round_keys.iter_mut().zip(key.words()) {
                for (i, bit) in bits.iter_mut().enumerate() {
                    *bit |= u64::from(word >> i & 1) << lane;
                }
            }
        }
        let mut planes = pack::<8>(blocks);
        // Bytes from the left; bits of words from the right.
        planes.reverse();
        let words = planes.as_flattened_mut();
        let (a0, a1) = words.split_at_mut(32);
        let a0: &mut Word = a0.try_into().expect("half of the planes");
        let a1: &mut Word = a1.try_into().expect("half of the planes");
        for i in 0..32 {
            let forward = match dir {
                Direction::Encrypt => i < 24,
                Direction::Decrypt => i < 8,
            };
            let key = &round_keys[if forward { i % 8 } else { 7 - i % 8 }];
            round(key, a0, a1);
            core::mem::swap(a0, a1);
        }
        core::mem::swap(a0, a1);
        planes.reverse();
        unpack(&planes, blocks);
        planes.zeroize();
        round_keys.as_flattened_mut().zeroize();
    }
}

/// Adds g\[key\](a) of RFC 8891 section 4.2 to `to`.
#[inline(always)]
fn round(key: &Word, a: &Word, to: &mut Word) {
    let mut carry = 0;
    let mut sum = [0; 32];
    for i in 0..32 {
        let (x, y) = (a[i], key[i]);
        sum[i] = x ^ y ^ carry;
        carry = x & y | carry & (x ^ y);
    }
    for (i, pi) in PI.iter().enumerate() {
        let nibble = [0, 1, 2, 3].map(|bit| sum[4 * i + bit]);
        let out: [u64; 4] = look_up(pi, nibble);
        for (bit, out) in out.iter().enumerate() {
            to[(4 * i + bit + 11) % 32] ^= out;
        }
    }
}
