//! The key stream of one message, many blocks at a time, each added to the data at once, while
//! the processor's integer units compute the Poly1305 of another part of the message.
//!
//! Cipher and MAC keep different units busy: side by side they take little longer than the
//! cipher alone.

use core::arch::x86_64::*;

use zeroize::optimization_barrier;

use crate::cpu::{HaveAvx2, HaveAvx512};
use crate::x86_64::chacha_lanes::{self, CONSTANTS, quarter_rounds};
use crate::x86_64::poly1305_words::Halves;
use crate::x86_64::{chacha_narrow, chacha_wide};

/// The key stream of a message.
pub(crate) trait KeyStream: Sized {
    /// What it takes to run this.
    type Token: Copy;
    /// Bytes of a step.
    const STEP: usize;
    /// Bytes from which on a message among others has the vectors for itself.
    const LONG: usize;
    /// Blocks of each part of the MAC in one of the ten double rounds.
    const HALF: usize;

    /// From block `counter` on.
    fn new(token: Self::Token, key: &[u8; 32], nonce: &[u8; 12], counter: u32) -> Self;

    /// Adds the next [`STEP`](Self::STEP) bytes of key stream to data. `beside` are two parts of
    /// a message, and the number of double rounds, at most ten, beside which they are taken in:
    /// before anything is written.
    ///
    /// # Safety
    /// `from` is valid for reads of a step, `to` for writes; they are the same or do not
    /// overlap. Each part has [`HALF`](Self::HALF) blocks for each of the double rounds.
    unsafe fn step(&mut self, from: *const u8, to: *mut u8, beside: Option<(&mut Halves, usize)>);
}

/// The double rounds beside which `len` bytes go through the MAC: at most as many as take in what
/// a step makes.
#[inline(always)]
pub(crate) fn rounds_beside<S: KeyStream>(len: usize) -> usize {
    len.min(S::STEP) / (2 * 16 * S::HALF)
}

/// `$lanes` blocks a step. Beside a double round go `$half` blocks of each part of the MAC.
macro_rules! stream {
    (
        $name:ident, $vector:ident, $token:ident, $features:literal, $operations:ident,
        lanes $lanes:literal, half $half:literal, long $long:literal,
        counters $counters:expr, write $write:ident, rounds $module:ident
    ) => {
        /// See [`KeyStream`]. The words of the state before the rounds; wiped on drop.
        pub(crate) struct $name([$vector; 16]);

        impl Drop for $name {
            #[inline(always)]
            fn drop(&mut self) {
                // SAFETY: zero is a value of a vector.
                self.0 = unsafe { core::mem::zeroed() };
                optimization_barrier(&self.0);
            }
        }

        impl KeyStream for $name {
            type Token = $token;
            const STEP: usize = 64 * $lanes;
            const LONG: usize = $long;
            const HALF: usize = $half;

            #[inline(always)]
            fn new(_: $token, key: &[u8; 32], nonce: &[u8; 12], counter: u32) -> Self {
                // SAFETY: the token is made only where the instructions are present.
                unsafe { $operations::start(key, nonce, counter) }
            }

            #[inline(always)]
            unsafe fn step(
                &mut self,
                from: *const u8,
                to: *mut u8,
                beside: Option<(&mut Halves, usize)>,
            ) {
                // SAFETY: `new` had the token; the rest as for this function.
                unsafe {
                    match beside {
                        Some((halves, rounds)) => {
                            $operations::step_beside(self, from, to, halves, rounds);
                        }
                        None => $operations::step_alone(self, from, to),
                    }
                }
            }
        }

        mod $operations {
            use super::*;
            use crate::x86_64::chacha_lanes::$operations::{add, splat};

            #[target_feature(enable = $features)]
            pub(super) fn start(key: &[u8; 32], nonce: &[u8; 12], counter: u32) -> $name {
                let mut words = [splat(0); 16];
                let (keys, _) = key.as_chunks();
                let (nonces, _) = nonce.as_chunks();
                for i in 0..4 {
                    words[i] = splat(CONSTANTS[i]);
                }
                for i in 0..8 {
                    words[4 + i] = splat(u32::from_le_bytes(keys[i]));
                }
                words[12] = add(splat(counter), $counters);
                for i in 0..3 {
                    words[13 + i] = splat(u32::from_le_bytes(nonces[i]));
                }
                $name(words)
            }

            /// # Safety
            /// As [`KeyStream::step`].
            #[target_feature(enable = $features)]
            pub(super) unsafe fn step_alone(stream: &mut $name, from: *const u8, to: *mut u8) {
                let words = $module::rounds!(stream.0, 0, [] []);
                // SAFETY: as for this function.
                unsafe { finish(stream, words, from, to) };
            }

            /// # Safety
            /// As [`KeyStream::step`].
            #[target_feature(enable = $features)]
            pub(super) unsafe fn step_beside(
                stream: &mut $name,
                from: *const u8,
                to: *mut u8,
                halves: &mut Halves,
                rounds: usize,
            ) {
                let [mut first, mut second] = halves.sums();
                let words = $module::rounds!(
                    stream.0, rounds,
                    // SAFETY: BMI2 is there, and as many blocks.
                    [unsafe { halves.absorb_first(&mut first) };]
                    // SAFETY: as above.
                    [unsafe { halves.absorb_second(&mut second) };]
                );
                halves.set_sums([first, second]);
                // SAFETY: as for this function.
                unsafe { finish(stream, words, from, to) };
            }

            #[inline]
            #[target_feature(enable = $features)]
            unsafe fn finish(
                stream: &mut $name,
                mut v: [$vector; 16],
                from: *const u8,
                to: *mut u8,
            ) {
                for i in 0..16 {
                    v[i] = add(v[i], stream.0[i]);
                }
                stream.0[12] = add(stream.0[12], splat($lanes));
                // SAFETY: as for this function.
                unsafe { $write(&v, from, to) };
            }
        }
    };
}

stream!(
    Narrow, __m256i, HaveAvx2, "avx2,bmi2", narrow,
    lanes 8, half 2, long 1024,
    counters _mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0), write add8, rounds chacha_narrow
);

stream!(
    Wide, __m512i, HaveAvx512, "avx512f,bmi2", wide,
    lanes 16, half 4, long 3072,
    counters _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0), write add16, rounds chacha_wide
);

/// Adds the words of 8 blocks to data.
///
/// # Safety
/// `from` is valid for reads of 512 bytes, `to` for writes.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn add8(words: &[__m256i; 16], from: *const u8, to: *mut u8) {
    chacha_lanes::blocks8(words, |offset, pad| {
        // SAFETY: 32 bytes of 512.
        unsafe {
            let data = _mm256_loadu_si256(from.add(offset).cast());
            _mm256_storeu_si256(to.add(offset).cast(), _mm256_xor_si256(data, pad));
        }
    });
}

/// Adds the words of 16 blocks to data.
///
/// # Safety
/// `from` is valid for reads of 1024 bytes, `to` for writes.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn add16(words: &[__m512i; 16], from: *const u8, to: *mut u8) {
    chacha_lanes::blocks16(words, |offset, pad| {
        // SAFETY: 64 bytes of 1024.
        unsafe {
            let data = _mm512_loadu_si512(from.add(offset).cast());
            _mm512_storeu_si512(to.add(offset).cast(), _mm512_xor_si512(data, pad));
        }
    });
}
