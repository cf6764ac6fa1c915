//! How a batch is served: the choice of a driver, the run with a clock beside it where that
//! is worth it, and what is learned from it.

use super::Inner;
use super::flight::Purpose;
use super::sampling::{Awaiting, await_helpers, is_sample, learning_cost};
use crate::dispatch::model::Cost;
use crate::dispatch::queue::Found;
use crate::dispatch::table::TableCell;
use crate::dispatch::{BASE, Mode, Shape, StandsFor};
use crate::request::{Request, Status};
use crate::{Clock, Direction, Error, Goal, Transform, scatter};

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

/// What a batch that took `elapsed` nanoseconds would have taken with helpers that are awake, where
/// they slept and came after `delay`. They are called for work that is longer than that, and the
/// caller works until they come, so half of the delay is lost.
fn awake(elapsed: u64, delay: u32) -> f32 {
    match u64::from(delay) < elapsed {
        true => elapsed as f32 - delay as f32 / 2.0,
        false => elapsed as f32,
    }
}

impl Inner {
    /// The driver for a batch whose caller waits.
    fn choose(&self, shape: &Shape) -> usize {
        if let Some(driver) = self.alone {
            return driver;
        }
        let cell = self.dispatch.cell(self.goal, shape);
        if cell.serving() == BASE {
            return BASE;
        }
        if cell.rival != 0 && self.favours_rival(&cell, shape, self.now()) {
            return cell.rival.into();
        }
        self.choose_home(shape, &cell)
    }

    /// The driver for a batch whose caller does not wait, and what for.
    pub(super) fn choose_to_submit(&self, shape: &Shape, now: u64) -> (usize, Purpose) {
        if let Some(driver) = self.alone {
            return (driver, Purpose::Work);
        }
        if let Some(next) = self.next_of_series(shape) {
            return next;
        }
        let cell = self.dispatch.cell(self.goal, shape);
        let chosen = match cell.rival != 0 && self.favours_rival(&cell, shape, now) {
            true => cell.rival.into(),
            false => self.choose_home(shape, &cell),
        };
        if !is_sample(shape) {
            return (chosen, Purpose::Work);
        }
        self.sampled(shape, self.submit_depth.interval());
        match self.explore(shape, chosen, now) {
            // The base has no helpers, and a device's queue is known.
            Some(other) if other == BASE || self.dispatch.is_device(other) => {
                (other, Purpose::Trial)
            }
            Some(other) => self.begin_series(other),
            None => (chosen, Purpose::Work),
        }
    }

    /// Another driver than the chosen one, to learn, now and then.
    fn explore(&self, shape: &Shape, chosen: usize, now: u64) -> Option<usize> {
        // Whatever comes of this batch, the wait is over, unless the batch is put off again: work may
        // have become too little for the driver.
        let awaiting = self.awaiting();
        if awaiting.is_some() {
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
        Some(other)
    }

    /// Whether the helpers of a driver that is to be tried sleep, where that would hide what
    /// the driver is worth. They are called.
    fn must_wake(&self, other: usize, chosen: usize, shape: &Shape) -> bool {
        let driver = &self.framework.shared.entries[other].driver;
        let delay = driver.load().delay_ns;
        if shape.mode == Mode::Submit || delay == 0 || self.dispatch.is_device(other) {
            return false;
        }
        // Work that is much shorter than the wake-up is not for helpers.
        let (known, _) = self.dispatch.estimate(chosen, shape);
        let helped = known.is_some_and(|cost| cost.latency >= delay as f32 / MAX_WAKE_UP_RATIO);
        if helped {
            driver.missed(u32::MAX);
        }
        helped
    }

    /// Whether the device beside home is better now, given the device's queue.
    fn favours_rival(&self, cell: &TableCell, shape: &Shape, now: u64) -> bool {
        let rival = usize::from(cell.rival);
        let entry = &self.framework.shared.entries[rival];
        let submit_depth = (shape.mode == Mode::Submit).then_some(&*self.submit_depth);
        self.takes(rival, shape)
            && self.dispatch.favours_rival(
                (self.goal, cell),
                shape,
                &entry.queue,
                submit_depth,
                now,
            )
            && entry.driver.load().delay_ns != u32::MAX
    }

    /// Whether a driver has the key and takes requests that large.
    pub(super) fn takes(&self, driver: usize, shape: &Shape) -> bool {
        self.transforms[driver].is_some()
            && shape.bytes <= self.max_len[driver].saturating_mul(shape.requests)
    }

    /// The best driver that is no device. The queue of a driver on other cores counts.
    fn choose_home(&self, shape: &Shape, cell: &TableCell) -> usize {
        let (best, second) = (usize::from(cell.best), usize::from(cell.second));
        if best == BASE || self.transforms[best].is_none() {
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

    /// Flat requests that passed the checks.
    #[inline]
    pub(super) fn run(&self, direction: Direction, requests: &mut [Request<'_>], bytes: usize) {
        let shape = Shape {
            mode: Mode::Wait,
            direction,
            requests: requests.len(),
            bytes,
        };
        if !self.limits.holds(direction, requests.len(), bytes) {
            return self.run_chosen(&shape, requests);
        }
        match is_sample(&shape) {
            true => self.run_sampled(BASE, &shape, requests),
            false => self.run_on(BASE, direction, requests),
        }
    }

    /// Runs a batch that is not small: by the driver that the table names.
    #[inline(never)]
    fn run_chosen(&self, shape: &Shape, requests: &mut [Request<'_>]) {
        let driver = self.choose(shape);
        match is_sample(shape) {
            true => self.run_sampled(driver, shape, requests),
            false => self.run_untimed(driver, shape, requests),
        }
    }

    /// Runs a batch, be it on the caller's core or elsewhere.
    fn run_untimed(&self, driver: usize, shape: &Shape, requests: &mut [Request<'_>]) {
        match self.dispatch.is_device(driver) {
            true => {
                self.run_on_device((driver, false), shape, false, requests);
            }
            false => self.run_on(driver, shape.direction, requests),
        }
    }

    #[inline]
    fn run_on(&self, driver: usize, direction: Direction, requests: &mut [Request<'_>]) {
        self.transform(driver).run(direction, requests);
        self.settle(driver, direction, requests);
    }

    /// Runs a batch with a clock beside it, on another driver now and then.
    #[cold]
    fn run_sampled(&self, chosen: usize, shape: &Shape, requests: &mut [Request<'_>]) {
        let began = self.now();
        let explored = match self.alone {
            Some(_) => None,
            None => self.explore(shape, chosen, began),
        };
        let driver = explored.unwrap_or(chosen);
        let mut stands_for = self.stands_for(shape, began);
        if self.dispatch.is_device(chosen) {
            // Batches of a device count each by itself.
            stands_for.batches = 1.0;
        }
        let took = if self.dispatch.is_device(driver) {
            if explored.is_some() {
                self.dispatch.count_others(chosen, shape, stands_for);
            }
            self.run_on_device((driver, explored.is_some()), shape, true, requests)
        } else {
            self.run_timed((driver, explored.is_some()), shape, stands_for, requests)
        };
        self.framework.revive();
        learning_cost((self.now() - began).saturating_sub(took));
        self.sampled(shape, took);
    }

    /// Returns the nanoseconds that the batch took.
    fn run_timed(
        &self,
        (driver, explored): (usize, bool),
        shape: &Shape,
        stands_for: StandsFor,
        requests: &mut [Request<'_>],
    ) -> u64 {
        let delay = match driver {
            BASE => 0,
            other => self.framework.shared.entries[other].driver.load().delay_ns,
        };
        let started = self.now();
        self.run_on(driver, shape.direction, requests);
        let elapsed = self.now().saturating_sub(started);
        let stats = &self.framework.shared.stats;
        stats.time(driver, self.algorithm_index, elapsed);
        let cost = Cost {
            cpu: 0.0,
            ..Cost::inline(awake(elapsed, delay))
        };
        // The work of a caller that has no choice pays for no trial of others. Helpers that rested, or
        // slept though the caller has no choice, do not show what they are worth.
        let counted = self.alone.is_none().then_some(stands_for);
        match delay == u32::MAX || delay > 0 && self.alone.is_some() {
            true => {
                if let Some(stands_for) = counted {
                    self.dispatch.count_estimated(driver, shape, stands_for);
                }
            }
            false => self.dispatch.learn(driver, shape, cost, counted, explored),
        }
        elapsed
    }

    /// Runs a batch on a device, and learns from it: no batch there is so small that two
    /// looks at the clock would matter. Returns the nanoseconds that it took.
    #[cold]
    fn run_on_device(
        &self,
        (driver, explored): (usize, bool),
        shape: &Shape,
        timed: bool,
        requests: &mut [Request<'_>],
    ) -> u64 {
        let entry = &self.framework.shared.entries[driver];
        let processor = (timed || self.goal == Goal::Cpu).then(|| self.clock().processor());
        let known = self.dispatch.expected(driver, shape);
        let started = self.now();
        let queued = entry.queue.begin(started, known);
        self.transform(driver).run(shape.direction, requests);
        let ended = self.now();
        let seen = entry.queue.end(ended, &queued, Found::Waiting);
        let used = processor.map(|before| self.clock().processor().saturating_sub(before));
        let well = self.settle(driver, shape.direction, requests);
        let took = self.now().saturating_sub(started);
        let stats = &self.framework.shared.stats;
        stats.time(driver, self.algorithm_index, took);
        // What a device gave up says nothing of how long it takes when it works.
        let cost = match well {
            true => Cost {
                latency: seen.latency,
                period: seen.service,
                cpu: used.map_or(0.0, |used| used.as_nanos() as f32),
            },
            false => Cost::default(),
        };
        let spent = self.alone.is_none().then_some(took as f32);
        let elapsed = ended.saturating_sub(started) as f32;
        self.dispatch
            .learn_device(driver, shape, cost, spent, explored, elapsed);
        took
    }

    /// Requests of which some break a rule, or are scattered.
    #[cold]
    pub(super) fn run_mixed(
        &self,
        direction: Direction,
        requests: &mut [Request<'_>],
    ) -> Result<(), Error> {
        if requests.is_empty() {
            return Err(Error::EmptyBatch);
        }
        let pending = |r: &Request<'_>| r.status() == Status::Pending;
        for group in requests
            .chunk_by_mut(|a, b| (pending(a), a.is_scattered()) == (pending(b), b.is_scattered()))
        {
            if !pending(&group[0]) {
                continue;
            }
            let bytes = group.iter().map(Request::len).sum();
            if group[0].is_scattered() {
                self.run_scattered(direction, group, bytes);
            } else {
                self.run(direction, group, bytes);
            }
        }
        Ok(())
    }

    /// Scatter lists, as they are where the driver takes them.
    fn run_scattered(&self, direction: Direction, requests: &mut [Request<'_>], bytes: usize) {
        let shape = Shape {
            mode: Mode::Wait,
            direction,
            requests: requests.len(),
            bytes,
        };
        let driver = self.choose(&shape);
        match self.transform(driver).scatters() {
            true => self.run_untimed(driver, &shape, requests),
            false => scatter::flattened(requests, |flat| self.run(direction, flat, bytes)),
        }
    }

    /// After a driver: counts, and finishes in software what the driver gave up untouched.
    /// Says whether there was nothing of the kind.
    #[inline]
    pub(crate) fn settle(
        &self,
        driver: usize,
        direction: Direction,
        requests: &mut [Request<'_>],
    ) -> bool {
        let stats = &self.framework.shared.stats;
        let bytes: usize = requests.iter().map(Request::len).sum();
        stats.count(
            driver,
            self.algorithm_index,
            requests.len() as u64,
            bytes as u64,
        );
        if requests.iter().all(|r| r.status() == Status::Done) {
            if driver != BASE {
                self.framework.shared.entries[driver].breaker.succeed();
            }
            return true;
        }
        self.rescue(driver, direction, requests)
    }

    #[cold]
    fn rescue(&self, driver: usize, direction: Direction, requests: &mut [Request<'_>]) -> bool {
        let stats = &self.framework.shared.stats;
        let most = self.transform(driver).max_len();
        let (mut retries, mut too_long) = (0, 0);
        for request in requests.iter_mut() {
            // A driver that forgot a request is treated like one that gave it up.
            if matches!(request.status(), Status::Untouched | Status::Pending) {
                retries += 1;
                too_long += u64::from(request.len() > most);
                request.set_status(Status::Pending);
                let base = self.transform(BASE);
                match (request.is_scattered(), std::slice::from_mut(request)) {
                    (true, one) => scatter::flattened(one, |flat| base.run(direction, flat)),
                    (false, one) => base.run(direction, one),
                }
            }
        }
        let failed = requests
            .iter()
            .filter(|r| r.status() == Status::Failed)
            .count() as u64;
        let errors = requests
            .iter()
            .filter(|r| r.status() != Status::Done)
            .count() as u64;
        if errors > 0 {
            stats.count_errors(driver, self.algorithm_index, errors);
        }
        if retries > 0 {
            stats.count_retries(driver, self.algorithm_index, retries);
        }
        let given_up = (retries - too_long + failed).try_into().unwrap_or(u32::MAX);
        let breaker = &self.framework.shared.entries[driver].breaker;
        if driver != BASE && given_up > 0 && breaker.fail(given_up) {
            self.framework.set_eligible(driver, false);
        }
        given_up == 0
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.framework.shared.clock
    }

    /// Nanoseconds, by the framework's clock.
    pub(crate) fn now(&self) -> u64 {
        self.clock().now().as_nanos() as u64
    }

    pub(crate) fn check(&self, request: &Request<'_>) -> Status {
        self.rules.check(request)
    }

    #[inline]
    pub(crate) fn transform(&self, driver: usize) -> &dyn Transform {
        match self.transforms.get(driver) {
            Some(Some(transform)) => &**transform,
            // Never: a driver without a transform is not chosen, and the base has one.
            _ => &**self.transforms[BASE]
                .as_ref()
                .expect("the base serves every session"),
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
