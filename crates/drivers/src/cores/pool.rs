//! The slots where tasks wait, and everybody's work on them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use cipherlane_core::Process;

use super::claim::{BITS, Pieces, Slots};
use super::course::{Course, Hint, Turn};
use super::fault::Fault;
use super::held::{Attempt, Published, Reserved, pause};
use super::pace::Watch;
use super::task::Task;
use super::wakes::Wakes;

/// Tasks of callers that do not wait, at most; the other slots are for those that do.
const SUBMITTED: u32 = 32;
/// Requests in one submitted task, at most.
pub(super) const REQUESTS: usize = 1024;

/// The workers of one process and the tasks they share with callers.
pub(super) struct Pool {
    /// Of the process that made it; a forked child makes its own.
    pub(super) process: Process,
    pub(super) slots: Slots,
    pub(super) places: Box<[Place]>,
    pub(super) wakes: Wakes,
    pub(super) stop: AtomicBool,
    /// Workers that were started, less those that rest.
    pub(super) workers: AtomicU32,
    /// Workers that died and began anew.
    pub(super) restarts: AtomicU64,
    pub(super) threads: Mutex<Vec<JoinHandle<()>>>,
    pub(super) notes: Mutex<Vec<String>>,
    pub(super) fault: Fault,
}

/// One slot. Two cache lines, because processors fetch them in pairs.
#[repr(align(128))]
pub(super) struct Place {
    pub(super) pieces: Pieces,
    task: AtomicPtr<Task>,
    /// A task that is over, for the next one: some kilobytes, which a worker would have to give back to
    /// the heap of the caller. From `Box::into_raw`.
    spare: AtomicPtr<Task>,
    /// Whether whoever finishes the last piece lands the task.
    lands: AtomicBool,
    /// Mean bytes of a piece.
    piece_bytes: AtomicU64,
    hint: Hint,
}

impl Place {
    /// Keeps a task that is over. Only the owner of the slot may call it.
    pub(super) fn keep(&self, task: Box<Task>) {
        // Release: whoever has the slot next sees the task as it is.
        let before = self.spare.swap(Box::into_raw(task), Ordering::AcqRel);
        debug_assert!(before.is_null(), "the owner of the slot had taken it");
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let spare = *self.spare.get_mut();
        if !spare.is_null() {
            // SAFETY: from `into_raw`, and nobody has taken it.
            drop(unsafe { Box::from_raw(spare) });
        }
    }
}

impl Pool {
    /// For workers that look for work for `spin` before they sleep.
    pub(super) fn new(process: Process, workers: usize, spin: Duration, fault: Fault) -> Self {
        let place = |_| Place {
            pieces: Pieces::new(),
            task: AtomicPtr::default(),
            spare: AtomicPtr::default(),
            lands: AtomicBool::new(false),
            piece_bytes: AtomicU64::new(0),
            hint: Hint::default(),
        };
        Pool {
            process,
            slots: Slots::new(),
            places: (0..BITS).map(place).collect(),
            wakes: Wakes::new(workers, spin),
            stop: AtomicBool::new(false),
            workers: AtomicU32::new(0),
            restarts: AtomicU64::new(0),
            threads: Mutex::default(),
            notes: Mutex::default(),
            fault,
        }
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
    /// false if there is no slot. `alone_ns` estimates the time without help. Of what this thread
    /// itself does `watch` is told.
    ///
    /// # Safety
    /// As for [`Task::plan`]; on return (or unwinding) nobody uses the task any more.
    #[inline]
    pub(super) unsafe fn run(
        &self,
        task: &Task,
        count: usize,
        bytes: usize,
        alone_ns: u64,
        watch: &mut Watch,
    ) -> bool {
        let Some(slot) = self.slots.take(BITS as u32) else {
            return false;
        };
        let pointer = std::ptr::from_ref(task).cast_mut();
        let published = self.publish(slot, pointer, false, count, bytes);
        let first = self.attempt(slot, 0);
        self.wakes.help(count as u32 - 1, alone_ns);
        first.work(&Fault::default());
        watch.bytes = bytes / count;
        let pieces = &self.places[slot].pieces;
        let mut course = Course::default();
        let mut turns = 0;
        while !pieces.are_finished() {
            // Also a piece that a dying worker gave back.
            match self.work_on(slot, &mut course, &Fault::default()) {
                true => {
                    // One that came back does not count after the clock has stopped.
                    if !watch.has_stopped() {
                        watch.bytes += bytes / count;
                    }
                    turns = 0;
                }
                false => {
                    watch.stop();
                    pause(&mut turns);
                }
            }
        }
        watch.stop();
        drop(published);
        true
    }

    /// A slot for a task of a caller that does not wait, if there is one.
    pub(super) fn reserve(&self) -> Option<Reserved<'_>> {
        let slot = self.slots.take(SUBMITTED)?;
        let spare = self.places[slot].spare.swap(null_mut(), Ordering::Acquire);
        Some(Reserved {
            pool: self,
            slot,
            // SAFETY: the place had it from `keep`, and nobody else has taken it.
            task: (!spare.is_null()).then(|| unsafe { Box::from_raw(spare) }),
        })
    }

    /// Queues a planned task that owns its requests, in the slot that was reserved for it.
    pub(super) fn submit(
        &self,
        (slot, task): (usize, Box<Task>),
        count: usize,
        bytes: usize,
        alone_ns: u64,
    ) {
        let published = self.publish(slot, Box::into_raw(task), true, count, bytes);
        // Whoever lands the task releases the slot.
        std::mem::forget(published);
        self.wakes
            .serve(count as u32, alone_ns, self.worker_count());
    }

    #[inline]
    fn publish(
        &self,
        slot: usize,
        task: *mut Task,
        lands: bool,
        count: usize,
        bytes: usize,
    ) -> Published<'_> {
        let place = &self.places[slot];
        place.lands.store(lands, Ordering::Relaxed);
        place.task.store(task, Ordering::Relaxed);
        place
            .piece_bytes
            .store((bytes / count) as u64, Ordering::Relaxed);
        place.hint.set(slot, count, self.worker_count() + 1);
        // A caller that waits begins with the first piece, and has no need to claim it.
        place.pieces.open(count, usize::from(!lands));
        Published { pool: self, slot }
    }

    /// Does one piece of any task, looking from the slot whose turn it is. Whether there
    /// was one.
    #[inline]
    pub(super) fn work(&self, turn: &mut Turn, fault: &Fault) -> bool {
        if self.work_on(turn.slot, &mut turn.course, fault) {
            turn.worked_on(turn.slot);
            return true;
        }
        let mut taken = self.slots.taken().rotate_right(turn.slot as u32);
        while taken != 0 {
            let slot = (turn.slot + taken.trailing_zeros() as usize) % BITS;
            if self.work_on(slot, &mut turn.course, fault) {
                turn.worked_on(slot);
                return true;
            }
            taken &= taken - 1;
        }
        false
    }

    /// Whether a piece waits to be claimed in the slot whose turn it is. A thread that asks for
    /// nothing else leaves the word of all slots to those who take them and give them back.
    #[inline]
    pub(super) fn has_work_for(&self, turn: &Turn) -> bool {
        self.places[turn.slot].pieces.unclaimed() > 0
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
    fn work_on(&self, slot: usize, course: &mut Course, fault: &Fault) -> bool {
        let place = &self.places[slot];
        let Some(piece) = place.pieces.claim(course.next(&place.hint)) else {
            return false;
        };
        course.go_on(piece);
        self.attempt(slot, piece).work(fault);
        true
    }

    /// A piece that this thread has claimed.
    #[inline]
    fn attempt(&self, slot: usize, piece: u32) -> Attempt<'_> {
        let place = &self.places[slot];
        Attempt {
            pool: self,
            slot,
            task: place.task.load(Ordering::Relaxed),
            piece,
            // Read before we finish: afterwards the slot may hold another task.
            lands: place.lands.load(Ordering::Relaxed),
            begun: false,
        }
    }

    /// A piece is finished; lands the task if it was the last and nobody waits for it.
    #[inline]
    pub(super) fn finish(&self, slot: usize, task: *mut Task, lands: bool) {
        if self.places[slot].pieces.finish() && lands {
            self.land(slot, task);
        }
    }

    fn land(&self, slot: usize, task: *mut Task) {
        // SAFETY: all pieces are finished and we finished the last, so the box that
        // `submit` put there is ours.
        let mut task = unsafe { Box::from_raw(task) };
        let concluded = catch_unwind(AssertUnwindSafe(|| task.conclude()));
        task.wipe();
        let cargo = task.unload();
        self.places[slot].keep(task);
        self.slots.release(slot);
        // A waker is the caller's code. Whatever it does, the flight has landed.
        let _ = catch_unwind(AssertUnwindSafe(|| {
            if let Some((kernel, flight)) = cargo {
                // When the flight has landed the session may close, and our copy of the key must
                // not be the last.
                drop(kernel);
                match concluded {
                    Ok(()) => flight.finish(),
                    Err(_) => drop(flight),
                }
            }
        }));
    }

    /// In a forked child: lands what the parent had under way, as far as the child can see
    /// it, so that its copies of tickets and sessions do not wait for ever. Requests that
    /// may be half written have failed; the others are run again.
    ///
    /// # Safety
    /// The pool is the parent's: none of the threads that used it is in this process. To
    /// be called once.
    pub(super) unsafe fn abandon(&self) {
        let taken = self.slots.taken();
        for (slot, place) in self.places.iter().enumerate() {
            // Finished ones were being landed by a thread of the parent.
            if taken & 1 << slot != 0
                && !place.pieces.are_finished()
                && place.lands.load(Ordering::Relaxed)
            {
                // SAFETY: unfinished, so the box that `submit` put there is whole, and
                // with the threads gone it is ours.
                let task = unsafe { Box::from_raw(place.task.load(Ordering::Relaxed)) };
                let _ = catch_unwind(AssertUnwindSafe(|| drop(task)));
            }
        }
    }

    /// Bytes that nobody has claimed.
    pub(super) fn queued_bytes(&self) -> u64 {
        let mut taken = self.slots.taken();
        let mut bytes = 0;
        while taken != 0 {
            let place = &self.places[taken.trailing_zeros() as usize];
            bytes +=
                u64::from(place.pieces.unclaimed()) * place.piece_bytes.load(Ordering::Relaxed);
            taken &= taken - 1;
        }
        bytes
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::panic::resume_unwind;
    use std::sync::Arc;
    use std::thread::ThreadId;

    use cipherlane_core::{Direction, Request, Status, Transform};

    use super::super::settings::Settings;
    use super::super::{cutting, worker};
    use super::*;

    /// Panics on the thread of the caller, works on others.
    struct Bomb(ThreadId);

    impl Transform for Bomb {
        fn run(&self, _: Direction, requests: &mut [Request<'_>]) {
            if std::thread::current().id() == self.0 {
                resume_unwind(Box::new("a panic to order"));
            }
            requests.iter_mut().for_each(|r| r.set_status(Status::Done));
        }
    }

    #[test]
    fn a_caller_that_panics_leaves_nothing_behind() {
        let settings = Settings {
            cores: vec![0],
            ..Settings::default()
        };
        let pool = Arc::new(Pool::new(
            Process::current(),
            1,
            settings.spin,
            Fault::default(),
        ));
        worker::start(&pool, &settings);
        let mut panics = 0;
        for _ in 0..200 {
            let mut data = vec![[0u8; 4096]; 64];
            let mut requests: Vec<_> = data.iter_mut().map(|d| Request::in_place(d)).collect();
            let kernel = Bomb(std::thread::current().id());
            let mut task = Task::new(Direction::Encrypt, &kernel);
            let total = cutting::cost(&requests);
            // SAFETY: requests and kernel outlive the task and are not touched meanwhile.
            let count = unsafe { task.plan(&mut requests, total, 2, 4096) };
            assert!(count > 1);
            // SAFETY: as above.
            let run = || unsafe { pool.run(&task, count, total, 1_000_000, &mut Watch::default()) };
            panics += u32::from(catch_unwind(AssertUnwindSafe(run)).is_err());
            assert_eq!(pool.slots.taken(), 0, "the slot is free again");
            assert!(!pool.has_work(), "no piece is left to claim");
        }
        assert!(panics > 0);
        pool.stop.store(true, Ordering::Relaxed);
        pool.wakes.wake_all();
        for thread in std::mem::take(&mut *pool.threads.lock().unwrap()) {
            thread.join().unwrap();
        }
    }
}
