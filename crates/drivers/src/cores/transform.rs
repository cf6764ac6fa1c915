//! The driver's transform: decides what to share, and shares it.

use std::cell::Cell;
use std::sync::Arc;

use cipherlane_core::{Direction, Flight, Request, Transform};

use super::course::Turn;
use super::crew::Crew;
use super::cutting::{PER_REQUEST, cost, is_whole};
use super::fault::Fault;
use super::lines::fetch;
use super::pace::{Pace, Watch, sample};
use super::pool::{Pool, REQUESTS};
use super::task::{Kernel, Task};

/// Work below this many bytes, requests counted as [`cost`] does, is never shared.
const MIN_PIECE: usize = 4 << 10;
/// Nanoseconds that a piece should take: less is not worth bringing its data to another
/// core. On an EPYC of 2024, whose one core does 44 GB/s of AES-CTR, 1000 lost up to a
/// quarter on requests of 64 to 128 KiB in the caller's cache, and 2500 lost nothing. On a Zen 4 two
/// pieces of 2500 have 1.4 times the bytes per second of one core. It is a little less than these, so that
/// work of twice 2500 makes two pieces also where it is believed to be shorter.
const PIECE_NS: u64 = 2200;
/// Nanoseconds of one core from which on batches of callers that do not wait are handed over. What
/// pays depends on how far apart the cores are: AES-CTR of 64 KiB, 1650 on a Zen 5, has 1.33 times as
/// many bytes per second by a worker 100 ns away; 32 KiB, 1350 on a Zen 4, half as many.
const LEAST_SUBMITTED_NS: u64 = 1200;
/// Nanoseconds that the base needs where `auto` may hand such batches over: less, since `auto` learns
/// what pays, while the pace of one core is not measured there. AES-GCM of 16 KiB, 1150 on a Zen 4, has
/// 1.16 times as many bytes per second by a worker.
pub(super) const LEAST_TRIED_NS: u64 = 1100;
/// Nanoseconds of one core from which on the work of a caller that waits is shared.
pub(super) const LEAST_NS: u64 = 5000;
/// The same while a worker is awake. `auto` and this driver know by measurements of their own how long
/// work takes: with one limit for both, a worker that `auto` has called might get nothing.
const LEAST_AWAKE_NS: u64 = 2 * PIECE_NS;
/// A call is timed with the caller alone if it takes that no longer than this many nanoseconds.
/// Of a longer one the caller's own part is timed, while the workers do theirs: all of them
/// would wait, and others that share caches and memory with the caller matter less there.
const LONGEST_SAMPLE: u64 = 20_000;

thread_local! {
    /// The way of a thread that helps while it waits for what it has submitted.
    static ASSISTING: Cell<Turn> = Cell::default();
}

/// A key whose work is shared with the workers.
pub(super) struct Shared {
    crew: Arc<Crew>,
    kernel: Kernel,
    /// Of one core, by direction.
    paces: [Pace; 2],
}

impl Shared {
    pub(super) fn new(crew: Arc<Crew>, kernel: Kernel) -> Self {
        Shared {
            crew,
            kernel,
            paces: Default::default(),
        }
    }

    #[inline]
    fn pace(&self, direction: Direction) -> &Pace {
        &self.paces[direction as usize]
    }

    /// Does work at once, with a clock beside it.
    #[cold]
    fn run_timed(&self, direction: Direction, requests: &mut [Request<'_>], total: usize) {
        let mut watch = Watch::start();
        alone(&**self.kernel, direction, requests, total, &mut watch);
        self.pace(direction).learn(watch);
    }
}

/// The bytes that a piece should have at least, of work that takes `alone_ns` on one core.
fn least(total: usize, alone_ns: u64) -> usize {
    let bytes = PIECE_NS.saturating_mul(total as u64) / alone_ns.max(1);
    (bytes as usize).max(MIN_PIECE)
}

/// Does the work of a caller that waits, with the workers where they are any help. It costs
/// `total`, and about `alone_ns` on one core. `watch` is told of the caller's own part.
pub(super) fn share(
    pool: &Pool,
    kernel: &dyn Transform,
    direction: Direction,
    requests: &mut [Request<'_>],
    (total, alone_ns): (usize, u64),
    watch: &mut Watch,
) {
    let workers = pool.worker_count();
    // Nobody is called for what cannot be shared.
    if workers == 0
        || is_whole(kernel, direction, requests.len())
        || pool.wakes.works_alone(workers, alone_ns)
    {
        return alone(kernel, direction, requests, total, watch);
    }
    // SAFETY: only the lifetime changes; the task is gone when this returns or unwinds, and
    // nobody else keeps the kernel.
    let kernel: &(dyn Transform + 'static) = unsafe { std::mem::transmute(kernel) };
    let mut task = Task::new(direction, kernel);
    let least = least(total, alone_ns);
    // SAFETY: we do not touch the requests until `run` is over, nor does anybody else.
    let count = unsafe { task.plan(requests, total, workers + 1, least) };
    // SAFETY: requests and kernel outlive this call, and `run` waits for all pieces.
    let shared = count > 1 && unsafe { pool.run(&task, count, total, alone_ns, watch) };
    match shared {
        true => {
            fetch(requests);
            task.conclude()
        }
        false => alone(kernel, direction, requests, total, watch),
    }
}

/// Does work that costs `total` without the workers.
#[inline]
fn alone(
    kernel: &dyn Transform,
    direction: Direction,
    requests: &mut [Request<'_>],
    total: usize,
    watch: &mut Watch,
) {
    kernel.run(direction, requests);
    watch.stop();
    watch.bytes = total;
}

impl Transform for Shared {
    #[inline]
    fn run(&self, direction: Direction, requests: &mut [Request<'_>]) {
        let total = cost(requests);
        if total >= MIN_PIECE {
            let pace = self.pace(direction);
            let alone_ns = pace.alone_ns(total);
            let timed = sample();
            if timed && alone_ns < LONGEST_SAMPLE {
                return self.run_timed(direction, requests, total);
            }
            if alone_ns >= LEAST_NS || alone_ns >= LEAST_AWAKE_NS && self.crew.is_awake() {
                let (pool, cost) = (self.crew.pool(), (total, alone_ns));
                let mut watch = match timed {
                    true => Watch::start(),
                    false => Watch::default(),
                };
                share(pool, &**self.kernel, direction, requests, cost, &mut watch);
                if watch.has_stopped() {
                    pace.learn(watch);
                }
                return;
            }
        }
        self.kernel.run(direction, requests);
    }

    fn submit(&self, direction: Direction, mut flight: Flight) -> Result<(), Flight> {
        let total = flight.with_requests(|requests| cost(requests));
        let alone_ns = self.pace(direction).alone_ns(total);
        let pool = self.crew.pool();
        if alone_ns < LEAST_SUBMITTED_NS || pool.worker_count() == 0 {
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

    fn shares(&self, direction: Direction, requests: usize) -> bool {
        !is_whole(&**self.kernel, direction, requests)
    }

    fn hands_over(&self, direction: Direction, requests: usize, bytes: usize) -> bool {
        let total = bytes.saturating_add(requests * PER_REQUEST);
        self.pace(direction).alone_ns(total) >= LEAST_SUBMITTED_NS
    }

    fn assist(&self) -> bool {
        let Some(pool) = self.crew.awaited() else {
            return false;
        };
        let mut turn = ASSISTING.get();
        let worked = pool.work(&mut turn, &Fault::default());
        ASSISTING.set(turn);
        worked
    }
}
