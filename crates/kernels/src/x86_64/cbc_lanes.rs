//! CBC encryption of many requests side by side.
//!
//! A request chains each block from the one before, so alone it waits for the
//! latency of every round. Requests are independent: each has a lane, a lane is a
//! block of a register, and all lanes take a step together. When a request ends,
//! the next one takes over its lane; when none is left, the lanes close ranks.

use core::arch::x86_64::__m128i;
use core::mem::MaybeUninit;

use super::cursor::Cursor;
use super::rounds::{Keys, Schedule, middle};
use super::tier::Tier;
use super::wide::Wide;
use super::wipe;
use crate::aes::{AesKey, Block};
use crate::job::CipherJob;

/// The most lanes of any tier.
const MOST: usize = 32;

/// # Safety
/// The instructions of `T` are there.
#[inline(always)]
pub(super) unsafe fn encrypt<T: Tier>(jobs: &mut [CipherJob<'_, AesKey>]) {
    // SAFETY: as for this function.
    unsafe {
        if let [job] = jobs {
            return alone(job);
        }
        let Some(first) = jobs.first().map(|job| job.key) else {
            return;
        };
        if jobs.iter().all(|job| core::ptr::eq(job.key, first)) {
            return run::<T, false>(jobs, first.rounds());
        }
        for rounds in [10, 12, 14] {
            if jobs.iter().any(|job| job.key.rounds() == rounds) {
                run::<T, true>(jobs, rounds);
            }
        }
    }
}

/// One request at the latency of the rounds.
///
/// # Safety
/// AES-NI is there.
#[inline(always)]
unsafe fn alone(job: &mut CipherJob<'_, AesKey>) {
    let key = Schedule::new::<false>(job.key);
    let at = Cursor::new(&mut job.data);
    let blocks = at.blocks();
    if blocks == 0 {
        return;
    }
    // SAFETY: block numbers are below `blocks`.
    unsafe {
        let (first, last): (__m128i, __m128i) = (key.at(0, 0), key.at(0, key.rounds()));
        let iv = __m128i::load(job.iv.as_ptr());
        let mut state = [__m128i::load(at.from).xor(first).xor(iv)];
        for block in 1..blocks {
            middle::<_, _, 1, false>(&mut state, &key);
            // The next block joins in the last round, which shortens the chain by
            // an exclusive or, and is taken out again for the output.
            let next = __m128i::load(at.from.add(16 * block)).xor(first);
            state[0] = state[0].last_round::<false>(last.xor(next));
            state[0].xor(next).store(at.to.add(16 * block - 16));
        }
        middle::<_, _, 1, false>(&mut state, &key);
        let output = state[0].last_round::<false>(last);
        output.store(at.to.add(16 * blocks - 16));
        output.store(job.iv.as_mut_ptr());
    }
}

/// What stands in the lanes. Steps are counted from the start of the batch, and
/// the addresses of a lane are those that its data would have at step 0.
#[repr(C, align(64))]
pub(crate) struct Lanes {
    state: [MaybeUninit<Block>; MOST],
    from: [MaybeUninit<*const u8>; MOST],
    to: [MaybeUninit<*mut u8>; MOST],
    /// The step at which the lane falls free.
    end: [MaybeUninit<usize>; MOST],
    job: [MaybeUninit<usize>; MOST],
    /// With mixed keys, round keys by round, then lane.
    table: [[MaybeUninit<Block>; MOST]; 15],
    /// With one key, that key.
    key: Schedule,
    active: usize,
}

/// The jobs whose keys have `rounds` rounds, over all lanes of the tier.
///
/// # Safety
/// The instructions of `T` are there; unless `MIXED`, all jobs have one key.
#[inline(always)]
unsafe fn run<T: Tier, const MIXED: bool>(jobs: &mut [CipherJob<'_, AesKey>], rounds: usize) {
    let mut lanes = Lanes {
        state: [MaybeUninit::uninit(); MOST],
        from: [MaybeUninit::uninit(); MOST],
        to: [MaybeUninit::uninit(); MOST],
        end: [MaybeUninit::uninit(); MOST],
        job: [MaybeUninit::uninit(); MOST],
        table: [[MaybeUninit::uninit(); MOST]; 15],
        key: Schedule::from_raw(jobs[0].key.enc().as_ptr(), rounds),
        active: 0,
    };
    let mut queue = 0;
    let mut step = 0;
    // SAFETY: lanes below `active` are filled, and the jobs that they point into
    // are borrowed throughout.
    unsafe {
        while lanes.active < T::LANES
            && lanes.fill::<MIXED>(lanes.active, jobs, &mut queue, rounds, step)
        {
            lanes.active += 1;
        }
        while lanes.active > 0 {
            let end = lanes.next_end();
            T::cbc_segment::<MIXED>(&mut lanes, step, end);
            step = end;
            let mut lane = 0;
            while lane < lanes.active {
                if lanes.end[lane].assume_init() != step {
                    lane += 1;
                    continue;
                }
                jobs[lanes.job[lane].assume_init()].iv = lanes.state[lane].assume_init();
                if lanes.fill::<MIXED>(lane, jobs, &mut queue, rounds, step) {
                    lane += 1;
                } else {
                    lanes.active -= 1;
                    lanes.copy::<MIXED>(lanes.active, lane, rounds);
                }
            }
        }
        if MIXED {
            wipe::blocks::<T::V>(lanes.table.as_mut_ptr().cast(), (rounds + 1) * MOST);
        }
    }
}

impl Lanes {
    /// Puts the next job of the queue into a lane; false if there is none.
    ///
    /// # Safety
    /// The jobs outlive the lanes.
    #[inline(always)]
    unsafe fn fill<const MIXED: bool>(
        &mut self,
        lane: usize,
        jobs: &mut [CipherJob<'_, AesKey>],
        queue: &mut usize,
        rounds: usize,
        step: usize,
    ) -> bool {
        while let Some(job) = jobs.get_mut(*queue) {
            let number = *queue;
            *queue += 1;
            if job.data.len() < 16 || (MIXED && job.key.rounds() != rounds) {
                continue;
            }
            let at = Cursor::new(&mut job.data);
            self.state[lane].write(job.iv);
            self.from[lane].write(at.from.wrapping_sub(16 * step));
            self.to[lane].write(at.to.wrapping_sub(16 * step));
            self.end[lane].write(step + at.blocks());
            self.job[lane].write(number);
            if MIXED {
                for (round, keys) in self.table.iter_mut().enumerate().take(rounds + 1) {
                    keys[lane].write(job.key.enc()[round]);
                }
            }
            return true;
        }
        false
    }

    /// Makes lane `to` the same as lane `from`.
    #[inline(always)]
    fn copy<const MIXED: bool>(&mut self, from: usize, to: usize, rounds: usize) {
        self.state[to] = self.state[from];
        self.from[to] = self.from[from];
        self.to[to] = self.to[from];
        self.end[to] = self.end[from];
        self.job[to] = self.job[from];
        if MIXED {
            for keys in &mut self.table[..=rounds] {
                keys[to] = keys[from];
            }
        }
    }

    /// The first step at which a lane falls free.
    ///
    /// # Safety
    /// There is an active lane.
    #[inline(always)]
    unsafe fn next_end(&self) -> usize {
        let mut next = usize::MAX;
        for end in &self.end[..self.active] {
            // SAFETY: active lanes are filled.
            next = next.min(unsafe { end.assume_init() });
        }
        next
    }

    #[inline(always)]
    pub(super) fn active(&self) -> usize {
        self.active
    }
}

/// All active lanes from step `start` to `end`, in `W` registers that have room for
/// them. Places left over repeat lane 0, which writes the same bytes again.
///
/// # Safety
/// The instructions of `V` are there, `1 <= active <= W * BLOCKS`, and each active
/// lane has data up to `end`.
#[inline(always)]
pub(super) unsafe fn segment<V: Wide, const W: usize, const MIXED: bool>(
    lanes: &mut Lanes,
    start: usize,
    end: usize,
) {
    for lane in lanes.active..W * V::BLOCKS {
        lanes.copy::<MIXED>(0, lane, lanes.key.rounds());
    }
    // SAFETY: as for this function; every lane of the registers is filled now.
    // In a step all lanes read before any writes, so a repeated lane reads what
    // lane 0 reads.
    unsafe {
        if MIXED {
            let keys = Table {
                first: lanes.table.as_ptr().cast(),
                rounds: lanes.key.rounds(),
            };
            steps::<V, _, W>(lanes, keys, start, end);
        } else {
            steps::<V, _, W>(lanes, lanes.key, start, end);
        }
    }
}

/// # Safety
/// As for [`segment`], with every lane of the registers filled.
#[inline(always)]
unsafe fn steps<V: Wide, K: Keys<V>, const W: usize>(
    lanes: &mut Lanes,
    keys: K,
    start: usize,
    end: usize,
) {
    // SAFETY: as for this function.
    unsafe {
        let mut state = [V::zero(); W];
        for i in 0..W {
            state[i] = V::load(lanes.state.as_ptr().add(i * V::BLOCKS).cast());
        }
        for step in start..end {
            for i in 0..W {
                let input = V::gather(|b| {
                    let from = lanes.from.get_unchecked(i * V::BLOCKS + b).assume_init();
                    from.wrapping_add(16 * step)
                });
                state[i] = state[i].xor(input.xor(keys.at(i, 0)));
            }
            middle::<V, K, W, false>(&mut state, &keys);
            for i in 0..W {
                state[i] = state[i].last_round::<false>(keys.at(i, keys.rounds()));
            }
            for i in 0..W {
                state[i].scatter(|b| {
                    let to = lanes.to.get_unchecked(i * V::BLOCKS + b).assume_init();
                    to.wrapping_add(16 * step)
                });
            }
        }
        for i in 0..W {
            state[i].store(lanes.state.as_mut_ptr().add(i * V::BLOCKS).cast());
        }
    }
}

/// Round keys of mixed lanes.
struct Table {
    first: *const Block,
    rounds: usize,
}

impl<V: Wide> Keys<V> for Table {
    #[inline(always)]
    fn rounds(&self) -> usize {
        self.rounds
    }

    #[inline(always)]
    unsafe fn at(&self, register: usize, round: usize) -> V {
        // SAFETY: the table has `rounds + 1` rows of `MOST` lanes, of which those
        // in use are filled.
        unsafe { V::load(self.first.add(round * MOST + register * V::BLOCKS).cast()) }
    }
}
