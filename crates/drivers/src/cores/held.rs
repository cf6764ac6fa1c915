//! What a thread holds of a pool, and what becomes of that when the thread panics.

use std::time::Duration;

use super::fault::Fault;
use super::pool::Pool;
use super::task::Task;

/// A task in a slot of which the caller waits. Dropped when all is finished, or by a panic
/// in the caller's own piece: then it takes the pieces that nobody has begun, and waits
/// for the others, because the task dies with the caller's frame.
pub(super) struct Published<'a> {
    pub(super) pool: &'a Pool,
    pub(super) slot: usize,
}

impl Drop for Published<'_> {
    fn drop(&mut self) {
        let pieces = &self.pool.places[self.slot].pieces;
        let mut turns = 0;
        while !pieces.are_finished() {
            match pieces.claim(0) {
                Some(_) => drop(pieces.finish()),
                None => pause(&mut turns),
            }
        }
        self.pool.slots.release(self.slot);
    }
}

/// A claimed piece. Dropped without [`work`](Attempt::work) having ended when its thread dies.
pub(super) struct Attempt<'a> {
    pub(super) pool: &'a Pool,
    pub(super) slot: usize,
    pub(super) task: *mut Task,
    pub(super) piece: u32,
    /// Whether whoever finishes the last piece lands the task.
    pub(super) lands: bool,
    pub(super) begun: bool,
}

impl Attempt<'_> {
    /// Does the piece.
    #[inline]
    pub(super) fn work(mut self, fault: &Fault) {
        fault.before_piece();
        self.begun = true;
        fault.inside_piece();
        // SAFETY: the piece is claimed by us alone, and the slot keeps its task until we
        // finish it.
        unsafe { (*self.task).run_piece(self.piece) };
        let Attempt {
            pool,
            slot,
            task,
            lands,
            ..
        } = self;
        std::mem::forget(self);
        pool.finish(slot, task, lands);
    }
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
pub(super) fn pause(turns: &mut u32) {
    *turns += 1;
    match *turns {
        0..2_000 => std::hint::spin_loop(),
        2_000..4_000 => std::thread::yield_now(),
        _ => std::thread::sleep(Duration::from_micros(50)),
    }
}
