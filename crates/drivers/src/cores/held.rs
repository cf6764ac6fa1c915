//! What a thread holds of a pool, and what becomes of that when the thread panics.

use std::time::Duration;

use cipherlane_core::{Direction, Transform};

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

/// A slot for a task of a caller that does not wait. Dropped without having
/// [submitted](Reserved::submit) one when the caller panics.
pub(super) struct Reserved<'a> {
    pub(super) pool: &'a Pool,
    pub(super) slot: usize,
    /// The slot's task before, which is over.
    pub(super) task: Option<Box<Task>>,
}

impl Reserved<'_> {
    /// An empty task, where it stays: it is some kilobytes.
    pub(super) fn task(
        &mut self,
        direction: Direction,
        kernel: &(dyn Transform + 'static),
    ) -> &mut Task {
        if let Some(task) = &mut self.task {
            task.begin_anew(direction, kernel);
        }
        self.task
            .get_or_insert_with(|| Box::write(Box::new_uninit(), Task::new(direction, kernel)))
    }

    /// Queues the task, which is planned and owns its requests.
    pub(super) fn submit(mut self, count: usize, bytes: usize, alone_ns: u64) {
        let Some(task) = self.task.take() else { return };
        let (pool, slot) = (self.pool, self.slot);
        std::mem::forget(self);
        pool.submit((slot, task), count, bytes, alone_ns);
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        if let Some(task) = self.task.take() {
            self.pool.places[self.slot].keep(task);
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
