//! A caller that does not wait: it keeps several batches under way.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use cipherlane_core::{Batch, Kind, OwnedRequest, Payload, Session, Status, Ticket};
use cipherlane_measure::latency::Latency;
use cipherlane_measure::subject::{Failure, Subject};

use super::memory::{Shared, seal, shared};
use super::work::Work;

/// One in this number of small batches is timed, so that reading the clock costs little.
const TIMED_EVERY: u64 = 16;
/// Batches of this number of bytes or more are all timed.
const LARGE: usize = 64 << 10;
/// Batches between two moments with nothing under way are at least the depth times this...
const FULL: usize = 32;
/// ...but no more than this many bytes, since blocks are not shorter.
const LONGEST_RUN: usize = 64 << 20;
/// A driver that takes nothing for this time is given up.
const PATIENCE: Duration = Duration::from_secs(10);

/// One caller thread, with one driver's session.
pub(crate) struct Submitting<'s> {
    session: &'s Session,
    work: Work,
    depth: usize,
    stock: Shared<Stock>,
    under_way: VecDeque<UnderWay>,
    /// Number of the next request, for its IV.
    serial: u64,
    /// Batches until one is timed.
    until_timed: u64,
    /// From submission until the caller saw the results.
    latencies: Vec<Duration>,
}

struct UnderWay {
    ticket: Ticket,
    since: Option<Instant>,
}

/// Batches that are not under way.
#[derive(Debug)]
struct Stock {
    whole: Vec<Batch>,
    /// Requests of batches that a driver took in parts.
    parts: Vec<OwnedRequest>,
}

impl Stock {
    fn new(work: Work, depth: usize, session: &Session) -> Result<Stock, Failure> {
        let batch = |_| {
            let mut batch = Batch::new(work.direction);
            for index in 0..work.batch {
                batch.push(request(work, index as u64, session)?);
            }
            Ok(batch)
        };
        Ok(Stock {
            whole: (0..depth).map(batch).collect::<Result<_, Failure>>()?,
            parts: Vec::new(),
        })
    }

    fn take(&mut self, work: Work) -> Option<Batch> {
        if let Some(batch) = self.whole.pop() {
            return Some(batch);
        }
        let from = self.parts.len().checked_sub(work.batch)?;
        let mut batch = Batch::new(work.direction);
        self.parts.drain(from..).for_each(|part| batch.push(part));
        Some(batch)
    }

    fn put(&mut self, work: Work, batch: Batch) {
        match batch.len() == work.batch {
            true => self.whole.push(batch),
            false => self.parts.extend(batch.into_requests()),
        }
    }
}

/// A request with true tags, where decryption needs them.
fn request(work: Work, serial: u64, session: &Session) -> Result<OwnedRequest, Failure> {
    let mut data = vec![0x5a; work.size];
    let mut tag = vec![0; session.tag_len()];
    let aad = vec![0xa5; work.aad_len()];
    if work.needs_tags() {
        seal(work, session, serial, &mut data, &aad, &mut tag)?;
    }
    let payload = match work.algorithm.kind {
        Kind::Mac => Payload::Mac(data),
        _ if work.keeps_ciphertext() => Payload::Copy {
            output: vec![0; work.size],
            input: data,
        },
        _ => Payload::InPlace(data),
    };
    let iv = work.iv(serial)[..work.algorithm.iv_len].to_vec();
    Ok(OwnedRequest::new(payload).iv(iv).aad(aad).tag(tag))
}

impl<'s> Submitting<'s> {
    pub(crate) fn new(
        session: &'s Session,
        work: Work,
        depth: usize,
        cell: u64,
        thread: usize,
    ) -> Result<Self, Failure> {
        Ok(Submitting {
            session,
            work,
            depth,
            stock: shared(cell, || Stock::new(work, depth, session))?,
            under_way: VecDeque::with_capacity(depth),
            // Callers share a key, and so must not share IVs.
            serial: (thread as u64) << 48,
            until_timed: 0,
            latencies: Vec::new(),
        })
    }

    /// Submits a batch, as soon as fewer than `depth` are under way.
    fn submit(&mut self, timed: bool) -> Result<(), Failure> {
        let work = self.work;
        let mut batch = loop {
            if self.under_way.len() < self.depth
                && let Some(batch) = self.stock.borrow_mut().take(work)
            {
                break batch;
            }
            self.land()?;
        };
        if work.has_fresh_ivs() {
            for request in batch.requests_mut() {
                request
                    .iv
                    .copy_from_slice(&work.iv(self.serial)[..work.algorithm.iv_len]);
                self.serial += 1;
            }
        }
        let since = timed.then(Instant::now);
        let mut refused = None;
        while !batch.is_empty() {
            let ticket = self.session.submit(&mut batch)?;
            if ticket.taken() > 0 {
                self.under_way.push_back(UnderWay { ticket, since });
                refused = None;
            } else if !self.under_way.is_empty() {
                self.land()?;
            } else if refused.get_or_insert_with(Instant::now).elapsed() < PATIENCE {
                // Other callers fill the driver.
                std::thread::yield_now();
            } else {
                return Err("the driver takes no request, though none is under way".into());
            }
        }
        Ok(())
    }

    /// Waits for the oldest batch.
    fn land(&mut self) -> Result<(), Failure> {
        let Some(UnderWay { ticket, since }) = self.under_way.pop_front() else {
            return Err("a batch was lost".into());
        };
        let batch = ticket.wait();
        self.latencies.extend(since.map(|since| since.elapsed()));
        let failed = batch.requests().iter().find(|r| r.status() != Status::Done);
        if let Some(error) = failed.and_then(|request| self.session.batch_error(request)) {
            return Err(error.into());
        }
        self.stock.borrow_mut().put(self.work, batch);
        Ok(())
    }

    fn drain(&mut self) -> Result<(), Failure> {
        while !self.under_way.is_empty() {
            self.land()?;
        }
        Ok(())
    }
}

impl Subject for Submitting<'_> {
    fn run(&mut self, operations: u64) -> Result<(), Failure> {
        let every = match self.work.size * self.work.batch >= LARGE {
            true => 1,
            false => TIMED_EVERY,
        };
        for _ in 0..operations {
            let timed = self.until_timed == 0;
            self.until_timed = if timed { every } else { self.until_timed } - 1;
            self.submit(timed)?;
        }
        self.drain()
    }

    /// Hands over the latencies of the run before. The operation itself has nothing beside it,
    /// and counts only where none was timed.
    fn sample(&mut self, read_cost: Duration, latency: &mut Latency) -> Result<Instant, Failure> {
        self.submit(self.latencies.is_empty())?;
        self.drain()?;
        let end = Instant::now();
        for seen in self.latencies.drain(..) {
            latency.record(seen.saturating_sub(read_cost));
        }
        Ok(end)
    }

    fn least_run(&self) -> u64 {
        let bytes = self.work.size * self.work.batch;
        (FULL * self.depth).min(LONGEST_RUN / bytes).max(self.depth) as u64
    }
}
