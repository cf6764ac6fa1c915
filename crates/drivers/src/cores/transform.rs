//! The driver's transform: decides what to share, and shares it.

use std::cell::Cell;
use std::sync::Arc;

use cipherlane_core::{Direction, Flight, Request, Transform};

use super::course::Turn;
use super::crew::Crew;
use super::cutting::{PER_REQUEST, cost, is_whole};
use super::fault::Fault;
use super::first::{First, usual_ns};
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
/// Nanoseconds of one core from which on batches of callers that do not wait are handed over, at the
/// [usual](usual_ns) pace: of a slower algorithm, work of [`PIECE_NS`] by its own is as well. What
/// pays depends on how far apart the cores are: AES-CTR of 64 KiB, 1650 on a Zen 5, has 1.33 times as
/// many bytes per second by a worker 100 ns away; 32 KiB, 1350 on a Zen 4, half as many.
const LEAST_SUBMITTED_NS: u64 = 1200;
/// Nanoseconds that the base needs where `auto` may hand such batches over: less, since `auto` learns
/// what pays. AES-GCM of 16 KiB, 1150 on a Zen 4, has
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
    /// Of one core, by direction: learned from callers that wait.
    paces: [Pace; 2],
    /// For batches that nobody waits for.
    first: First,
}

impl Shared {
    pub(super) fn new(crew: Arc<Crew>, kernel: Kernel, first: First) -> Self {
        let pace = |direction| Pace::from(first.pace(direction));
        Shared {
            crew,
            kernel,
            paces: [pace(Direction::Encrypt), pace(Direction::Decrypt)],
            first,
        }
    }

    #[inline]
    fn pace(&self, direction: Direction) -> &Pace {
        &self.paces[direction as usize]
    }

    /// Estimated nanoseconds of one core for a batch that nobody waits for. A pace faster than the
    /// usual one is not counted on: such work is limited by what goes from core to core.
    fn submitted_ns(&self, direction: Direction, requests: usize, total: usize) -> u64 {
        let own = self.first.alone_ns(direction, requests, total);
        own.max(usual_ns(total))
    }

    /// Whether such a batch, which costs `total`, is for the workers.
    fn is_for_workers(&self, direction: Direction, requests: usize, total: usize) -> bool {
        usual_ns(total) >= LEAST_SUBMITTED_NS
            || self.submitted_ns(direction, requests, total) >= PIECE_NS
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
            task.conclude();
            task.wipe();
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
        let (requests, total) = flight.with_requests(|requests| (requests.len(), cost(requests)));
        let pool = self.crew.pool();
        if !self.is_for_workers(direction, requests, total) || pool.worker_count() == 0 {
            flight.with_requests(|requests| self.kernel.run(direction, requests));
            flight.finish();
            return Ok(());
        }
        let Some(mut slot) = pool.reserve() else {
            return Err(flight);
        };
        let alone_ns = self.submitted_ns(direction, requests, total);
        let (threads, least) = (pool.worker_count() + 1, least(total, alone_ns));
        let task = slot.task(direction, &**self.kernel);
        // SAFETY: the task takes the flight, which owns the requests and does not touch them
        // before it lands, and a share of the kernel; both are let go after the task has
        // concluded.
        let plan =
            |requests: &mut [Request<'_>]| unsafe { task.plan(requests, total, threads, least) };
        let count = flight.with_requests(plan);
        task.load(flight, self.kernel.clone());
        slot.submit(count, total, alone_ns);
        Ok(())
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
        self.is_for_workers(direction, requests, total)
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

#[cfg(all(test, not(loom)))]
mod tests {
    use cipherlane_core::Algorithm;

    use super::super::settings::Settings;
    use super::*;

    fn shared(pace: u32) -> Shared {
        let algorithm = Algorithm::find("ctr(aes)").unwrap();
        let kernel = Arc::new((algorithm.software)(&[7; 16]));
        let crew = Arc::new(Crew::new(Settings::default(), Fault::default()));
        Shared::new(crew, kernel, First::of(pace))
    }

    #[test]
    fn short_batches_of_slow_algorithms_are_for_the_workers() {
        let goes = |shared: &Shared, requests, bytes| {
            shared.hands_over(Direction::Encrypt, requests, bytes)
        };
        // 50, 10 and 1 GB/s.
        for pace in [20_000, 100_000] {
            let fast = shared(pace);
            assert!(!goes(&fast, 1, 8 << 10) && goes(&fast, 1, 12 << 10));
        }
        let slow = shared(1_000_000);
        assert!(!goes(&slow, 1, 2 << 10) && goes(&slow, 1, 3 << 10));
        assert!(!goes(&slow, 8, 1 << 10) && goes(&slow, 16, 1 << 10));
    }
}
