//! When a driver that is not chosen is tried: often enough to notice that the driver has become
//! better, and rarely enough that the trials cost almost nothing.

use std::sync::atomic::Ordering;

use super::{BASE, Dispatch, DriverFacts, Shape};

/// The share of all callers' time that trials of other drivers may cost.
const EXPLORATION_SHARE: f64 = 0.01;
/// The assumed cost of a driver that was never measured for such a batch, in nanoseconds beyond
/// twice the cost of the chosen driver.
const UNKNOWN_NS: f32 = 50_000.0;
/// The least nanoseconds of work between two trials of one driver at one node.
const TRIAL_PAUSE: f32 = 10e6;
/// The work between two trials is also at least this many times the loss of a trial, so that
/// trials at one node cost at most one part in this many.
const PAUSE_PER_LOSS: f32 = 200.0;
/// This many first trials of a driver at one node follow one another closely, whatever they show.
const FIRST_TRIALS: u32 = 4;
/// Nanoseconds of work between these first trials.
const FIRST_TRIAL_PAUSE: f32 = 1e6;
/// Nanoseconds of work between two searches for a driver to try.
const LOOK_INTERVAL: u64 = 500_000;

impl Dispatch {
    /// Another driver than `chosen` that this batch should be sent to as a trial, if it is time for
    /// one. `backlog` gives the nanoseconds of work that a device already has.
    pub(crate) fn explore(
        &self,
        shape: &Shape,
        chosen: usize,
        backlog: impl Fn(usize) -> u64,
    ) -> Option<usize> {
        let eligible = self.eligible.load(Ordering::Relaxed);
        if eligible == 1 << BASE {
            return None;
        }
        let now = self.spent.load(Ordering::Relaxed);
        if now < self.explore_at.load(Ordering::Relaxed) {
            return None;
        }
        self.explore_at
            .store(now + LOOK_INTERVAL, Ordering::Relaxed);
        let budget = now as f64 * EXPLORATION_SHARE - self.explored.load(Ordering::Relaxed) as f64;
        let mut learned = self.learned.try_lock().ok()?;
        let (d, m) = (shape.direction as usize, shape.mode as usize);
        let (c, s) = shape.node();
        let estimate = |driver: usize| {
            let cost = learned.models[driver][d][m].estimate(shape.requests, shape.mean())?;
            // The caller waits for a device that is tried.
            Some(match self.is_device(driver) {
                true => cost.latency,
                false => cost.period,
            })
        };
        let known = estimate(chosen)?;
        let base = learned.models[BASE][d][m].estimate(shape.requests, shape.mean());
        let too_little = |driver: usize| {
            base.is_some_and(|base| self.too_little(driver, shape.mode, base.latency).is_some())
        };
        let candidate = (0..learned.models.len())
            .filter(|&driver| driver != chosen && eligible & (1 << driver) != 0)
            .filter(|&driver| !too_little(driver))
            .filter(|&driver| {
                let expected = estimate(driver);
                let DriverFacts {
                    patience,
                    first_sight,
                    ..
                } = self.facts[driver];
                let unknown = match first_sight {
                    Some(seen) => seen.expected(shape.requests, shape.bytes),
                    None => UNKNOWN_NS + 2.0 * known,
                };
                let cost = expected.unwrap_or(unknown);
                let excess = cost - known;
                let samples = learned.models[driver][d][m].samples(shape.requests, shape.mean());
                // A driver that was much worse is tried again much later.
                let pause = match samples < FIRST_TRIALS {
                    // The trials must not overlap.
                    true => FIRST_TRIAL_PAUSE.max(8.0 * cost),
                    false => TRIAL_PAUSE.max(PAUSE_PER_LOSS * excess),
                };
                let is_due =
                    learned.tried[driver][d][m][c][s].is_none_or(|at| (now - at) as f32 >= pause);
                // A device that is known to be good gets work without trials.
                let in_use = patience > 0 && samples >= FIRST_TRIALS && excess < 0.0;
                let queued = if patience > 0 { backlog(driver) } else { 0 };
                let worst = (excess.max(0.0) * 2.0) as u64 + queued + patience;
                is_due
                    && !in_use
                    && f64::from(excess) <= budget
                    && (patience == 0 || self.ledger.affords(worst))
            })
            .min_by_key(|&driver| learned.tried[driver][d][m][c][s])?;
        learned.tried[candidate][d][m][c][s] = Some(now);
        Some(candidate)
    }

    /// Notes that a trial of `driver` was put off because the driver's helpers were asleep. The
    /// driver is considered again at the next sample.
    pub(crate) fn try_again(&self, shape: &Shape, driver: usize) {
        let Ok(mut learned) = self.learned.try_lock() else {
            return;
        };
        let (c, s) = shape.node();
        learned.tried[driver][shape.direction as usize][shape.mode as usize][c][s] = None;
        self.explore_at.store(0, Ordering::Relaxed);
    }
}
