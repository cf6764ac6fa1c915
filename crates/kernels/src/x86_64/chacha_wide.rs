//! The rounds of ChaCha20 over sixteen blocks in the registers of AVX-512, alone or beside Poly1305
//! in the integer units.

use core::arch::x86_64::*;

use crate::x86_64::chacha_lanes::quarter_rounds;
use crate::x86_64::chacha_lanes::wide::{add, rotate, xor};
use crate::x86_64::poly1305_words::Halves;

/// The twenty rounds.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn rounds(words: &[__m512i; 16]) -> [__m512i; 16] {
    let mut v = [*words];
    for _ in 0..10 {
        quarter_rounds!(1, v, [0 4 8 12] [1 5 9 13] [2 6 10 14] [3 7 11 15]);
        quarter_rounds!(1, v, [0 5 10 15] [1 6 11 12] [2 7 8 13] [3 4 9 14]);
    }
    let [v] = v;
    v
}

/// The twenty rounds. Beside the first `beside` of the ten times two the parts of a message take
/// four blocks each.
///
/// # Safety
/// Each part has as many blocks.
#[inline]
#[target_feature(enable = "avx512f,bmi2")]
pub(super) unsafe fn rounds_beside(
    words: &[__m512i; 16],
    halves: &mut Halves,
    beside: usize,
) -> [__m512i; 16] {
    let [mut first, mut second] = halves.sums();
    let mut v = [*words];
    for _ in 0..beside {
        quarter_rounds!(1, v, [0 4 8 12] [1 5 9 13] [2 6 10 14] [3 7 11 15]);
        // SAFETY: BMI2 is there, and as many blocks.
        unsafe {
            halves.absorb_first(&mut first);
            halves.absorb_second(&mut second);
            halves.absorb_first(&mut first);
            halves.absorb_second(&mut second);
        }
        quarter_rounds!(1, v, [0 5 10 15] [1 6 11 12] [2 7 8 13] [3 4 9 14]);
        // SAFETY: as above.
        unsafe {
            halves.absorb_first(&mut first);
            halves.absorb_second(&mut second);
            halves.absorb_first(&mut first);
            halves.absorb_second(&mut second);
        }
    }
    for _ in beside..10 {
        quarter_rounds!(1, v, [0 4 8 12] [1 5 9 13] [2 6 10 14] [3 7 11 15]);
        quarter_rounds!(1, v, [0 5 10 15] [1 6 11 12] [2 7 8 13] [3 4 9 14]);
    }
    halves.set_sums([first, second]);
    let [v] = v;
    v
}
