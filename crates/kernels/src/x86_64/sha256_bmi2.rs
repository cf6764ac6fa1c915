//! SHA-256 of one message without the SHA instructions: the rounds in general registers, the message
//! schedule in vectors.
//!
//! As [`sha512`](super::sha512) has it, the schedule is computed for two blocks at once in between
//! the rounds of the first, and the order of the instructions is written down.

use core::arch::asm;
use core::arch::x86_64::*;
use core::mem::MaybeUninit;

use crate::cpu::HaveBmi2;
use crate::sha2::constants::K256;
use crate::sha2::hash::SHA256_PLACES;
use crate::wipe::wipe;
use crate::x86_64::memory;

const BLOCK: usize = 64;

/// Four words of the first block, then four of the second, with their round constants added.
type Quad = [u32; 8];

/// Quads of a whole block, and of 16 rounds.
const QUADS: usize = 16;
const SIXTEEN: usize = 4;

/// The round constants, as a [`Quad`] needs them.
static CONSTANTS: [Quad; QUADS] = {
    let mut quads = [[0; 8]; QUADS];
    let mut i = 0;
    while i < 4 * QUADS {
        quads[i / 4][i % 4] = K256[i];
        quads[i / 4][i % 4 + 4] = K256[i];
        i += 1;
    }
    quads
};

/// Compresses whole blocks.
#[inline]
pub(crate) fn compress(_: HaveBmi2, state: &mut [u32; 8], blocks: &[u8]) {
    let mut ordered = SHA256_PLACES.map(|place| state[place]);
    // SAFETY: the token is made only where the instructions are present.
    unsafe { pairs_of_blocks(&mut ordered, blocks) }
    for (place, word) in SHA256_PLACES.into_iter().zip(ordered) {
        state[place] = word;
    }
    wipe(&mut ordered, [0; 8]);
}

/// A round, with instructions of the schedule at twelve places between its own.
///
/// `$wk + $at` is where the word with its constant stands, in bytes; `$bc` is b ^ c and is
/// lost, `$ab` becomes a ^ b, which is the b ^ c of the next round.
macro_rules! round {
    (
        $wk:ident + $at:expr,
        $a:ident $b:ident $c:ident $d:ident $e:ident $f:ident $g:ident $h:ident, $bc:ident $ab:ident,
        [$v0:literal $v1:literal $v2:literal $v3:literal $v4:literal $v5:literal
         $v6:literal $v7:literal $v8:literal $v9:literal $v10:literal $v11:literal]
        $($operand:ident = $($kind:tt)*)?
    ) => {
        asm!(
            "add {h:e}, dword ptr [{wk} + {at}]",
            "rorx {t0:e}, {e:e}, 25",
            "rorx {t1:e}, {e:e}, 11",
            $v0,
            "andn {ab:e}, {e:e}, {g:e}",
            "xor {t0:e}, {t1:e}",
            $v1,
            "rorx {t1:e}, {e:e}, 6",
            "add {h:e}, {ab:e}",
            $v2,
            "mov {ab:e}, {e:e}",
            "and {ab:e}, {f:e}",
            $v3,
            "xor {t0:e}, {t1:e}",
            "add {h:e}, {ab:e}",
            $v4,
            "rorx {t1:e}, {a:e}, 22",
            "rorx {ab:e}, {a:e}, 13",
            $v5,
            "xor {t1:e}, {ab:e}",
            "mov {ab:e}, {a:e}",
            $v6,
            "add {h:e}, {t0:e}",
            "xor {ab:e}, {b:e}",
            $v7,
            "rorx {t0:e}, {a:e}, 2",
            "add {d:e}, {h:e}",
            $v8,
            "and {bc:e}, {ab:e}",
            "xor {t1:e}, {t0:e}",
            $v9,
            "xor {bc:e}, {b:e}",
            "add {h:e}, {t1:e}",
            $v10,
            "add {h:e}, {bc:e}",
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
fn pairs_of_blocks(state: &mut [u32; 8], blocks: &[u8]) {
    let both = |high, low| _mm256_broadcastsi128_si256(_mm_set_epi64x(high, low));
    let big_endian = both(0x0c0d_0e0f_0809_0a0b, 0x0405_0607_0001_0203);
    // The first and the third word to the lower half, and to the upper one; zeros in the other.
    let to_low = both(-1, 0x0b0a_0908_0302_0100);
    let to_high = both(0x0b0a_0908_0302_0100, -1);
    let mut memory = MaybeUninit::<[Quad; QUADS]>::uninit();
    let words = memory.as_mut_ptr().cast::<Quad>();
    let (blocks, _) = blocks.as_chunks::<BLOCK>();
    for blocks in blocks.chunks(2) {
        let first = &blocks[0];
        // A block without a second is its own: nothing waits for the upper halves.
        let second = blocks.get(1).unwrap_or(first);
        let mut w = [_mm256_setzero_si256(); SIXTEEN];
        for (i, w) in w.iter_mut().enumerate() {
            // SAFETY: 16 of the 64 bytes of each block, and one quad of the 16.
            unsafe {
                let low = memory::load(first.as_ptr().add(16 * i));
                let high = memory::load(second.as_ptr().add(16 * i));
                *w = _mm256_shuffle_epi8(_mm256_set_m128i(high, low), big_endian);
                let constants = memory::load(CONSTANTS.as_ptr().add(i).cast());
                _mm256_storeu_si256(words.add(i).cast(), _mm256_add_epi32(*w, constants));
            }
        }

        let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *state;
        let mut bc = b ^ c;
        let mut ab: u32;
        // The words of the block whose rounds these are, and the constants of those that
        // the schedule makes: both for 16 rounds.
        let mut wk = words.cast::<u8>();
        let mut k = CONSTANTS[SIXTEEN..].as_ptr();
        // Sixteen rounds: for each four of them their number, and the quads that the schedule
        // takes besides its own: those 1, 2 and 3 ahead.
        macro_rules! sixteen {
            ($four:ident) => {
                $four!(0, 1 2 3, a b c d e f g h);
                $four!(1, 2 3 0, e f g h a b c d);
                $four!(2, 3 0 1, a b c d e f g h);
                $four!(3, 0 1 2, e f g h a b c d);
            };
        }
        // Four rounds, and the words of 16 rounds later for both blocks: w[0] becomes
        // w[0] + sigma0(w[1..]) + w[9..] + sigma1(w[14..]), FIPS 180-4 section 6.2.2. The last two
        // words need the first two. A word twice in 64 bits turns by a shift of these.
        macro_rules! scheduling {
            (
                $i:literal, $w1:literal $w2:literal $w3:literal,
                $a:ident $b:ident $c:ident $d:ident $e:ident $f:ident $g:ident $h:ident
            ) => {
                let sigma0: __m256i;
                // SAFETY: reads the four words of these rounds, and the constants of a quad;
                // writes the quad that is 4 behind this one, of which there are 16.
                unsafe {
                    round!(
                        wk + 32 * $i, $a $b $c $d $e $f $g $h, bc ab,
                        ["vpalignr {y}, {w1}, {w0}, 4"
                         "vpalignr {s}, {w3}, {w2}, 4"
                         "vpaddd {w0}, {w0}, {s}"
                         "vpsrld {s}, {y}, 7"
                         "vpslld {t}, {y}, 25"
                         "vpxor {s}, {s}, {t}"
                         "vpsrld {t}, {y}, 18"
                         "vpxor {s}, {s}, {t}"
                         "vpslld {t}, {y}, 14"
                         "vpsrld {y}, {y}, 3"
                         "vpxor {s}, {s}, {t}"
                         "vpxor {s}, {s}, {y}"]
                        w0 = inout(ymm_reg) w[$i], w1 = in(ymm_reg) w[$w1],
                        w2 = in(ymm_reg) w[$w2], w3 = in(ymm_reg) w[$w3],
                        s = out(ymm_reg) sigma0, t = out(ymm_reg) _, y = out(ymm_reg) _
                    );
                    round!(
                        wk + 32 * $i + 4, $h $a $b $c $d $e $f $g, ab bc,
                        ["vpaddd {w0}, {w0}, {s}"
                         "vpshufd {y}, {w3}, 0xfa"
                         "vpsrlq {s}, {y}, 17"
                         "vpsrlq {t}, {y}, 19"
                         "vpsrld {y}, {y}, 10"
                         "vpxor {s}, {s}, {t}"
                         "vpxor {s}, {s}, {y}"
                         "vpshufb {s}, {s}, {to_low}"
                         ""
                         "vpaddd {w0}, {w0}, {s}"
                         ""
                         ""]
                        w0 = inout(ymm_reg) w[$i], w3 = in(ymm_reg) w[$w3],
                        to_low = in(ymm_reg) to_low,
                        s = inout(ymm_reg) sigma0 => _, t = out(ymm_reg) _, y = out(ymm_reg) _
                    );
                    round!(
                        wk + 32 * $i + 8, $g $h $a $b $c $d $e $f, bc ab,
                        ["vpshufd {y}, {w0}, 0x50"
                         "vpsrlq {s}, {y}, 17"
                         "vpsrlq {t}, {y}, 19"
                         "vpsrld {y}, {y}, 10"
                         "vpxor {s}, {s}, {t}"
                         "vpxor {s}, {s}, {y}"
                         "vpshufb {s}, {s}, {to_high}"
                         ""
                         "vpaddd {w0}, {w0}, {s}"
                         "vpaddd {t}, {w0}, [{k} + 32 * {i}]"
                         ""
                         "vmovdqu [{wk} + 32 * {i} + 128], {t}"]
                        w0 = inout(ymm_reg) w[$i], to_high = in(ymm_reg) to_high,
                        s = out(ymm_reg) _, t = out(ymm_reg) _, y = out(ymm_reg) _,
                        k = in(reg) k, i = const $i
                    );
                    round!(
                        wk + 32 * $i + 12, $f $g $h $a $b $c $d $e, ab bc,
                        ["" "" "" "" "" "" "" "" "" "" "" ""]
                    );
                }
            };
        }
        // Four rounds alone.
        macro_rules! scheduled {
            (
                $i:literal, $w1:literal $w2:literal $w3:literal,
                $a:ident $b:ident $c:ident $d:ident $e:ident $f:ident $g:ident $h:ident
            ) => {
                scheduled!(wk + 32 * $i, $a $b $c $d $e $f $g $h, bc ab);
                scheduled!(wk + 32 * $i + 4, $h $a $b $c $d $e $f $g, ab bc);
                scheduled!(wk + 32 * $i + 8, $g $h $a $b $c $d $e $f, bc ab);
                scheduled!(wk + 32 * $i + 12, $f $g $h $a $b $c $d $e, ab bc);
            };
            ($($round:tt)*) => {
                // SAFETY: reads the word of this round.
                unsafe { round!($($round)*, ["" "" "" "" "" "" "" "" "" "" "" ""]) }
            };
        }
        for _ in 1..QUADS / SIXTEEN {
            sixteen!(scheduling);
            wk = wk.wrapping_add(32 * SIXTEEN);
            k = k.wrapping_add(SIXTEEN);
        }
        sixteen!(scheduled);
        add(state, [a, b, c, d, e, f, g, h]);
        if blocks.len() == 2 {
            [a, b, c, d, e, f, g, h] = *state;
            bc = b ^ c;
            wk = words.cast::<u8>().wrapping_add(16);
            for _ in 0..QUADS / SIXTEEN {
                sixteen!(scheduled);
                wk = wk.wrapping_add(32 * SIXTEEN);
            }
            add(state, [a, b, c, d, e, f, g, h]);
        }
    }
    for i in 0..QUADS {
        // SAFETY: one quad of the 16.
        unsafe { _mm256_storeu_si256(words.add(i).cast(), _mm256_setzero_si256()) };
    }
    // SAFETY: an empty statement, of which the compiler has to assume that it reads the
    // words, so that it keeps the stores above.
    unsafe { asm!("/* {0} */", in(reg) words, options(nostack, preserves_flags)) };
}

#[inline(always)]
fn add(state: &mut [u32; 8], words: [u32; 8]) {
    for (sum, word) in state.iter_mut().zip(words) {
        *sum = sum.wrapping_add(word);
    }
}
