//! The key stream of one message, many blocks at a time, each added to the data at once, while
//! the processor's integer units compute the Poly1305 of another part of the message.
//!
//! Cipher and MAC keep different units busy: side by side they take little longer than the
//! cipher alone. Vectors with multiplications for the MAC, those of AVX-512 IFMA, take less time
//! for it than words beside the cipher: there it goes before.

use core::arch::x86_64::*;
use core::slice;

use zeroize::optimization_barrier;

use crate::cpu::{HaveAvx2, HaveAvx512, begins_four};
use crate::job::Direction;
use crate::x86_64::chacha_lanes::{self, CONSTANTS};
use crate::x86_64::memory;
use crate::x86_64::poly1305::Poly1305;
use crate::x86_64::poly1305_words::Halves;
use crate::x86_64::rows::transpose256;
use crate::x86_64::{chacha_few, chacha_narrow, chacha_quads, chacha_wide};

/// The key stream of a message.
pub(crate) trait KeyStream: Sized {
    /// What it takes to run this.
    type Token: Copy;
    /// Bytes of a step.
    const STEP: usize;
    /// Bytes from which on a message among others has the vectors for itself.
    const LONG: usize;
    /// Whether two MACs take turns at long messages, so that the last of one message goes beside the
    /// first of the next.
    const TURNS: bool;

    /// From block `counter` on.
    fn new(token: Self::Token, key: &[u8; 32], nonce: &[u8; 12], counter: u32) -> Self;

    /// Adds the next [`STEP`](Self::STEP) bytes of key stream to data.
    ///
    /// # Safety
    /// `from` is valid for reads of a step, `to` for writes; they are the same or do not
    /// overlap.
    unsafe fn step(&mut self, from: *const u8, to: *mut u8);

    /// As [`step`](Self::step). Meanwhile the MAC takes in the first of what is ready for it, and
    /// before anything is written. Gives how many bytes: whole blocks, and all of a step.
    ///
    /// # Safety
    /// As there. What is ready is valid for reads.
    unsafe fn step_beside(
        &mut self,
        from: *const u8,
        to: *mut u8,
        mac: &mut Poly1305,
        ready: (*const u8, usize),
    ) -> usize;

    /// The first of the key stream itself, for a message of `len` bytes and the block that keys its
    /// MAC. Gives how many bytes that is, a step at most, and how many the MAC of another message
    /// took in beside, if there is one.
    ///
    /// # Safety
    /// As [`step_beside`](Self::step_beside); `to` has room for a step.
    unsafe fn first(
        &mut self,
        _message: (Direction, usize),
        to: *mut u8,
        _other: Option<(&mut Poly1305, (*const u8, usize))>,
    ) -> (usize, usize) {
        const { assert!(Self::STEP <= MAX_STEP) };
        // SAFETY: as for this function.
        unsafe { self.step(ZEROS.as_ptr(), to) };
        (Self::STEP, 0)
    }

    /// The next `len` bytes of key stream itself, less than a step, the last that are taken from
    /// here, beside the MAC as [`step_beside`](Self::step_beside). Gives how many bytes were written,
    /// whole blocks and a step at most, and how many the MAC took in.
    ///
    /// # Safety
    /// As there; `to` has room for a step.
    unsafe fn last_beside(
        &mut self,
        len: usize,
        to: *mut u8,
        mac: &mut Poly1305,
        ready: (*const u8, usize),
    ) -> (usize, usize);
}

/// The bytes of the largest step.
pub(crate) const MAX_STEP: usize = 2 * SET;

/// What key stream is added to where it is wanted itself.
pub(crate) static ZEROS: [u8; MAX_STEP] = [0; MAX_STEP];

/// The state before the rounds.
macro_rules! stream {
    (
        $name:ident, $vector:ident, $features:literal, $operations:ident,
        counters $counters:expr
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
        }
    };
}

stream!(
    Narrow, __m256i, "avx2,bmi2", narrow,
    counters _mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0)
);

stream!(
    Wide, __m512i, "avx512f,bmi2", wide,
    counters _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
);

impl KeyStream for Narrow {
    type Token = HaveAvx2;
    const STEP: usize = 64 * 8;
    const LONG: usize = 512;
    const TURNS: bool = true;

    #[inline(always)]
    fn new(_: HaveAvx2, key: &[u8; 32], nonce: &[u8; 12], counter: u32) -> Self {
        // SAFETY: the token is made only where the instructions are present.
        unsafe { narrow::start(key, nonce, counter) }
    }

    #[inline(always)]
    unsafe fn step(&mut self, from: *const u8, to: *mut u8) {
        // SAFETY: `new` had the token; the rest as for this function.
        unsafe { narrow_step(self, from, to) }
    }

    #[inline(always)]
    unsafe fn step_beside(
        &mut self,
        from: *const u8,
        to: *mut u8,
        mac: &mut Poly1305,
        (ready, len): (*const u8, usize),
    ) -> usize {
        let blocks = len.min(Self::STEP) / 16;
        // SAFETY: `new` had the token; the rest as for this function.
        unsafe {
            match blocks {
                0 => narrow_step(self, from, to),
                _ => narrow_beside(self, from, to, mac, ready, blocks),
            }
        }
        16 * blocks
    }

    #[inline(always)]
    unsafe fn first(
        &mut self,
        (dir, len): (Direction, usize),
        to: *mut u8,
        other: Option<(&mut Poly1305, (*const u8, usize))>,
    ) -> (usize, usize) {
        // SAFETY: `new` had the token; the rest as for this function.
        unsafe {
            if dir == Direction::Decrypt && len > Self::STEP - 64 {
                // All ciphertext is there. Where the key of the MAC is made first, the MAC goes beside
                // all that follows.
                chacha_few::pair(&self.0, to);
                self.0[12] = _mm256_add_epi32(self.0[12], _mm256_set1_epi32(2));
                return (128, 0);
            }
            let taken = match other {
                Some((mac, ready)) => self.step_beside(ZEROS.as_ptr(), to, mac, ready),
                None => {
                    self.step(ZEROS.as_ptr(), to);
                    0
                }
            };
            (Self::STEP, taken)
        }
    }

    #[inline(always)]
    unsafe fn last_beside(
        &mut self,
        len: usize,
        to: *mut u8,
        mac: &mut Poly1305,
        ready: (*const u8, usize),
    ) -> (usize, usize) {
        let blocks = ready.1.min(Self::STEP) / 16;
        let pairs = len.div_ceil(128);
        // SAFETY: `new` had the token; a step has room for the pairs, which have `len` bytes at
        // least; the rest as for this function.
        unsafe {
            match pairs {
                1 => chacha_few::beside::<1>(&self.0, to, mac.sum(), ready.0, blocks),
                2 => chacha_few::beside::<2>(&self.0, to, mac.sum(), ready.0, blocks),
                3 => chacha_few::beside::<3>(&self.0, to, mac.sum(), ready.0, blocks),
                _ => {
                    let taken = self.step_beside(ZEROS.as_ptr(), to, mac, ready);
                    return (Self::STEP, taken);
                }
            }
        }
        (128 * pairs, 16 * blocks)
    }
}

/// A step.
///
/// # Safety
/// As [`KeyStream::step`].
#[target_feature(enable = "avx2,bmi2")]
unsafe fn narrow_step(stream: &mut Narrow, from: *const u8, to: *mut u8) {
    let words = chacha_narrow::rounds(&stream.0);
    // SAFETY: as for this function.
    unsafe { narrow_finish(stream, words, from, to) };
}

/// A step beside `blocks` of the MAC.
///
/// # Safety
/// As [`KeyStream::step_beside`]. There is a block at least.
#[target_feature(enable = "avx2,bmi2")]
unsafe fn narrow_beside(
    stream: &mut Narrow,
    from: *const u8,
    to: *mut u8,
    mac: &mut Poly1305,
    ready: *const u8,
    blocks: usize,
) {
    // SAFETY: as for this function.
    unsafe {
        let words = chacha_narrow::rounds_beside(&stream.0, mac.sum(), ready, blocks);
        narrow_finish(stream, words, from, to);
    }
}

/// Blocks of each of two parts of the MAC that go beside one of the ten double rounds of AVX-512.
const HALF: usize = 4;

/// Bytes of a set of blocks of AVX-512.
const SET: usize = 64 * 16;

/// Bytes of the blocks that are made by fours where that takes less time than a set.
const QUADS: usize = 64 * chacha_quads::MAX_BLOCKS;

impl KeyStream for Wide {
    type Token = HaveAvx512;
    const STEP: usize = 2 * SET;
    const LONG: usize = 3072;
    const TURNS: bool = false;

    #[inline(always)]
    fn new(_: HaveAvx512, key: &[u8; 32], nonce: &[u8; 12], counter: u32) -> Self {
        // SAFETY: the token is made only where the instructions are present.
        unsafe { wide::start(key, nonce, counter) }
    }

    #[inline(always)]
    unsafe fn step(&mut self, from: *const u8, to: *mut u8) {
        // SAFETY: `new` had the token; the rest as for this function.
        unsafe { wide_sets::<2>(self, from, to) }
    }

    #[inline(always)]
    unsafe fn step_beside(
        &mut self,
        from: *const u8,
        to: *mut u8,
        mac: &mut Poly1305,
        ready: (*const u8, usize),
    ) -> usize {
        // SAFETY: as for this function.
        unsafe { self.sets_beside::<2>(from, to, mac, ready) }
    }

    #[inline(always)]
    unsafe fn first(
        &mut self,
        (_, len): (Direction, usize),
        to: *mut u8,
        _other: Option<(&mut Poly1305, (*const u8, usize))>,
    ) -> (usize, usize) {
        // SAFETY: `new` had the token; the rest as for this function.
        unsafe {
            if 64 + len <= SET || (!begins_four() && 64 + len <= SET + QUADS) {
                wide_sets::<1>(self, ZEROS.as_ptr(), to);
                return (SET, 0);
            }
            wide_sets::<2>(self, ZEROS.as_ptr(), to);
            (Self::STEP, 0)
        }
    }

    #[inline(always)]
    unsafe fn last_beside(
        &mut self,
        len: usize,
        to: *mut u8,
        mac: &mut Poly1305,
        ready: (*const u8, usize),
    ) -> (usize, usize) {
        // SAFETY: `new` had the token; a step has room for the quads; the rest as for this function.
        unsafe {
            if len <= QUADS && !begins_four() {
                let quads = len.div_ceil(QUADS / 2);
                match quads {
                    1 => chacha_quads::blocks::<1>(&self.0, to),
                    _ => chacha_quads::blocks::<2>(&self.0, to),
                }
                (QUADS / 2 * quads, 0)
            } else if len <= SET {
                (SET, self.sets_beside::<1>(ZEROS.as_ptr(), to, mac, ready))
            } else {
                (
                    2 * SET,
                    self.sets_beside::<2>(ZEROS.as_ptr(), to, mac, ready),
                )
            }
        }
    }
}

impl Wide {
    /// The next sets, added to data, and the MAC, as [`step_beside`](KeyStream::step_beside): before
    /// them in vectors, if these have multiplications for that, or beside each in words.
    ///
    /// # Safety
    /// As there, for `SETS * SET` bytes.
    #[inline(always)]
    unsafe fn sets_beside<const SETS: usize>(
        &mut self,
        from: *const u8,
        to: *mut u8,
        mac: &mut Poly1305,
        (ready, len): (*const u8, usize),
    ) -> usize {
        // SAFETY: `new` had the token; the rest as for this function.
        unsafe {
            if let Some(taken) = mac.update_groups(slice::from_raw_parts(ready, len)) {
                wide_sets::<SETS>(self, from, to);
                return taken;
            }
            let mut taken = 0;
            for offset in (0..SETS).map(|set| SET * set) {
                let ready = (ready.add(taken), len - taken);
                taken += self.set_beside(from.add(offset), to.add(offset), mac, ready);
            }
            taken
        }
    }

    /// The next set, added to data, beside the MAC in words.
    ///
    /// # Safety
    /// As [`step_beside`](KeyStream::step_beside), for `SET` bytes.
    #[inline(always)]
    unsafe fn set_beside(
        &mut self,
        from: *const u8,
        to: *mut u8,
        mac: &mut Poly1305,
        (ready, len): (*const u8, usize),
    ) -> usize {
        // As many double rounds as take in what a set makes.
        let rounds = len.min(SET) / (2 * 16 * HALF);
        // SAFETY: `new` had the token; the two parts are within what is ready; the rest as for
        // this function.
        unsafe {
            match rounds {
                0 => wide_sets::<1>(self, from, to),
                _ => wide_beside(self, from, to, mac.halves(ready, HALF * rounds), rounds),
            }
        }
        mac.join_after(rounds);
        2 * 16 * HALF * rounds
    }
}

/// The next sets, added to data.
///
/// # Safety
/// As [`KeyStream::step`], for `SETS * SET` bytes.
#[target_feature(enable = "avx512f,bmi2")]
unsafe fn wide_sets<const SETS: usize>(stream: &mut Wide, from: *const u8, to: *mut u8) {
    let words = chacha_wide::rounds::<SETS>(&stream.0);
    for (set, words) in words.iter().enumerate() {
        // SAFETY: as for this function.
        unsafe { wide_finish(stream, *words, from.add(SET * set), to.add(SET * set)) };
    }
}

/// The next set, added to data, beside that number of double rounds of the MAC.
///
/// # Safety
/// As there. Each of the parts has [`HALF`] blocks for each of the double rounds.
#[target_feature(enable = "avx512f,bmi2")]
unsafe fn wide_beside(
    stream: &mut Wide,
    from: *const u8,
    to: *mut u8,
    halves: &mut Halves,
    rounds: usize,
) {
    // SAFETY: as for this function.
    unsafe {
        let words = chacha_wide::rounds_beside(&stream.0, halves, rounds);
        wide_finish(stream, words, from, to);
    }
}

/// Adds the words of 8 blocks after the rounds to those before and to data: one half of every block
/// after the other, which takes half as many registers as both.
///
/// # Safety
/// `from` is valid for reads of 512 bytes, `to` for writes.
#[inline]
#[target_feature(enable = "avx2,bmi2")]
unsafe fn narrow_finish(stream: &mut Narrow, words: [__m256i; 16], from: *const u8, to: *mut u8) {
    let row = |row: usize| {
        let sum = |word| _mm256_add_epi32(words[4 * row + word], stream.0[4 * row + word]);
        transpose256([sum(0), sum(1), sum(2), sum(3)])
    };
    for half in 0..2 {
        let (first, second) = (row(2 * half), row(2 * half + 1));
        for r in 0..4 {
            // Each has a quarter of the blocks r and r + 4.
            let [first, second] = [first[r], second[r]];
            for (block, pad) in [
                (r, _mm256_permute2x128_si256::<0x20>(first, second)),
                (r + 4, _mm256_permute2x128_si256::<0x31>(first, second)),
            ] {
                // SAFETY: half of one of eight blocks.
                unsafe {
                    let offset = 64 * block + 32 * half;
                    let data = memory::load(from.add(offset));
                    _mm256_storeu_si256(to.add(offset).cast(), _mm256_xor_si256(data, pad));
                }
            }
        }
    }
    stream.0[12] = _mm256_add_epi32(stream.0[12], _mm256_set1_epi32(8));
}

/// Adds the words of 16 blocks after the rounds to those before and to data.
///
/// # Safety
/// `from` is valid for reads of 1024 bytes, `to` for writes.
#[inline]
#[target_feature(enable = "avx512f,bmi2")]
unsafe fn wide_finish(stream: &mut Wide, mut words: [__m512i; 16], from: *const u8, to: *mut u8) {
    for (word, before) in words.iter_mut().zip(stream.0) {
        *word = _mm512_add_epi32(*word, before);
    }
    stream.0[12] = _mm512_add_epi32(stream.0[12], _mm512_set1_epi32(16));
    chacha_lanes::blocks16(&words, |offset, pad| {
        // SAFETY: 64 bytes of 1024.
        unsafe {
            let data = memory::load(from.add(offset));
            _mm512_storeu_si512(to.add(offset).cast(), _mm512_xor_si512(data, pad));
        }
    });
}
