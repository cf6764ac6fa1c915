//! Trials of helpers by a caller that does not wait: a series of batches, of which the first ones
//! fill the helpers' queue, and wake helpers that were called and have not come.

use std::cell::Cell;

use super::Inner;
use super::flight::Purpose;
use crate::dispatch::Shape;

/// Batches of a trial of helpers by a caller that does not wait.
const TRIAL_BATCHES: u32 = 4;
/// The most batches before these, which fill the helpers' queue.
const MAX_WARM_UP: u32 = 8;

/// What is left of a trial of helpers.
#[derive(Clone, Copy)]
struct Series {
    /// Address of the session.
    session: usize,
    driver: usize,
    /// Batches.
    left: u32,
}

thread_local! {
    /// The trial that this thread makes by batches that it does not wait for.
    static SERIES: Cell<Option<Series>> = const { Cell::new(None) };
}

impl Inner {
    /// Begins a trial of helpers: a single batch would find them asleep, and nothing beside it.
    /// The caller keeps `depth` batches under way.
    pub(super) fn begin_series(&self, driver: usize, depth: u32) -> (usize, Purpose) {
        let warm_up = depth.min(MAX_WARM_UP);
        SERIES.set(Some(Series {
            session: std::ptr::from_ref(self).addr(),
            driver,
            left: warm_up + TRIAL_BATCHES - 1,
        }));
        (driver, Purpose::WarmUp)
    }

    /// The driver that this thread is trying, if the batch belongs to the trial.
    pub(super) fn next_of_series(&self, shape: &Shape) -> Option<(usize, Purpose)> {
        let series = SERIES.get()?;
        let here = series.session == std::ptr::from_ref(self).addr();
        let goes_on = here && series.left > 0 && self.dispatch.is_eligible(series.driver);
        if !goes_on || !self.takes(series.driver, shape) {
            SERIES.set(None);
            return None;
        }
        let left = series.left - 1;
        SERIES.set(Some(Series { left, ..series }));
        match left < TRIAL_BATCHES {
            true => Some((series.driver, Purpose::Trial)),
            false => Some((series.driver, Purpose::WarmUp)),
        }
    }
}
