//! ChaCha20 blocks of one message, two in a register: for messages of a few blocks.
//!
//! A register holds a row of the state (RFC 8439, section 2.3) of two blocks that follow each
//! other. Nothing is transposed, and a block that is not needed is not computed.

use core::arch::x86_64::*;
use core::array::from_fn;
use core::mem::MaybeUninit;
use core::slice;

use zeroize::optimization_barrier;

use crate::cpu::{HaveAvx2, HaveAvx512};
use crate::x86_64::chacha_lanes::{CONSTANTS, Pad};
use crate::x86_64::memory;

/// The most blocks at once.
pub(crate) const MAX_BLOCKS: usize = 8;

/// Room for them.
#[repr(align(64))]
pub(crate) struct Pads(MaybeUninit<[Pad; MAX_BLOCKS]>);

impl Pads {
    #[inline(always)]
    pub(crate) fn new() -> Pads {
        Pads(MaybeUninit::uninit())
    }
}

/// `count` blocks, rounded up to two, from block `counter` on. To be wiped by [`wipe`].
///
/// # Panics
/// If `count` is above [`MAX_BLOCKS`].
#[inline(always)]
pub(crate) fn blocks<'p>(
    (_, avx512): (HaveAvx2, Option<HaveAvx512>),
    count: usize,
    (key, nonce, counter): (&[u8; 32], &[u8; 12], u32),
    pads: &'p mut Pads,
) -> &'p mut [Pad] {
    let pads = pads.0.as_mut_ptr().cast();
    macro_rules! by {
        ($module:ident) => {
            // SAFETY: the tokens are made only where the instructions are present.
            unsafe {
                match count.div_ceil(2) {
                    0 | 1 => $module::blocks::<1>(key, nonce, counter, pads),
                    2 => $module::blocks::<2>(key, nonce, counter, pads),
                    3 => $module::blocks::<3>(key, nonce, counter, pads),
                    4 => $module::blocks::<4>(key, nonce, counter, pads),
                    _ => panic!("more than {MAX_BLOCKS} blocks"),
                }
            }
        };
    }
    match avx512 {
        Some(_) => by!(half),
        None => by!(narrow),
    }
    // SAFETY: that number of them was written.
    unsafe { slice::from_raw_parts_mut(pads, count.next_multiple_of(2)) }
}

/// Overwrites blocks with zeros.
#[inline(always)]
pub(crate) fn wipe(pads: &mut [Pad]) {
    let (pairs, _) = pads.as_chunks_mut::<2>();
    for pair in &mut *pairs {
        *pair = [[0; 64]; 2];
    }
    optimization_barrier(pads);
}

/// The block function over `PAIRS` pairs of blocks. `$operations` is a module of
/// `chacha_lanes`.
macro_rules! blocks {
    ($features:literal, $operations:ident) => {
        use super::*;
        use crate::x86_64::chacha_lanes::$operations::{add, rotate, xor};

        /// # Safety
        /// `pads` is valid for writes of all pairs.
        #[target_feature(enable = $features)]
        pub(super) unsafe fn blocks<const PAIRS: usize>(
            key: &[u8; 32],
            nonce: &[u8; 12],
            counter: u32,
            pads: *mut Pad,
        ) {
            let (key, nonce) = (key.as_ptr(), nonce.as_ptr());
            // SAFETY: the constants have 16 bytes, a key has 32, a nonce 12.
            let [constants, low, high] = unsafe {
                [CONSTANTS.as_ptr().cast(), key.cast(), key.add(16).cast()]
                    .map(|row| _mm256_broadcastsi128_si256(memory::load(row)))
            };
            // Loads no wider than what may just have been written.
            // SAFETY: as above.
            let nonce = unsafe {
                let rest = _mm_loadu_si32(nonce.add(8));
                _mm_unpacklo_epi64(_mm_loadl_epi64(nonce.cast()), rest)
            };
            let tail = _mm256_broadcastsi128_si256(_mm_slli_si128::<4>(nonce));
            let counter = counter as i32;
            let start: [_; PAIRS] = from_fn(|pair| {
                let counter = counter.wrapping_add(2 * pair as i32);
                let counters = _mm256_set_epi32(0, 0, 0, counter.wrapping_add(1), 0, 0, 0, counter);
                [constants, low, high, _mm256_add_epi32(tail, counters)]
            });
            // SAFETY: as for this function.
            unsafe { key_stream(&start, pads, || ()) };
        }

        /// The blocks of rows, and what is done beside every two of their rounds.
        ///
        /// # Safety
        /// As [`blocks`].
        #[inline]
        #[target_feature(enable = $features)]
        pub(in crate::x86_64) unsafe fn key_stream<const PAIRS: usize>(
            start: &[[__m256i; 4]; PAIRS],
            pads: *mut Pad,
            mut beside: impl FnMut(),
        ) {
            let mut rows = *start;
            for _ in 0..10 {
                quarter_round(&mut rows);
                for [_, b, c, d] in &mut rows {
                    *b = _mm256_shuffle_epi32::<0b00_11_10_01>(*b);
                    *c = _mm256_shuffle_epi32::<0b01_00_11_10>(*c);
                    *d = _mm256_shuffle_epi32::<0b10_01_00_11>(*d);
                }
                quarter_round(&mut rows);
                for [_, b, c, d] in &mut rows {
                    *b = _mm256_shuffle_epi32::<0b10_01_00_11>(*b);
                    *c = _mm256_shuffle_epi32::<0b01_00_11_10>(*c);
                    *d = _mm256_shuffle_epi32::<0b00_11_10_01>(*d);
                }
                beside();
            }
            for pair in 0..PAIRS {
                let [a, b, c, d] = from_fn(|row| add(rows[pair][row], start[pair][row]));
                let halves = [
                    _mm256_permute2x128_si256::<0x20>(a, b),
                    _mm256_permute2x128_si256::<0x20>(c, d),
                    _mm256_permute2x128_si256::<0x31>(a, b),
                    _mm256_permute2x128_si256::<0x31>(c, d),
                ];
                // SAFETY: a pair of blocks has four halves of 32 bytes.
                unsafe {
                    let to = pads.add(2 * pair).cast::<__m256i>();
                    for (i, half) in halves.into_iter().enumerate() {
                        _mm256_storeu_si256(to.add(i), half);
                    }
                }
            }
        }

        /// Of every column of every block.
        #[inline]
        #[target_feature(enable = $features)]
        fn quarter_round<const PAIRS: usize>(rows: &mut [[__m256i; 4]; PAIRS]) {
            for [a, b, _, d] in &mut *rows {
                *a = add(*a, *b);
                *d = rotate::<16, 16>(xor(*d, *a));
            }
            for [_, b, c, d] in &mut *rows {
                *c = add(*c, *d);
                *b = rotate::<12, 20>(xor(*b, *c));
            }
            for [a, b, _, d] in &mut *rows {
                *a = add(*a, *b);
                *d = rotate::<8, 24>(xor(*d, *a));
            }
            for [_, b, c, d] in &mut *rows {
                *c = add(*c, *d);
                *b = rotate::<7, 25>(xor(*b, *c));
            }
        }
    };
}

pub(super) mod narrow {
    blocks!("avx2", narrow);
}

/// With the rotations and the 32 registers of AVX-512.
mod half {
    blocks!("avx512f,avx512vl", half);
}
