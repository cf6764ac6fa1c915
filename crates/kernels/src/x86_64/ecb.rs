//! ECB: long requests eight registers at a time, the rest packed.

use core::arch::x86_64::__m128i;
use core::mem::MaybeUninit;

use super::cursor::Cursor;
use super::rounds::{Keys, Schedule, middle};
use super::short;
use super::slots::{Feed, Slots};
use super::tier::Tier;
use super::wide::Wide;
use crate::aes::key::AesKey;
use crate::job::CipherJob;

/// # Safety
/// The instructions of `T` are there.
#[inline(always)]
pub(super) unsafe fn crypt<T: Tier, const DECRYPT: bool>(jobs: &mut [CipherJob<'_, AesKey>]) {
    let mut store = MaybeUninit::uninit();
    let mut slots = Slots::new(&mut store);
    // SAFETY: cursors stay within the data of jobs that are borrowed throughout.
    unsafe {
        for job in jobs {
            let key = Schedule::new::<DECRYPT>(job.key);
            let mut at = Cursor::new(&mut job.data);
            bulk::<T::V, 8, DECRYPT>(&mut at, key);
            if T::V::BLOCKS == 4 {
                bulk::<T::V, 4, DECRYPT>(&mut at, key);
            }
            slots.begin::<T, DECRYPT>(key);
            slots.stage::<T, DECRYPT>(&mut at, &mut Plain);
        }
        slots.flush::<T, DECRYPT>();
        slots.wipe::<T>();
    }
}

/// One request, with no other to be packed with.
///
/// # Safety
/// The instructions of `T` are there.
#[inline(always)]
pub(super) unsafe fn one<T: Tier, const DECRYPT: bool>(job: &mut CipherJob<'_, AesKey>) {
    let key = Schedule::new::<DECRYPT>(job.key);
    let mut at = Cursor::new(&mut job.data);
    // SAFETY: the cursor stays within the data of the job.
    unsafe {
        bulk::<T::V, 8, DECRYPT>(&mut at, key);
        short::crypt::<T::V, _, DECRYPT>(&mut at, key, &mut Plain);
    }
}

/// Data as it is.
pub(super) struct Plain;

impl<V: Wide> Feed<V> for Plain {
    #[inline(always)]
    unsafe fn wide(&mut self, from: *const u8) -> (V, V) {
        // SAFETY: as the trait says.
        unsafe { (V::load(from), V::zero()) }
    }

    #[inline(always)]
    unsafe fn single(&mut self, from: *const u8) -> (__m128i, __m128i) {
        // SAFETY: as the trait says.
        unsafe { (__m128i::load(from), __m128i::zero()) }
    }
}

/// # Safety
/// The instructions of `V` are there and the data behind `at` is valid.
#[inline(always)]
unsafe fn bulk<V: Wide, const W: usize, const DECRYPT: bool>(at: &mut Cursor, key: Schedule) {
    let step = 16 * V::BLOCKS;
    while at.len >= W * step {
        // SAFETY: `W * step` bytes are left; all are read before any is written.
        unsafe {
            let mut state = [V::zero(); W];
            for (i, state) in state.iter_mut().enumerate() {
                *state = V::load(at.from.add(i * step)).xor(key.at(i, 0));
            }
            let key = middle::<V, _, W, DECRYPT>(&mut state, key);
            for (i, state) in state.iter_mut().enumerate() {
                *state = state.last_round::<DECRYPT>(key.at(i, key.rounds()));
            }
            for (i, state) in state.iter().enumerate() {
                state.store(at.to.add(i * step));
            }
            at.advance(W * step);
        }
    }
}
