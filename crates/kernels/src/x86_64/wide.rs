//! Vectors of one, two or four blocks: what every kernel here is written over.

use core::arch::x86_64::*;

use super::gcm::{load_short, store_short};
use crate::aes::key::Block;

/// A register of `BLOCKS` blocks side by side.
///
/// # Safety
/// Every method may run only where the processor has the instructions of the
/// type: AES-NI and PCLMULQDQ for [`__m128i`], VAES, VPCLMULQDQ and AVX2 for
/// [`__m256i`], the same with AVX-512 for [`__m512i`]. Methods are inlined into
/// functions that enable these. Pointers need no alignment.
pub(crate) trait Wide: Copy {
    /// Blocks in a register.
    const BLOCKS: usize;

    /// `BLOCKS` consecutive blocks.
    unsafe fn load(from: *const u8) -> Self;
    /// The same from aligned blocks, each by a load of its own.
    unsafe fn load_pieces(from: *const Block) -> Self;
    /// To `BLOCKS` consecutive blocks.
    unsafe fn store(self, to: *mut u8);
    /// To less than a register, `n` bytes at `to`, combined with as many at `from` by exclusive or.
    unsafe fn add_to_some(self, from: *const u8, to: *mut u8, n: usize);
    /// Zero.
    unsafe fn zero() -> Self;
    /// One block in every place.
    unsafe fn broadcast(block: __m128i) -> Self;
    /// One block from memory in every place.
    #[inline(always)]
    unsafe fn splat(block: *const Block) -> Self {
        // SAFETY: as the trait says.
        unsafe { Self::broadcast(_mm_loadu_si128(block.cast())) }
    }
    /// The first block.
    unsafe fn first(self) -> __m128i;
    /// The last block.
    unsafe fn last(self) -> __m128i;
    /// The same, but for another last block.
    unsafe fn with_last(self, block: __m128i) -> Self;
    /// The last block of `previous`, then all of these but the last.
    unsafe fn chained(self, previous: Self) -> Self;
    /// Block `i` from address `at(i)`.
    unsafe fn gather(at: impl Fn(usize) -> *const u8) -> Self;
    /// Block `i` to address `at(i)`, in rising order.
    unsafe fn scatter(self, at: impl Fn(usize) -> *mut u8);
    /// Bitwise exclusive or.
    unsafe fn xor(self, other: Self) -> Self;
    /// Sums of 64-bit halves.
    unsafe fn add_halves(self, other: Self) -> Self;
    /// The bytes of each block in the opposite order.
    unsafe fn reverse(self) -> Self;
    /// Each block as an XTS tweak times x to the power `by`, at most 32.
    unsafe fn shift_tweaks(self, by: i32) -> Self;
    /// Each block as an XTS tweak times x to the power `8 * bytes`, at most 4 bytes. It takes fewer
    /// instructions than [`shift_tweaks`](Self::shift_tweaks), and none that shifts bits: on a processor of
    /// Intel those wait for the unit that AES has.
    unsafe fn shift_tweaks_by_bytes(self, bytes: usize) -> Self;
    /// Block `i` as an XTS tweak times x to the power `i`.
    unsafe fn spread_tweaks(self) -> Self;
    /// A round of encryption, or of the equivalent inverse cipher.
    unsafe fn round<const DECRYPT: bool>(self, key: Self) -> Self;
    /// The last round.
    unsafe fn last_round<const DECRYPT: bool>(self, key: Self) -> Self;
}

/// The XTS polynomial (IEEE 1619 section 5.2) less its top term.
const TWEAK_POLYNOMIAL: i64 = 0x87;

impl Wide for __m128i {
    const BLOCKS: usize = 1;

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: as the trait says.
        unsafe { _mm_loadu_si128(from.cast()) }
    }

    #[inline(always)]
    unsafe fn load_pieces(from: *const Block) -> Self {
        // SAFETY: as the trait says.
        unsafe { _mm_load_si128(from.cast()) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: as the trait says.
        unsafe { _mm_storeu_si128(to.cast(), self) }
    }

    #[inline(always)]
    unsafe fn add_to_some(self, from: *const u8, to: *mut u8, n: usize) {
        // SAFETY: as the trait says.
        unsafe { store_short(load_short(from, n).xor(self), to, n) }
    }

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: as the trait says.
        unsafe { _mm_setzero_si128() }
    }

    #[inline(always)]
    unsafe fn broadcast(block: __m128i) -> Self {
        block
    }

    #[inline(always)]
    unsafe fn first(self) -> __m128i {
        self
    }

    #[inline(always)]
    unsafe fn last(self) -> __m128i {
        self
    }

    #[inline(always)]
    unsafe fn with_last(self, block: __m128i) -> Self {
        block
    }

    #[inline(always)]
    unsafe fn chained(self, previous: Self) -> Self {
        previous
    }

    #[inline(always)]
    unsafe fn gather(at: impl Fn(usize) -> *const u8) -> Self {
        // SAFETY: as the trait says.
        unsafe { _mm_loadu_si128(at(0).cast()) }
    }

    #[inline(always)]
    unsafe fn scatter(self, at: impl Fn(usize) -> *mut u8) {
        // SAFETY: as the trait says.
        unsafe { _mm_storeu_si128(at(0).cast(), self) }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        // SAFETY: as the trait says.
        unsafe { _mm_xor_si128(self, other) }
    }

    #[inline(always)]
    unsafe fn add_halves(self, other: Self) -> Self {
        // SAFETY: as the trait says.
        unsafe { _mm_add_epi64(self, other) }
    }

    #[inline(always)]
    unsafe fn reverse(self) -> Self {
        // SAFETY: as the trait says.
        unsafe {
            let order = _mm_set_epi64x(0x0001_0203_0405_0607, 0x0809_0a0b_0c0d_0e0f);
            _mm_shuffle_epi8(self, order)
        }
    }

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

    #[inline(always)]
    unsafe fn round<const DECRYPT: bool>(self, key: Self) -> Self {
        // SAFETY: as the trait says.
        unsafe {
            match DECRYPT {
                false => _mm_aesenc_si128(self, key),
                true => _mm_aesdec_si128(self, key),
            }
        }
    }

    #[inline(always)]
    unsafe fn last_round<const DECRYPT: bool>(self, key: Self) -> Self {
        // SAFETY: as the trait says.
        unsafe {
            match DECRYPT {
                false => _mm_aesenclast_si128(self, key),
                true => _mm_aesdeclast_si128(self, key),
            }
        }
    }
}

impl Wide for __m256i {
    const BLOCKS: usize = 2;

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: as the trait says.
        unsafe { _mm256_loadu_si256(from.cast()) }
    }

    #[inline(always)]
    unsafe fn load_pieces(from: *const Block) -> Self {
        // SAFETY: as the trait says.
        unsafe {
            // Volatile, or the compiler would join them.
            let low = _mm256_castsi128_si256(from.cast::<__m128i>().read_volatile());
            _mm256_inserti128_si256(low, from.add(1).cast::<__m128i>().read_volatile(), 1)
        }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: as the trait says.
        unsafe { _mm256_storeu_si256(to.cast(), self) }
    }

    #[inline(always)]
    unsafe fn add_to_some(self, from: *const u8, to: *mut u8, n: usize) {
        // SAFETY: as the trait says.
        unsafe {
            let low = self.first();
            if n < 16 {
                return low.add_to_some(from, to, n);
            }
            __m128i::load(from).xor(low).store(to);
            self.last().add_to_some(from.add(16), to.add(16), n - 16);
        }
    }

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: as the trait says.
        unsafe { _mm256_setzero_si256() }
    }

    #[inline(always)]
    unsafe fn broadcast(block: __m128i) -> Self {
        // SAFETY: as the trait says.
        unsafe { _mm256_broadcastsi128_si256(block) }
    }

    #[inline(always)]
    unsafe fn first(self) -> __m128i {
        // SAFETY: as the trait says.
        unsafe { _mm256_castsi256_si128(self) }
    }

    #[inline(always)]
    unsafe fn last(self) -> __m128i {
        // SAFETY: as the trait says.
        unsafe { _mm256_extracti128_si256(self, 1) }
    }

    #[inline(always)]
    unsafe fn with_last(self, block: __m128i) -> Self {
        // SAFETY: as the trait says.
        unsafe { _mm256_inserti128_si256(self, block, 1) }
    }

    #[inline(always)]
    unsafe fn chained(self, previous: Self) -> Self {
        // SAFETY: as the trait says.
        unsafe { _mm256_permute2x128_si256(previous, self, 0x21) }
    }

    #[inline(always)]
    unsafe fn gather(at: impl Fn(usize) -> *const u8) -> Self {
        // SAFETY: as the trait says.
        unsafe {
            let low = _mm256_castsi128_si256(_mm_loadu_si128(at(0).cast()));
            _mm256_inserti128_si256(low, _mm_loadu_si128(at(1).cast()), 1)
        }
    }

    #[inline(always)]
    unsafe fn scatter(self, at: impl Fn(usize) -> *mut u8) {
        // SAFETY: as the trait says.
        unsafe {
            _mm_storeu_si128(at(0).cast(), _mm256_castsi256_si128(self));
            _mm_storeu_si128(at(1).cast(), _mm256_extracti128_si256(self, 1));
        }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        // SAFETY: as the trait says.
        unsafe { _mm256_xor_si256(self, other) }
    }

    #[inline(always)]
    unsafe fn add_halves(self, other: Self) -> Self {
        // SAFETY: as the trait says.
        unsafe { _mm256_add_epi64(self, other) }
    }

    #[inline(always)]
    unsafe fn reverse(self) -> Self {
        // SAFETY: as the trait says.
        unsafe {
            let order = _mm_set_epi64x(0x0001_0203_0405_0607, 0x0809_0a0b_0c0d_0e0f);
            _mm256_shuffle_epi8(self, _mm256_broadcastsi128_si256(order))
        }
    }

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

    #[inline(always)]
    unsafe fn round<const DECRYPT: bool>(self, key: Self) -> Self {
        // SAFETY: as the trait says.
        unsafe {
            match DECRYPT {
                false => _mm256_aesenc_epi128(self, key),
                true => _mm256_aesdec_epi128(self, key),
            }
        }
    }

    #[inline(always)]
    unsafe fn last_round<const DECRYPT: bool>(self, key: Self) -> Self {
        // SAFETY: as the trait says.
        unsafe {
            match DECRYPT {
                false => _mm256_aesenclast_epi128(self, key),
                true => _mm256_aesdeclast_epi128(self, key),
            }
        }
    }
}

impl Wide for __m512i {
    const BLOCKS: usize = 4;

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: as the trait says.
        unsafe { _mm512_loadu_si512(from.cast()) }
    }

    #[inline(always)]
    unsafe fn load_pieces(from: *const Block) -> Self {
        // SAFETY: as the trait says.
        unsafe {
            let low = <__m256i as Wide>::load_pieces(from);
            let high = <__m256i as Wide>::load_pieces(from.add(2));
            _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1)
        }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: as the trait says.
        unsafe { _mm512_storeu_si512(to.cast(), self) }
    }

    #[inline(always)]
    unsafe fn add_to_some(self, from: *const u8, to: *mut u8, n: usize) {
        // SAFETY: as the trait says.
        unsafe {
            let low = _mm512_castsi512_si256(self);
            if n < 32 {
                return low.add_to_some(from, to, n);
            }
            __m256i::load(from).xor(low).store(to);
            let high = _mm512_extracti64x4_epi64(self, 1);
            high.add_to_some(from.add(32), to.add(32), n - 32);
        }
    }

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: as the trait says.
        unsafe { _mm512_setzero_si512() }
    }

    #[inline(always)]
    unsafe fn broadcast(block: __m128i) -> Self {
        // SAFETY: as the trait says.
        unsafe { _mm512_broadcast_i32x4(block) }
    }

    #[inline(always)]
    unsafe fn first(self) -> __m128i {
        // SAFETY: as the trait says.
        unsafe { _mm512_castsi512_si128(self) }
    }

    #[inline(always)]
    unsafe fn last(self) -> __m128i {
        // SAFETY: as the trait says.
        unsafe { _mm512_extracti32x4_epi32(self, 3) }
    }

    #[inline(always)]
    unsafe fn with_last(self, block: __m128i) -> Self {
        // SAFETY: as the trait says.
        unsafe { _mm512_inserti32x4(self, block, 3) }
    }

    #[inline(always)]
    unsafe fn chained(self, previous: Self) -> Self {
        // SAFETY: as the trait says.
        unsafe { _mm512_alignr_epi64(self, previous, 6) }
    }

    #[inline(always)]
    unsafe fn gather(at: impl Fn(usize) -> *const u8) -> Self {
        // SAFETY: as the trait says.
        unsafe {
            let low = <__m256i as Wide>::gather(&at);
            let high = <__m256i as Wide>::gather(|i| at(i + 2));
            _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1)
        }
    }

    #[inline(always)]
    unsafe fn scatter(self, at: impl Fn(usize) -> *mut u8) {
        // SAFETY: as the trait says.
        unsafe {
            _mm512_castsi512_si256(self).scatter(&at);
            _mm512_extracti64x4_epi64(self, 1).scatter(|i| at(i + 2));
        }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        // SAFETY: as the trait says.
        unsafe { _mm512_xor_si512(self, other) }
    }

    #[inline(always)]
    unsafe fn add_halves(self, other: Self) -> Self {
        // SAFETY: as the trait says.
        unsafe { _mm512_add_epi64(self, other) }
    }

    #[inline(always)]
    unsafe fn reverse(self) -> Self {
        // SAFETY: as the trait says.
        unsafe {
            let order = _mm_set_epi64x(0x0001_0203_0405_0607, 0x0809_0a0b_0c0d_0e0f);
            _mm512_shuffle_epi8(self, _mm512_broadcast_i32x4(order))
        }
    }

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

    #[inline(always)]
    unsafe fn round<const DECRYPT: bool>(self, key: Self) -> Self {
        // SAFETY: as the trait says.
        unsafe {
            match DECRYPT {
                false => _mm512_aesenc_epi128(self, key),
                true => _mm512_aesdec_epi128(self, key),
            }
        }
    }

    #[inline(always)]
    unsafe fn last_round<const DECRYPT: bool>(self, key: Self) -> Self {
        // SAFETY: as the trait says.
        unsafe {
            match DECRYPT {
                false => _mm512_aesenclast_epi128(self, key),
                true => _mm512_aesdeclast_epi128(self, key),
            }
        }
    }
}
