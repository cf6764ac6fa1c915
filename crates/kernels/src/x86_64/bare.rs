//! A register of one block, for machines that have AES-NI but no carry-less multiplication. Many
//! virtual machines are such: QEMU's x86-64-v2 with AES, which hosts choose so that their guests can
//! move to any other host.

use core::arch::x86_64::*;

use super::tweaks::ShiftTweaks;
use super::wide::Wide;
use crate::aes::key::Block;

/// One block. Its [`ShiftTweaks`] takes SSE2 alone.
#[derive(Clone, Copy)]
pub(crate) struct Bare(__m128i);

/// Methods that [`__m128i`] has already.
macro_rules! as_in_128 {
    ($(fn $name:ident($($arg:ident: $type:ty),*) = $with:expr;)*) => {$(
        #[inline(always)]
        unsafe fn $name($($arg: $type),*) -> Self {
            // SAFETY: as the trait says.
            unsafe { Bare($with) }
        }
    )*};
}

impl Wide for Bare {
    const BLOCKS: usize = 1;

    as_in_128! {
        fn load(from: *const u8) = Wide::load(from);
        fn load_pieces(from: *const Block) = Wide::load_pieces(from);
        fn zero() = Wide::zero();
        fn gather(at: impl Fn(usize) -> *const u8) = Wide::gather(at);
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: as the trait says.
        unsafe { self.0.store(to) }
    }

    #[inline(always)]
    unsafe fn add_to_some(self, from: *const u8, to: *mut u8, n: usize) {
        // SAFETY: as the trait says.
        unsafe { self.0.add_to_some(from, to, n) }
    }

    #[inline(always)]
    unsafe fn first(self) -> __m128i {
        self.0
    }

    #[inline(always)]
    unsafe fn last(self) -> __m128i {
        self.0
    }

    #[inline(always)]
    unsafe fn broadcast(block: __m128i) -> Self {
        Bare(block)
    }

    #[inline(always)]
    unsafe fn with_last(self, block: __m128i) -> Self {
        Bare(block)
    }

    #[inline(always)]
    unsafe fn chained(self, previous: Self) -> Self {
        previous
    }

    #[inline(always)]
    unsafe fn scatter(self, at: impl Fn(usize) -> *mut u8) {
        // SAFETY: as the trait says.
        unsafe { self.0.scatter(at) }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        // SAFETY: as the trait says.
        unsafe { Bare(self.0.xor(other.0)) }
    }

    #[inline(always)]
    unsafe fn add_halves(self, other: Self) -> Self {
        // SAFETY: as the trait says.
        unsafe { Bare(self.0.add_halves(other.0)) }
    }

    #[inline(always)]
    unsafe fn reverse(self) -> Self {
        // SAFETY: as the trait says.
        unsafe { Bare(self.0.reverse()) }
    }

    #[inline(always)]
    unsafe fn round<const DECRYPT: bool>(self, key: Self) -> Self {
        // SAFETY: as the trait says.
        unsafe { Bare(self.0.round::<DECRYPT>(key.0)) }
    }

    #[inline(always)]
    unsafe fn last_round<const DECRYPT: bool>(self, key: Self) -> Self {
        // SAFETY: as the trait says.
        unsafe { Bare(self.0.last_round::<DECRYPT>(key.0)) }
    }
}

impl ShiftTweaks for Bare {
    const ONE_BY_ONE: bool = true;

    #[inline(always)]
    unsafe fn shift_tweak(block: __m128i, by: i32) -> __m128i {
        // SAFETY: as the trait says.
        unsafe {
            let out = _mm_srl_epi64(block, _mm_cvtsi32_si128(64 - by));
            let kept = _mm_sll_epi64(block, _mm_cvtsi32_si128(by));
            let folded = times_polynomial(_mm_bsrli_si128::<8>(out));
            _mm_xor_si128(_mm_xor_si128(kept, _mm_bslli_si128::<8>(out)), folded)
        }
    }

    #[inline(always)]
    unsafe fn double_tweak(block: __m128i) -> __m128i {
        // SAFETY: as the trait says.
        unsafe {
            // Ones in all of the word that the bit which leaves a half goes to, if that bit is set.
            let out = _mm_srai_epi32::<31>(_mm_shuffle_epi32::<0b01_00_11>(block));
            let carry = _mm_and_si128(out, _mm_set_epi64x(1, 0x87));
            _mm_xor_si128(_mm_add_epi64(block, block), carry)
        }
    }

    #[inline(always)]
    unsafe fn shift_tweaks(self, by: i32) -> Self {
        // SAFETY: as the trait says.
        unsafe { Bare(Self::shift_tweak(self.0, by)) }
    }

    #[inline(always)]
    unsafe fn shift_tweaks_by_bytes(self, bytes: usize) -> Self {
        // SAFETY: as the trait says.
        unsafe { self.shift_tweaks(8 * bytes as i32) }
    }

    #[inline(always)]
    unsafe fn spread_tweaks(self) -> Self {
        self
    }
}

/// The lower half of a block times the polynomial of XTS, of which the product fits into that half.
#[inline(always)]
unsafe fn times_polynomial(half: __m128i) -> __m128i {
    // SAFETY: SSE2 is part of x86-64.
    unsafe {
        let low = _mm_xor_si128(half, _mm_slli_epi64::<1>(half));
        let high = _mm_xor_si128(_mm_slli_epi64::<2>(half), _mm_slli_epi64::<7>(half));
        _mm_xor_si128(low, high)
    }
}
