//! CBC decryption, which has no chain through the cipher: long requests eight
//! registers at a time, the rest packed.

use core::arch::x86_64::__m128i;
use core::mem::MaybeUninit;

use super::cursor::Cursor;
use super::rounds::{Keys, Schedule, middle};
use super::short;
use super::slots::{Feed, Slots};
use super::tier::Tier;
use super::wide::Wide;
use crate::aes::key::{AesKey, Block};
use crate::job::CipherJob;

/// # Safety
/// The instructions of `T` are there.
#[inline(always)]
pub(super) unsafe fn decrypt<T: Tier>(jobs: &mut [CipherJob<'_, AesKey>]) {
    let mut store = MaybeUninit::uninit();
    let mut slots = Slots::new(&mut store);
    // SAFETY: cursors stay within the data of jobs that are borrowed throughout.
    unsafe {
        for job in jobs {
            let key = Schedule::new::<true>(job.key);
            let mut at = Cursor::new(&mut job.data);
            bulk::<T::V, 8>(&mut at, key, &mut job.iv);
            if T::V::BLOCKS == 4 {
                bulk::<T::V, 4>(&mut at, key, &mut job.iv);
            }
            slots.begin::<T, true>(key);
            let mut chain = Chain(T::V::splat(&raw const job.iv));
            slots.stage::<T, true>(&mut at, &mut chain);
            chain.0.last().store(job.iv.as_mut_ptr());
        }
        slots.flush::<T, true>();
        slots.wipe::<T>();
    }
}

/// One request, with no other to be packed with.
///
/// # Safety
/// The instructions of `T` are there.
#[inline(always)]
pub(super) unsafe fn one<T: Tier>(job: &mut CipherJob<'_, AesKey>) {
    let key = Schedule::new::<true>(job.key);
    let mut at = Cursor::new(&mut job.data);
    // SAFETY: the cursor stays within the data of the job.
    unsafe {
        bulk::<T::V, 8>(&mut at, key, &mut job.iv);
        let mut chain = Chain(T::V::broadcast(__m128i::load(job.iv.as_ptr())));
        short::crypt::<T::V, _, true>(&mut at, key, &mut chain);
        chain.0.last().store(job.iv.as_mut_ptr());
    }
}

/// Ciphertext, and what it chains from: the last block of this register. In place
/// the ciphertext in memory may be gone when the next block asks for it.
pub(super) struct Chain<V>(pub(super) V);

impl<V: Wide> Feed<V> for Chain<V> {
    #[inline(always)]
    unsafe fn wide(&mut self, from: *const u8) -> (V, V) {
        // SAFETY: as the trait says.
        unsafe {
            let input = V::load(from);
            (input, input.chained(core::mem::replace(&mut self.0, input)))
        }
    }

    #[inline(always)]
    unsafe fn single(&mut self, from: *const u8) -> (__m128i, __m128i) {
        // SAFETY: as the trait says.
        unsafe {
            let input = __m128i::load(from);
            let previous = core::mem::replace(&mut self.0, V::broadcast(input));
            (input, previous.last())
        }
    }
}

/// Leaves the last ciphertext block in `previous`.
///
/// # Safety
/// The instructions of `V` are there and the data behind `at` is valid.
#[inline(always)]
unsafe fn bulk<V: Wide, const W: usize>(at: &mut Cursor, key: Schedule, previous: &mut Block) {
    let step = 16 * V::BLOCKS;
    while at.len >= W * step {
        let from = at.from;
        // SAFETY: `W * step` bytes are left; all are read before any is written.
        // Register 0 chains from `previous` and its own blocks but the last, each
        // other one from the 16 bytes before its own and its own but the last.
        unsafe {
            let mut state = [V::zero(); W];
            for (i, state) in state.iter_mut().enumerate() {
                *state = V::load(from.add(i * step)).xor(key.at(i, 0));
            }
            let key = middle::<V, _, W, true>(&mut state, key);
            let last: V = key.at(0, key.rounds());
            let chain = V::gather(|b| match b {
                0 => previous.as_ptr(),
                _ => from.add(16 * b - 16),
            });
            state[0] = state[0].last_round::<true>(last.xor(chain));
            for (i, state) in state.iter_mut().enumerate().skip(1) {
                let chain = V::load(from.add(i * step - 16));
                *state = state.last_round::<true>(last.xor(chain));
            }
            __m128i::load(from.add(W * step - 16)).store(previous.as_mut_ptr());
            for (i, state) in state.iter().enumerate() {
                state.store(at.to.add(i * step));
            }
            at.advance(W * step);
        }
    }
}
