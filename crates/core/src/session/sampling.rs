//! Which batches a thread times: a sample of them, that it may learn what drivers cost while the
//! learning costs next to nothing.

use std::cell::Cell;

use super::Inner;
use crate::dispatch::{Shape, StandsFor};

/// The most work between two timed batches of a thread. A request counts 1, and so do 256 bytes.
const SAMPLE_EVERY: i64 = 16384;
/// The same limit while the time of a batch is unknown.
const FIRST_SAMPLE_EVERY: i64 = 2048;
/// The most nanoseconds between two timed batches of a thread, if all batches are like the last
/// one.
const SAMPLE_AFTER: f32 = 500_000.0;
/// The time between two timed batches is also at least this many times what the timing and the
/// learning cost, so that they cost at most one part in this many where the processor is slow.
const WORK_PER_LEARNING: f32 = 200.0;

thread_local! {
    /// Work left until this thread times a batch.
    static UNTIL_SAMPLE: Cell<i64> = const { Cell::new(0) };
    /// Work between the last timed batch and the next.
    static BETWEEN_SAMPLES: Cell<i64> = const { Cell::new(FIRST_SAMPLE_EVERY) };
    /// When this thread last timed a batch, in nanoseconds of the framework's clock.
    static SAMPLED: Cell<u64> = const { Cell::new(0) };
    /// Nanoseconds that the timing of a batch and the learning from it cost this thread, averaged.
    static LEARNING: Cell<f32> = const { Cell::new(0.0) };
    /// The trial for which this thread awaits the helpers of a driver.
    static AWAITING: Cell<Option<Awaiting>> = const { Cell::new(None) };
}

/// A trial that was put off because the driver's helpers were asleep.
#[derive(Clone, Copy)]
pub(super) struct Awaiting {
    /// Address of the session. Batches of other sessions do not wait for its helpers.
    pub(super) session: usize,
    /// Nanoseconds of the framework's clock, after which the trial is made as it is.
    pub(super) until: u64,
}

#[inline]
fn work(shape: &Shape) -> i64 {
    (shape.requests + shape.bytes / 256) as i64
}

/// Whether this thread should time the batch.
#[inline]
pub(super) fn is_sample(shape: &Shape) -> bool {
    let left = UNTIL_SAMPLE.get() - work(shape);
    UNTIL_SAMPLE.set(left);
    left < 0
}

/// Notes what the timing of a batch and the learning from it cost. A thread that was interrupted
/// meanwhile counts as little more than usual.
pub(super) fn learning_cost(nanoseconds: u64) {
    let known = LEARNING.get();
    let seen = (nanoseconds as f32).min(2.0 * known + 1000.0);
    LEARNING.set(known + (seen - known) / 8.0);
}

/// The trial for which this thread awaits helpers, of any session.
pub(super) fn awaited() -> Option<Awaiting> {
    AWAITING.get()
}

/// Sets for which trial this thread awaits helpers.
pub(super) fn await_helpers(of: Option<Awaiting>) {
    AWAITING.set(of);
}

impl Inner {
    /// Sets when the next batch is timed, after a timed batch took this many nanoseconds. On a slow
    /// machine that is after fewer batches.
    pub(super) fn sampled(&self, shape: &Shape, nanoseconds: u64) {
        let every = match (self.awaiting(), nanoseconds) {
            // Every batch is timed while helpers are awaited, so that they do not sleep again before.
            (Some(_), _) => 0,
            (None, 0) => FIRST_SAMPLE_EVERY,
            (None, known) => {
                let pause = SAMPLE_AFTER.max(WORK_PER_LEARNING * LEARNING.get());
                let batches = pause / known as f32;
                (batches * work(shape) as f32).clamp(1.0, SAMPLE_EVERY as f32) as i64
            }
        };
        BETWEEN_SAMPLES.set(every);
        UNTIL_SAMPLE.set(every);
    }

    /// The batches that one timed batch stands for, which is timed from `now` on.
    pub(super) fn stands_for(&self, shape: &Shape, now: u64) -> StandsFor {
        let before = SAMPLED.replace(now);
        let longest = match self.clock().is_simulated() {
            // One thread plays many callers, whose times overlap.
            true => f32::INFINITY,
            false => now.saturating_sub(before) as f32,
        };
        StandsFor {
            batches: (BETWEEN_SAMPLES.get() as f32 / work(shape).max(1) as f32).max(1.0),
            longest,
        }
    }

    /// The trial of this session that was put off.
    pub(super) fn awaiting(&self) -> Option<Awaiting> {
        let session = std::ptr::from_ref(self).addr();
        awaited().filter(|of| of.session == session)
    }
}

#[cfg(test)]
mod tests;
