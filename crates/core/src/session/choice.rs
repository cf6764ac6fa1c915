//! The driver for a batch: the best one that is known, or another one to learn what it costs.

use super::Inner;
use super::flight::Purpose;
use super::sampling::{Awaiting, await_helpers, awaited};
use crate::dispatch::submit_depth::SubmitDepth;
use crate::dispatch::table::TableCell;
use crate::dispatch::{BASE, Mode, Shape};

/// Before a trial, a thread waits for a driver's sleeping helpers for at most this many times
/// their wake-up time.
const WAKE_UP_PATIENCE: u64 = 2;
/// Helpers are of no use to a batch that takes less than their wake-up time divided by this.
const MAX_WAKE_UP_RATIO: f32 = 12.0;

/// Nanoseconds that the caller of a batch loses while its helpers are busy with `batches` other ones
/// of the same cost. Meanwhile the caller works alone, so the whole `gain` is lost only where the
/// helpers come after the caller has finished. With help from the start the batch takes `helped`
/// nanoseconds.
fn late_help(batches: f32, helped: f32, gain: u32) -> u32 {
    let gain = gain as f32;
    let alone = helped + gain;
    (batches * helped * gain / alone.max(1.0)) as u32
}

impl Inner {
    /// The driver for a batch whose caller waits.
    pub(super) fn choose(&self, shape: &Shape) -> usize {
        if let Some(driver) = self.alone {
            return driver;
        }
        let cell = self.dispatch.cell(self.goal, shape);
        if cell.serving() == BASE {
            return BASE;
        }
        if cell.rival != 0 && self.favours_rival(&cell, shape, None, self.now()) {
            return cell.rival.into();
        }
        self.choose_home(shape, &cell)
    }

    /// The driver for a batch whose caller does not wait, and what for. `now` is known beside a device,
    /// and for a sample.
    pub(super) fn choose_to_submit(
        &self,
        shape: &Shape,
        caller: &SubmitDepth,
        (now, is_sample): (Option<u64>, bool),
    ) -> (usize, Purpose) {
        if let Some(driver) = self.alone {
            return (driver, Purpose::Work);
        }
        if let Some(next) = self.next_of_series(shape) {
            return next;
        }
        let cell = self.dispatch.cell(self.goal, shape);
        let is_rival = cell.rival != 0
            && now.is_some_and(|now| self.favours_rival(&cell, shape, Some(caller), now));
        let chosen = match is_rival {
            true => cell.rival.into(),
            false => self.choose_home(shape, &cell),
        };
        let Some(now) = now.filter(|_| is_sample) else {
            return (chosen, Purpose::Work);
        };
        let explored = self.explore(shape, chosen, now);
        self.sampled(shape, caller.interval());
        match explored {
            // The base has no helpers, and a device's queue is known.
            Some(other) if other == BASE || self.dispatch.is_device(other) => {
                (other, Purpose::Trial)
            }
            Some(other) => self.begin_series(other, caller.depth()),
            None => (chosen, Purpose::Work),
        }
    }

    /// Another driver than the chosen one, to learn, now and then.
    pub(super) fn explore(&self, shape: &Shape, chosen: usize, now: u64) -> Option<usize> {
        // Whatever comes of this batch, the wait is over, unless the batch is put off again: work may
        // have become too little for the driver.
        let awaiting = awaited();
        if self.awaiting().is_some() {
            await_helpers(None);
        }
        let backlog = |driver: usize| self.queue(driver).backlog(now);
        let other = self.dispatch.explore(shape, chosen, backlog)?;
        if !self.takes(other, shape) {
            return None;
        }
        let load = self.framework.shared.entries[other].driver.load();
        if load.delay_ns == u32::MAX && !self.dispatch.is_device(other) {
            // The driver's helpers rest.
            return None;
        }
        // Helpers that were called for another session of this thread, and were not there in time, will
        // not be for this one: sessions that take turns would put off trials for ever.
        let is_patient = awaiting.is_none_or(|of| now < of.until);
        if is_patient && self.must_wake(other, chosen, shape) {
            let longest = now + WAKE_UP_PATIENCE * u64::from(load.delay_ns);
            await_helpers(Some(Awaiting {
                session: std::ptr::from_ref(self).addr(),
                until: awaiting.map_or(longest, |of| of.until),
            }));
            self.dispatch.try_again(shape, other);
            return None;
        }
        await_helpers(None);
        Some(other)
    }

    /// Whether the helpers of a driver that is to be tried sleep, where that would hide what
    /// the driver is worth. They are called.
    fn must_wake(&self, other: usize, chosen: usize, shape: &Shape) -> bool {
        let driver = &self.framework.shared.entries[other].driver;
        let delay = driver.load().delay_ns;
        if delay == 0 || self.dispatch.is_device(other) {
            return false;
        }
        // Work that is much shorter than the wake-up is not for helpers, unless they have a queue of it.
        let (known, _) = self.dispatch.estimate(chosen, shape);
        let long = |latency| latency >= delay as f32 / MAX_WAKE_UP_RATIO;
        let helped = shape.mode == Mode::Submit || known.is_some_and(|cost| long(cost.latency));
        if helped {
            driver.missed(u32::MAX);
        }
        helped
    }

    /// Whether the device beside home is better now, given the device's queue.
    /// `caller` is the one that does not wait.
    fn favours_rival(
        &self,
        cell: &TableCell,
        shape: &Shape,
        caller: Option<&SubmitDepth>,
        now: u64,
    ) -> bool {
        let rival = usize::from(cell.rival);
        let entry = &self.framework.shared.entries[rival];
        self.takes(rival, shape)
            && self
                .dispatch
                .favours_rival((self.goal, cell), shape, &entry.queue, caller, now)
            && entry.driver.load().delay_ns != u32::MAX
    }

    /// Whether a driver has the key, takes requests that large, and gives helpers a part of the
    /// batch.
    pub(super) fn takes(&self, driver: usize, shape: &Shape) -> bool {
        (self.transforms[driver].as_ref())
            .is_some_and(|transform| shape.is_for_helpers(&**transform))
            && shape.bytes <= self.max_len[driver].saturating_mul(shape.requests)
    }

    /// The best driver that is no device. The queue of a driver on other cores counts.
    fn choose_home(&self, shape: &Shape, cell: &TableCell) -> usize {
        let (best, second) = (usize::from(cell.best), usize::from(cell.second));
        if best == BASE || !self.takes(best, shape) {
            return BASE;
        }
        let driver = &self.framework.shared.entries[best].driver;
        let load = driver.load();
        let waits = match shape.mode {
            Mode::Wait => {
                let queue = match load.queued_bytes {
                    0 => 0,
                    bytes => {
                        let (cost, _) = self.dispatch.estimate(best, shape);
                        let helped = cost.map_or(0.0, |cost| cost.period);
                        late_help(bytes as f32 / shape.bytes.max(1) as f32, helped, cell.gain)
                    }
                };
                // Meanwhile the caller works, so helpers that sleep cost half of their delay at most.
                let asleep = load.delay_ns / 2;
                let waits = load.delay_ns == u32::MAX || queue.saturating_add(asleep) > cell.gain;
                if waits && (1..u32::MAX).contains(&load.delay_ns) {
                    driver.missed(cell.gain);
                }
                waits
            }
            // The caller's own batches are the queue, and their time is in the estimate.
            Mode::Submit => load.delay_ns == u32::MAX,
        };
        if waits && self.transforms[second].is_some() {
            second
        } else {
            best
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_help_costs_the_whole_gain_only_where_it_comes_after_the_end() {
        // Alone a batch takes 100 us, with one helper 50.
        let (helped, gain) = (50_000.0, 50_000);
        assert_eq!(late_help(0.0, helped, gain), 0);
        assert_eq!(late_help(1.0, helped, gain), gain / 2);
        assert!(late_help(1.9, helped, gain) < gain);
        assert!(late_help(2.1, helped, gain) > gain);
        assert_eq!(late_help(1.0, 0.0, 0), 0, "nothing is known");
    }
}
