//! CBC encryption of many requests side by side.
//!
//! A request chains each block from the one before, so alone it waits for the
//! latency of every round. Requests are independent: each has a lane, a lane is a
//! block of a register, and all lanes take a step together. When a request ends,
//! the next one takes over its lane; when none is left, the lanes close ranks.

use core::arch::x86_64::__m128i;
use core::mem::MaybeUninit;

use inout::InOutBuf;

use super::cursor::Cursor;
use super::order::after;
use super::rounds::{Keys, Schedule, middle};
use super::tier::Tier;
use super::wide::Wide;
use super::wipe;
use crate::aes::key::{AesKey, Block};
use crate::job::CipherJob;

/// The most lanes of any tier.
const MAX_LANES: usize = 32;

/// Bytes of a line of the cache, in blocks the steps that a lane takes over it.
const LINE: usize = 64;

/// Sets of the first-level cache: lines at one offset in their pages fall into one of them,
/// which holds eight, or twelve on some processors.
const SETS: usize = 4096 / LINE;

/// Lines in a set up to which all lanes keep theirs until they are through with them.
const ROOM: usize = 6;

/// Lines of lanes that begin together where more would crowd a set.
const TOGETHER: usize = 4;

/// Bytes of a request from which on it is worth a look at where the lanes stand.
const LONG: usize = 1024;

/// # Safety
/// The instructions of `T` are there.
#[inline(always)]
pub(super) unsafe fn encrypt<T: Tier>(jobs: &mut [CipherJob<'_, AesKey>]) {
    // SAFETY: as for this function.
    unsafe {
        if let [job] = jobs {
            return alone(job.key, &mut job.iv, &mut job.data);
        }
        let Some(first) = jobs.first().map(|job| job.key) else {
            return;
        };
        let (mut mixed, mut sizes) = (false, 0u32);
        for job in jobs.iter() {
            mixed |= !core::ptr::eq(job.key, first);
            sizes |= 1 << job.key.rounds();
        }
        if !mixed {
            return run::<T, false>(jobs, first.rounds());
        }
        // Lanes go through their rounds together.
        while sizes != 0 {
            run::<T, true>(jobs, sizes.trailing_zeros() as usize);
            sizes &= sizes - 1;
        }
    }
}

/// One request at the latency of the rounds.
///
/// # Safety
/// AES-NI is there.
#[inline(always)]
pub(super) unsafe fn alone(key: &AesKey, iv: &mut Block, data: &mut InOutBuf<'_, '_, u8>) {
    let key = Schedule::new::<false>(key);
    let at = Cursor::new(data);
    let blocks = at.blocks();
    if blocks == 0 {
        return;
    }
    // SAFETY: block numbers are below `blocks`.
    unsafe {
        let (first, last): (__m128i, __m128i) = (key.at(0, 0), key.at(0, key.rounds()));
        let previous = __m128i::load(iv.as_ptr());
        let mut state = [__m128i::load(at.from).xor(first).xor(previous)];
        for block in 1..blocks {
            middle::<_, _, 1, false>(&mut state, key);
            // The next block joins in the last round, which shortens the chain by
            // an exclusive or, and is taken out again for the output.
            let next = __m128i::load(at.from.add(16 * block)).xor(first);
            state[0] = state[0].last_round::<false>(last.xor(next));
            state[0].xor(next).store(at.to.add(16 * block - 16));
        }
        middle::<_, _, 1, false>(&mut state, key);
        let output = state[0].last_round::<false>(last);
        output.store(at.to.add(16 * blocks - 16));
        output.store(iv.as_mut_ptr());
    }
}

/// What stands in the lanes. Steps are counted from the start of the batch, and
/// the addresses of a lane are those that its data would have at step 0. Not
/// initialised until lanes are filled.
#[repr(C, align(64))]
struct Memory {
    state: [Block; MAX_LANES],
    from: [*const u8; MAX_LANES],
    to: [*mut u8; MAX_LANES],
    /// The step at which the lane falls free.
    end: [usize; MAX_LANES],
    /// The IV of the lane's job.
    iv: [*mut Block; MAX_LANES],
    /// The first round key of the lane's job.
    key: [*const Block; MAX_LANES],
    /// With mixed keys, round keys by round, then lane.
    table: [[Block; MAX_LANES]; 15],
}

/// The lanes of a batch.
pub(crate) struct Lanes {
    memory: *mut Memory,
    /// How many are filled, from the first on.
    active: usize,
    /// A key of the batch; all have as many rounds.
    key: Schedule,
    /// The lanes whose keys stand in the table, a bit each.
    tabled: u32,
}

/// The jobs whose keys have `rounds` rounds, over all lanes of the tier.
///
/// # Safety
/// The instructions of `T` are there; unless `MIXED`, all jobs have one key.
#[inline(always)]
unsafe fn run<T: Tier, const MIXED: bool>(jobs: &mut [CipherJob<'_, AesKey>], rounds: usize) {
    let together = together(jobs, T::LANES);
    let mut memory = MaybeUninit::<Memory>::uninit();
    let mut lanes = Lanes {
        memory: memory.as_mut_ptr(),
        active: 0,
        key: Schedule::from_raw(jobs[0].key.enc().as_ptr(), rounds),
        tabled: 0,
    };
    let mut queue = jobs
        .iter_mut()
        .filter(|job| job.data.len() >= 16 && (!MIXED || job.key.rounds() == rounds));
    let mut step = 0;
    // How many more lanes begin beside the last one.
    let mut beside = together;
    // The first step at which a lane falls free.
    let mut next = usize::MAX;
    // SAFETY: lanes below `active` are filled, and the jobs that they point into
    // are borrowed by `queue`.
    unsafe {
        while lanes.active < T::LANES {
            let Some(job) = queue.next() else { break };
            next = next.min(lanes.fill::<MIXED>(lanes.active, job, step));
            lanes.active += 1;
            // The lanes so far get a line ahead of those to come, if none of them ends before.
            beside -= 1;
            if beside == 0 {
                beside = together;
                let ahead = step + LINE / 16;
                if ahead <= next {
                    T::cbc_segment::<MIXED>(&mut lanes, step, ahead);
                    step = ahead;
                }
            }
        }
        // A segment fills its registers, where need be by lanes that repeat the first.
        let filled = lanes.active.next_multiple_of(8).min(T::LANES);
        while lanes.active > 0 {
            T::cbc_segment::<MIXED>(&mut lanes, step, next);
            step = next;
            next = usize::MAX;
            // From the last lane on, so that the last one still active has been seen
            // when it moves to a lane that falls free.
            for lane in (0..lanes.active).rev() {
                let end = *place(&raw mut (*lanes.memory).end, lane);
                if end != step {
                    next = next.min(end);
                    continue;
                }
                let iv = *place(&raw mut (*lanes.memory).iv, lane);
                *iv = *place(&raw mut (*lanes.memory).state, lane);
                if let Some(job) = queue.next() {
                    next = next.min(lanes.fill::<MIXED>(lane, job, step));
                } else {
                    lanes.active -= 1;
                    if lane < lanes.active {
                        lanes.copy::<MIXED>(lanes.active, lane);
                    }
                }
            }
        }
        if MIXED {
            let table = (&raw mut (*lanes.memory).table).cast::<Block>();
            for round in 0..=rounds {
                wipe::blocks::<T::V>(table.add(round * MAX_LANES), filled);
            }
        }
    }
}

/// How many lanes begin together, of the first `lanes` jobs.
///
/// Where they stand at few offsets within their pages, lanes that go step by step at one
/// pace would drive each other's lines out of the cache, and each line would be fetched anew
/// for each of its blocks. Some lanes a line ahead of others do not.
#[inline(always)]
fn together(jobs: &mut [CipherJob<'_, AesKey>], lanes: usize) -> usize {
    if jobs.len() <= TOGETHER || jobs[0].data.len() < LONG {
        return usize::MAX;
    }
    let (mut lines, mut sets) = (0, 0u64);
    let lanes = lanes.min(jobs.len());
    for job in &mut jobs[..lanes] {
        let at = Cursor::new(&mut job.data);
        lines += 1;
        sets |= 1 << (at.to.addr() / LINE % SETS);
        if at.from != at.to.cast_const() {
            lines += 1;
            sets |= 1 << (at.from.addr() / LINE % SETS);
        }
    }
    match lines > ROOM * sets.count_ones() as usize {
        true => TOGETHER * lanes / lines,
        false => usize::MAX,
    }
}

impl Lanes {
    /// Puts a job into a lane; gives the step at which that falls free.
    ///
    /// # Safety
    /// The lane is below `MAX_LANES`, and the job outlives the lanes.
    #[inline(always)]
    unsafe fn fill<const MIXED: bool>(
        &mut self,
        lane: usize,
        job: &mut CipherJob<'_, AesKey>,
        step: usize,
    ) -> usize {
        let at = Cursor::new(&mut job.data);
        let end = step + at.blocks();
        // SAFETY: as for this function.
        unsafe {
            let memory = self.memory;
            *place(&raw mut (*memory).state, lane) = job.iv;
            *place(&raw mut (*memory).from, lane) = at.from.wrapping_sub(16 * step);
            *place(&raw mut (*memory).to, lane) = at.to.wrapping_sub(16 * step);
            *place(&raw mut (*memory).end, lane) = end;
            *place(&raw mut (*memory).iv, lane) = &raw mut job.iv;
            if MIXED {
                self.set_key(lane, job.key.enc().as_ptr());
            }
        }
        end
    }

    /// Makes lane `to` the same as lane `from`.
    ///
    /// # Safety
    /// Both are below `MAX_LANES`, and `from` is filled.
    #[inline(always)]
    unsafe fn copy<const MIXED: bool>(&mut self, from: usize, to: usize) {
        // SAFETY: as for this function.
        unsafe {
            let memory = self.memory;
            *place(&raw mut (*memory).state, to) = *place(&raw mut (*memory).state, from);
            *place(&raw mut (*memory).from, to) = *place(&raw mut (*memory).from, from);
            *place(&raw mut (*memory).to, to) = *place(&raw mut (*memory).to, from);
            *place(&raw mut (*memory).end, to) = *place(&raw mut (*memory).end, from);
            *place(&raw mut (*memory).iv, to) = *place(&raw mut (*memory).iv, from);
            if MIXED {
                self.set_key(to, *place(&raw mut (*memory).key, from));
            }
        }
    }

    /// # Safety
    /// The lane is below `MAX_LANES`.
    #[inline(always)]
    unsafe fn set_key(&mut self, lane: usize, key: *const Block) {
        // SAFETY: as for this function; a lane whose keys are tabled has a key.
        unsafe {
            let place = place(&raw mut (*self.memory).key, lane);
            if self.tabled & 1 << lane == 0 || *place != key {
                place.write(key);
                self.tabled &= !(1 << lane);
            }
        }
    }

    /// Brings the keys of the lanes of `W` registers into the table, whole registers
    /// at a time.
    ///
    /// # Safety
    /// The instructions of `V` are there and those lanes are filled.
    #[inline(always)]
    unsafe fn table<V: Wide, const W: usize>(&mut self) {
        for first in (0..W * V::BLOCKS).step_by(V::BLOCKS) {
            let lanes = ((1 << V::BLOCKS) - 1) << first;
            if self.tabled & lanes == lanes {
                continue;
            }
            // SAFETY: as for this function; schedules have `rounds + 1` keys.
            unsafe {
                let key = (&raw const (*self.memory).key).cast::<*const Block>();
                let table = (&raw mut (*self.memory).table).cast::<Block>();
                for round in 0..=self.key.rounds() {
                    V::gather(|b| (*key.add(first + b)).add(round).cast())
                        .store(table.add(round * MAX_LANES + first).cast());
                }
            }
            self.tabled |= lanes;
        }
    }

    #[inline(always)]
    pub(super) fn active(&self) -> usize {
        self.active
    }
}

/// Place `i` of an array that may not be initialised.
///
/// # Safety
/// `i` is below `N`.
#[inline(always)]
unsafe fn place<T, const N: usize>(array: *mut [T; N], i: usize) -> *mut T {
    // SAFETY: as for this function.
    unsafe { array.cast::<T>().add(i) }
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
    // SAFETY: as for this function; every lane of the registers is filled now.
    // In a step all lanes read before any writes, so a repeated lane reads what
    // lane 0 reads.
    unsafe {
        for lane in lanes.active..W * V::BLOCKS {
            lanes.copy::<MIXED>(0, lane);
        }
        if MIXED {
            lanes.table::<V, W>();
            let keys = Table {
                first: (&raw const (*lanes.memory).table).cast(),
                rounds: lanes.key.rounds(),
            };
            steps::<V, _, W>(lanes.memory, keys, start, end);
        } else {
            steps::<V, _, W>(lanes.memory, lanes.key, start, end);
        }
    }
}

/// # Safety
/// As for [`segment`], with every lane of the registers filled.
#[inline(always)]
unsafe fn steps<V: Wide, K: Keys<V>, const W: usize>(
    memory: *mut Memory,
    keys: K,
    start: usize,
    end: usize,
) {
    // SAFETY: as for this function.
    unsafe {
        let states = (&raw mut (*memory).state).cast::<Block>();
        let from = (&raw const (*memory).from).cast::<*const u8>();
        let to = (&raw const (*memory).to).cast::<*mut u8>();
        let mut state = [V::zero(); W];
        for (i, state) in state.iter_mut().enumerate() {
            *state = V::load_pieces(states.add(i * V::BLOCKS));
        }
        for step in start..end {
            for (i, state) in state.iter_mut().enumerate() {
                let from = from.add(i * V::BLOCKS);
                let input = V::gather(|b| (*from.add(b)).wrapping_add(16 * step));
                *state = state.xor(input.xor(keys.at(i, 0)));
            }
            let keys = middle::<V, K, W, false>(&mut state, keys);
            for (i, state) in state.iter_mut().enumerate() {
                *state = state.last_round::<false>(keys.at(i, keys.rounds()));
            }
            for (i, state) in state.iter().enumerate() {
                let to = to.add(i * V::BLOCKS);
                state.scatter(|b| (*to.add(b)).wrapping_add(16 * step));
            }
        }
        for (i, state) in state.iter().enumerate() {
            state.store(states.add(i * V::BLOCKS).cast());
        }
    }
}

/// Round keys of mixed lanes.
#[derive(Clone, Copy)]
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
        // SAFETY: the table has `rounds + 1` rows of `MAX_LANES` lanes, of which those
        // in use are filled.
        unsafe {
            V::load(
                self.first
                    .add(round * MAX_LANES + register * V::BLOCKS)
                    .cast(),
            )
        }
    }

    #[inline(always)]
    unsafe fn after(self, state: V) -> Self {
        // SAFETY: as the trait says.
        let first = after(self.first, unsafe { state.first() });
        Table { first, ..self }
    }
}
