//! CBC decryption, which has no chain through the cipher: long requests eight
//! registers at a time, the rest packed.

use core::arch::x86_64::__m128i;

use super::cursor::Cursor;
use super::rounds::{Keys, Schedule, middle};
use super::slots::Slots;
use super::tier::Tier;
use super::wide::Wide;
use crate::aes::{AesKey, Block};
use crate::job::CipherJob;

/// # Safety
/// The instructions of `T` are there.
#[inline(always)]
pub(super) unsafe fn decrypt<T: Tier>(jobs: &mut [CipherJob<'_, AesKey>]) {
    let mut slots = Slots::new();
    // SAFETY: cursors stay within the data of jobs that are borrowed throughout.
    // Packed blocks read their input here and write later, so in place the next
    // block still finds the ciphertext that it chains from in `previous`.
    unsafe {
        for job in jobs {
            let key = Schedule::new::<true>(job.key);
            let mut at = Cursor::new(&mut job.data);
            bulk::<T::V, 8>(&mut at, key, &mut job.iv);
            slots.begin::<T, true>(key);
            let mut previous = __m128i::load(job.iv.as_ptr());
            while at.len >= 16 {
                let input = __m128i::load(at.from);
                slots.push::<T, true>(key, input, previous, at.to);
                previous = input;
                at.advance(16);
            }
            previous.store(job.iv.as_mut_ptr());
        }
        T::flush::<true>(&mut slots);
    }
    slots.wipe();
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
            for i in 0..W {
                state[i] = V::load(from.add(i * step)).xor(key.at(i, 0));
            }
            middle::<V, _, W, true>(&mut state, &key);
            let last: V = key.at(0, key.rounds());
            let chain = V::gather(|b| match b {
                0 => previous.as_ptr(),
                _ => from.add(16 * b - 16),
            });
            state[0] = state[0].last_round::<true>(last.xor(chain));
            for i in 1..W {
                let chain = V::load(from.add(i * step - 16));
                state[i] = state[i].last_round::<true>(last.xor(chain));
            }
            __m128i::load(from.add(W * step - 16)).store(previous.as_mut_ptr());
            for i in 0..W {
                state[i].store(at.to.add(i * step));
            }
            at.advance(W * step);
        }
    }
}
