//! How a batch is served: the run with a clock beside it where that is worth it, what is learned
//! from it, and what software finishes.

use super::armed::Armed;
use super::flight::{Purpose, Route};
use super::sampling::{is_sample, learning_cost};
use super::{Inner, Landed};
use crate::batch::{Batch, OwnedRequest};
use crate::dispatch::model::Cost;
use crate::dispatch::queue::Found;
use crate::dispatch::submit_depth::SubmitDepth;
use crate::dispatch::{BASE, Mode, Shape, StandsFor};
use crate::request::{Request, Status};
use crate::{Clock, Direction, Error, Goal, Transform, scatter};

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

    /// A batch whose caller does not wait begins now, by the clock.
    pub(super) fn begin(&self, submit_depth: &SubmitDepth) -> u64 {
        let now = self.now();
        submit_depth.submit(now);
        now
    }

    /// Runs a batch whose caller does not wait on the caller's core. Without the time at which it
    /// began nothing is learned from it.
    pub(super) fn run_submitted(
        &self,
        (driver, purpose): (usize, Purpose),
        direction: Direction,
        owned: Vec<OwnedRequest>,
        (started, submit_depth): (Option<u64>, &SubmitDepth),
    ) -> Batch {
        let mut armed = Armed::new(self, owned);
        if armed.len() > 0 {
            self.transform(driver).run(direction, armed.requests());
            match started {
                Some(started) => {
                    let landed = Landed {
                        route: &Route {
                            driver,
                            purpose,
                            slept: false,
                            queued: None,
                        },
                        direction,
                        started,
                        depth: 1,
                        submit_depth,
                        core: 0,
                        found: Found::Landed,
                    };
                    self.landed(landed, armed.requests());
                }
                None => {
                    self.settle(driver, direction, armed.requests());
                    submit_depth.skip();
                }
            }
        }
        Batch {
            direction,
            requests: armed.disarm(),
        }
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
