//! The slots where tasks wait, and everybody's work on them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::claim::{BITS, End, Pieces, Slots};
use super::fault::Fault;
use super::sleep::Beds;
use super::task::Task;

/// Tasks of callers that do not wait, at most; the other slots are for those that do.
const SUBMITTED: u32 = 32;
/// Requests in one submitted task, at most.
pub(super) const REQUESTS: usize = 1024;
/// A sleeper's wake-up before one was measured, in nanoseconds.
const FIRST_DELAY: u32 = 50_000;
/// What a caller loses, at the least, that would hand over work but finds all asleep.
const MISSED_ASK: u32 = 500;

/// The workers of one process and the tasks they share with callers.
pub(super) struct Pool {
    /// Of the process that made it; a forked child makes its own.
    pub(super) generation: u32,
    slots: Slots,
    places: Box<[Place]>,
    pub(super) beds: Beds,
    pub(super) stop: AtomicBool,
    /// Workers that were started.
    pub(super) workers: AtomicU32,
    /// Workers that died and began anew.
    pub(super) restarts: AtomicU64,
    pub(super) threads: Mutex<Vec<JoinHandle<()>>>,
    pub(super) notes: Mutex<Vec<String>>,
    pub(super) fault: Fault,
    began: Instant,
    /// Learned time from a call to the sleeper's first look for work, in nanoseconds.
    delay: AtomicU32,
    /// Nanoseconds that callers lost because all slept, since one was last called.
    missed: AtomicU32,
}

/// One slot. Two cache lines, because processors fetch them in pairs.
#[repr(align(128))]
struct Place {
    pieces: Pieces,
    task: AtomicPtr<Task>,
    /// Mean bytes of a piece.
    piece_bytes: AtomicU64,
}

impl Pool {
    pub(super) fn new(generation: u32, workers: usize, fault: Fault) -> Self {
        let place = |_| Place {
            pieces: Pieces::new(),
            task: AtomicPtr::default(),
            piece_bytes: AtomicU64::new(0),
        };
        Pool {
            generation,
            slots: Slots::new(),
            places: (0..BITS).map(place).collect(),
            beds: Beds::new(workers),
            stop: AtomicBool::new(false),
            workers: AtomicU32::new(0),
            restarts: AtomicU64::new(0),
            threads: Mutex::default(),
            notes: Mutex::default(),
            fault,
            began: Instant::now(),
            delay: AtomicU32::new(FIRST_DELAY),
            missed: AtomicU32::new(0),
        }
    }

    pub(super) fn now(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }

    #[inline]
    pub(super) fn worker_count(&self) -> usize {
        self.workers.load(Ordering::Relaxed) as usize
    }

    /// Whether [`submit`](Self::submit) would find a slot now.
    pub(super) fn has_room(&self) -> bool {
        self.slots.taken().count_ones() < SUBMITTED
    }

    /// Runs a planned task of `count` pieces and `bytes` bytes with the workers' help;
    /// false if there is no slot. `alone_ns` estimates the time without help.
    ///
    /// # Safety
    /// As for [`Task::plan`]; on return (or unwinding) nobody uses the task any more.
    #[inline]
    pub(super) unsafe fn run(
        &self,
        task: &Task,
        count: usize,
        bytes: usize,
        alone_ns: impl FnOnce() -> u64,
    ) -> bool {
        let Some(slot) = self.slots.take(BITS as u32) else {
            return false;
        };
        let published = self.publish(slot, std::ptr::from_ref(task).cast_mut(), count, bytes);
        if self.beds.asleep() > 0 {
            self.wake_helpers(count as u32 - 1, alone_ns());
        }
        let pieces = &self.places[slot].pieces;
        let mut turns = 0;
        while !pieces.are_finished() {
            // Also a piece that a dying worker gave back.
            match self.work_on(slot, End::First, &Fault::default()) {
                true => turns = 0,
                false => pause(&mut turns),
            }
        }
        drop(published);
        true
    }

    /// Queues a planned task that owns its requests; gives it back if there is no slot.
    pub(super) fn submit(
        &self,
        task: Box<Task>,
        count: usize,
        bytes: usize,
        alone_ns: u64,
    ) -> Result<(), Box<Task>> {
        let Some(slot) = self.slots.take(SUBMITTED) else {
            return Err(task);
        };
        let published = self.publish(slot, Box::into_raw(task), count, bytes);
        // Whoever lands the task releases the slot.
        std::mem::forget(published);
        self.beds.publish();
        let asleep = self.beds.asleep();
        if asleep > 0 {
            // One must be awake. More are worth their wake-up for long work only.
            let useful = (alone_ns / u64::from(self.delay().max(1))).min(count as u64) as u32;
            let idle = asleep as usize == self.worker_count();
            self.beds
                .wake(useful.max(u32::from(idle)).min(asleep), self.now());
        }
        Ok(())
    }

    #[inline]
    fn publish(&self, slot: usize, task: *mut Task, count: usize, bytes: usize) -> Published<'_> {
        let place = &self.places[slot];
        place.task.store(task, Ordering::Relaxed);
        place
            .piece_bytes
            .store((bytes / count) as u64, Ordering::Relaxed);
        place.pieces.open(count);
        Published { pool: self, slot }
    }

    /// Calls sleepers where their help will outweigh the call: for long work at once, for
    /// short work when enough of it went by without help.
    #[cold]
    fn wake_helpers(&self, most: u32, alone_ns: u64) {
        let delay = u64::from(self.delay().max(1));
        let useful = (alone_ns / delay).min(most.into()) as u32;
        if useful > 0 {
            self.missed.store(0, Ordering::Relaxed);
            self.beds.wake(useful, self.now());
        } else {
            self.miss((alone_ns / 2) as u32);
        }
    }

    /// Counts what was lost because all slept; a sleeper is called when the sum would
    /// have paid for it.
    fn miss(&self, ns: u32) {
        let missed = self.missed.fetch_add(ns, Ordering::Relaxed);
        if missed.saturating_add(ns) > self.delay() {
            self.missed.store(0, Ordering::Relaxed);
            self.beds.wake(1, self.now());
        }
    }

    /// Does one piece of any task, looking from the slot whose turn it is. Whether there
    /// was one.
    #[inline]
    pub(super) fn work(&self, turn: &mut Turn, end: End, fault: &Fault) -> bool {
        let mut taken = self.slots.taken().rotate_right(turn.slot as u32);
        while taken != 0 {
            let slot = (turn.slot + taken.trailing_zeros() as usize) % BITS;
            if self.work_on(slot, end, fault) {
                turn.worked_on(slot);
                return true;
            }
            taken &= taken - 1;
        }
        false
    }

    /// Whether a piece waits to be claimed.
    #[inline]
    pub(super) fn has_work(&self) -> bool {
        let mut taken = self.slots.taken();
        while taken != 0 {
            if self.places[taken.trailing_zeros() as usize]
                .pieces
                .unclaimed()
                > 0
            {
                return true;
            }
            taken &= taken - 1;
        }
        false
    }

    #[inline]
    fn work_on(&self, slot: usize, end: End, fault: &Fault) -> bool {
        let place = &self.places[slot];
        let Some(piece) = place.pieces.claim(end) else {
            return false;
        };
        let task = place.task.load(Ordering::Relaxed);
        // SAFETY: the piece is claimed, so the slot keeps its task until we finish it.
        let lands = unsafe { &*task }.lands();
        let mut attempt = Attempt {
            pool: self,
            slot,
            task,
            piece,
            lands,
            begun: false,
        };
        fault.before_piece();
        attempt.begun = true;
        fault.inside_piece();
        // SAFETY: as above; the claim makes it ours alone.
        unsafe { (*task).run_piece(piece) };
        std::mem::forget(attempt);
        self.finish(slot, task, lands);
        true
    }

    /// A piece is finished; lands the task if it was the last and nobody waits for it.
    #[inline]
    fn finish(&self, slot: usize, task: *mut Task, lands: bool) {
        if self.places[slot].pieces.finish() && lands {
            self.land(slot, task);
        }
    }

    fn land(&self, slot: usize, task: *mut Task) {
        // SAFETY: all pieces are finished and we finished the last, so the box that
        // `submit` put there is ours.
        let task = unsafe { Box::from_raw(task) };
        self.slots.release(slot);
        // A waker is the caller's code. Whatever it does, the flight has landed.
        let _ = catch_unwind(AssertUnwindSafe(|| task.land()));
    }

    /// Bytes that nobody has claimed.
    pub(super) fn queued_bytes(&self) -> u64 {
        let taken = self.slots.taken();
        (0..BITS)
            .filter(|slot| taken & 1 << slot != 0)
            .map(|slot| {
                let place = &self.places[slot];
                u64::from(place.pieces.unclaimed()) * place.piece_bytes.load(Ordering::Relaxed)
            })
            .sum()
    }

    /// Nanoseconds until a worker can begin: none while one is awake. Being asked is a
    /// sign that there is work for them.
    pub(super) fn delay_now(&self) -> u32 {
        if (self.beds.asleep() as usize) < self.worker_count() {
            return 0;
        }
        self.miss(MISSED_ASK);
        self.delay()
    }

    /// The learned wake-up time in nanoseconds.
    pub(super) fn delay(&self) -> u32 {
        self.delay.load(Ordering::Relaxed)
    }

    /// Learns from one wake-up.
    pub(super) fn learn_delay(&self, called: u64) {
        let seen = self.now().saturating_sub(called).min(10_000_000) as i64;
        let old = i64::from(self.delay());
        // An eighth of the way: a few preempted wake-ups do not change the picture.
        let new = old + (seen - old) / 8;
        self.delay.store(new as u32, Ordering::Relaxed);
    }
}

/// Whose turn it is with one worker: the task it is at, then the next slot. A slot that is
/// filled again and again does not keep the worker from the others.
#[derive(Default)]
pub(super) struct Turn {
    slot: usize,
    pieces: usize,
}

impl Turn {
    #[inline]
    fn worked_on(&mut self, slot: usize) {
        self.pieces = if slot == self.slot {
            self.pieces + 1
        } else {
            1
        };
        self.slot = slot;
        if self.pieces >= BITS {
            // More would be another task.
            *self = Turn {
                slot: (slot + 1) % BITS,
                pieces: 0,
            };
        }
    }
}

/// A task in a slot of which the caller waits. Dropped when all is finished, or by a panic
/// in the caller's own piece: then it takes the pieces that nobody has begun, and waits
/// for the others, because the task dies with the caller's frame.
struct Published<'a> {
    pool: &'a Pool,
    slot: usize,
}

impl Drop for Published<'_> {
    fn drop(&mut self) {
        let pieces = &self.pool.places[self.slot].pieces;
        let mut turns = 0;
        while !pieces.are_finished() {
            match pieces.claim(End::First) {
                Some(_) => drop(pieces.finish()),
                None => pause(&mut turns),
            }
        }
        self.pool.slots.release(self.slot);
    }
}

/// A claimed piece. Forgotten when it ends well; dropped when its thread dies.
struct Attempt<'a> {
    pool: &'a Pool,
    slot: usize,
    task: *mut Task,
    piece: u32,
    lands: bool,
    begun: bool,
}

impl Drop for Attempt<'_> {
    #[cold]
    fn drop(&mut self) {
        let pieces = &self.pool.places[self.slot].pieces;
        if self.begun {
            // SAFETY: the piece is still ours, so the task is alive.
            unsafe { (*self.task).fail(self.piece) };
            self.pool.finish(self.slot, self.task, self.lands);
        } else {
            pieces.give_back(self.piece);
        }
    }
}

/// Waits for a piece that another thread has begun: it takes microseconds, unless that
/// thread lost its core.
fn pause(turns: &mut u32) {
    *turns += 1;
    match *turns {
        0..2_000 => std::hint::spin_loop(),
        2_000..4_000 => std::thread::yield_now(),
        _ => std::thread::sleep(Duration::from_micros(50)),
    }
}
