//! A few of the blocks that come next in the key stream of a message, four in a register of 512 bits:
//! where a set of sixteen takes longer, as on processors that do two operations on such registers per
//! cycle and have their results after one.

use core::arch::x86_64::*;

use crate::x86_64::chacha_lanes::wide::{add, rotate, xor};
use crate::x86_64::rows::transpose512;

/// The most blocks at once.
pub(super) const MAX_BLOCKS: usize = 8;

/// The first blocks of the sixteen that have these words before the rounds, by fours.
///
/// # Safety
/// `to` is valid for writes of them.
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn blocks<const QUADS: usize>(words: &[__m512i; 16], to: *mut u8) {
    let start: [[__m512i; 4]; QUADS] = rows(words);
    let mut rows = start;
    for _ in 0..10 {
        quarter_round(&mut rows);
        for [_, b, c, d] in &mut rows {
            *b = _mm512_shuffle_epi32::<0b00_11_10_01>(*b);
            *c = _mm512_shuffle_epi32::<0b01_00_11_10>(*c);
            *d = _mm512_shuffle_epi32::<0b10_01_00_11>(*d);
        }
        quarter_round(&mut rows);
        for [_, b, c, d] in &mut rows {
            *b = _mm512_shuffle_epi32::<0b10_01_00_11>(*b);
            *c = _mm512_shuffle_epi32::<0b01_00_11_10>(*c);
            *d = _mm512_shuffle_epi32::<0b00_11_10_01>(*d);
        }
    }
    for quad in 0..QUADS {
        let [a, b, c, d] = [0, 1, 2, 3].map(|row| add(rows[quad][row], start[quad][row]));
        let low = (
            _mm512_shuffle_i32x4::<0x44>(a, b),
            _mm512_shuffle_i32x4::<0x44>(c, d),
        );
        let high = (
            _mm512_shuffle_i32x4::<0xee>(a, b),
            _mm512_shuffle_i32x4::<0xee>(c, d),
        );
        let blocks = [
            _mm512_shuffle_i32x4::<0x88>(low.0, low.1),
            _mm512_shuffle_i32x4::<0xdd>(low.0, low.1),
            _mm512_shuffle_i32x4::<0x88>(high.0, high.1),
            _mm512_shuffle_i32x4::<0xdd>(high.0, high.1),
        ];
        for (i, block) in blocks.into_iter().enumerate() {
            // SAFETY: four blocks of each quad.
            unsafe { _mm512_storeu_si512(to.add(64 * (4 * quad + i)).cast(), block) };
        }
    }
}

/// The quads by rows of their state.
#[inline]
#[target_feature(enable = "avx512f")]
fn rows<const QUADS: usize>(words: &[__m512i; 16]) -> [[__m512i; 4]; QUADS] {
    let mut rows = [[_mm512_setzero_si512(); 4]; QUADS];
    let (quarters, _) = words.as_chunks::<4>();
    for (row, words) in rows[0].iter_mut().zip(quarters) {
        let [of_first, ..] = transpose512(*words);
        *row = _mm512_shuffle_i32x4::<0>(of_first, of_first);
    }
    let counters = _mm512_set_epi32(0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0);
    rows[0][3] = add(rows[0][3], counters);
    let four = _mm512_maskz_set1_epi32(0x1111, 4);
    for quad in 1..QUADS {
        rows[quad] = rows[quad - 1];
        rows[quad][3] = add(rows[quad][3], four);
    }
    rows
}

/// Of every column of every block.
#[inline]
#[target_feature(enable = "avx512f")]
fn quarter_round<const QUADS: usize>(rows: &mut [[__m512i; 4]; QUADS]) {
    for [a, b, _, d] in &mut *rows {
        *a = add(*a, *b);
        *d = rotate::<16, 16>(xor(*d, *a));
    }
    for [_, b, c, d] in &mut *rows {
        *c = add(*c, *d);
        *b = rotate::<12, 20>(xor(*b, *c));
    }
    for [a, b, _, d] in &mut *rows {
        *a = add(*a, *b);
        *d = rotate::<8, 24>(xor(*d, *a));
    }
    for [_, b, c, d] in &mut *rows {
        *c = add(*c, *d);
        *b = rotate::<7, 25>(xor(*b, *c));
    }
}
