//! Rows of 16 bytes, one from each lane, turned into vectors of 32-bit words.

use core::arch::x86_64::*;

use crate::x86_64::memory;

/// Four rows of four words in each 128 bits become four columns; its own inverse.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn transpose512([r0, r1, r2, r3]: [__m512i; 4]) -> [__m512i; 4] {
    let (low, high) = (_mm512_unpacklo_epi32(r0, r1), _mm512_unpacklo_epi32(r2, r3));
    let (low_2, high_2) = (_mm512_unpackhi_epi32(r0, r1), _mm512_unpackhi_epi32(r2, r3));
    [
        _mm512_unpacklo_epi64(low, high),
        _mm512_unpackhi_epi64(low, high),
        _mm512_unpacklo_epi64(low_2, high_2),
        _mm512_unpackhi_epi64(low_2, high_2),
    ]
}

/// As [`transpose512`], over 256 bits.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn transpose256([r0, r1, r2, r3]: [__m256i; 4]) -> [__m256i; 4] {
    let (low, high) = (_mm256_unpacklo_epi32(r0, r1), _mm256_unpacklo_epi32(r2, r3));
    let (low_2, high_2) = (_mm256_unpackhi_epi32(r0, r1), _mm256_unpackhi_epi32(r2, r3));
    [
        _mm256_unpacklo_epi64(low, high),
        _mm256_unpackhi_epi64(low, high),
        _mm256_unpacklo_epi64(low_2, high_2),
        _mm256_unpackhi_epi64(low_2, high_2),
    ]
}

/// The 16 bytes at `offset` of 16 lanes as four vectors of a word of each lane.
///
/// # Safety
/// The bytes must be readable.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn load16(lanes: &[*const u8; 16], offset: usize) -> [__m512i; 4] {
    let mut rows = [_mm512_setzero_si512(); 4];
    for (r, row) in rows.iter_mut().enumerate() {
        // SAFETY: by the contract of this function.
        *row = unsafe { load4(lanes, [r, r + 4, r + 8, r + 12], offset) };
    }
    transpose512(rows)
}

/// The 16 bytes at `offset` of 8 lanes as four vectors of a word of each lane.
///
/// # Safety
/// The bytes must be readable.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn load8(lanes: &[*const u8; 8], offset: usize) -> [__m256i; 4] {
    let mut rows = [_mm256_setzero_si256(); 4];
    for (r, row) in rows.iter_mut().enumerate() {
        // SAFETY: by the contract of this function.
        *row = unsafe {
            _mm256_loadu2_m128i(lanes[r + 4].add(offset).cast(), lanes[r].add(offset).cast())
        };
    }
    transpose256(rows)
}

/// 32 bytes at `offset` of two lanes.
///
/// # Safety
/// They must be readable.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn load2<const L: usize>(
    lanes: &[*const u8; L],
    [l0, l1]: [usize; 2],
    offset: usize,
) -> __m512i {
    // SAFETY: by the contract of this function.
    unsafe {
        let row = _mm512_castsi256_si512(memory::load(lanes[l0].add(offset)));
        _mm512_inserti64x4::<1>(row, memory::load(lanes[l1].add(offset)))
    }
}

/// 16 bytes at `offset` of four lanes.
///
/// # Safety
/// They must be readable.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn load4<const L: usize>(
    lanes: &[*const u8; L],
    [l0, l1, l2, l3]: [usize; 4],
    offset: usize,
) -> __m512i {
    // SAFETY: by the contract of this function.
    unsafe {
        let row = _mm512_castsi128_si512(memory::load(lanes[l0].add(offset)));
        let row = _mm512_inserti32x4::<1>(row, memory::load(lanes[l1].add(offset)));
        let row = _mm512_inserti32x4::<2>(row, memory::load(lanes[l2].add(offset)));
        _mm512_inserti32x4::<3>(row, memory::load(lanes[l3].add(offset)))
    }
}

/// Writes 16 bytes at `offset` of four lanes.
///
/// # Safety
/// They must be writable.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn store4<const L: usize>(
    lanes: &[*mut u8; L],
    [l0, l1, l2, l3]: [usize; 4],
    offset: usize,
    row: __m512i,
) {
    // SAFETY: by the contract of this function.
    unsafe {
        _mm_storeu_si128(lanes[l0].add(offset).cast(), _mm512_castsi512_si128(row));
        _mm_storeu_si128(
            lanes[l1].add(offset).cast(),
            _mm512_extracti32x4_epi32::<1>(row),
        );
        _mm_storeu_si128(
            lanes[l2].add(offset).cast(),
            _mm512_extracti32x4_epi32::<2>(row),
        );
        _mm_storeu_si128(
            lanes[l3].add(offset).cast(),
            _mm512_extracti32x4_epi32::<3>(row),
        );
    }
}
