//! Sums of products without carries, for MGM.

use core::arch::x86_64::*;

use crate::cpu::HaveClmul;
use crate::x86_64::memory;

/// Adds the products of blocks of 16 bytes to the 256-bit sum (high, low).
#[inline]
pub(crate) fn add_128(_: HaveClmul, sum: (&mut u128, &mut u128), h: &[[u8; 16]], x: &[[u8; 16]]) {
    #[target_feature(enable = "pclmulqdq,ssse3")]
    fn inner(high: &mut u128, low: &mut u128, h: &[[u8; 16]], x: &[[u8; 16]]) {
        let zero = _mm_setzero_si128();
        let (mut top, mut middle, mut bottom) = (zero, zero, zero);
        for (h, x) in h.iter().zip(x) {
            let (h, x) = (number(h), number(x));
            top = _mm_xor_si128(top, _mm_clmulepi64_si128::<0x11>(h, x));
            bottom = _mm_xor_si128(bottom, _mm_clmulepi64_si128::<0x00>(h, x));
            let crossed = _mm_xor_si128(
                _mm_clmulepi64_si128::<0x01>(h, x),
                _mm_clmulepi64_si128::<0x10>(h, x),
            );
            middle = _mm_xor_si128(middle, crossed);
        }
        let middle = bits(middle);
        *high ^= bits(top) ^ middle >> 64;
        *low ^= bits(bottom) ^ middle << 64;
    }
    // SAFETY: the token proves the features.
    unsafe { inner(sum.0, sum.1, h, x) }
}

/// Adds the products of blocks of 8 bytes to the 128-bit sum.
#[inline]
pub(crate) fn add_64(_: HaveClmul, sum: &mut u128, h: &[[u8; 8]], x: &[[u8; 8]]) {
    #[target_feature(enable = "pclmulqdq,ssse3")]
    fn inner(sum: &mut u128, h: &[[u8; 8]], x: &[[u8; 8]]) {
        let mut total = _mm_setzero_si128();
        let (h_pairs, h_last) = h.as_chunks();
        let (x_pairs, x_last) = x.as_chunks();
        for ([h0, h1], [x0, x1]) in h_pairs.iter().zip(x_pairs) {
            let (h, x) = (pair(h0, h1), pair(x0, x1));
            total = _mm_xor_si128(total, _mm_clmulepi64_si128::<0x11>(h, x));
            total = _mm_xor_si128(total, _mm_clmulepi64_si128::<0x00>(h, x));
        }
        for (h, x) in h_last.iter().zip(x_last) {
            let (h, x) = (pair(h, h), pair(x, x));
            total = _mm_xor_si128(total, _mm_clmulepi64_si128::<0x00>(h, x));
        }
        *sum ^= bits(total);
    }
    // SAFETY: the token proves the features.
    unsafe { inner(sum, h, x) }
}

/// A block as a big-endian number.
#[inline]
#[target_feature(enable = "ssse3")]
fn number(block: &[u8; 16]) -> __m128i {
    // SAFETY: 16 bytes are read of 16, and any alignment will do.
    let loaded = unsafe { memory::load(block.as_ptr()) };
    let turn = _mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    _mm_shuffle_epi8(loaded, turn)
}

/// Two blocks of 8 bytes as big-endian numbers, the first in the upper half.
#[inline]
#[target_feature(enable = "ssse3")]
fn pair(first: &[u8; 8], second: &[u8; 8]) -> __m128i {
    let [first, second] = [first, second].map(|block| i64::from_be_bytes(*block));
    _mm_set_epi64x(first, second)
}

#[inline]
fn bits(x: __m128i) -> u128 {
    let (mut bytes, x) = ([0u8; 16], x);
    // SAFETY: SSE2 is part of x86-64; 16 bytes are written of 16.
    unsafe { _mm_storeu_si128(bytes.as_mut_ptr().cast(), x) };
    u128::from_le_bytes(bytes)
}
