//! Vectors of one, two or four 128-bit lanes, as GCM sees them.
//!
//! The kernels of GCM are written once over [`Lane`] and compiled for `__m128i`
//! (AES-NI, PCLMULQDQ), `__m256i` and `__m512i` (VAES, VPCLMULQDQ). Every method is
//! inlined into a function that enables the features, so none costs a call.

use core::arch::x86_64::*;

use super::some::{KEEP_MASKS, ONE_LANE, ONE_WORD, WIDEST, Word, load_short, store_short};
use crate::aes::key::Block;
use crate::x86_64::memory;
use crate::x86_64::order;

/// A vector of `BLOCKS` 16-byte lanes.
///
/// # Safety
/// The methods may be called only where the instructions of the implementing
/// vector are enabled; pointers must be good for the bytes that a method names.
pub(in crate::x86_64) trait Lane: Copy {
    /// Lanes.
    const BLOCKS: usize;
    /// Size in bytes.
    const BYTES: usize = 16 * Self::BLOCKS;

    /// All bits clear.
    unsafe fn zero() -> Self;
    /// `BYTES` bytes from anywhere.
    unsafe fn load(from: *const u8) -> Self;
    /// `BYTES` bytes to anywhere.
    unsafe fn store(self, to: *mut u8);
    /// The first `n < BYTES` bytes, the rest zero; touches no byte behind them.
    unsafe fn load_part(from: *const u8, n: usize) -> Self;
    /// Stores the first `n < BYTES` bytes and touches none behind them.
    unsafe fn store_part(self, to: *mut u8, n: usize);
    /// The same block in every lane.
    unsafe fn splat(block: __m128i) -> Self;
    /// The block in the first lane, zero in the others.
    unsafe fn first(block: __m128i) -> Self;
    /// The sum of all lanes.
    unsafe fn sum_lanes(self) -> __m128i;
    /// The first lane.
    unsafe fn low(self) -> __m128i;
    unsafe fn xor(self, other: Self) -> Self;
    unsafe fn and(self, other: Self) -> Self;
    /// `self` where `mask` is clear, `other` where it is set.
    unsafe fn select(self, other: Self, mask: Self) -> Self;
    /// Adds modulo 2^32 in each 32-bit element.
    unsafe fn add32(self, other: Self) -> Self;
    /// Reverses the bytes of each lane.
    unsafe fn reverse(self) -> Self;
    /// Two vectors with the bytes of each lane reversed, by halves of lanes: the low ones of both, where
    /// those of `self` are low, and the high ones of both.
    #[inline(always)]
    unsafe fn reversed_halves(self, other: Self) -> [Self; 2] {
        // SAFETY: the caller's contract.
        unsafe {
            let (one, two) = (self.reverse(), other.reverse());
            [one.low_halves(two), one.high_halves(two)]
        }
    }
    /// Reverses the four counter bytes of each lane, between the form in which
    /// [`add32`](Self::add32) counts and the form that is encrypted.
    unsafe fn swap_counter(self) -> Self;
    /// Swaps the halves of each lane.
    unsafe fn swap_halves(self) -> Self;
    /// The low halves of each lane of `self` and of `other`, which is high.
    unsafe fn low_halves(self, other: Self) -> Self;
    /// The high halves of each lane of `self`, which is low, and of `other`.
    unsafe fn high_halves(self, other: Self) -> Self;
    unsafe fn aesenc(self, key: Self) -> Self;
    unsafe fn aesenclast(self, key: Self) -> Self;
    /// Carry-less product of the low halves of each lane.
    unsafe fn clmul_low(self, other: Self) -> Self;
    /// Carry-less product of the high halves of each lane.
    unsafe fn clmul_high(self, other: Self) -> Self;
    /// Carry-less product of the low half of each lane with the high half of `other`.
    unsafe fn clmul_low_high(self, other: Self) -> Self;

    /// [`order::after`].
    #[inline(always)]
    unsafe fn after<T>(address: *const T, value: Self) -> *const T {
        // SAFETY: the caller's contract.
        order::after(address, unsafe { value.low() })
    }

    /// One block in every lane.
    #[inline(always)]
    unsafe fn splat_load(from: *const u8) -> Self {
        // SAFETY: the caller gives 16 readable bytes.
        unsafe { Self::splat(memory::load(from)) }
    }

    /// `self` with the block in lane `i < BLOCKS`, which is zero before.
    #[inline(always)]
    unsafe fn with_lane(self, block: __m128i, i: usize) -> Self {
        // SAFETY: the caller's contract.
        unsafe { self.xor(Self::splat(block).and(Self::one_lane(i))) }
    }

    /// The nonce, with a counter of zero behind it, in every lane.
    // Three loads: whatever the sizes of the stores that wrote it a moment ago (8 and 4 bytes, or salt
    // and IV of 4 and 8), they are then forwarded, while a load over two stores would wait until
    // both are done.
    unsafe fn nonce(iv: &Block) -> Self;

    /// Ones in the first `n <= BYTES` bytes.
    #[inline(always)]
    unsafe fn keep(n: usize) -> Self {
        debug_assert!(n <= WIDEST);
        // SAFETY: with n <= 64, 64 bytes from `64 - n` on are inside the table.
        unsafe { Self::load(KEEP_MASKS.0.as_ptr().add(WIDEST - n)) }
    }

    /// Ones in lane `i < BLOCKS`.
    #[inline(always)]
    unsafe fn one_lane(i: usize) -> Self {
        debug_assert!(i < 4);
        // SAFETY: with i < 4, 64 bytes from `48 - 16 * i` on are inside the table.
        unsafe { Self::load(ONE_LANE.0.as_ptr().add(48 - 16 * i)) }
    }
}

const REVERSE: [u8; 16] = [15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0];
const SWAP_COUNTER: [u8; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 15, 14, 13, 12];

/// Which bytes of two vectors, of which the second's begin at 64, are the low halves of reversed lanes,
/// and which the high halves.
#[repr(align(64))]
struct Bytes([u8; 64]);
static REVERSED_HALVES: [Bytes; 2] = [Bytes(reversed_half(15)), Bytes(reversed_half(7))];

/// The eight bytes of each lane that end with byte `last`, the last one first.
const fn reversed_half(last: usize) -> [u8; 64] {
    let mut from = [0; 64];
    let mut i = 0;
    while i < from.len() {
        let vector = 64 * (i / 8 % 2);
        from[i] = (vector + i / 16 * 16 + last - i % 8) as u8;
        i += 1;
    }
    from
}

/// The three words of a nonce, whose loads stay three.
#[inline(always)]
fn nonce_words(iv: &Block) -> [*const Word; 3] {
    let first = iv.as_ptr().cast::<Word>();
    let second = order::apart(first.wrapping_add(1));
    [first, second, order::apart(second.wrapping_add(1))]
}

/// Methods that are one instruction on two vectors.
macro_rules! operations {
    ($($name:ident = $intrinsic:ident $(::<$immediate:literal>)?,)*) => {$(
        #[inline(always)]
        unsafe fn $name(self, other: Self) -> Self {
            // SAFETY: the trait's contract gives the instruction.
            unsafe { $intrinsic $(::<$immediate>)? (self, other) }
        }
    )*};
}

// SAFETY of the blocks below: the trait's contract gives the instructions and the
// readable or writable bytes.
impl Lane for __m128i {
    const BLOCKS: usize = 1;

    operations! {
        low_halves = _mm_unpacklo_epi64,
        high_halves = _mm_unpackhi_epi64,
        xor = _mm_xor_si128,
        and = _mm_and_si128,
        add32 = _mm_add_epi32,
        aesenc = _mm_aesenc_si128,
        aesenclast = _mm_aesenclast_si128,
        clmul_low = _mm_clmulepi64_si128::<0x00>,
        clmul_high = _mm_clmulepi64_si128::<0x11>,
        clmul_low_high = _mm_clmulepi64_si128::<0x10>,
    }

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: see above.
        unsafe { _mm_setzero_si128() }
    }
    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: see above.
        unsafe { memory::load(from) }
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: see above.
        unsafe { _mm_storeu_si128(to.cast(), self) }
    }
    #[inline(always)]
    unsafe fn load_part(from: *const u8, n: usize) -> Self {
        // SAFETY: see above.
        unsafe { load_short(from, n) }
    }
    #[inline(always)]
    unsafe fn store_part(self, to: *mut u8, n: usize) {
        // SAFETY: see above.
        unsafe { store_short(self, to, n) }
    }
    #[inline(always)]
    unsafe fn splat(block: __m128i) -> Self {
        block
    }
    #[inline(always)]
    unsafe fn nonce(iv: &Block) -> Self {
        // SAFETY: see above.
        unsafe {
            let [a, b, c] = nonce_words(iv).map(|word| (*word).0);
            _mm_set_epi32(0, c, b, a)
        }
    }
    #[inline(always)]
    unsafe fn first(block: __m128i) -> Self {
        block
    }
    #[inline(always)]
    unsafe fn low(self) -> __m128i {
        self
    }

    #[inline(always)]
    unsafe fn sum_lanes(self) -> __m128i {
        self
    }
    #[inline(always)]
    unsafe fn select(self, other: Self, mask: Self) -> Self {
        // SAFETY: see above.
        unsafe { _mm_blendv_epi8(self, other, mask) }
    }
    #[inline(always)]
    unsafe fn reverse(self) -> Self {
        // SAFETY: see above.
        unsafe { _mm_shuffle_epi8(self, memory::load(REVERSE.as_ptr())) }
    }
    #[inline(always)]
    unsafe fn swap_counter(self) -> Self {
        // SAFETY: see above.
        unsafe { _mm_shuffle_epi8(self, memory::load(SWAP_COUNTER.as_ptr())) }
    }
    #[inline(always)]
    unsafe fn swap_halves(self) -> Self {
        // SAFETY: see above.
        unsafe { _mm_shuffle_epi32::<0x4e>(self) }
    }
}

impl Lane for __m256i {
    const BLOCKS: usize = 2;

    operations! {
        low_halves = _mm256_unpacklo_epi64,
        high_halves = _mm256_unpackhi_epi64,
        xor = _mm256_xor_si256,
        and = _mm256_and_si256,
        add32 = _mm256_add_epi32,
        aesenc = _mm256_aesenc_epi128,
        aesenclast = _mm256_aesenclast_epi128,
        clmul_low = _mm256_clmulepi64_epi128::<0x00>,
        clmul_high = _mm256_clmulepi64_epi128::<0x11>,
        clmul_low_high = _mm256_clmulepi64_epi128::<0x10>,
    }

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: see above.
        unsafe { _mm256_setzero_si256() }
    }
    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: see above.
        unsafe { memory::load(from) }
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: see above.
        unsafe { _mm256_storeu_si256(to.cast(), self) }
    }
    #[inline(always)]
    unsafe fn load_part(from: *const u8, n: usize) -> Self {
        // SAFETY: see above.
        unsafe {
            if n == 16 {
                _mm256_zextsi128_si256(memory::load(from))
            } else if n > 16 {
                let low = memory::load(from);
                _mm256_set_m128i(load_short(from.add(16), n - 16), low)
            } else {
                _mm256_zextsi128_si256(load_short(from, n))
            }
        }
    }
    #[inline(always)]
    unsafe fn store_part(self, to: *mut u8, n: usize) {
        // SAFETY: see above.
        unsafe {
            let low = _mm256_castsi256_si128(self);
            if n == 16 {
                _mm_storeu_si128(to.cast(), low);
            } else if n > 16 {
                _mm_storeu_si128(to.cast(), low);
                store_short(_mm256_extracti128_si256::<1>(self), to.add(16), n - 16);
            } else {
                store_short(low, to, n);
            }
        }
    }
    #[inline(always)]
    unsafe fn splat(block: __m128i) -> Self {
        // SAFETY: see above.
        unsafe { _mm256_broadcastsi128_si256(block) }
    }
    #[inline(always)]
    unsafe fn nonce(iv: &Block) -> Self {
        // SAFETY: see above.
        unsafe {
            let [a, b, c] = nonce_words(iv).map(|word| _mm256_set1_epi32((*word).0));
            let ab = _mm256_blend_epi32::<0b0010_0010>(a, b);
            let zero = _mm256_setzero_si256();
            _mm256_blend_epi32::<0b1000_1000>(_mm256_blend_epi32::<0b0100_0100>(ab, c), zero)
        }
    }
    #[inline(always)]
    unsafe fn first(block: __m128i) -> Self {
        // SAFETY: see above.
        unsafe { _mm256_zextsi128_si256(block) }
    }
    #[inline(always)]
    unsafe fn low(self) -> __m128i {
        // SAFETY: as the trait says.
        unsafe { _mm256_castsi256_si128(self) }
    }

    #[inline(always)]
    unsafe fn sum_lanes(self) -> __m128i {
        // SAFETY: see above.
        unsafe {
            _mm_xor_si128(
                _mm256_castsi256_si128(self),
                _mm256_extracti128_si256::<1>(self),
            )
        }
    }
    #[inline(always)]
    unsafe fn select(self, other: Self, mask: Self) -> Self {
        // SAFETY: see above.
        unsafe { _mm256_blendv_epi8(self, other, mask) }
    }
    #[inline(always)]
    unsafe fn reverse(self) -> Self {
        // SAFETY: see above.
        unsafe { _mm256_shuffle_epi8(self, Self::splat_load(REVERSE.as_ptr())) }
    }
    #[inline(always)]
    unsafe fn swap_counter(self) -> Self {
        // SAFETY: see above.
        unsafe { _mm256_shuffle_epi8(self, Self::splat_load(SWAP_COUNTER.as_ptr())) }
    }
    #[inline(always)]
    unsafe fn swap_halves(self) -> Self {
        // SAFETY: see above.
        unsafe { _mm256_shuffle_epi32::<0x4e>(self) }
    }
}

impl Lane for __m512i {
    const BLOCKS: usize = 4;
    #[inline(always)]
    unsafe fn after<T>(address: *const T, value: Self) -> *const T {
        // SAFETY: see above.
        unsafe { order::after_512(address, value) }
    }

    operations! {
        low_halves = _mm512_unpacklo_epi64,
        high_halves = _mm512_unpackhi_epi64,
        xor = _mm512_xor_si512,
        and = _mm512_and_si512,
        add32 = _mm512_add_epi32,
        aesenc = _mm512_aesenc_epi128,
        aesenclast = _mm512_aesenclast_epi128,
        clmul_low = _mm512_clmulepi64_epi128::<0x00>,
        clmul_high = _mm512_clmulepi64_epi128::<0x11>,
        clmul_low_high = _mm512_clmulepi64_epi128::<0x10>,
    }

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: see above.
        unsafe { _mm512_setzero_si512() }
    }
    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: see above.
        unsafe { memory::load(from) }
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: see above.
        unsafe { _mm512_storeu_si512(to.cast(), self) }
    }
    #[inline(always)]
    unsafe fn load_part(from: *const u8, n: usize) -> Self {
        // SAFETY: see above; masked bytes are not touched.
        unsafe { _mm512_maskz_loadu_epi8((1 << n) - 1, from.cast()) }
    }
    #[inline(always)]
    unsafe fn store_part(self, to: *mut u8, n: usize) {
        // SAFETY: see above; masked bytes are not touched.
        unsafe { _mm512_mask_storeu_epi8(to.cast(), (1 << n) - 1, self) }
    }
    #[inline(always)]
    unsafe fn splat(block: __m128i) -> Self {
        // SAFETY: see above.
        unsafe { _mm512_broadcast_i32x4(block) }
    }
    // Operations that any port takes: the one that would move a register to all lanes may still be
    // busy with the hash of the message before.
    #[inline(always)]
    unsafe fn nonce(iv: &Block) -> Self {
        // SAFETY: see above.
        unsafe {
            let [a, b, c] = nonce_words(iv).map(|word| _mm512_set1_epi32((*word).0));
            let word = |i: usize| Self::splat_load(ONE_WORD.0.as_ptr().add(4 * i).cast());
            let ab = _mm512_and_si512(a, word(0)).select(b, word(1));
            ab.select(c, word(2))
        }
    }
    #[inline(always)]
    unsafe fn first(block: __m128i) -> Self {
        // SAFETY: see above.
        unsafe { _mm512_zextsi128_si512(block) }
    }
    #[inline(always)]
    unsafe fn with_lane(self, block: __m128i, i: usize) -> Self {
        // SAFETY: see above.
        unsafe { _mm512_mask_broadcast_i32x4(self, 0xf << (4 * i), block) }
    }
    #[inline(always)]
    unsafe fn low(self) -> __m128i {
        // SAFETY: as the trait says.
        unsafe { _mm512_castsi512_si128(self) }
    }

    #[inline(always)]
    unsafe fn sum_lanes(self) -> __m128i {
        // SAFETY: see above.
        unsafe {
            _mm256_xor_si256(
                _mm512_castsi512_si256(self),
                _mm512_extracti64x4_epi64::<1>(self),
            )
            .sum_lanes()
        }
    }
    #[inline(always)]
    unsafe fn select(self, other: Self, mask: Self) -> Self {
        // SAFETY: see above. 0xd8 is `mask ? other : self` with mask as the last operand.
        unsafe { _mm512_ternarylogic_epi64::<0xd8>(self, other, mask) }
    }
    #[inline(always)]
    unsafe fn reverse(self) -> Self {
        // SAFETY: see above.
        unsafe { _mm512_shuffle_epi8(self, Self::splat_load(REVERSE.as_ptr())) }
    }
    // One instruction for each vector that comes out, where others take two.
    #[inline(always)]
    unsafe fn reversed_halves(self, other: Self) -> [Self; 2] {
        // SAFETY: see above.
        unsafe {
            REVERSED_HALVES
                .each_ref()
                .map(|bytes| _mm512_permutex2var_epi8(self, Self::load(bytes.0.as_ptr()), other))
        }
    }
    #[inline(always)]
    unsafe fn swap_counter(self) -> Self {
        // SAFETY: see above.
        unsafe { _mm512_shuffle_epi8(self, Self::splat_load(SWAP_COUNTER.as_ptr())) }
    }
    #[inline(always)]
    unsafe fn swap_halves(self) -> Self {
        // SAFETY: see above.
        unsafe { _mm512_shuffle_epi32::<0x4e>(self) }
    }
}
