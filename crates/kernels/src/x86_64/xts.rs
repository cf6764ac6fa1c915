//! XTS (IEEE 1619): tweaks of a batch encrypted together, then long requests eight
//! registers at a time and the rest packed.

use core::arch::x86_64::__m128i;
use core::mem::MaybeUninit;

use super::cursor::Cursor;
use super::ecb::Plain;
use super::rounds::{Keys, Schedule, middle};
use super::short;
use super::slots::{Feed, Slots, copy_short};
use super::tier::Tier;
use super::wide::Wide;
use super::wipe;
use crate::aes::key::{AesKey, Block};
use crate::job::CipherJob;
use crate::xts::key::XtsKey;

/// Requests whose encrypted tweaks are kept at a time.
const GROUP: usize = 32;

/// # Safety
/// The instructions of `T` are there; every job has 16 bytes or more.
#[inline(always)]
pub(super) unsafe fn crypt<T: Tier, const DECRYPT: bool>(jobs: &mut [CipherJob<'_, XtsKey>]) {
    let mut store = MaybeUninit::uninit();
    let mut slots = Slots::new(&mut store);
    let group = jobs.len().min(GROUP);
    let mut tweaks = MaybeUninit::<[Block; GROUP]>::uninit();
    let first = tweaks.as_mut_ptr().cast::<u8>();
    // SAFETY: cursors stay within the data of jobs that are borrowed throughout,
    // and the first flush writes a tweak for each job of the group.
    unsafe {
        for jobs in jobs.chunks_mut(GROUP) {
            for (i, job) in jobs.iter().enumerate() {
                let mut at = Cursor {
                    from: job.iv.as_ptr(),
                    to: first.add(16 * i),
                    len: 16,
                };
                slots.begin::<T, false>(Schedule::of(job.key.tweak()));
                slots.stage::<T, false>(&mut at, &mut Plain);
            }
            slots.flush::<T, false>();
            for (i, job) in jobs.iter_mut().enumerate() {
                let tweak = T::V::splat(first.add(16 * i).cast());
                let mut at = Cursor::new(&mut job.data);
                packed::<T, DECRYPT>(&mut slots, &mut at, job.key.data(), tweak);
            }
            slots.flush::<T, DECRYPT>();
        }
        slots.wipe::<T>();
        wipe::blocks::<T::V>(first.cast(), group);
    }
}

/// A data unit, with no other to be packed with.
///
/// # Safety
/// The instructions of `T` are there; the job has 16 bytes or more.
#[inline(always)]
pub(super) unsafe fn one<T: Tier, const DECRYPT: bool>(job: &mut CipherJob<'_, XtsKey>) {
    let key = Schedule::of(job.key.tweak());
    // SAFETY: as for this function.
    unsafe {
        let tweak = single::<false>(key, __m128i::load(job.iv.as_ptr()), __m128i::zero());
        alone::<T, DECRYPT>(job, tweak);
    }
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
    // SAFETY: as for this function.
    unsafe { alone::<T, DECRYPT>(job, __m128i::load(tweak.as_ptr())) }
}

/// # Safety
/// As for [`crypt_from`].
#[inline(always)]
unsafe fn alone<T: Tier, const DECRYPT: bool>(job: &mut CipherJob<'_, XtsKey>, tweak: __m128i) {
    let key = Schedule::new::<DECRYPT>(job.key.data());
    let mut at = Cursor::new(&mut job.data);
    // SAFETY: the cursor stays within the data of the job.
    unsafe {
        let few = if T::V::BLOCKS == 4 { 4 } else { 8 };
        if at.len < few * 16 * T::V::BLOCKS {
            return rest::<T, DECRYPT>(&mut at, key, tweak);
        }
        let mut tweaks = Tweaks(T::V::broadcast(tweak).spread_tweaks());
        let len = at.len;
        leave_odd::<DECRYPT>(&mut at);
        let left = len - at.len;
        bulk::<T::V, 8, DECRYPT>(&mut at, key, &mut tweaks);
        if T::V::BLOCKS == 4 {
            bulk::<T::V, 4, DECRYPT>(&mut at, key, &mut tweaks);
        }
        at.len += left;
        rest::<T, DECRYPT>(&mut at, key, tweaks.0.first());
    }
}

/// What is less than the registers of `bulk`, and a block or more, from the tweak of its first block; or
/// less than a block behind one that is done.
///
/// # Safety
/// As for [`crypt_from`], and the data behind `at` is valid.
#[inline(always)]
unsafe fn rest<T: Tier, const DECRYPT: bool>(at: &mut Cursor, key: Schedule, tweak: __m128i) {
    let odd = leave_odd::<DECRYPT>(at);
    let mut feed = Spread { tweak, by: 0 };
    // SAFETY: as for this function.
    unsafe {
        short::crypt::<T::V, _, DECRYPT>(at, key, &mut feed);
        if odd > 0 {
            steal_last::<DECRYPT>(key, at, odd, tweak.shift_tweaks(feed.by));
        }
    }
}

/// Data, and the tweaks of its next blocks.
struct Tweaks<V>(V);

impl<V: Wide> Feed<V> for Tweaks<V> {
    #[inline(always)]
    unsafe fn wide(&mut self, from: *const u8) -> (V, V) {
        // SAFETY: as the trait says.
        unsafe {
            let next = self.0.shift_tweaks(V::BLOCKS as i32);
            let these = core::mem::replace(&mut self.0, next);
            (V::load(from).xor(these), these)
        }
    }

    #[inline(always)]
    unsafe fn single(&mut self, from: *const u8) -> (__m128i, __m128i) {
        // SAFETY: as the trait says.
        unsafe {
            let this = self.0.first();
            self.0 = self.0.shift_tweaks(1);
            (__m128i::load(from).xor(this), this)
        }
    }
}

/// Data, and the tweaks of few blocks: each comes from the first, and waits for no other.
struct Spread {
    tweak: __m128i,
    by: i32,
}

impl<V: Wide> Feed<V> for Spread {
    #[inline(always)]
    unsafe fn wide(&mut self, from: *const u8) -> (V, V) {
        // SAFETY: as the trait says.
        unsafe {
            let first = V::broadcast(self.tweak).spread_tweaks();
            let these = first.shift_tweaks(self.by);
            self.by += V::BLOCKS as i32;
            (V::load(from).xor(these), these)
        }
    }

    #[inline(always)]
    unsafe fn single(&mut self, from: *const u8) -> (__m128i, __m128i) {
        // SAFETY: as the trait says.
        unsafe {
            let this = self.tweak.shift_tweaks(self.by);
            self.by += 1;
            (__m128i::load(from).xor(this), this)
        }
    }
}

/// The data of `at`, from the tweak of its first block, which is in every place.
///
/// # Safety
/// The instructions of `T` are there and the data behind `at`, 16 bytes or more, is
/// valid until the slots are flushed.
#[inline(always)]
unsafe fn packed<T: Tier, const DECRYPT: bool>(
    slots: &mut Slots,
    at: &mut Cursor,
    key: &AesKey,
    tweak: T::V,
) {
    let key = Schedule::new::<DECRYPT>(key);
    let odd = leave_odd::<DECRYPT>(at);
    // SAFETY: as for this function.
    unsafe {
        let mut tweaks = Tweaks(tweak.spread_tweaks());
        bulk::<T::V, 8, DECRYPT>(at, key, &mut tweaks);
        if T::V::BLOCKS == 4 {
            bulk::<T::V, 4, DECRYPT>(at, key, &mut tweaks);
        }
        slots.begin::<T, DECRYPT>(key);
        slots.stage::<T, DECRYPT>(at, &mut tweaks);
        if odd > 0 {
            if !DECRYPT {
                slots.flush::<T, false>();
            }
            steal_last::<DECRYPT>(key, at, odd, tweaks.0.first());
        }
    }
}

/// Leaves to [`steal_last`] what is not done in its turn, and says how many bytes are less than a
/// block: stealing takes the last whole block of a ciphertext out of its turn.
#[inline(always)]
fn leave_odd<const DECRYPT: bool>(at: &mut Cursor) -> usize {
    let odd = at.len % 16;
    at.len -= match (odd, DECRYPT) {
        (0, _) => 0,
        (_, false) => odd,
        (_, true) => odd + 16,
    };
    odd
}

/// The end of a data unit of an odd length, whose other blocks are done. `tweak` is that of the
/// block that comes next.
///
/// # Safety
/// AES-NI is there. Behind `at` a whole block and `odd` bytes are valid, or to be encrypted, `odd`
/// bytes behind a block that is done.
#[inline(always)]
unsafe fn steal_last<const DECRYPT: bool>(
    key: Schedule,
    at: &mut Cursor,
    odd: usize,
    tweak: __m128i,
) {
    // SAFETY: as for this function.
    unsafe {
        if DECRYPT {
            let next = tweak.shift_tweaks(1);
            let whole = single::<true>(key, __m128i::load(at.from), next);
            steal::<true>(key, whole, at, odd, tweak);
        } else {
            at.from = at.from.sub(16);
            at.to = at.to.sub(16);
            steal::<false>(key, __m128i::load(at.to), at, odd, tweak);
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
    let start = joined.as_mut_ptr();
    // SAFETY: as for this function; the part is read before it is written.
    unsafe {
        let (first, second) = (start.cast::<u8>(), start.add(1).cast::<u8>());
        whole.store(first);
        whole.store(second);
        copy_short(at.from.add(16), first, odd);
        copy_short(second, at.to.add(16), odd);
        single::<DECRYPT>(key, __m128i::load(first), tweak).store(at.to);
        wipe::blocks::<__m128i>(start, 2);
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
        let key = middle::<__m128i, _, 1, DECRYPT>(&mut state, key);
        let last: __m128i = key.at(0, key.rounds());
        state[0].last_round::<DECRYPT>(last.xor(tweak))
    }
}

/// # Safety
/// The instructions of `V` are there and the data behind `at` is valid.
#[inline(always)]
unsafe fn bulk<V: Wide, const W: usize, const DECRYPT: bool>(
    at: &mut Cursor,
    key: Schedule,
    first: &mut Tweaks<V>,
) {
    let step = 16 * V::BLOCKS;
    while at.len >= W * step {
        // SAFETY: `W * step` bytes are left; all are read before any is written. No
        // tweak is shifted by more than 32.
        unsafe {
            let mut tweaks = [first.0; W];
            for (i, tweak) in tweaks.iter_mut().enumerate().skip(1) {
                *tweak = first.0.shift_tweaks((i * V::BLOCKS) as i32);
            }
            first.0 = first.0.shift_tweaks((W * V::BLOCKS) as i32);
            let mut state = [V::zero(); W];
            for (i, state) in state.iter_mut().enumerate() {
                let input = V::load(at.from.add(i * step));
                *state = input.xor(tweaks[i]).xor(key.at(i, 0));
            }
            let key = middle::<V, _, W, DECRYPT>(&mut state, key);
            let last: V = key.at(0, key.rounds());
            for (i, state) in state.iter_mut().enumerate() {
                *state = state.last_round::<DECRYPT>(last.xor(tweaks[i]));
            }
            for (i, state) in state.iter().enumerate() {
                state.store(at.to.add(i * step));
            }
            at.advance(W * step);
        }
    }
}
