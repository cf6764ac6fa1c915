//! The S-box of Kuznyechik in 256-bit registers, a byte a lane, by logarithms in the subfield
//! of 16 elements: a product is a sum of exponents, and functions of a nibble are look-ups
//! in 16 bytes.

use core::arch::x86_64::*;

use crate::kuznyechik::field::{self, BACKWARD, EXP, FORWARD, LOG};
use crate::x86_64::memory;

/// The exponent of 0: sums with it keep the top bit, for which a look-up gives 0.
const NONE: u8 = 0xf0;

/// π in tower form by [`FORWARD`], over exponents.
struct SubstituteTables {
    log_low: [u8; 16],
    log_inverse_high: [u8; 16],
    /// By the exponent of t. A look-up for t = 0 gives 0, so what it should give is
    /// taken from all others, and put into the look-up that follows.
    coset: [u8; 16],
    unit: [u8; 16],
    log_high: [u8; 16],
    scale: [u8; 16],
    line: [u8; 16],
}

static SUBSTITUTE: SubstituteTables = {
    let mut new = SubstituteTables {
        log_low: [NONE; 16],
        log_inverse_high: [NONE; 16],
        coset: [0; 16],
        unit: [0; 16],
        log_high: [NONE; 16],
        scale: [0; 16],
        line: [0; 16],
    };
    let common = field::TO_TOWER[FORWARD.coset[0] as usize];
    let unit = LOG[FORWARD.unit[0] as usize];
    let mut x = 0;
    while x < 16 {
        if x > 0 {
            new.log_low[x] = LOG[x];
            new.log_inverse_high[x] = (15 - LOG[x]) % 15;
            new.log_high[x] = (LOG[x] + unit) % 15;
        }
        if x < 15 {
            let element = EXP[x] as usize;
            new.coset[x] = field::TO_TOWER[FORWARD.coset[element] as usize] ^ common;
            new.unit[x] = (15 + LOG[FORWARD.unit[element] as usize] - unit) % 15;
            new.scale[x] = field::TO_TOWER[FORWARD.scale[element] as usize] ^ common;
        }
        new.line[x] = field::TO_TOWER[FORWARD.line[x] as usize];
        x += 1;
    }
    new
};

/// The inverse of π in split form by [`BACKWARD`], over exponents.
struct RestoreTables {
    log_scale: [u8; 16],
    log_high: [u8; 16],
    log_low: [u8; 16],
    high: [u8; 16],
    low: [u8; 16],
    line: [u8; 16],
}

static RESTORE: RestoreTables = {
    let mut new = RestoreTables {
        log_scale: [NONE; 16],
        log_high: [NONE; 16],
        log_low: [NONE; 16],
        high: [0; 16],
        low: [0; 16],
        line: [0; 16],
    };
    let mut x = 0;
    while x < 16 {
        if BACKWARD.scale[x] != 0 {
            new.log_scale[x] = LOG[BACKWARD.scale[x] as usize];
        }
        new.log_high[x] = LOG[BACKWARD.high[x] as usize];
        if BACKWARD.low[x] != 0 {
            new.log_low[x] = LOG[BACKWARD.low[x] as usize];
        }
        if x < 15 {
            let element = EXP[x] as usize;
            new.high[x] = in_split(element << 4);
            new.low[x] = in_split(element);
        }
        new.line[x] = in_split(BACKWARD.line[x] as usize);
        x += 1;
    }
    new
};

/// From tower to split form.
const fn in_split(tower: usize) -> u8 {
    field::TO_SPLIT_LINEAR[field::FROM_TOWER[tower] as usize]
}

/// π in tower form.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn substitute(x: __m256i) -> __m256i {
    let xor = |x, y| _mm256_xor_si256(x, y);
    let (low, high) = nibbles(x);
    let inverse = look_up(&SUBSTITUTE.log_inverse_high, high);
    let t = sum_of_logs(look_up(&SUBSTITUTE.log_low, low), inverse);
    let log_high = look_up(&SUBSTITUTE.log_high, high);
    let scale = sum_of_logs(log_high, look_up(&SUBSTITUTE.unit, t));
    let bent = xor(
        look_up(&SUBSTITUTE.coset, t),
        look_up(&SUBSTITUTE.scale, scale),
    );
    xor(bent, look_up(&SUBSTITUTE.line, only_low(x)))
}

/// The inverse of π in split form.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn restore(x: __m256i) -> __m256i {
    let xor = |x, y| _mm256_xor_si256(x, y);
    let (low, high) = nibbles(x);
    let scale = look_up(&RESTORE.log_scale, high);
    let first = sum_of_logs(scale, look_up(&RESTORE.log_high, low));
    let second = sum_of_logs(scale, look_up(&RESTORE.log_low, low));
    let bent = xor(look_up(&RESTORE.high, first), look_up(&RESTORE.low, second));
    xor(bent, look_up(&RESTORE.line, only_low(x)))
}

/// The low and the high nibble.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn nibbles(x: __m256i) -> (__m256i, __m256i) {
    let mask = _mm256_set1_epi8(15);
    let high = _mm256_and_si256(_mm256_srli_epi16::<4>(x), mask);
    (_mm256_and_si256(x, mask), high)
}

/// The sum of two exponents modulo 15, with the top bit set if one of them has it.
#[inline]
#[target_feature(enable = "avx2")]
fn sum_of_logs(x: __m256i, y: __m256i) -> __m256i {
    let sum = _mm256_add_epi8(x, y);
    _mm256_min_epu8(sum, _mm256_sub_epi8(sum, _mm256_set1_epi8(15)))
}

/// The low nibble to look up if the high one is 0, otherwise the top bit.
#[inline]
#[target_feature(enable = "avx2")]
fn only_low(x: __m256i) -> __m256i {
    _mm256_adds_epu8(x, _mm256_set1_epi8(0x70))
}

/// The byte of the table by the low nibble of each lane, 0 where the top bit is set.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn look_up(table: &[u8; 16], x: __m256i) -> __m256i {
    // SAFETY: 16 bytes are read of 16.
    let table = unsafe { memory::load(table.as_ptr()) };
    _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(table), x)
}
