//! Tweaks of XTS (IEEE 1619 section 5.2) in vectors: times powers of x.

use core::arch::x86_64::*;

use super::wide::Wide;

/// A register whose blocks are tweaks.
///
/// # Safety
/// As for [`Wide`], and the methods here multiply without carries: PCLMULQDQ for [`__m128i`],
/// VPCLMULQDQ for the longer vectors.
pub(crate) trait ShiftTweaks: Wide {
    /// Whether tweaks in a row are computed each from the one before, which takes fewer instructions where
    /// there is no carry-less multiplication.
    const ONE_BY_ONE: bool = false;

    /// One block as an XTS tweak times x to the power `by`, at most 32.
    #[inline(always)]
    unsafe fn shift_tweak(block: __m128i, by: i32) -> __m128i {
        // SAFETY: as the trait says.
        unsafe { block.shift_tweaks(by) }
    }
    /// One block as an XTS tweak times x.
    #[inline(always)]
    unsafe fn double_tweak(block: __m128i) -> __m128i {
        // SAFETY: as the trait says.
        unsafe { Self::shift_tweak(block, 1) }
    }
    /// Each block as an XTS tweak times x to the power `by`, at most 32.
    unsafe fn shift_tweaks(self, by: i32) -> Self;
    /// Each block as an XTS tweak times x to the power `8 * bytes`, at most 4 bytes. It takes fewer
    /// instructions than [`shift_tweaks`](Self::shift_tweaks), and none that shifts bits: on a processor of
    /// Intel those wait for the unit that AES has.
    unsafe fn shift_tweaks_by_bytes(self, bytes: usize) -> Self;
    /// Block `i` as an XTS tweak times x to the power `i`.
    unsafe fn spread_tweaks(self) -> Self;
}

/// The XTS polynomial (IEEE 1619 section 5.2) less its top term.
const TWEAK_POLYNOMIAL: i64 = 0x87;

impl ShiftTweaks for __m128i {
    #[inline(always)]
    unsafe fn shift_tweaks(self, by: i32) -> Self {
        // SAFETY: as the trait says.
        unsafe {
            let out = _mm_srl_epi64(self, _mm_cvtsi32_si128(64 - by));
            let kept = _mm_sll_epi64(self, _mm_cvtsi32_si128(by));
            let polynomial = _mm_set_epi64x(0, TWEAK_POLYNOMIAL);
            let folded = _mm_clmulepi64_si128(out, polynomial, 0x01);
            _mm_xor_si128(_mm_xor_si128(kept, _mm_slli_si128(out, 8)), folded)
        }
    }

    #[inline(always)]
    unsafe fn shift_tweaks_by_bytes(self, bytes: usize) -> Self {
        // SAFETY: as the trait says.
        unsafe {
            let (kept, out) = match bytes {
                0 => return self,
                1 => (_mm_bslli_si128(self, 1), _mm_bsrli_si128(self, 15)),
                2 => (_mm_bslli_si128(self, 2), _mm_bsrli_si128(self, 14)),
                3 => (_mm_bslli_si128(self, 3), _mm_bsrli_si128(self, 13)),
                _ => (_mm_bslli_si128(self, 4), _mm_bsrli_si128(self, 12)),
            };
            let polynomial = _mm_set_epi64x(0, TWEAK_POLYNOMIAL);
            _mm_xor_si128(kept, _mm_clmulepi64_si128(out, polynomial, 0x00))
        }
    }

    #[inline(always)]
    unsafe fn spread_tweaks(self) -> Self {
        self
    }
}

impl ShiftTweaks for __m256i {
    #[inline(always)]
    unsafe fn shift_tweaks(self, by: i32) -> Self {
        // SAFETY: as the trait says.
        unsafe {
            let out = _mm256_srl_epi64(self, _mm_cvtsi32_si128(64 - by));
            let kept = _mm256_sll_epi64(self, _mm_cvtsi32_si128(by));
            let polynomial = _mm256_set_epi64x(0, TWEAK_POLYNOMIAL, 0, TWEAK_POLYNOMIAL);
            let folded = _mm256_clmulepi64_epi128(out, polynomial, 0x01);
            _mm256_xor_si256(_mm256_xor_si256(kept, _mm256_bslli_epi128(out, 8)), folded)
        }
    }

    #[inline(always)]
    unsafe fn shift_tweaks_by_bytes(self, bytes: usize) -> Self {
        // SAFETY: as the trait says.
        unsafe {
            let (kept, out) = match bytes {
                0 => return self,
                1 => (_mm256_bslli_epi128(self, 1), _mm256_bsrli_epi128(self, 15)),
                2 => (_mm256_bslli_epi128(self, 2), _mm256_bsrli_epi128(self, 14)),
                3 => (_mm256_bslli_epi128(self, 3), _mm256_bsrli_epi128(self, 13)),
                _ => (_mm256_bslli_epi128(self, 4), _mm256_bsrli_epi128(self, 12)),
            };
            let polynomial = _mm256_set_epi64x(0, TWEAK_POLYNOMIAL, 0, TWEAK_POLYNOMIAL);
            _mm256_xor_si256(kept, _mm256_clmulepi64_epi128(out, polynomial, 0x00))
        }
    }

    #[inline(always)]
    unsafe fn spread_tweaks(self) -> Self {
        // SAFETY: as the trait says.
        unsafe {
            let by = _mm256_set_epi64x(1, 1, 0, 0);
            let out = _mm256_srlv_epi64(self, _mm256_sub_epi64(_mm256_set1_epi64x(64), by));
            let kept = _mm256_sllv_epi64(self, by);
            let polynomial = _mm256_set_epi64x(0, TWEAK_POLYNOMIAL, 0, TWEAK_POLYNOMIAL);
            let folded = _mm256_clmulepi64_epi128(out, polynomial, 0x01);
            _mm256_xor_si256(_mm256_xor_si256(kept, _mm256_bslli_epi128(out, 8)), folded)
        }
    }
}

impl ShiftTweaks for __m512i {
    #[inline(always)]
    unsafe fn shift_tweaks(self, by: i32) -> Self {
        // SAFETY: as the trait says.
        unsafe {
            let out = _mm512_srl_epi64(self, _mm_cvtsi32_si128(64 - by));
            let kept = _mm512_sll_epi64(self, _mm_cvtsi32_si128(by));
            let polynomial = _mm512_broadcast_i32x4(_mm_set_epi64x(0, TWEAK_POLYNOMIAL));
            let folded = _mm512_clmulepi64_epi128(out, polynomial, 0x01);
            _mm512_xor_si512(_mm512_xor_si512(kept, _mm512_bslli_epi128(out, 8)), folded)
        }
    }

    #[inline(always)]
    unsafe fn shift_tweaks_by_bytes(self, bytes: usize) -> Self {
        // SAFETY: as the trait says.
        unsafe {
            let (kept, out) = match bytes {
                0 => return self,
                1 => (_mm512_bslli_epi128(self, 1), _mm512_bsrli_epi128(self, 15)),
                2 => (_mm512_bslli_epi128(self, 2), _mm512_bsrli_epi128(self, 14)),
                3 => (_mm512_bslli_epi128(self, 3), _mm512_bsrli_epi128(self, 13)),
                _ => (_mm512_bslli_epi128(self, 4), _mm512_bsrli_epi128(self, 12)),
            };
            let polynomial = _mm512_broadcast_i32x4(_mm_set_epi64x(0, TWEAK_POLYNOMIAL));
            _mm512_xor_si512(kept, _mm512_clmulepi64_epi128(out, polynomial, 0x00))
        }
    }

    #[inline(always)]
    unsafe fn spread_tweaks(self) -> Self {
        // SAFETY: as the trait says.
        unsafe {
            let by = _mm512_set_epi64(3, 3, 2, 2, 1, 1, 0, 0);
            let out = _mm512_srlv_epi64(self, _mm512_sub_epi64(_mm512_set1_epi64(64), by));
            let kept = _mm512_sllv_epi64(self, by);
            let polynomial = _mm512_broadcast_i32x4(_mm_set_epi64x(0, TWEAK_POLYNOMIAL));
            let folded = _mm512_clmulepi64_epi128(out, polynomial, 0x01);
            _mm512_xor_si512(_mm512_xor_si512(kept, _mm512_bslli_epi128(out, 8)), folded)
        }
    }
}
