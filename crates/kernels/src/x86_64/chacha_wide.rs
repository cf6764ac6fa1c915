//! The rounds of ChaCha20 over sets of sixteen blocks in the registers of AVX-512, or over one set
//! beside Poly1305 in the integer units.

use core::arch::x86_64::*;

use crate::x86_64::chacha_lanes::wide::{add, rotate, splat, xor};
use crate::x86_64::chacha_lanes::{aligned_frame, quarter_rounds};
use crate::x86_64::poly1305_words::Halves;

/// The twenty rounds over sets that follow each other, from the words of the first.
///
/// Two sets take all registers. On a Zen 5, where each operation takes two cycles, they take no
/// longer than one set, whose operations wait for each other.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn rounds<const SETS: usize>(words: &[__m512i; 16]) -> [[__m512i; 16]; SETS] {
    aligned_frame();
    let mut v = [*words; SETS];
    for (set, v) in v.iter_mut().enumerate() {
        v[12] = add(v[12], splat(16 * set as u32));
    }
    for _ in 0..10 {
        quarter_rounds!(SETS, v, [0 4 8 12] [1 5 9 13] [2 6 10 14] [3 7 11 15]);
        quarter_rounds!(SETS, v, [0 5 10 15] [1 6 11 12] [2 7 8 13] [3 4 9 14]);
    }
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
