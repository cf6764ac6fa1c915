//! SHA-2 with a message in each element of the vectors: SHA-256 over 16 messages
//! and SHA-512 over 8, with AVX-512.
//!
//! A vector holds the same word of every message; the rounds are those of the
//! standard. Lanes without a message do the work of the last one over again.

use core::arch::asm;
use core::arch::x86_64::*;

use crate::cpu::{HaveAvx512, begins_four};
use crate::sha2::constants::{K256, K512};
use crate::sha2::hash::SHA256_PLACES;
use crate::x86_64::rows::{load2, load16, store4, transpose512};

/// Compresses whole blocks of 1 to 16 messages; all have the same length.
pub(crate) fn sha256_x16(_: HaveAvx512, states: &mut [[u32; 8]], blocks: &[&[u8]]) {
    // SAFETY: the token is made only where the instructions are present.
    unsafe {
        match begins_four() {
            false => x16::compress::<true>(states, blocks),
            true => x16::compress::<false>(states, blocks),
        }
    }
}

/// Compresses whole blocks of 1 to 8 messages; all have the same length.
pub(crate) fn sha512_x8(_: HaveAvx512, states: &mut [[u64; 8]], blocks: &[&[u8]]) {
    // SAFETY: the token is made only where the instructions are present.
    unsafe {
        match begins_four() {
            false => x8::compress::<true>(states, blocks),
            true => x8::compress::<false>(states, blocks),
        }
    }
}

/// The compression function over `$lanes` messages. The vector's operations are
/// functions of the module it is used in.
///
/// With `FEW` a round has seven additions. Else two more, with which its results are there sooner: that
/// takes less time where a vector's results take two cycles and four operations begin in each, as on a
/// Zen 5, and more where two begin per cycle, as on an Intel Xeon or a Zen 4.
macro_rules! compress {
    (
        $features:literal, $lanes:literal x $word:ty, $k:ident, state: $places:expr, rounds / 16: $sixteens:literal,
        Sum0: $s0:literal $s1:literal $s2:literal, Sum1: $t0:literal $t1:literal $t2:literal,
        sigma0: $u0:literal $u1:literal >> $u2:literal, sigma1: $v0:literal $v1:literal >> $v2:literal
    ) => {
        #[target_feature(enable = $features)]
        pub(super) fn compress<const FEW: bool>(
            states: &mut [[$word; 8]],
            blocks: &[&[u8]],
        ) {
            const WORD: usize = size_of::<$word>();
            const BLOCK: usize = 16 * WORD;
            let last = states.len() - 1;
            let len = blocks[0].len();
            assert!(last < $lanes && blocks.len() == states.len());
            assert!(blocks.iter().all(|blocks| blocks.len() == len));
            // Every pointer below stays within these.
            let mut state = [core::ptr::null_mut::<u8>(); $lanes];
            let mut block = [core::ptr::null::<u8>(); $lanes];
            for l in 0..$lanes {
                state[l] = states[l.min(last)].as_mut_ptr().cast();
                block[l] = blocks[l.min(last)].as_ptr();
            }
            // SAFETY: a state is eight words.
            let mut sums: [V; 8] = unsafe { load(&state.map(|s| s.cast_const()), 0) };
            for offset in (0..len - len % BLOCK).step_by(BLOCK) {
                // SAFETY: a block has 16 words, and `offset + BLOCK` is at most `len`.
                let [low, high]: [[V; 8]; 2] = unsafe {
                    [load(&block, offset), load(&block, offset + 8 * WORD)]
                };
                let mut w = [low[0]; 16];
                for i in 0..8 {
                    w[i] = big_endian(low[i]);
                    w[i + 8] = big_endian(high[i]);
                }
                const AT: [usize; 8] = $places;
                let (mut a, mut b, mut c, mut d) =
                    (sums[AT[0]], sums[AT[1]], sums[AT[2]], sums[AT[3]]);
                let (mut e, mut f, mut g, mut h) =
                    (sums[AT[4]], sums[AT[5]], sums[AT[6]], sums[AT[7]]);
                macro_rules! round {
                    ($i:literal, $base:expr, $a:ident $b:ident $c:ident $d:ident $e:ident $f:ident $g:ident $h:ident) => {
                        if $base > 0 {
                            let (x, y) = (w[($i + 14) % 16], w[($i + 1) % 16]);
                            let sigma1 = xor3(ror::<$v0>(x), ror::<$v1>(x), shr::<$v2>(x));
                            let sigma0 = xor3(ror::<$u0>(y), ror::<$u1>(y), shr::<$u2>(y));
                            w[$i] = add(add(w[$i], w[($i + 9) % 16]), add(sigma0, sigma1));
                        }
                        let sum1 = xor3(ror::<$t0>($e), ror::<$t1>($e), ror::<$t2>($e));
                        let sum0 = xor3(ror::<$s0>($a), ror::<$s1>($a), ror::<$s2>($a));
                        // Three operations from e to the next e, and from a to the next a.
                        let known = in_order(add(add($h, w[$i]), splat($k[$base + $i])));
                        let chosen = choose($e, $f, $g);
                        if FEW {
                            let t1 = in_order(add(in_order(add(known, chosen)), sum1));
                            $d = add($d, t1);
                            $h = add(in_order(add(t1, majority($a, $b, $c))), sum0);
                        } else {
                            $d = in_order(add($d, known));
                            let t1 = in_order(add(in_order(add(known, chosen)), sum1));
                            $d = add(in_order(add($d, chosen)), sum1);
                            $h = add(in_order(add(t1, majority($a, $b, $c))), sum0);
                        }
                    };
                }
                for sixteen in 0..$sixteens {
                    let base = 16 * sixteen;
                    round!(0, base, a b c d e f g h);
                    round!(1, base, h a b c d e f g);
                    round!(2, base, g h a b c d e f);
                    round!(3, base, f g h a b c d e);
                    round!(4, base, e f g h a b c d);
                    round!(5, base, d e f g h a b c);
                    round!(6, base, c d e f g h a b);
                    round!(7, base, b c d e f g h a);
                    round!(8, base, a b c d e f g h);
                    round!(9, base, h a b c d e f g);
                    round!(10, base, g h a b c d e f);
                    round!(11, base, f g h a b c d e);
                    round!(12, base, e f g h a b c d);
                    round!(13, base, d e f g h a b c);
                    round!(14, base, c d e f g h a b);
                    round!(15, base, b c d e f g h a);
                }
                for (at, word) in AT.into_iter().zip([a, b, c, d, e, f, g, h]) {
                    sums[at] = add(sums[at], word);
                }
            }
            // SAFETY: a state is eight words.
            unsafe { store(&state, &sums) };
        }
    };
}
pub(super) use compress;

/// The functions of three operands in one instruction of AVX-512.
macro_rules! logic512 {
    () => {
        #[inline]
        #[target_feature(enable = "avx512f")]
        fn xor3(x: V, y: V, z: V) -> V {
            _mm512_ternarylogic_epi32::<0x96>(x, y, z)
        }

        #[inline]
        #[target_feature(enable = "avx512f")]
        fn choose(x: V, y: V, z: V) -> V {
            _mm512_ternarylogic_epi32::<0xca>(x, y, z)
        }

        #[inline]
        #[target_feature(enable = "avx512f")]
        fn majority(x: V, y: V, z: V) -> V {
            _mm512_ternarylogic_epi32::<0xe8>(x, y, z)
        }

        /// A sum that the compiler must not take apart: it would add up the operands of
        /// a round in an order of its own, and a round's latency is all that counts.
        #[inline]
        #[target_feature(enable = "avx512f")]
        fn in_order(mut x: V) -> V {
            // SAFETY: no instruction at all.
            unsafe {
                asm!("/* {0} */", inout(zmm_reg) x, options(pure, nomem, nostack, preserves_flags));
            }
            x
        }
    };
}

/// SHA-256, 16 messages.
mod x16 {
    use super::*;

    type V = __m512i;

    compress! {
        "avx512f,avx512bw", 16 x u32, K256, state: SHA256_PLACES, rounds / 16: 4,
        Sum0: 2 13 22, Sum1: 6 11 25, sigma0: 7 18 >> 3, sigma1: 17 19 >> 10
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn ror<const N: i32>(x: V) -> V {
        _mm512_ror_epi32::<N>(x)
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn shr<const N: u32>(x: V) -> V {
        _mm512_srli_epi32::<N>(x)
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn add(x: V, y: V) -> V {
        _mm512_add_epi32(x, y)
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn splat(x: u32) -> V {
        _mm512_set1_epi32(x as i32)
    }

    #[inline]
    #[target_feature(enable = "avx512bw")]
    fn big_endian(x: V) -> V {
        let order = _mm_set_epi64x(0x0c0d_0e0f_0809_0a0b, 0x0405_0607_0001_0203);
        _mm512_shuffle_epi8(x, _mm512_broadcast_i32x4(order))
    }

    logic512!();

    /// The eight words at `offset` of every lane.
    ///
    /// # Safety
    /// They must be readable.
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn load(lanes: &[*const u8; 16], offset: usize) -> [V; 8] {
        // SAFETY: by the contract of this function.
        let ([w0, w1, w2, w3], [w4, w5, w6, w7]) =
            unsafe { (load16(lanes, offset), load16(lanes, offset + 16)) };
        [w0, w1, w2, w3, w4, w5, w6, w7]
    }

    /// Writes eight words to every lane.
    ///
    /// # Safety
    /// They must be writable.
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn store(lanes: &[*mut u8; 16], words: &[V; 8]) {
        for half in 0..2 {
            let w = 4 * half;
            let rows = transpose512([words[w], words[w + 1], words[w + 2], words[w + 3]]);
            for (r, row) in rows.into_iter().enumerate() {
                // SAFETY: by the contract of this function.
                unsafe { store4(lanes, [r, r + 4, r + 8, r + 12], 16 * half, row) };
            }
        }
    }
}

/// SHA-512, 8 messages.
mod x8 {
    use super::*;

    type V = __m512i;

    compress! {
        "avx512f,avx512bw", 8 x u64, K512, state: [0, 1, 2, 3, 4, 5, 6, 7], rounds / 16: 5,
        Sum0: 28 34 39, Sum1: 14 18 41, sigma0: 1 8 >> 7, sigma1: 19 61 >> 6
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn ror<const N: i32>(x: V) -> V {
        _mm512_ror_epi64::<N>(x)
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn shr<const N: u32>(x: V) -> V {
        _mm512_srli_epi64::<N>(x)
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn add(x: V, y: V) -> V {
        _mm512_add_epi64(x, y)
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn splat(x: u64) -> V {
        _mm512_set1_epi64(x as i64)
    }

    #[inline]
    #[target_feature(enable = "avx512bw")]
    fn big_endian(x: V) -> V {
        let order = _mm_set_epi64x(0x0809_0a0b_0c0d_0e0f, 0x0001_0203_0405_0607);
        _mm512_shuffle_epi8(x, _mm512_broadcast_i32x4(order))
    }

    logic512!();

    /// The eight words at `offset` of every lane.
    ///
    /// # Safety
    /// They must be readable.
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn load(lanes: &[*const u8; 8], offset: usize) -> [V; 8] {
        let mut words = [_mm512_setzero_si512(); 8];
        for half in 0..2 {
            // SAFETY: by the contract of this function.
            let row = |l0, l1| unsafe { load2(lanes, [l0, l1], offset + 32 * half) };
            let (r0, r1, r2, r3) = (row(0, 2), row(1, 3), row(4, 6), row(5, 7));
            let (even, odd) = (_mm512_unpacklo_epi64(r0, r1), _mm512_unpackhi_epi64(r0, r1));
            let (even_2, odd_2) = (_mm512_unpacklo_epi64(r2, r3), _mm512_unpackhi_epi64(r2, r3));
            words[4 * half] = _mm512_shuffle_i64x2::<0x88>(even, even_2);
            words[4 * half + 1] = _mm512_shuffle_i64x2::<0x88>(odd, odd_2);
            words[4 * half + 2] = _mm512_shuffle_i64x2::<0xdd>(even, even_2);
            words[4 * half + 3] = _mm512_shuffle_i64x2::<0xdd>(odd, odd_2);
        }
        words
    }

    /// Writes eight words to every lane.
    ///
    /// # Safety
    /// They must be writable.
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn store(lanes: &[*mut u8; 8], words: &[V; 8]) {
        for pair in 0..4 {
            let (even, odd) = (words[2 * pair], words[2 * pair + 1]);
            // SAFETY: by the contract of this function.
            unsafe {
                store4(
                    lanes,
                    [0, 2, 4, 6],
                    16 * pair,
                    _mm512_unpacklo_epi64(even, odd),
                );
                store4(
                    lanes,
                    [1, 3, 5, 7],
                    16 * pair,
                    _mm512_unpackhi_epi64(even, odd),
                );
            }
        }
    }
}
