//! SHA-512 of one message: the rounds in general registers, the message schedule in vectors.
//!
//! The rounds depend on one another, so a lone message waits for them; the schedule depends
//! on the message alone. It is computed for two blocks at once, the first in the lower halves
//! of the vectors and the second in the upper ones, in between the rounds of the first block.
//! The rounds of the second block find its words, with the constants added, in memory.
//!
//! The order of the instructions is written down, since the compiler collects those of the
//! schedule in one place, where they keep the rounds waiting: that takes 12 % more time.

use core::arch::asm;
use core::arch::x86_64::*;
use core::mem::MaybeUninit;

use crate::cpu::HaveBmi2;
use crate::sha2::constants::K512;
use crate::x86_64::memory;

const BLOCK: usize = 128;

/// Two words of the first block, then two of the second, with their round constants added.
type Pair = [u64; 4];

/// Pairs of a whole block, and of 16 rounds.
const PAIRS: usize = 40;
const SIXTEEN: usize = 8;

/// The round constants, as a [`Pair`] needs them.
static CONSTANTS: [Pair; PAIRS] = {
    let mut pairs = [[0; 4]; PAIRS];
    let mut i = 0;
    while i < PAIRS {
        let (even, odd) = (K512[2 * i], K512[2 * i + 1]);
        pairs[i] = [even, odd, even, odd];
        i += 1;
    }
    pairs
};

/// Compresses whole blocks.
#[inline]
pub(crate) fn compress(_: HaveBmi2, state: &mut [u64; 8], blocks: &[u8]) {
    // SAFETY: the token is made only where the instructions are present.
    unsafe { pairs_of_blocks(state, blocks) }
}

/// A round, with instructions of the schedule at twelve places between its own.
///
/// `$wk + $at` is where the word with its constant stands, in words; `$bc` is b ^ c and is
/// lost, `$ab` becomes a ^ b, which is the b ^ c of the next round.
macro_rules! round {
    (
        $wk:ident + $at:literal,
        $a:ident $b:ident $c:ident $d:ident $e:ident $f:ident $g:ident $h:ident, $bc:ident $ab:ident,
        [$v0:literal $v1:literal $v2:literal $v3:literal $v4:literal $v5:literal
         $v6:literal $v7:literal $v8:literal $v9:literal $v10:literal $v11:literal]
        $($operand:ident = $($kind:tt)*)?
    ) => {
        asm!(
            "add {h}, [{wk} + 8 * {at}]",
            "rorx {t0}, {e}, 41",
            "rorx {t1}, {e}, 18",
            $v0,
            "andn {ab}, {e}, {g}",
            "xor {t0}, {t1}",
            $v1,
            "rorx {t1}, {e}, 14",
            "add {h}, {ab}",
            $v2,
            "mov {ab}, {e}",
            "and {ab}, {f}",
            $v3,
            "xor {t0}, {t1}",
            "add {h}, {ab}",
            $v4,
            "rorx {t1}, {a}, 39",
            "rorx {ab}, {a}, 34",
            $v5,
            "xor {t1}, {ab}",
            "mov {ab}, {a}",
            $v6,
            "add {h}, {t0}",
            "xor {ab}, {b}",
            $v7,
            "rorx {t0}, {a}, 28",
            "add {d}, {h}",
            $v8,
            "and {bc}, {ab}",
            "xor {t1}, {t0}",
            $v9,
            "xor {bc}, {b}",
            "add {h}, {t1}",
            $v10,
            "add {h}, {bc}",
            $v11,
            wk = in(reg) $wk, at = const $at,
            a = in(reg) $a, b = in(reg) $b, d = inout(reg) $d, e = in(reg) $e,
            f = in(reg) $f, g = in(reg) $g, h = inout(reg) $h,
            bc = inout(reg) $bc => _, ab = out(reg) $ab,
            t0 = out(reg) _, t1 = out(reg) _,
            $($operand = $($kind)*,)?
            options(nostack),
        )
    };
}

#[target_feature(enable = "avx2,bmi1,bmi2")]
#[allow(unused_assignments)] // Nobody needs the b ^ c behind the last round.
fn pairs_of_blocks(state: &mut [u64; 8], blocks: &[u8]) {
    let big_endian =
        _mm256_broadcastsi128_si256(_mm_set_epi64x(0x0809_0a0b_0c0d_0e0f, 0x0001_0203_0405_0607));
    let right_by_8 =
        _mm256_broadcastsi128_si256(_mm_set_epi64x(0x080f_0e0d_0c0b_0a09, 0x0007_0605_0403_0201));
    let mut memory = MaybeUninit::<[Pair; PAIRS]>::uninit();
    let words = memory.as_mut_ptr().cast::<Pair>();
    let (blocks, _) = blocks.as_chunks::<BLOCK>();
    for blocks in blocks.chunks(2) {
        let first = &blocks[0];
        // A block without a second is its own: nothing waits for the upper halves.
        let second = blocks.get(1).unwrap_or(first);
        let mut w = [_mm256_setzero_si256(); SIXTEEN];
        for (i, w) in w.iter_mut().enumerate() {
            // SAFETY: 16 of the 128 bytes of each block, and one pair of the 40.
            unsafe {
                let low = memory::load(first.as_ptr().add(16 * i));
                let high = memory::load(second.as_ptr().add(16 * i));
                *w = _mm256_shuffle_epi8(_mm256_set_m128i(high, low), big_endian);
                let constants = memory::load(CONSTANTS.as_ptr().add(i).cast());
                _mm256_storeu_si256(words.add(i).cast(), _mm256_add_epi64(*w, constants));
            }
        }

        let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *state;
        let mut bc = b ^ c;
        let mut ab: u64;
        // The words of the block whose rounds these are, and the constants of those that
        // the schedule makes: both for 16 rounds.
        let mut wk = words.cast::<u64>();
        let mut k = CONSTANTS[SIXTEEN..].as_ptr();
        // Sixteen rounds: for each pair of them its number, the places of its words, and
        // the pairs that the schedule takes besides its own: those 1, 4, 5 and 7 ahead.
        macro_rules! sixteen {
            ($two:ident) => {
                $two!(0, 0 1, 1 4 5 7, a b c d e f g h);
                $two!(1, 4 5, 2 5 6 0, g h a b c d e f);
                $two!(2, 8 9, 3 6 7 1, e f g h a b c d);
                $two!(3, 12 13, 4 7 0 2, c d e f g h a b);
                $two!(4, 16 17, 5 0 1 3, a b c d e f g h);
                $two!(5, 20 21, 6 1 2 4, g h a b c d e f);
                $two!(6, 24 25, 7 2 3 5, e f g h a b c d);
                $two!(7, 28 29, 0 3 4 6, c d e f g h a b);
            };
        }
        // Two rounds, and the words of 16 rounds later for both blocks: w[0] becomes
        // w[0] + sigma0(w[1..]) + w[9..] + sigma1(w[14..]), FIPS 180-4 section 6.4.2.
        macro_rules! scheduling {
            (
                $i:literal, $even:literal $odd:literal, $w1:literal $w4:literal $w5:literal $w7:literal,
                $a:ident $b:ident $c:ident $d:ident $e:ident $f:ident $g:ident $h:ident
            ) => {
                let sigma1: __m256i;
                // SAFETY: reads the two words of these rounds, and the constants of a pair;
                // writes the pair that is 8 behind this one, of which there are 40.
                unsafe {
                    round!(
                        wk + $even, $a $b $c $d $e $f $g $h, bc ab,
                        ["vpalignr {y}, {w1}, {w0}, 8"
                         "vpalignr {s}, {w5}, {w4}, 8"
                         "vpaddq {w0}, {w0}, {s}"
                         "vpsrlq {s}, {y}, 7"
                         "vpsrlq {t}, {y}, 1"
                         "vpxor {s}, {s}, {t}"
                         "vpsllq {t}, {y}, 63"
                         "vpshufb {y}, {y}, {right_by_8}"
                         "vpxor {s}, {s}, {t}"
                         "vpxor {s}, {s}, {y}"
                         "vpaddq {w0}, {w0}, {s}"
                         "vpsrlq {s}, {w7}, 6"]
                        w0 = inout(ymm_reg) w[$i], w1 = in(ymm_reg) w[$w1],
                        w4 = in(ymm_reg) w[$w4], w5 = in(ymm_reg) w[$w5],
                        w7 = in(ymm_reg) w[$w7], right_by_8 = in(ymm_reg) right_by_8,
                        s = out(ymm_reg) sigma1, t = out(ymm_reg) _, y = out(ymm_reg) _
                    );
                    round!(
                        wk + $odd, $h $a $b $c $d $e $f $g, ab bc,
                        ["vpsrlq {t}, {w7}, 19"
                         "vpsllq {y}, {w7}, 45"
                         "vpxor {s}, {s}, {t}"
                         "vpsrlq {t}, {w7}, 61"
                         "vpxor {s}, {s}, {y}"
                         "vpsllq {y}, {w7}, 3"
                         "vpxor {s}, {s}, {t}"
                         "vpxor {s}, {s}, {y}"
                         "vpaddq {w0}, {w0}, {s}"
                         "vpaddq {t}, {w0}, [{k} + 32 * {i}]"
                         ""
                         "vmovdqu [{wk} + 32 * {i} + 256], {t}"]
                        w0 = inout(ymm_reg) w[$i], w7 = in(ymm_reg) w[$w7],
                        s = inout(ymm_reg) sigma1 => _, t = out(ymm_reg) _, y = out(ymm_reg) _,
                        k = in(reg) k, i = const $i
                    );
                }
            };
        }
        // Two rounds alone.
        macro_rules! scheduled {
            (
                $i:literal, $even:literal $odd:literal, $w1:literal $w4:literal $w5:literal $w7:literal,
                $a:ident $b:ident $c:ident $d:ident $e:ident $f:ident $g:ident $h:ident
            ) => {
                // SAFETY: reads the two words of these rounds.
                unsafe {
                    round!(
                        wk + $even, $a $b $c $d $e $f $g $h, bc ab,
                        ["" "" "" "" "" "" "" "" "" "" "" ""]
                    );
                    round!(
                        wk + $odd, $h $a $b $c $d $e $f $g, ab bc,
                        ["" "" "" "" "" "" "" "" "" "" "" ""]
                    );
                }
            };
        }
        for _ in 1..PAIRS / SIXTEEN {
            sixteen!(scheduling);
            wk = wk.wrapping_add(4 * SIXTEEN);
            k = k.wrapping_add(SIXTEEN);
        }
        sixteen!(scheduled);
        add(state, [a, b, c, d, e, f, g, h]);
        if blocks.len() == 2 {
            [a, b, c, d, e, f, g, h] = *state;
            bc = b ^ c;
            wk = words.cast::<u64>().wrapping_add(2);
            for _ in 0..PAIRS / SIXTEEN {
                sixteen!(scheduled);
                wk = wk.wrapping_add(4 * SIXTEEN);
            }
            add(state, [a, b, c, d, e, f, g, h]);
        }
    }
    for i in 0..PAIRS {
        // SAFETY: one pair of the 40.
        unsafe { _mm256_storeu_si256(words.add(i).cast(), _mm256_setzero_si256()) };
    }
    // SAFETY: an empty statement, of which the compiler has to assume that it reads the
    // words, so that it keeps the stores above.
    unsafe { asm!("/* {0} */", in(reg) words, options(nostack, preserves_flags)) };
}

#[inline(always)]
fn add(state: &mut [u64; 8], words: [u64; 8]) {
    for (sum, word) in state.iter_mut().zip(words) {
        *sum = sum.wrapping_add(word);
    }
}
