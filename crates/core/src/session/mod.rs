//! A key in use: [`Session`] checks requests, picks the driver, runs them, and finishes in
//! software what a driver gave up.

mod builder;
mod refusal;

use std::cell::Cell as LocalCell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::algorithm::Rules;
use crate::batch::{Batch, OwnedRequest, take_front};
use crate::dispatch::model::Cost;
use crate::dispatch::{BASE, Dispatch, Mode, Shape};
use crate::flight::{Flight, ORPHAN_PATIENCE, Ticket};
use crate::request::{Request, Status};
use crate::{Algorithm, Clock, Direction, Error, Framework, Goal, Transform, scatter};

pub use self::builder::SessionBuilder;
use self::refusal::Lengths;

/// Work between two timed batches of a thread: a request counts 1 and a KiB counts 1.
const SAMPLE_EVERY: i64 = 2048;

/// An algorithm and a key, used by any number of threads at once without locks.
///
/// Closing or dropping it waits for work under way; the key is then wiped in every driver.
#[derive(Debug)]
pub struct Session {
    inner: Arc<Inner>,
}

/// What flights under way share with the session.
pub(crate) struct Inner {
    algorithm: &'static Algorithm,
    algorithm_index: usize,
    rules: Rules,
    tag_len: usize,
    goal: Goal,
    /// The only driver there is a choice of, if so.
    alone: Option<usize>,
    /// Whether the user forced it.
    forced: bool,
    /// By driver; `None` where the driver does not serve this session.
    transforms: Vec<Option<Box<dyn Transform>>>,
    dispatch: Arc<Dispatch>,
    framework: Framework,
    /// The process that opened it.
    process: u32,
    /// Flights that have not landed.
    under_way: AtomicU32,
    idle: (Mutex<()>, Condvar),
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("algorithm", &self.algorithm.name)
            .field("goal", &self.goal)
            .finish_non_exhaustive()
    }
}

thread_local! {
    /// Work left until this thread times a batch.
    static UNTIL_SAMPLE: LocalCell<i64> = const { LocalCell::new(0) };
}

impl Session {
    /// The algorithm.
    pub fn algorithm(&self) -> &'static Algorithm {
        self.inner.algorithm
    }

    /// Bytes of the tag of each request.
    pub fn tag_len(&self) -> usize {
        self.inner.tag_len
    }

    /// Runs requests and waits for all of them. Each has its own
    /// [status](Request::status) afterwards; the error is that of the first that failed.
    /// Requests that break a rule are not run; the others are.
    #[inline]
    pub fn process(&self, direction: Direction, requests: &mut [Request<'_>]) -> Result<(), Error> {
        let inner = &*self.inner;
        let mut bytes = 0;
        let mut plain = true;
        for request in requests.iter_mut() {
            let status = inner.rules.check(request);
            request.set_status(status);
            plain &= status == Status::Pending && !request.is_scattered();
            bytes = request.len().saturating_add(bytes);
        }
        if plain && !requests.is_empty() {
            inner.run(direction, requests, bytes);
        } else {
            inner.run_mixed(direction, requests)?;
        }
        match requests.iter().all(|r| r.status() == Status::Done) {
            true => Ok(()),
            false => Err(inner.first_error(requests)),
        }
    }

    /// Hands a batch to a driver and returns at once, as far as the driver allows it.
    ///
    /// The ticket says how many requests were [taken](Ticket::taken), from the front; the
    /// rest stays in `batch`, for another try when work under way has landed.
    pub fn submit(&self, batch: &mut Batch) -> Result<Ticket, Error> {
        let inner = &self.inner;
        let (direction, requests) = (batch.direction, batch.requests.len());
        let bytes = batch.requests.iter().map(OwnedRequest::len).sum();
        let shape = Shape {
            mode: Mode::Submit,
            direction,
            requests,
            bytes,
        };
        let chosen = inner.choose(&shape);
        let explored = match sample(&shape) {
            Some(_) if inner.alone.is_none() => inner.dispatch.explore(&shape, chosen),
            _ => None,
        };
        let explored = explored.filter(|&other| inner.transforms[other].is_some());
        let driver = explored.unwrap_or(chosen);
        let way = (driver, explored.is_some());
        let transform = inner.transform(driver);
        let owned = take_front(batch, transform.room())?;
        let (flight, ticket) = Flight::new(inner, way, direction, owned);
        if let Err(flight) = transform.submit(direction, flight) {
            let returned = flight.turn_back();
            batch.requests.splice(0..0, returned);
            let (empty, ticket) = Flight::new(inner, way, direction, Vec::new());
            empty.finish();
            return Ok(ticket);
        }
        Ok(ticket)
    }

    /// Why a request was refused or failed, in words; `None` if it was not.
    pub fn error(&self, request: &Request<'_>) -> Option<Error> {
        self.inner.error(request.status(), &Lengths::of(request))
    }

    /// The same for a request of a landed [`Batch`].
    pub fn batch_error(&self, request: &OwnedRequest) -> Option<Error> {
        self.inner
            .error(request.status(), &Lengths::of_owned(request))
    }

    /// Waits for work under way and wipes the key. Dropping does the same.
    pub fn close(self) {}
}

impl Drop for Session {
    fn drop(&mut self) {
        let (lock, bell) = &self.inner.idle;
        let mut guard = lock.lock().unwrap_or_else(PoisonError::into_inner);
        let started = Instant::now();
        while self.inner.under_way.load(Ordering::Acquire) > 0 {
            // In a forked child a flight may be with a thread that is not there.
            let orphaned = self.inner.process != std::process::id();
            if orphaned && started.elapsed() > ORPHAN_PATIENCE {
                break;
            }
            let helped = self.inner.transforms.iter().flatten().any(|t| t.assist());
            if !helped {
                guard = bell
                    .wait_timeout(guard, Duration::from_millis(1))
                    .unwrap_or_else(PoisonError::into_inner)
                    .0;
            }
        }
        drop(guard);
        // Whoever has just landed a flight or waited for one lets go of the session in a
        // moment; then this is the last owner, and the keys are wiped before it returns. Not
        // for ever: in a forked child an owner may be a thread that is not there.
        let patience = Instant::now() + Duration::from_secs(1);
        while Arc::strong_count(&self.inner) > 1 && Instant::now() < patience {
            std::thread::yield_now();
        }
    }
}

/// Whether this thread should time the batch, and how many such batches it stands for.
#[inline]
fn sample(shape: &Shape) -> Option<f32> {
    let work = (shape.requests + shape.bytes / 1024) as i64;
    let left = UNTIL_SAMPLE.get() - work;
    UNTIL_SAMPLE.set(left);
    (left < 0).then(|| {
        UNTIL_SAMPLE.set(SAMPLE_EVERY);
        (SAMPLE_EVERY as f32 / work.max(1) as f32).max(1.0)
    })
}

impl Inner {
    /// The driver for a batch: one load where it is the base.
    #[inline]
    fn choose(&self, shape: &Shape) -> usize {
        if let Some(driver) = self.alone {
            return driver;
        }
        if self.dispatch.is_small(self.goal, shape) {
            return BASE;
        }
        let cell = self.dispatch.cell(self.goal, shape);
        let best = usize::from(cell.best);
        if best == BASE {
            BASE
        } else {
            self.choose_loaded(shape, cell.best, cell.second, cell.gain)
        }
    }

    /// The chosen driver is not this core: what is queued there counts.
    fn choose_loaded(&self, shape: &Shape, best: u8, second: u8, gain: u32) -> usize {
        let (best, second) = (usize::from(best), usize::from(second));
        if self.transforms[best].is_none() {
            return BASE;
        }
        let load = self.framework.shared.entries[best].driver.load();
        let waits = match shape.mode {
            Mode::Wait => {
                let queue = match load.queued_bytes {
                    0 => 0,
                    bytes => {
                        let (cost, _) = self.dispatch.estimate(best, shape);
                        let pace = cost.map_or(0.0, |c| c.period / shape.bytes.max(1) as f32);
                        (bytes as f32 * pace) as u32
                    }
                };
                queue.saturating_add(load.delay_ns) > gain
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
    fn run(&self, direction: Direction, requests: &mut [Request<'_>], bytes: usize) {
        let shape = Shape {
            mode: Mode::Wait,
            direction,
            requests: requests.len(),
            bytes,
        };
        let driver = self.choose(&shape);
        match sample(&shape) {
            None => self.run_on(driver, direction, requests),
            Some(share) => self.run_timed(driver, &shape, share, requests),
        }
    }

    #[inline]
    fn run_on(&self, driver: usize, direction: Direction, requests: &mut [Request<'_>]) {
        self.transform(driver).run(direction, requests);
        self.settle(driver, direction, requests);
    }

    /// Runs a batch with a clock beside it, on another driver now and then.
    #[cold]
    fn run_timed(&self, driver: usize, shape: &Shape, share: f32, requests: &mut [Request<'_>]) {
        let explored = match self.alone {
            Some(_) => None,
            None => self.dispatch.explore(shape, driver),
        };
        let explored = explored.filter(|&other| self.transforms[other].is_some());
        let driver = explored.unwrap_or(driver);
        let clock = self.clock();
        let started = clock.now();
        self.run_on(driver, shape.direction, requests);
        let elapsed = clock.now().saturating_sub(started);
        self.framework
            .shared
            .stats
            .time(driver, self.algorithm_index, elapsed.as_nanos() as u64);
        let cost = Cost {
            cpu: 0.0,
            ..Cost::inline(elapsed.as_nanos() as f32)
        };
        self.dispatch
            .learn(driver, shape, cost, share, explored.is_some());
        self.framework.revive();
    }

    /// Requests of which some break a rule, or are scattered.
    #[cold]
    fn run_mixed(&self, direction: Direction, requests: &mut [Request<'_>]) -> Result<(), Error> {
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

    /// Scatter lists, as they are where the driver takes them. Nothing is learned from them.
    fn run_scattered(&self, direction: Direction, requests: &mut [Request<'_>], bytes: usize) {
        let shape = Shape {
            mode: Mode::Wait,
            direction,
            requests: requests.len(),
            bytes,
        };
        let driver = self.choose(&shape);
        match self.transform(driver).scatters() {
            true => self.run_on(driver, direction, requests),
            false => scatter::flattened(requests, |flat| self.run(direction, flat, bytes)),
        }
    }

    /// After a driver: counts, and finishes in software what the driver gave up untouched.
    #[inline]
    pub(crate) fn settle(&self, driver: usize, direction: Direction, requests: &mut [Request<'_>]) {
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
            return;
        }
        self.rescue(driver, direction, requests);
    }

    #[cold]
    fn rescue(&self, driver: usize, direction: Direction, requests: &mut [Request<'_>]) {
        let stats = &self.framework.shared.stats;
        let most = self.transform(driver).most();
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
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.framework.shared.clock
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

    /// A flight begins; returns how many are under way with it.
    pub(crate) fn take_off(&self) -> u32 {
        self.under_way.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// A flight has landed, or was turned back.
    pub(crate) fn touch_down(&self) {
        // Release: whoever closes the session sees that all use of its memory is over.
        if self.under_way.fetch_sub(1, Ordering::Release) == 1 {
            self.idle.1.notify_all();
        }
    }

    /// Learns from a flight that took `elapsed`, with `depth` under way when it started.
    pub(crate) fn landed(
        &self,
        (driver, explored): (usize, bool),
        direction: Direction,
        requests: &[Request<'_>],
        elapsed: Duration,
        depth: u32,
    ) {
        if requests.is_empty() {
            return;
        }
        let bytes = requests.iter().map(Request::len).sum();
        let shape = Shape {
            mode: Mode::Submit,
            direction,
            requests: requests.len(),
            bytes,
        };
        let nanoseconds = elapsed.as_nanos() as f32;
        self.framework
            .shared
            .stats
            .time(driver, self.algorithm_index, nanoseconds as u64);
        if self.alone.is_none() || self.forced {
            // By Little's law, results come every elapsed / depth.
            let period = nanoseconds / depth as f32;
            let cost = Cost {
                latency: nanoseconds,
                period,
                cpu: 0.0,
            };
            self.dispatch.learn(driver, &shape, cost, 1.0, explored);
        }
        self.framework.revive();
    }
}
