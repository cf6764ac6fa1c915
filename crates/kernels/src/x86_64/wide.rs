//! Vectors of one, two or four blocks: what every kernel here is written over.

use core::arch::x86_64::*;

use super::gcm::{load_short, store_short};
use crate::aes::key::Block;
use crate::x86_64::memory;

/// A register of `BLOCKS` blocks side by side.
///
/// # Safety
/// Every method may run only where the processor has the instructions of the
/// type: AES-NI for [`__m128i`], VAES and AVX2 for [`__m256i`], the same with
/// AVX-512 for [`__m512i`]. Methods are inlined into
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
        unsafe { Self::broadcast(memory::load(block.cast())) }
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
    /// A round of encryption, or of the equivalent inverse cipher.
    unsafe fn round<const DECRYPT: bool>(self, key: Self) -> Self;
    /// The last round.
    unsafe fn last_round<const DECRYPT: bool>(self, key: Self) -> Self;
}

impl Wide for __m128i {
    const BLOCKS: usize = 1;

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: as the trait says.
        unsafe { memory::load(from) }
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
        unsafe { memory::load(at(0)) }
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
        unsafe { memory::load(from) }
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
            let low = _mm256_castsi128_si256(memory::load(at(0)));
            _mm256_inserti128_si256(low, memory::load(at(1)), 1)
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
        unsafe { memory::load(from) }
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
