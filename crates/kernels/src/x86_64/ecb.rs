//! ECB: long requests eight registers at a time, the rest packed.

use core::arch::x86_64::__m128i;

use super::cursor::Cursor;
use super::rounds::{Keys, Schedule, middle};
use super::slots::Slots;
use super::tier::Tier;
use super::wide::Wide;
use crate::aes::AesKey;
use crate::job::CipherJob;

/// # Safety
/// The instructions of `T` are there.
#[inline(always)]
pub(super) unsafe fn crypt<T: Tier, const DECRYPT: bool>(jobs: &mut [CipherJob<'_, AesKey>]) {
    let mut slots = Slots::new();
    // SAFETY: cursors stay within the data of jobs that are borrowed throughout.
    unsafe {
        for job in jobs {
            let key = Schedule::new::<DECRYPT>(job.key);
            let mut at = Cursor::new(&mut job.data);
            bulk::<T::V, 8, DECRYPT>(&mut at, key);
            slots.begin::<T, DECRYPT>(key);
            while at.len >= 16 {
                let input = __m128i::load(at.from);
                slots.push::<T, DECRYPT>(key, input, __m128i::zero(), at.to);
                at.advance(16);
            }
        }
        T::flush::<DECRYPT>(&mut slots);
    }
    slots.wipe();
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
            for i in 0..W {
                state[i] = V::load(at.from.add(i * step)).xor(key.at(i, 0));
            }
            middle::<V, _, W, DECRYPT>(&mut state, &key);
            for i in 0..W {
                state[i] = state[i].last_round::<DECRYPT>(key.at(i, key.rounds()));
            }
            for i in 0..W {
                state[i].store(at.to.add(i * step));
            }
            at.advance(W * step);
        }
    }
}
