//! The driver's transform: decides what to share, and shares it.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use cipherlane_core::{Direction, Flight, Request, Transform};

use super::claim::End;
use super::crew::Crew;
use super::fault::Fault;
use super::pool::{Pool, REQUESTS, Turn};
use super::task::{Kernel, Task, cost};

/// Picoseconds per byte before any was measured: 10 GB/s.
const FIRST_PACE: u32 = 100;
/// Work below this many bytes, requests counted as [`cost`] does, is never shared.
const MIN_PIECE: usize = 4 << 10;
/// Nanoseconds that a piece should take: less is not worth bringing its data to another
/// core. On an EPYC of 2024, whose one core does 44 GB/s of AES-CTR, 1000 lost up to a
/// quarter on requests of 64 to 128 KiB in the caller's cache, and 2500 loses nothing.
pub(super) const PIECE_NS: u64 = 2500;
/// Nanoseconds that the base needs, with what its caller does in between, for a batch of a caller
/// that does not wait, from which on `auto` may hand such batches over. On a Zen 4, whose one core
/// does 22 GB/s of AES-CTR, requests of 32 KiB take 2700, and half as long here.
pub(super) const LEAST_SUBMITTED_NS: u64 = 2000;
/// Nanoseconds of one core from which on the work of a caller that waits is shared.
pub(super) const LEAST_NS: u64 = 2 * PIECE_NS;
/// One in this number of calls of a thread is timed, to learn the pace of one core...
const SAMPLE_EVERY: u32 = 64;
/// ...unless it would take longer than this many nanoseconds alone.
const LONGEST_SAMPLE: u64 = 20_000;

thread_local! {
    /// Calls until one is timed.
    static UNTIL_SAMPLE: Cell<u32> = const { Cell::new(0) };
}

/// A key whose work is shared with the workers.
pub(super) struct Shared {
    crew: Arc<Crew>,
    kernel: Kernel,
    /// Learned picoseconds per byte of one core, by direction.
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

    #[inline]
    fn pace(&self, direction: Direction) -> &AtomicU32 {
        &self.pace[direction as usize]
    }

    /// Estimated nanoseconds of one core.
    #[inline]
    fn alone_ns(&self, direction: Direction, bytes: usize) -> u64 {
        let pace = self.pace(direction).load(Ordering::Relaxed);
        (bytes as u64).saturating_mul(pace.into()) / 1000
    }

    /// Does work at once, with a clock beside it.
    #[cold]
    fn run_timed(&self, direction: Direction, requests: &mut [Request<'_>], total: usize) {
        let started = Instant::now();
        self.kernel.run(direction, requests);
        let seen = started.elapsed().as_nanos() as u64 * 1000 / total.max(1) as u64;
        let pace = self.pace(direction);
        let old = u64::from(pace.load(Ordering::Relaxed));
        // Faster is believed sooner: slower may be an interruption.
        let new = match seen < old {
            true => (old + seen) / 2,
            false => old + 1 + (seen - old).min(old) / 8,
        };
        pace.store(new.clamp(1, 1_000_000) as u32, Ordering::Relaxed);
    }
}

/// The bytes that a piece should have at least, of work that takes `alone_ns` on one core.
fn least(total: usize, alone_ns: u64) -> usize {
    let pace = (alone_ns.saturating_mul(1000) / total.max(1) as u64).max(1);
    ((PIECE_NS * 1000 / pace) as usize).max(MIN_PIECE)
}

/// Does the work of a caller that waits, with the workers where they are any help. It costs
/// `total`, and about `alone_ns` on one core.
pub(super) fn share(
    pool: &Pool,
    kernel: &dyn Transform,
    direction: Direction,
    requests: &mut [Request<'_>],
    (total, alone_ns): (usize, u64),
) {
    let workers = pool.worker_count();
    if workers == 0 || pool.wakes.works_alone(workers, alone_ns) {
        return kernel.run(direction, requests);
    }
    // SAFETY: only the lifetime changes; the task is gone when this returns or unwinds, and
    // nobody else keeps the kernel.
    let kernel: &(dyn Transform + 'static) = unsafe { std::mem::transmute(kernel) };
    let mut task = Task::new(direction, kernel);
    let least = least(total, alone_ns);
    // SAFETY: we do not touch the requests until `run` is over, nor does anybody else.
    let count = unsafe { task.plan(requests, total, workers + 1, least) };
    // SAFETY: requests and kernel outlive this call, and `run` waits for all pieces.
    let shared = count > 1 && unsafe { pool.run(&task, count, total, alone_ns) };
    match shared {
        true => task.conclude(),
        false => kernel.run(direction, requests),
    }
}

/// Whether this thread should time the call.
#[inline]
fn sample() -> bool {
    let left = UNTIL_SAMPLE.get();
    UNTIL_SAMPLE.set(left.checked_sub(1).unwrap_or(SAMPLE_EVERY));
    left == 0
}

impl Transform for Shared {
    #[inline]
    fn run(&self, direction: Direction, requests: &mut [Request<'_>]) {
        let total = cost(requests);
        if total >= MIN_PIECE {
            let alone_ns = self.alone_ns(direction, total);
            if alone_ns < LONGEST_SAMPLE && sample() {
                return self.run_timed(direction, requests, total);
            }
            if alone_ns >= LEAST_NS {
                let (pool, cost) = (self.crew.pool(), (total, alone_ns));
                return share(pool, &**self.kernel, direction, requests, cost);
            }
        }
        self.kernel.run(direction, requests);
    }

    fn submit(&self, direction: Direction, mut flight: Flight) -> Result<(), Flight> {
        let total = flight.with_requests(|requests| cost(requests));
        let alone_ns = self.alone_ns(direction, total);
        let pool = self.crew.pool();
        if alone_ns < PIECE_NS || pool.worker_count() == 0 {
            flight.with_requests(|requests| self.kernel.run(direction, requests));
            flight.finish();
            return Ok(());
        }
        if !pool.has_room() {
            return Err(flight);
        }
        // Made where it stays: it is some kilobytes.
        let mut task = Box::write(Box::new_uninit(), Task::new(direction, &**self.kernel));
        let (threads, least) = (pool.worker_count() + 1, least(total, alone_ns));
        // SAFETY: the task takes the flight, which owns the requests and does not touch them
        // before it lands, and a share of the kernel; both are let go after the task has
        // concluded.
        let plan =
            |requests: &mut [Request<'_>]| unsafe { task.plan(requests, total, threads, least) };
        let count = flight.with_requests(plan);
        task.load(flight, self.kernel.clone());
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
        let pool = self.crew.awaited();
        pool.is_some_and(|pool| pool.work(&mut turn, End::First, &Fault::default()))
    }
}
