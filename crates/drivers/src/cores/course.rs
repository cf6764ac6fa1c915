//! Which task a worker turns to, and which piece of it a thread takes next.
//!
//! Each thread goes up through a range of its own, the same one for each task that is cut in the
//! same way, so that memory is read in one direction, and what a caller uses again and again
//! stays in the caches of those who use it. On an EPYC of 2024, AES-GCM of 256 KiB in pieces of
//! 16 KiB takes up to 1.4 times as long where one of two threads goes down from the end.
//!
//! All this is a hint. Who does which piece is decided by [`Pieces`](super::claim::Pieces) alone.

use std::sync::atomic::{AtomicU64, Ordering};

use super::claim::BITS;

/// Which task a slot holds, of how many pieces, for how many threads: 32 bits for the number of
/// the task, and for the others 8, 8 and 16.
#[derive(Default)]
pub(super) struct Hint(AtomicU64);

impl Hint {
    /// For the next task. Only the owner of the slot calls it.
    #[inline]
    pub(super) fn set(&self, slot: usize, count: usize, threads: usize) {
        let task = (self.0.load(Ordering::Relaxed) >> 32) + 1;
        let threads = threads.min(usize::from(u16::MAX));
        let hint = task << 32 | (slot as u64) << 24 | (count as u64) << 16 | threads as u64;
        self.0.store(hint, Ordering::Relaxed);
    }
}

/// The way of one thread through a task.
#[derive(Clone, Copy, Default)]
pub(super) struct Course {
    /// 0 for a caller.
    thread: u64,
    /// Of the task it is for.
    hint: u64,
    next: u32,
}

impl Course {
    pub(super) fn of_worker(worker: usize) -> Self {
        Course {
            thread: worker as u64 + 1,
            ..Course::default()
        }
    }

    /// The number of the piece to take, if it can be had.
    #[inline]
    pub(super) fn next(&mut self, hint: &Hint) -> u32 {
        let hint = hint.0.load(Ordering::Relaxed);
        if hint != self.hint {
            let (count, threads) = (hint >> 16 & 0xff, hint & 0xffff);
            self.hint = hint;
            self.next = (self.thread * count / threads.max(1)).min(64) as u32;
        }
        self.next
    }

    /// A piece was claimed; the next one comes after it.
    #[inline]
    pub(super) fn go_on(&mut self, piece: u32) {
        self.next = piece + 1;
    }
}

/// Whose turn it is with one worker: the task it is at, then the next slot. A slot that is
/// filled again and again does not keep the worker from the others.
#[derive(Clone, Copy, Default)]
pub(super) struct Turn {
    pub(super) slot: usize,
    pieces: usize,
    pub(super) course: Course,
}

impl Turn {
    pub(super) fn of_worker(worker: usize) -> Self {
        Turn {
            course: Course::of_worker(worker),
            ..Turn::default()
        }
    }

    #[inline]
    pub(super) fn worked_on(&mut self, slot: usize) {
        self.pieces = if slot == self.slot {
            self.pieces + 1
        } else {
            1
        };
        self.slot = slot;
        if self.pieces >= BITS {
            // More would be another task.
            self.slot = (slot + 1) % BITS;
            self.pieces = 0;
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn each_thread_begins_where_its_range_does() {
        let hint = Hint::default();
        let mut threads = [
            Course::default(),
            Course::of_worker(0),
            Course::of_worker(1),
        ];
        for (count, begins) in [(12, [0, 4, 8]), (2, [0, 0, 1]), (64, [0, 21, 42])] {
            hint.set(63, count, 3);
            assert_eq!(threads.each_mut().map(|c| c.next(&hint)), begins);
        }
        // The same task goes on, and another of the same shape begins anew.
        threads[1].go_on(21);
        assert_eq!(threads[1].next(&hint), 22);
        hint.set(63, 64, 3);
        assert_eq!(threads[1].next(&hint), 21);
        // A worker beyond the threads that were counted begins beyond the pieces.
        assert_eq!(Course::of_worker(5).next(&hint), 64);
        assert_eq!(Course::of_worker(5).next(&Hint::default()), 0);
    }
}
