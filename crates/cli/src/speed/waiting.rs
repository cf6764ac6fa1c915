//! A caller that waits for every batch.

use std::time::{Duration, Instant};

use cipherlane_core::{Kind, Request, Session};
use cipherlane_measure::clock;
use cipherlane_measure::latency::Latency;
use cipherlane_measure::subject::{Failure, Subject};

use super::memory::{Regions, Shared, shared};
use super::work::Work;

/// One caller thread, with one driver's session.
pub(crate) struct Waiting<'s> {
    session: &'s Session,
    work: Work,
    regions: Shared<Regions>,
    /// Number of the next request, for its IV.
    serial: u64,
    pause: Duration,
    /// The time of calls between pauses.
    worked: Duration,
    /// Of the clock.
    read_cost: Duration,
}

impl<'s> Waiting<'s> {
    pub(crate) fn new(
        session: &'s Session,
        work: Work,
        cell: u64,
        thread: usize,
    ) -> Result<Self, Failure> {
        let regions = shared(cell, || Regions::new(work, session))?;
        Ok(Waiting {
            session,
            work,
            regions,
            // Callers share a key, and so must not share IVs.
            serial: (thread as u64) << 48,
            pause: Duration::ZERO,
            worked: Duration::ZERO,
            read_cost: Duration::ZERO,
        })
    }

    /// The same with pauses between the calls.
    pub(crate) fn pausing(mut self, pause: Duration) -> Self {
        self.pause = pause;
        if !pause.is_zero() {
            self.read_cost = clock::read_cost();
        }
        self
    }

    /// One call after a pause. Returns when it ended, and how long it took.
    fn call(&mut self) -> Result<(Instant, Duration), Failure> {
        let (pause, read_cost) = (self.pause, self.read_cost);
        let (end, took) = self.with_requests(1, |session, work, requests, serial| {
            let start = busy_elsewhere(pause);
            process(session, work, requests, serial)?;
            let end = Instant::now();
            Ok::<_, Failure>((end, (end - start).saturating_sub(read_cost)))
        })?;
        self.worked += took;
        Ok((end, took))
    }

    /// Lets `run` at the requests, which are made anew but use the same memory, and at the
    /// number of the next one, for that number of operations.
    fn with_requests<R>(
        &mut self,
        operations: u64,
        run: impl FnOnce(&Session, Work, &mut [Request<'_>], &mut u64) -> R,
    ) -> R {
        let (session, work) = (self.session, self.work);
        let regions = &mut *self.regions.borrow_mut();
        regions.move_on(operations);
        let (data, beside, tags, aad) = regions.parts();
        let mut data = data.chunks_exact_mut(work.size);
        let mut beside = beside.chunks_exact_mut(work.size);
        // `chunks_exact` takes no length of 0, and there is no tag then to be cut.
        let tag_len = session.tag_len();
        let mut tags = tags.chunks_exact_mut(tag_len.max(1));
        let mut next = |index: usize| {
            let input = data.next().unwrap_or_default();
            let request = match (work.algorithm.kind, beside.next()) {
                (Kind::Mac, _) => Request::mac(input),
                (_, Some(output)) => Request::new(input, output),
                (_, None) => Request::in_place(input),
            };
            request
                .iv(&work.iv(index as u64)[..work.algorithm.iv_len])
                .aad(aad)
                .tag(tags.next().unwrap_or_default())
        };
        if work.batch == 1 {
            run(session, work, &mut [next(0)], &mut self.serial)
        } else {
            let mut requests: Vec<Request<'_>> = (0..work.batch).map(next).collect();
            run(session, work, &mut requests, &mut self.serial)
        }
    }
}

/// Lets time pass as a caller does that has something else to do: the thread keeps its processor,
/// and helpers fall asleep. Returns when that ended.
fn busy_elsewhere(time: Duration) -> Instant {
    let begin = Instant::now();
    loop {
        let now = Instant::now();
        if now - begin >= time {
            return now;
        }
        std::hint::spin_loop();
    }
}

/// One operation.
#[inline]
fn process(
    session: &Session,
    work: Work,
    requests: &mut [Request<'_>],
    serial: &mut u64,
) -> Result<(), Failure> {
    if work.has_fresh_ivs() {
        for request in requests.iter_mut() {
            request.set_iv(&work.iv(*serial)[..work.algorithm.iv_len]);
            *serial += 1;
        }
    }
    Ok(session.process(work.direction, requests)?)
}

impl Subject for Waiting<'_> {
    fn run(&mut self, operations: u64) -> Result<(), Failure> {
        if !self.pause.is_zero() {
            return (0..operations).try_for_each(|_| self.call().map(|_| ()));
        }
        self.with_requests(operations, |session, work, requests, serial| {
            (0..operations).try_for_each(|_| process(session, work, requests, serial))
        })
    }

    fn sample(&mut self, read_cost: Duration, latency: &mut Latency) -> Result<Instant, Failure> {
        if !self.pause.is_zero() {
            let (end, took) = self.call()?;
            latency.record(took);
            return Ok(end);
        }
        self.with_requests(1, |session, work, requests, serial| {
            let start = Instant::now();
            process(session, work, requests, serial)?;
            let end = Instant::now();
            latency.record((end - start).saturating_sub(read_cost));
            Ok(end)
        })
    }

    fn worked(&mut self) -> Option<Duration> {
        (!self.pause.is_zero()).then(|| std::mem::take(&mut self.worked))
    }
}
