//! XTS (IEEE 1619): tweaks of a batch encrypted together, then long requests eight
//! registers at a time and the rest packed.

use core::arch::x86_64::__m128i;
use core::mem::MaybeUninit;

use super::cursor::Cursor;
use super::rounds::{Keys, Schedule, middle};
use super::slots::{Slots, copy_short};
use super::tier::Tier;
use super::wide::Wide;
use super::wipe;
use crate::aes::{AesKey, Block};
use crate::job::CipherJob;
use crate::xts::XtsKey;

/// Requests whose encrypted tweaks are kept at a time.
const GROUP: usize = 32;

/// # Safety
/// The instructions of `T` are there; every job has 16 bytes or more.
#[inline(always)]
pub(super) unsafe fn crypt<T: Tier, const DECRYPT: bool>(jobs: &mut [CipherJob<'_, XtsKey>]) {
    let mut slots = Slots::new();
    let mut tweaks = [MaybeUninit::<Block>::uninit(); GROUP];
    let group = jobs.len().min(GROUP);
    // SAFETY: cursors stay within the data of jobs that are borrowed throughout,
    // and the first flush writes a tweak for each job of the group.
    unsafe {
        for jobs in jobs.chunks_mut(GROUP) {
            for (job, tweak) in jobs.iter().zip(&mut tweaks) {
                let key = Schedule::new::<false>(job.key.tweak());
                slots.begin::<T, false>(key);
                let iv = __m128i::load(job.iv.as_ptr());
                slots.push::<T, false>(key, iv, __m128i::zero(), tweak.as_mut_ptr().cast());
            }
            T::flush::<false>(&mut slots);
            for (job, tweak) in jobs.iter_mut().zip(&tweaks) {
                let tweak = __m128i::load(tweak.as_ptr().cast());
                let mut at = Cursor::new(&mut job.data);
                one::<T, DECRYPT>(&mut slots, &mut at, job.key.data(), tweak);
            }
            T::flush::<DECRYPT>(&mut slots);
        }
        wipe::memory(tweaks.as_mut_ptr(), group * size_of::<Block>());
    }
    slots.wipe();
}

/// A data unit, or the rest of one, from its first block's encrypted tweak.
///
/// # Safety
/// The instructions of `T` are there; the job has 16 bytes or more.
#[inline(always)]
pub(super) unsafe fn crypt_from<T: Tier, const DECRYPT: bool>(
    job: &mut CipherJob<'_, XtsKey>,
    tweak: &Block,
) {
    let mut slots = Slots::new();
    // SAFETY: the cursor stays within the data of the job.
    unsafe {
        let mut at = Cursor::new(&mut job.data);
        let tweak = __m128i::load(tweak.as_ptr());
        one::<T, DECRYPT>(&mut slots, &mut at, job.key.data(), tweak);
        T::flush::<DECRYPT>(&mut slots);
    }
    slots.wipe();
}

/// # Safety
/// The instructions of `T` are there and the data behind `at`, 16 bytes or more, is
/// valid until the slots are flushed.
#[inline(always)]
unsafe fn one<T: Tier, const DECRYPT: bool>(
    slots: &mut Slots,
    at: &mut Cursor,
    key: &AesKey,
    tweak: __m128i,
) {
    let key = Schedule::new::<DECRYPT>(key);
    let odd = at.len % 16;
    // Stealing takes the last whole block of a ciphertext out of its turn.
    let apart = if odd > 0 {
        odd + 16 * usize::from(DECRYPT)
    } else {
        0
    };
    at.len -= apart;
    // SAFETY: as for this function. Fewer than 8 registers of blocks are left after
    // the bulk, so no tweak is shifted by more than 32. With an odd length a whole
    // block and a part stand before or behind `at`: see each direction.
    unsafe {
        let tweak = bulk::<T::V, 8, DECRYPT>(at, key, tweak);
        slots.begin::<T, DECRYPT>(key);
        let mut blocks = 0;
        while at.len > 0 {
            let tweak = tweak.shift_tweaks(blocks);
            let input = __m128i::load(at.from).xor(tweak);
            slots.push::<T, DECRYPT>(key, input, tweak, at.to);
            at.advance(16);
            blocks += 1;
        }
        if odd > 0 {
            let (this, next) = (tweak.shift_tweaks(blocks), tweak.shift_tweaks(blocks + 1));
            if DECRYPT {
                let whole = single::<true>(key, __m128i::load(at.from), next);
                steal::<true>(key, whole, at, odd, this);
            } else {
                T::flush::<false>(slots);
                at.from = at.from.sub(16);
                at.to = at.to.sub(16);
                steal::<false>(key, __m128i::load(at.to), at, odd, this);
            }
        }
    }
}

/// The last whole block, at `at`, and the `odd` bytes behind it (section 5.3.2):
/// these give way to the start of `whole`, which is that block already under the
/// cipher once, and join the rest of it under the cipher in its place.
///
/// # Safety
/// AES-NI is there and `16 + odd` bytes behind `at` are valid.
#[inline(always)]
unsafe fn steal<const DECRYPT: bool>(
    key: Schedule,
    whole: __m128i,
    at: &Cursor,
    odd: usize,
    tweak: __m128i,
) {
    let mut joined = [[0u8; 16]; 2];
    let [first, second] = &mut joined;
    // SAFETY: as for this function; the part is read before it is written.
    unsafe {
        whole.store(first.as_mut_ptr());
        whole.store(second.as_mut_ptr());
        copy_short(at.from.add(16), first.as_mut_ptr(), odd);
        copy_short(second.as_ptr(), at.to.add(16), odd);
        single::<DECRYPT>(key, __m128i::load(first.as_ptr()), tweak).store(at.to);
        wipe::memory(&raw mut joined, size_of_val(&joined));
    }
}

/// One block.
///
/// # Safety
/// AES-NI is there.
#[inline(always)]
unsafe fn single<const DECRYPT: bool>(key: Schedule, block: __m128i, tweak: __m128i) -> __m128i {
    // SAFETY: as for this function.
    unsafe {
        let mut state = [block.xor(tweak).xor(key.at(0, 0))];
        middle::<__m128i, _, 1, DECRYPT>(&mut state, &key);
        let last: __m128i = key.at(0, key.rounds());
        state[0].last_round::<DECRYPT>(last.xor(tweak))
    }
}

/// Gives the tweak of the next block.
///
/// # Safety
/// The instructions of `V` are there and the data behind `at` is valid.
#[inline(always)]
unsafe fn bulk<V: Wide, const W: usize, const DECRYPT: bool>(
    at: &mut Cursor,
    key: Schedule,
    tweak: __m128i,
) -> __m128i {
    let step = 16 * V::BLOCKS;
    if at.len < W * step {
        return tweak;
    }
    // SAFETY: `W * step` bytes are left in the loop; all are read before any is
    // written. `BLOCKS` is at most 4.
    unsafe {
        let mut places = [tweak; 4];
        for i in 1..V::BLOCKS {
            places[i] = tweak.shift_tweaks(i as i32);
        }
        let mut first = V::load(places.as_ptr().cast());
        while at.len >= W * step {
            let mut tweaks = [first; W];
            let mut state = [first; W];
            for i in 1..W {
                tweaks[i] = first.shift_tweaks((i * V::BLOCKS) as i32);
            }
            first = first.shift_tweaks((W * V::BLOCKS) as i32);
            for i in 0..W {
                let input = V::load(at.from.add(i * step));
                state[i] = input.xor(tweaks[i]).xor(key.at(i, 0));
            }
            middle::<V, _, W, DECRYPT>(&mut state, &key);
            let last: V = key.at(0, key.rounds());
            for i in 0..W {
                state[i] = state[i].last_round::<DECRYPT>(last.xor(tweaks[i]));
            }
            for i in 0..W {
                state[i].store(at.to.add(i * step));
            }
            at.advance(W * step);
        }
        first.first()
    }
}
