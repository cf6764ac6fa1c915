//! Learning from batches that were timed, and counting the work of those that were not: the clock of
//! learning, the budget of trials and the ledger of devices live from it.

use std::sync::atomic::Ordering;
use std::sync::{PoisonError, TryLockError};

use super::change::Outliers;
use super::model::Cost;
use super::{BASE, Dispatch, Learned, Shape};

/// The batches that a timed one stands for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StandsFor {
    /// Their number, the timed batch included.
    pub(crate) batches: f32,
    /// Nanoseconds that passed since the thread timed a batch before. Batches that were not timed have
    /// taken no longer.
    pub(crate) longest: f32,
}

impl StandsFor {
    pub(crate) fn batches(batches: f32) -> StandsFor {
        StandsFor {
            batches,
            longest: f32::INFINITY,
        }
    }

    /// Nanoseconds of the batches that were not timed, if each takes this many when it is timed. A
    /// short batch takes several times as long then, since what it needs has left the caches.
    fn others(self, each: f32) -> f32 {
        ((self.batches - 1.0) * each).min(self.longest)
    }
}

impl Dispatch {
    /// Learns from a batch that `driver` finished. Only a sample is timed: the batches that this one
    /// stands for are counted as work, if they are given. `explored` says that the batch was a trial
    /// of the driver.
    pub(crate) fn learn(
        &self,
        driver: usize,
        shape: &Shape,
        seen: Cost,
        stands_for: Option<StandsFor>,
        explored: bool,
    ) {
        let mut learned = match self.learned.try_lock() {
            Ok(learned) => learned,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // Another thread is learning, and one sample is not worth waiting for.
            Err(TryLockError::WouldBlock) => return,
        };
        let (d, m) = (shape.direction as usize, shape.mode as usize);
        let (n, mean) = (shape.requests, shape.mean());
        match stands_for {
            None => {}
            Some(stands_for) if explored => {
                self.charge_trial(&learned, driver, shape, seen, stands_for);
            }
            Some(stands_for) => {
                // Who was interrupted while this batch was timed was not interrupted in each of those
                // that it stands for. Time that nobody has worked would pay for trials.
                let known = learned.models[driver][d][m].estimate(n, mean);
                let usual = known.map_or(seen.period, |known| known.period.min(seen.period));
                self.count_work(seen.period + stands_for.others(usual));
            }
        }
        let outliers = Outliers::Noise(self.clock.now().as_nanos() as u64);
        let change = learned.models[driver][d][m].learn(n, mean, seen, outliers);
        self.update_tables(&mut learned, shape, change);
    }

    /// Charges a batch that a driver on trial was given so that it has helpers and a queue by the time
    /// that the trial counts. Nothing is learned from such a batch.
    pub(crate) fn charge_warm_up(&self, driver: usize, shape: &Shape, seen: Cost) {
        let learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        self.charge_trial(&learned, driver, shape, seen, StandsFor::batches(1.0));
    }

    /// Counts a batch of a trial, and what the trial has cost beyond the best of the others.
    fn charge_trial(
        &self,
        learned: &Learned,
        driver: usize,
        shape: &Shape,
        seen: Cost,
        stands_for: StandsFor,
    ) {
        let (d, m) = (shape.direction as usize, shape.mode as usize);
        let known = (0..learned.models.len())
            .filter(|&other| other != driver)
            .filter_map(|other| learned.models[other][d][m].estimate(shape.requests, shape.mean()))
            .map(|cost| cost.period)
            .fold(f32::INFINITY, f32::min);
        if known.is_finite() {
            let excess = (seen.period - known).max(0.0);
            self.explored.fetch_add(excess as u64, Ordering::Relaxed);
            // The batches that the sample stands for were served by the chosen driver.
            self.count_work(stands_for.others(known));
        }
        self.count_work(seen.period);
    }

    /// Learns from a batch that a device finished; parts of the cost may not have been measured.
    /// `spent` is the caller's time that the batch took, if `auto` chose the device; `elapsed` is
    /// the time that the batch adds to the clock of learning.
    pub(crate) fn learn_device(
        &self,
        driver: usize,
        shape: &Shape,
        seen: Cost,
        spent: Option<f32>,
        explored: bool,
        elapsed: f32,
    ) {
        let mut learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        let (d, m) = (shape.direction as usize, shape.mode as usize);
        let (n, mean) = (shape.requests, shape.mean());
        let home = learned.models[BASE][d][m].estimate(n, mean);
        if let (Some(spent), Some(home)) = (spent, home) {
            self.ledger.worked(home.period);
            self.ledger.gain(home.period - spent);
            self.spent.fetch_add(elapsed as u64, Ordering::Relaxed);
            if explored {
                let excess = seen.latency.max(spent) - home.period;
                self.explored
                    .fetch_add(excess.max(0.0) as u64, Ordering::Relaxed);
                // The device is better than was known: the next trial need not wait.
                if excess < 0.0 && seen.latency > 0.0 {
                    let (c, s) = shape.node();
                    learned.tried[driver][d][m][c][s] = None;
                }
            }
        }
        if seen == Cost::default() {
            return;
        }
        let change = learned.models[driver][d][m].learn(n, mean, seen, Outliers::Count);
        self.update_tables(&mut learned, shape, change);
    }

    /// Counts the work of batches from which nothing is learned, by the estimate for the driver that
    /// has served them.
    pub(crate) fn count_estimated(&self, chosen: usize, shape: &Shape, stands_for: StandsFor) {
        if let (Some(cost), _) = self.estimate(chosen, shape) {
            self.count_work(cost.period + stands_for.others(cost.period));
        }
    }

    /// Counts the work of the batches that were not timed only.
    pub(crate) fn count_others(&self, chosen: usize, shape: &Shape, stands_for: StandsFor) {
        if let (Some(cost), _) = self.estimate(chosen, shape) {
            self.count_work(stands_for.others(cost.period));
        }
    }

    /// Counts work done at home.
    fn count_work(&self, nanoseconds: f32) {
        self.ledger.worked(nanoseconds);
        self.spent.fetch_add(nanoseconds as u64, Ordering::Relaxed);
    }
}
