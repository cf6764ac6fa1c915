//! A few of the blocks that come next in the key stream of a message, alone or beside Poly1305 in
//! the integer units: where a step of eight takes longer, since its rounds take as long however many
//! of its blocks are wanted.

use core::arch::x86_64::*;

use crate::x86_64::chacha_rows;
use crate::x86_64::poly1305_words::{Multiplier, Sum};
use crate::x86_64::rows::transpose256;

/// Blocks of the MAC beside two rounds, which take as long.
const BESIDE: usize = 3;

/// The first two of the eight blocks that have these words before the rounds.
///
/// # Safety
/// `to` is valid for writes of them.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn pair(words: &[__m256i; 16], to: *mut u8) {
    // SAFETY: as for this function.
    unsafe { chacha_rows::narrow::key_stream(&rows::<1>(words), to.cast(), || ()) };
}

/// The first pairs of the eight blocks, while a sum takes in blocks.
///
/// # Safety
/// `to` is valid for writes of the pairs; there are `count` blocks.
#[target_feature(enable = "avx2,bmi2")]
pub(super) unsafe fn beside<const PAIRS: usize>(
    words: &[__m256i; 16],
    to: *mut u8,
    (sum, r): (&mut Sum, &Multiplier),
    blocks: *const u8,
    count: usize,
) {
    let mut own = *sum;
    let (mut at, end) = (blocks, blocks.wrapping_add(16 * count));
    let mut absorb = |most| {
        for _ in 0..most {
            if at == end {
                break;
            }
            // SAFETY: BMI2 is there, and such a block.
            unsafe {
                own.add(at);
                own.multiply(r);
            }
            at = at.wrapping_add(16);
        }
    };
    // SAFETY: as for this function.
    unsafe {
        chacha_rows::narrow::key_stream(&rows::<PAIRS>(words), to.cast(), || absorb(BESIDE));
    }
    absorb(count);
    *sum = own;
}

/// The pairs by rows of their state.
#[inline]
#[target_feature(enable = "avx2")]
fn rows<const PAIRS: usize>(words: &[__m256i; 16]) -> [[__m256i; 4]; PAIRS] {
    let mut rows = [[_mm256_setzero_si256(); 4]; PAIRS];
    let (quarters, _) = words.as_chunks::<4>();
    for (row, words) in rows[0].iter_mut().zip(quarters) {
        let [of_first, ..] = transpose256(*words);
        *row = _mm256_permute2x128_si256::<0>(of_first, of_first);
    }
    rows[0][3] = _mm256_add_epi32(rows[0][3], _mm256_set_epi32(0, 0, 0, 1, 0, 0, 0, 0));
    for pair in 1..PAIRS {
        rows[pair] = rows[pair - 1];
        rows[pair][3] = _mm256_add_epi32(rows[pair][3], _mm256_set_epi32(0, 0, 0, 2, 0, 0, 0, 2));
    }
    rows
}
