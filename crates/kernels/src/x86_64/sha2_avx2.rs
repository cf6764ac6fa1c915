//! As [`sha2_wide`](super::sha2_wide), with AVX2: SHA-256 over 8 messages, for processors without the
//! instructions for it, and SHA-512 over 4.

use core::arch::asm;
use core::arch::x86_64::*;

use crate::cpu::HaveAvx2;
use crate::sha2::constants::{K256, K512};
use crate::sha2::hash::SHA256_PLACES;
use crate::x86_64::memory;
use crate::x86_64::rows::{load8, transpose256};
use crate::x86_64::sha2_wide::compress;

/// Compresses whole blocks of 1 to 8 messages; all have the same length.
pub(crate) fn sha256_x8(_: HaveAvx2, states: &mut [[u32; 8]], blocks: &[&[u8]]) {
    // SAFETY: the token is made only where the instructions are present.
    unsafe { x8::compress::<false>(states, blocks) }
}

/// Compresses whole blocks of 1 to 4 messages; all have the same length.
pub(crate) fn sha512_x4(_: HaveAvx2, states: &mut [[u64; 8]], blocks: &[&[u8]]) {
    // SAFETY: the token is made only where the instructions are present.
    unsafe { x4::compress::<false>(states, blocks) }
}

/// The functions of three operands.
macro_rules! logic256 {
    () => {
        /// A sum that the compiler must not take apart, as in `sha2_wide`.
        #[inline]
        #[target_feature(enable = "avx2")]
        fn in_order(mut x: V) -> V {
            // SAFETY: no instruction at all.
            unsafe {
                asm!("/* {0} */", inout(ymm_reg) x, options(pure, nomem, nostack, preserves_flags));
            }
            x
        }

        #[inline]
        #[target_feature(enable = "avx2")]
        fn xor3(x: V, y: V, z: V) -> V {
            _mm256_xor_si256(_mm256_xor_si256(x, y), z)
        }

        #[inline]
        #[target_feature(enable = "avx2")]
        fn choose(x: V, y: V, z: V) -> V {
            _mm256_xor_si256(z, _mm256_and_si256(x, _mm256_xor_si256(y, z)))
        }

        /// In this form one of the three operations is also the next round's.
        #[inline]
        #[target_feature(enable = "avx2")]
        fn majority(x: V, y: V, z: V) -> V {
            let both = _mm256_and_si256(_mm256_xor_si256(x, y), _mm256_xor_si256(y, z));
            _mm256_xor_si256(y, both)
        }
    };
}

/// SHA-256, 8 messages.
mod x8 {
    use super::*;

    type V = __m256i;

    compress! {
        "avx2", 8 x u32, K256, state: SHA256_PLACES, rounds / 16: 4,
        Sum0: 2 13 22, Sum1: 6 11 25, sigma0: 7 18 >> 3, sigma1: 17 19 >> 10
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn ror<const N: i32>(x: V) -> V {
        let right = _mm256_srl_epi32(x, _mm_cvtsi32_si128(N));
        _mm256_or_si256(right, _mm256_sll_epi32(x, _mm_cvtsi32_si128(32 - N)))
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn shr<const N: i32>(x: V) -> V {
        _mm256_srli_epi32::<N>(x)
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn add(x: V, y: V) -> V {
        _mm256_add_epi32(x, y)
    }

    logic256!();

    #[inline]
    #[target_feature(enable = "avx2")]
    fn splat(x: u32) -> V {
        _mm256_set1_epi32(x as i32)
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn big_endian(x: V) -> V {
        let order = _mm_set_epi64x(0x0c0d_0e0f_0809_0a0b, 0x0405_0607_0001_0203);
        _mm256_shuffle_epi8(x, _mm256_broadcastsi128_si256(order))
    }

    /// The eight words at `offset` of every lane.
    ///
    /// # Safety
    /// They must be readable.
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn load(lanes: &[*const u8; 8], offset: usize) -> [V; 8] {
        // SAFETY: by the contract of this function.
        let ([w0, w1, w2, w3], [w4, w5, w6, w7]) =
            unsafe { (load8(lanes, offset), load8(lanes, offset + 16)) };
        [w0, w1, w2, w3, w4, w5, w6, w7]
    }

    /// Writes eight words to every lane.
    ///
    /// # Safety
    /// They must be writable.
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn store(lanes: &[*mut u8; 8], words: &[V; 8]) {
        for half in 0..2 {
            let w = 4 * half;
            let rows = transpose256([words[w], words[w + 1], words[w + 2], words[w + 3]]);
            for (r, row) in rows.into_iter().enumerate() {
                // SAFETY: by the contract of this function.
                unsafe {
                    let (low, high) = (lanes[r].add(16 * half), lanes[r + 4].add(16 * half));
                    _mm256_storeu2_m128i(high.cast(), low.cast(), row);
                }
            }
        }
    }
}

/// SHA-512, 4 messages.
mod x4 {
    use super::*;

    type V = __m256i;

    compress! {
        "avx2", 4 x u64, K512, state: [0, 1, 2, 3, 4, 5, 6, 7], rounds / 16: 5,
        Sum0: 28 34 39, Sum1: 14 18 41, sigma0: 1 8 >> 7, sigma1: 19 61 >> 6
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn ror<const N: i32>(x: V) -> V {
        if N == 8 {
            let order = _mm_set_epi64x(0x080f_0e0d_0c0b_0a09, 0x0007_0605_0403_0201);
            return _mm256_shuffle_epi8(x, _mm256_broadcastsi128_si256(order));
        }
        let right = _mm256_srl_epi64(x, _mm_cvtsi32_si128(N));
        _mm256_or_si256(right, _mm256_sll_epi64(x, _mm_cvtsi32_si128(64 - N)))
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn shr<const N: i32>(x: V) -> V {
        _mm256_srli_epi64::<N>(x)
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn add(x: V, y: V) -> V {
        _mm256_add_epi64(x, y)
    }

    logic256!();

    #[inline]
    #[target_feature(enable = "avx2")]
    fn splat(x: u64) -> V {
        _mm256_set1_epi64x(x as i64)
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn big_endian(x: V) -> V {
        let order = _mm_set_epi64x(0x0809_0a0b_0c0d_0e0f, 0x0001_0203_0405_0607);
        _mm256_shuffle_epi8(x, _mm256_broadcastsi128_si256(order))
    }

    /// The eight words at `offset` of every lane.
    ///
    /// # Safety
    /// They must be readable.
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn load(lanes: &[*const u8; 4], offset: usize) -> [V; 8] {
        let mut words = [_mm256_setzero_si256(); 8];
        for pair in 0..4 {
            // SAFETY: by the contract of this function.
            let [l0, l1, l2, l3] = unsafe {
                let offset = offset + 16 * pair;
                [
                    memory::load(lanes[0].add(offset)),
                    memory::load(lanes[1].add(offset)),
                    memory::load(lanes[2].add(offset)),
                    memory::load(lanes[3].add(offset)),
                ]
            };
            let (even, odd) = (_mm256_set_m128i(l2, l0), _mm256_set_m128i(l3, l1));
            words[2 * pair] = _mm256_unpacklo_epi64(even, odd);
            words[2 * pair + 1] = _mm256_unpackhi_epi64(even, odd);
        }
        words
    }

    /// Writes eight words to every lane.
    ///
    /// # Safety
    /// They must be writable.
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn store(lanes: &[*mut u8; 4], words: &[V; 8]) {
        for pair in 0..4 {
            let (w0, w1) = (words[2 * pair], words[2 * pair + 1]);
            let (even, odd) = (_mm256_unpacklo_epi64(w0, w1), _mm256_unpackhi_epi64(w0, w1));
            let rows = [
                _mm256_castsi256_si128(even),
                _mm256_castsi256_si128(odd),
                _mm256_extracti128_si256::<1>(even),
                _mm256_extracti128_si256::<1>(odd),
            ];
            for (lane, row) in lanes.iter().zip(rows) {
                // SAFETY: by the contract of this function.
                unsafe { _mm_storeu_si128(lane.add(16 * pair).cast(), row) };
            }
        }
    }
}
