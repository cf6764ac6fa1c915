//! The driver's transform: decides what to share, and shares it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use cipherlane::{Direction, Flight, Request, Transform};

use super::claim::End;
use super::crew::Crew;
use super::fault::Fault;
use super::pool::{Pool, REQUESTS, Turn};
use super::task::{Kernel, Task, WORTH_SHARING, cost};

/// Picoseconds a byte before any was measured: 10 GB/s.
const FIRST_PACE: u32 = 100;

/// A key whose work is shared with the workers.
pub(super) struct Shared {
    crew: Arc<Crew>,
    kernel: Kernel,
    /// Learned picoseconds a byte of one core, by direction.
    pace: [AtomicU32; 2],
}

impl Shared {
    pub(super) fn new(crew: Arc<Crew>, kernel: Kernel) -> Self {
        Shared {
            crew,
            kernel,
            pace: [AtomicU32::new(FIRST_PACE), AtomicU32::new(FIRST_PACE)],
        }
    }

    /// Estimated nanoseconds of one core.
    fn alone_ns(&self, direction: Direction, bytes: usize) -> u64 {
        let pace = self.pace[direction as usize].load(Ordering::Relaxed);
        bytes as u64 * u64::from(pace) / 1000
    }

    fn learn_pace(&self, direction: Direction, bytes: usize, started: Instant) {
        let pace = &self.pace[direction as usize];
        let seen = started.elapsed().as_nanos() as u64 * 1000 / bytes.max(1) as u64;
        let old = u64::from(pace.load(Ordering::Relaxed));
        let new = (old * 7 + seen.min(1_000_000)) / 8;
        pace.store(new as u32, Ordering::Relaxed);
    }

    /// More than the caller should do alone without asking.
    fn share(&self, pool: &Pool, direction: Direction, requests: &mut [Request<'_>], total: usize) {
        let mut task = Task::new(direction, &**self.kernel);
        let threads = pool.worker_count() + 1;
        // Whoever finds all asleep does almost all itself: a measure of one core.
        let started = (pool.beds.asleep() as usize >= pool.worker_count()).then(Instant::now);
        // SAFETY: we do not touch the requests until `run` is over, nor does anybody else.
        let count = unsafe { task.plan(requests, total, threads) };
        let alone_ns = || self.alone_ns(direction, total);
        // SAFETY: the requests and `self` outlive this call, and `run` waits for all pieces.
        let shared = count > 1 && unsafe { pool.run(&task, count, total, alone_ns) };
        match shared {
            true => task.conclude(),
            false => self.kernel.run(direction, requests),
        }
        if let Some(started) = started {
            self.learn_pace(direction, total, started);
        }
    }
}

impl Transform for Shared {
    #[inline]
    fn run(&self, direction: Direction, requests: &mut [Request<'_>]) {
        let total = cost(requests);
        if total >= WORTH_SHARING {
            let pool = self.crew.pool();
            if pool.worker_count() > 0 {
                return self.share(pool, direction, requests, total);
            }
        }
        self.kernel.run(direction, requests);
    }

    fn submit(&self, direction: Direction, mut flight: Flight) -> Result<(), Flight> {
        let total = cost(flight.requests());
        let pool = self.crew.pool();
        if total < WORTH_SHARING || pool.worker_count() == 0 {
            self.kernel.run(direction, flight.requests());
            flight.finish();
            return Ok(());
        }
        if !pool.has_room() {
            return Err(flight);
        }
        let mut task = Box::new(Task::new(direction, &**self.kernel));
        let threads = pool.worker_count() + 1;
        // SAFETY: the task takes the flight, which owns the requests, and a share of the
        // kernel; both are let go after it has concluded.
        let count = unsafe { task.plan(flight.requests(), total, threads) };
        task.load(flight, self.kernel.clone());
        let alone_ns = self.alone_ns(direction, total);
        pool.submit(task, count, total, alone_ns)
            .map_err(|task| task.unload())
    }

    fn room(&self) -> usize {
        match self.crew.present() {
            Some(pool) if !pool.has_room() => 0,
            _ => REQUESTS,
        }
    }

    fn assist(&self) -> bool {
        let mut turn = Turn::default();
        let pool = self.crew.present();
        pool.is_some_and(|pool| pool.work(&mut turn, End::First, &Fault::default()))
    }
}
