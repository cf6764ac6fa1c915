//! CTR: long requests eight registers at a time, the rest packed.

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
pub(super) unsafe fn apply<T: Tier>(jobs: &mut [CipherJob<'_, AesKey>]) {
    let mut slots = Slots::new();
    // SAFETY: cursors stay within the data of jobs that are borrowed throughout.
    unsafe {
        for job in jobs {
            let key = Schedule::new::<false>(job.key);
            let mut at = Cursor::new(&mut job.data);
            let blocks = at.len.div_ceil(16) as u64;
            let counter = u128::from_be_bytes(job.iv);
            // Kept with its bytes reversed, as the processor counts.
            let first = __m128i::load(job.iv.as_ptr()).reverse();
            let next = counter.wrapping_add(u128::from(blocks));
            job.iv = next.to_be_bytes();
            slots.begin::<T, false>(key);
            // Vectors count in the lower half alone: stop where it wraps.
            let until_wrap = (counter as u64).wrapping_neg();
            if until_wrap != 0 && until_wrap < blocks {
                let len = at.len;
                at.len = 16 * until_wrap as usize;
                segment::<T>(&mut slots, &mut at, key, first);
                at.len = len - 16 * until_wrap as usize;
                let wrapped = (next & !u128::from(u64::MAX)).to_le_bytes();
                segment::<T>(&mut slots, &mut at, key, __m128i::load(wrapped.as_ptr()));
            } else {
                segment::<T>(&mut slots, &mut at, key, first);
            }
        }
        T::flush::<false>(&mut slots);
    }
    slots.wipe();
}

/// 0 to 3, each in the lower half of a block.
static PLACES: [u64; 8] = [0, 0, 1, 0, 2, 0, 3, 0];

/// All of `at`, from a counter whose lower half does not wrap on the way.
///
/// # Safety
/// The instructions of `T` are there and the data behind `at` is valid until the
/// slots are flushed.
#[inline(always)]
unsafe fn segment<T: Tier>(slots: &mut Slots, at: &mut Cursor, key: Schedule, counter: __m128i) {
    // SAFETY: as for this function; pushes stay within what is left.
    unsafe {
        let mut counter = bulk::<T::V, 8>(at, key, counter);
        let one = __m128i::load((&raw const PLACES[2]).cast());
        while at.len >= 16 {
            let data = __m128i::load(at.from);
            slots.push::<T, false>(key, counter.reverse(), data, at.to);
            counter = counter.add_halves(one);
            at.advance(16);
        }
        if at.len > 0 {
            slots.push_tail::<T, false>(key, counter.reverse(), at.from, at.to, at.len);
        }
    }
}

/// Gives the next counter.
///
/// # Safety
/// The instructions of `V` are there and the data behind `at` is valid.
#[inline(always)]
unsafe fn bulk<V: Wide, const W: usize>(
    at: &mut Cursor,
    key: Schedule,
    counter: __m128i,
) -> __m128i {
    let step = 16 * V::BLOCKS;
    // SAFETY: `W * step` bytes are left in the loop; all are read before any is
    // written. `PLACES` has four blocks, and `BLOCKS` is at most 4.
    unsafe {
        let mut counters = V::broadcast(counter).add_halves(V::load(PLACES.as_ptr().cast()));
        let by = [V::BLOCKS as u64, 0];
        let by = V::splat(by.as_ptr().cast());
        while at.len >= W * step {
            let mut state = [V::zero(); W];
            for i in 0..W {
                state[i] = counters.reverse().xor(key.at(i, 0));
                counters = counters.add_halves(by);
            }
            middle::<V, _, W, false>(&mut state, &key);
            let last: V = key.at(0, key.rounds());
            for i in 0..W {
                let data = V::load(at.from.add(i * step));
                state[i] = state[i].last_round::<false>(last.xor(data));
            }
            for i in 0..W {
                state[i].store(at.to.add(i * step));
            }
            at.advance(W * step);
        }
        counters.first()
    }
}
