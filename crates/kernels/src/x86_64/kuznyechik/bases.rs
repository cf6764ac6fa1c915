//! The bases that Kuznyechik is computed in without GFNI: the ways into them and out, and
//! the multiplications by constants in them, each a look-up for each nibble.

use core::arch::x86_64::*;

use super::logarithms::{look_up, nibbles};
use crate::kuznyechik::field::{self, multiply};

/// A table for the low nibble of a byte and one for the high, results to be added up.
pub(super) type Nibbles = [[u8; 16]; 2];

/// The coefficients other than 1, and than 148, which is 133 + 16 + 1.
const CONSTANTS: [u8; 6] = [133, 32, 16, 194, 192, 251];

/// A basis: what it takes to be in it.
pub(super) struct Basis {
    pub(super) enter: Nibbles,
    pub(super) leave: Nibbles,
    /// By those of [`CONSTANTS`].
    pub(super) products: [Nibbles; 6],
}

pub(super) static TOWER: Basis = basis(&field::TO_TOWER, &field::FROM_TOWER);
pub(super) static SPLIT: Basis = basis(&field::TO_SPLIT_LINEAR, &field::FROM_SPLIT_LINEAR);

const fn basis(enter: &[u8; 256], leave: &[u8; 256]) -> Basis {
    let mut new = Basis {
        enter: [[0; 16]; 2],
        leave: [[0; 16]; 2],
        products: [[[0; 16]; 2]; 6],
    };
    let mut i = 0;
    while i < 32 {
        let (half, nibble) = (i / 16, i % 16);
        let byte = nibble << (4 * half);
        new.enter[half][nibble] = enter[byte];
        new.leave[half][nibble] = leave[byte];
        let mut constant = 0;
        while constant < 6 {
            let product = multiply(leave[byte], CONSTANTS[constant]);
            new.products[constant][half][nibble] = enter[product as usize];
            constant += 1;
        }
        i += 1;
    }
    new
}

/// A byte by the tables of its nibbles.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn mapped(x: __m256i, tables: &Nibbles) -> __m256i {
    let (low, high) = nibbles(x);
    _mm256_xor_si256(look_up(&tables[0], low), look_up(&tables[1], high))
}
