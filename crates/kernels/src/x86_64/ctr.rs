//! CTR: long requests eight registers at a time, the rest packed.

use core::arch::x86_64::{__m128i, _mm_cvtsi64_si128};
use core::mem::MaybeUninit;

use super::ctr_windows::any_windows;
use super::cursor::Cursor;
use super::memory;
use super::rounds::{Keys, Schedule, middle};
use super::slots::{Feed, Slots};
use super::tier::Tier;
use super::wide::Wide;
use crate::aes::key::{AesKey, Block};
use crate::job::CipherJob;

/// # Safety
/// The instructions of `T` are there.
#[inline(always)]
pub(super) unsafe fn apply<T: Tier>(jobs: &mut [CipherJob<'_, AesKey>]) {
    let mut store = MaybeUninit::uninit();
    let mut slots = Slots::new(&mut store);
    // SAFETY: cursors stay within the data of jobs that are borrowed throughout.
    unsafe {
        for job in jobs {
            let key = Schedule::new::<false>(job.key);
            let mut at = Cursor::new(&mut job.data);
            let (first, wraps) = step(&mut job.iv, at.len);
            slots.begin::<T, false>(key);
            if let Some((before, wrapped)) = wraps {
                let behind = at.len - before;
                at.len = before;
                segment::<T>(&mut slots, &mut at, key, first);
                at.len = behind;
                segment::<T>(&mut slots, &mut at, key, wrapped);
            } else {
                segment::<T>(&mut slots, &mut at, key, first);
            }
        }
        slots.flush::<T, false>();
        slots.wipe::<T>();
    }
}

/// One request, with no other to be packed with.
///
/// # Safety
/// The instructions of `T` are there.
#[inline(always)]
pub(super) unsafe fn one<T: Tier>(job: &mut CipherJob<'_, AesKey>) {
    let key = Schedule::new::<false>(job.key);
    let mut at = Cursor::new(&mut job.data);
    // SAFETY: the cursor stays within the data of the job.
    unsafe {
        let (mut first, wraps) = step(&mut job.iv, at.len);
        if let Some((before, wrapped)) = wraps {
            let behind = at.len - before;
            at.len = before;
            alone::<T>(&mut at, key, first);
            at.len = behind;
            first = wrapped;
        }
        alone::<T>(&mut at, key, first);
    }
}

/// Steps an IV over `len` bytes. Gives the counter that it was, with its bytes reversed, as the
/// processor counts. Vectors count in the lower half alone: where that wraps within the data, gives
/// also the bytes before, at least a block, and the counter behind.
///
/// # Safety
/// SSSE3 is there.
#[inline(always)]
unsafe fn step(iv: &mut Block, len: usize) -> (__m128i, Option<(usize, __m128i)>) {
    let blocks = len.div_ceil(16) as u64;
    let counter = u128::from_be_bytes(*iv);
    let next = counter.wrapping_add(u128::from(blocks));
    let until_wrap = (counter as u64).wrapping_neg();
    // SAFETY: as for this function.
    unsafe {
        let first = __m128i::load(iv.as_ptr()).reverse();
        if until_wrap == 0 || blocks < until_wrap {
            // In one store, which the next part of a message may be waiting to load.
            let by = _mm_cvtsi64_si128(blocks as i64);
            memory::store_whole(iv.as_mut_ptr(), first.add_halves(by).reverse());
            return (first, None);
        }
        *iv = next.to_be_bytes();
        let wrapped = (next & !u128::from(u64::MAX)).to_le_bytes();
        let wraps = (until_wrap < blocks)
            .then(|| (16 * until_wrap as usize, __m128i::load(wrapped.as_ptr())));
        (first, wraps)
    }
}

/// All of `at`, with no other request to be packed with, from a counter whose lower half does not
/// wrap on the way.
///
/// # Safety
/// The instructions of `T` are there and the data behind `at` is valid.
#[inline(always)]
unsafe fn alone<T: Tier>(at: &mut Cursor, key: Schedule, counter: __m128i) {
    // SAFETY: as for this function.
    unsafe {
        let mut counters = Counters(T::V::broadcast(counter).add_halves(places()));
        any_windows::<T>(at, key, &mut counters);
        bulk::<T::V, 8>(at, key, &mut counters);
        match at.len.div_ceil(16 * T::V::BLOCKS) {
            0 => {}
            1 => rest::<T::V, 1>(at, key, &mut counters),
            2 => rest::<T::V, 2>(at, key, &mut counters),
            3 => rest::<T::V, 3>(at, key, &mut counters),
            4 => rest::<T::V, 4>(at, key, &mut counters),
            5 => rest::<T::V, 5>(at, key, &mut counters),
            6 => rest::<T::V, 6>(at, key, &mut counters),
            7 => rest::<T::V, 7>(at, key, &mut counters),
            _ => rest::<T::V, 8>(at, key, &mut counters),
        }
    }
}

/// All of `at`, which fills `W` registers or a part of the last.
///
/// # Safety
/// As for [`alone`].
#[inline(always)]
unsafe fn rest<V: Wide, const W: usize>(
    at: &mut Cursor,
    key: Schedule,
    counters: &mut Counters<V>,
) {
    let step = 16 * V::BLOCKS;
    let whole = step * (W - 1);
    let n = at.len - whole;
    // SAFETY: as for this function; each register is added to data of its own.
    unsafe {
        let mut state = [V::zero(); W];
        for state in &mut state {
            *state = counters.next().xor(key.at(0, 0));
        }
        let key = middle::<V, _, W, false>(&mut state, key);
        let last: V = key.at(0, key.rounds());
        for (i, state) in state.iter().take(W - 1).enumerate() {
            let data = V::load(at.from.add(i * step));
            let output = state.last_round::<false>(last.xor(data));
            output.store(at.to.add(i * step));
        }
        let (from, to) = (at.from.add(whole), at.to.add(whole));
        let state = state[W - 1];
        if n == step {
            let output = state.last_round::<false>(last.xor(V::load(from)));
            output.store(to);
        } else {
            state.last_round::<false>(last).add_to_some(from, to, n);
        }
        at.advance(at.len);
    }
}

/// All of `at`, from a counter whose lower half does not wrap on the way.
///
/// # Safety
/// The instructions of `T` are there and the data behind `at` is valid until the
/// slots are flushed.
#[inline(always)]
unsafe fn segment<T: Tier>(slots: &mut Slots, at: &mut Cursor, key: Schedule, counter: __m128i) {
    // SAFETY: as for this function.
    unsafe {
        let mut counters = Counters(T::V::broadcast(counter).add_halves(places()));
        any_windows::<T>(at, key, &mut counters);
        bulk::<T::V, 8>(at, key, &mut counters);
        if T::V::BLOCKS == 4 {
            bulk::<T::V, 4>(at, key, &mut counters);
        }
        slots.stage::<T, false>(at, &mut counters);
        if at.len > 0 {
            slots.stage_tail::<T, false>(at, &mut counters);
        }
    }
}

/// Successive counters with their bytes reversed.
pub(crate) struct Counters<V>(pub(super) V);

/// 0 to `BLOCKS - 1`, each in the lower half of a block.
///
/// # Safety
/// The instructions of `V` are there.
#[inline(always)]
pub(super) unsafe fn places<V: Wide>() -> V {
    static PLACES: [u64; 8] = [0, 0, 1, 0, 2, 0, 3, 0];
    // SAFETY: `BLOCKS` is at most 4.
    unsafe { V::load(PLACES.as_ptr().cast()) }
}

impl<V: Wide> Counters<V> {
    /// These counters as AES takes them; steps to the next.
    ///
    /// # Safety
    /// The instructions of `V` are there.
    #[inline(always)]
    pub(super) unsafe fn next(&mut self) -> V {
        static BY: [[u64; 2]; 5] = [[0, 0], [1, 0], [2, 0], [3, 0], [4, 0]];
        // SAFETY: as for this function.
        unsafe {
            let these = self.0.reverse();
            self.0 = self.0.add_halves(V::splat(BY[V::BLOCKS].as_ptr().cast()));
            these
        }
    }
}

impl<V: Wide> Counters<V> {
    /// Steps over blocks.
    ///
    /// # Safety
    /// The instructions of `V` are there.
    #[inline(always)]
    pub(super) unsafe fn skip(&mut self, blocks: usize) {
        // SAFETY: as for this function; SSE2 is part of x86-64.
        unsafe {
            let by = V::broadcast(_mm_cvtsi64_si128(blocks as i64));
            self.0 = self.0.add_halves(by);
        }
    }
}

impl<V: Wide> Feed<V> for Counters<V> {
    #[inline(always)]
    unsafe fn wide(&mut self, from: *const u8) -> (V, V) {
        // SAFETY: as the trait says.
        unsafe { (self.next(), V::load(from)) }
    }

    #[inline(always)]
    unsafe fn single(&mut self, from: *const u8) -> (__m128i, __m128i) {
        static ONE: [u64; 2] = [1, 0];
        // SAFETY: as the trait says.
        unsafe {
            let this = self.0.first().reverse();
            self.0 = self.0.add_halves(V::splat(ONE.as_ptr().cast()));
            (this, __m128i::load(from))
        }
    }
}

/// # Safety
/// The instructions of `V` are there and the data behind `at` is valid.
#[inline(always)]
unsafe fn bulk<V: Wide, const W: usize>(
    at: &mut Cursor,
    key: Schedule,
    counters: &mut Counters<V>,
) {
    let step = 16 * V::BLOCKS;
    while at.len >= W * step {
        // SAFETY: `W * step` bytes are left; all are read before any is written.
        unsafe {
            let mut state = [V::zero(); W];
            for state in &mut state {
                *state = counters.next().xor(key.at(0, 0));
            }
            let key = middle::<V, _, W, false>(&mut state, key);
            let last: V = key.at(0, key.rounds());
            for (i, state) in state.iter_mut().enumerate() {
                let data = V::load(at.from.add(i * step));
                *state = state.last_round::<false>(last.xor(data));
            }
            for (i, state) in state.iter().enumerate() {
                state.store(at.to.add(i * step));
            }
            at.advance(W * step);
        }
    }
}
