//! One caller thread of a measurement: it makes its subjects, warms them up and
//! runs the blocks in step with the other caller threads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::clock;
use crate::counters::{self, Scope, Snapshot, Usage};
use crate::disturbance::Lost;
use crate::error::Error;
use crate::interleave::{Plan, Progress};
use crate::latency::Latency;
use crate::random::Random;
use crate::rendezvous::{Aborted, Rendezvous};
use crate::run::ResourceUse;
use crate::stats::FEWEST_PAIRS;
use crate::subject::{Candidate, Failure, Subject};
use crate::watcher::Watcher;

/// The share of the time that timing single operations may cost.
const SAMPLING_SHARE: f64 = 0.01;

/// Nothing is believed to take fewer seconds than this: a coarse clock might
/// otherwise find that an operation takes no time at all.
const LEAST_COST: f64 = 1e-9;

/// Rounds are limited so that no plan, however long, exhausts the memory.
const MOST_ROUNDS: usize = 20_000;

/// The part of a block's length for which it is run in, uncounted.
const RUN_IN_PART: u32 = 20;

/// What all caller threads see.
pub(crate) struct Shared<'p, 'c> {
    plan: &'p Plan,
    candidates: &'p [Candidate<'c>],
    watcher: &'p dyn Watcher,
    rendezvous: Rendezvous,
    rounds: AtomicUsize,
    failure: Mutex<Option<Error>>,
    read_cost: Duration,
    sampling_cost: Duration,
}

/// What one caller thread has found.
pub(crate) struct Caller {
    /// By candidate.
    pub(crate) latencies: Vec<Latency>,
    /// By round, then by candidate.
    pub(crate) shares: Vec<Vec<Share>>,
}

/// One caller thread's part of a block.
#[derive(Clone, Default)]
pub(crate) struct Share {
    pub(crate) operations: u64,
    /// That counts.
    pub(crate) elapsed: Duration,
    /// In which this thread was ready to run and others had its processor.
    pub(crate) lost: Duration,
    /// Used by this thread while it waited for the others to finish, and between operations;
    /// the measurement's doing, so it is subtracted.
    pub(crate) idle: Usage,
    /// Of the process and the machine; filled in by caller thread 0 alone.
    pub(crate) resources: ResourceUse,
}

/// A subject on its thread, with what the warm-up has learned.
struct Live<'c> {
    subject: Box<dyn Subject + 'c>,
    /// Operations to every one that is timed, that one included.
    stride: u64,
    latency: Latency,
}

/// Why a thread stops early.
enum Stop {
    /// Its own subject failed.
    Failed(Failure),
    /// Another thread called the measurement off.
    Aborted,
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<Aborted> for Stop {
    fn from(Aborted: Aborted) -> Self {
        Self::Aborted
    }
}

impl<'p, 'c> Shared<'p, 'c> {
    pub(crate) fn new(
        plan: &'p Plan,
        candidates: &'p [Candidate<'c>],
        watcher: &'p dyn Watcher,
    ) -> Self {
        Self {
            plan,
            candidates,
            watcher,
            rendezvous: Rendezvous::new(plan.threads),
            rounds: AtomicUsize::new(0),
            failure: Mutex::new(None),
            read_cost: clock::read_cost(),
            sampling_cost: sampling_cost(),
        }
    }

    /// Keeps the first failure and sends everyone home.
    pub(crate) fn fail(&self, error: Error) {
        self.failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_or_insert(error);
        self.rendezvous.abort();
    }

    pub(crate) fn into_failure(self) -> Option<Error> {
        self.failure
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The whole life of caller thread number `thread`.
    pub(crate) fn call(
        &self,
        thread: usize,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Caller, Aborted> {
        let _guard = self.rendezvous.abort_on_panic();
        self.watcher.joins();
        let mut lives = Vec::with_capacity(self.candidates.len());
        let mut round_time = Duration::ZERO;
        for candidate in self.candidates {
            let (live, cost) = self
                .warm_up(thread, candidate)
                .map_err(|stop| self.stop(thread, candidate, stop))?;
            lives.push(live);
            round_time += cost.max(self.plan.block);
        }
        if thread == 0 {
            let time = self.plan.time.as_secs_f64() * lives.len() as f64;
            let rounds = (time / round_time.as_secs_f64()) as usize;
            let rounds = rounds.clamp(FEWEST_PAIRS, MOST_ROUNDS);
            self.rounds.store(rounds, Ordering::Release);
        }
        self.rendezvous.wait()?;
        let rounds = self.rounds.load(Ordering::Acquire);
        progress(Progress { round: 0, rounds });

        // Every thread draws the same orders from the same seed.
        let mut random = Random::new(self.plan.seed);
        let mut shares = Vec::with_capacity(rounds);
        for round in 1..=rounds {
            let mut of_round = vec![Share::default(); lives.len()];
            for index in random.order(lives.len()) {
                of_round[index] = self
                    .block(thread, index, &mut lives[index])
                    .map_err(|stop| self.stop(thread, &self.candidates[index], stop))?;
            }
            shares.push(of_round);
            progress(Progress { round, rounds });
        }
        let latencies = lives.into_iter().map(|live| live.latency).collect();
        Ok(Caller { latencies, shares })
    }

    fn stop(&self, thread: usize, candidate: &Candidate<'_>, stop: Stop) -> Aborted {
        if let Stop::Failed(source) = stop {
            self.fail(Error::Candidate {
                candidate: candidate.name.clone(),
                thread,
                source,
            });
        }
        Aborted
    }

    /// Makes a subject, runs it in, and finds what an operation costs.
    fn warm_up(
        &self,
        thread: usize,
        candidate: &'p Candidate<'c>,
    ) -> Result<(Live<'c>, Duration), Stop> {
        let mut subject = (candidate.factory)(thread)?;
        self.rendezvous.wait()?;
        let least = subject.least_run().max(1);
        let (begin, mut operations) = (Instant::now(), least);
        // A stretch that was interrupted looks dear, and would have cheap
        // operations timed too often: the cheapest stretch is believed.
        let mut cost = f64::INFINITY;
        while cost.is_infinite() || begin.elapsed() < self.plan.warm_up {
            let start = Instant::now();
            subject.run(operations)?;
            let elapsed = start.elapsed();
            if elapsed < self.plan.warm_up / 16 {
                operations = operations.saturating_mul(2);
            } else {
                cost = cost.min(elapsed.as_secs_f64() / operations as f64);
            }
        }
        let stride = self.sampling_cost.as_secs_f64() / (SAMPLING_SHARE * cost.max(LEAST_COST));
        let live = Live {
            subject,
            stride: (stride.ceil() as u64).max(least),
            latency: Latency::default(),
        };
        Ok((live, Duration::from_secs_f64(cost)))
    }

    fn block(&self, thread: usize, index: usize, live: &mut Live<'c>) -> Result<Share, Stop> {
        let leads = thread == 0;
        self.rendezvous.wait()?;
        let steal = leads.then(counters::steal).flatten();
        live.run_in(self.plan.block / RUN_IN_PART)?;
        self.rendezvous.spin()?;

        let process = leads.then(|| Snapshot::now(Scope::Process));
        let own = Lost::now();
        if leads {
            self.watcher.begins(index);
        }
        let (operations, elapsed, between) = live.run_for(self.plan.block, self.read_cost)?;
        if leads {
            self.watcher.ended();
        }
        let lost = Lost::now().since(&own);
        let done = Snapshot::now(Scope::Thread);
        self.rendezvous.spin()?;
        let mut idle = Snapshot::now(Scope::Thread).since(&done);
        idle.user += between;
        let mut resources = ResourceUse::default();
        if let Some(process) = process {
            resources.usage = Snapshot::now(Scope::Process).since(&process);
        }
        // Nobody goes to sleep before caller thread 0 has read the counters.
        self.rendezvous.spin()?;
        if let (Some(before), Some(after)) = (steal, steal.and_then(|_| counters::steal())) {
            resources.steal = after.saturating_sub(before);
        }
        Ok(Share {
            operations,
            elapsed,
            lost,
            idle,
            resources,
        })
    }
}

impl Live<'_> {
    /// Runs uncounted for `time`, or one stretch between two samples.
    fn run_in(&mut self, time: Duration) -> Result<(), Failure> {
        let start = Instant::now();
        loop {
            self.subject.run(self.stride)?;
            if start.elapsed() >= time {
                return Ok(());
            }
        }
    }

    /// Runs for `time`, or one stretch between two samples if that takes
    /// longer; returns the operations done, the time they took, and the time between them.
    fn run_for(
        &mut self,
        time: Duration,
        read_cost: Duration,
    ) -> Result<(u64, Duration, Duration), Failure> {
        let _ = self.subject.worked();
        let start = Instant::now();
        let mut operations = 0;
        loop {
            if self.stride > 1 {
                self.subject.run(self.stride - 1)?;
            }
            let now = self.subject.sample(read_cost, &mut self.latency)?;
            operations += self.stride;
            let elapsed = now.saturating_duration_since(start);
            if elapsed >= time {
                let worked = self.subject.worked().unwrap_or(elapsed).min(elapsed);
                return Ok((operations, worked, elapsed - worked));
            }
        }
    }
}

/// The cost of timing one operation and counting it in a histogram.
fn sampling_cost() -> Duration {
    const SAMPLES: u32 = 100;
    let mut latency = Latency::default();
    let stretches = (0..10).map(|_| {
        let start = Instant::now();
        for _ in 0..SAMPLES {
            let begin = Instant::now();
            latency.record(begin.elapsed());
        }
        start.elapsed() / SAMPLES
    });
    stretches.min().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watcher::Unwatched;

    fn live<'c>(
        shared: &Shared<'_, 'c>,
        work: impl FnMut(u64) -> Result<(), Failure> + 'c,
        stride: u64,
    ) -> Live<'c> {
        assert!(shared.sampling_cost >= shared.read_cost);
        Live {
            subject: Box::new(work),
            stride,
            latency: Latency::default(),
        }
    }

    #[test]
    fn every_operation_is_counted_and_one_in_a_stride_is_timed() {
        let plan = Plan::default();
        let shared = Shared::new(&plan, &[], &Unwatched);
        let mut done = 0;
        let mut live = live(
            &shared,
            |operations| {
                done += operations;
                Ok(())
            },
            64,
        );
        let (operations, elapsed, between) = live
            .run_for(Duration::from_millis(2), shared.read_cost)
            .unwrap();
        let timed = live.latency.count();
        drop(live);
        assert_eq!(operations, done);
        assert_eq!(timed * 64, operations);
        assert!(elapsed >= Duration::from_millis(2));
        assert_eq!(between, Duration::ZERO);
    }

    /// Operations of a microsecond, by its own account, and pauses between them.
    struct Pausing(Duration);

    impl Subject for Pausing {
        fn run(&mut self, operations: u64) -> Result<(), Failure> {
            std::thread::sleep(Duration::from_micros(100));
            self.0 += Duration::from_micros(operations);
            Ok(())
        }

        fn worked(&mut self) -> Option<Duration> {
            Some(std::mem::take(&mut self.0))
        }
    }

    #[test]
    fn time_between_operations_does_not_count() {
        let mut live = Live {
            subject: Box::new(Pausing(Duration::from_secs(1))),
            stride: 1,
            latency: Latency::default(),
        };
        let time = Duration::from_millis(2);
        let (operations, worked, between) = live.run_for(time, Duration::ZERO).unwrap();
        assert_eq!(worked, Duration::from_micros(operations));
        assert!(worked + between >= time && between > worked);
    }

    #[test]
    fn cheap_operations_are_timed_rarely_and_dear_ones_always() {
        let plan = Plan::default();
        let stride = |work: fn(u64) -> Result<(), Failure>| {
            let candidates = [Candidate::new("one", move |_| Ok(work))];
            let shared = Shared::new(&plan, &candidates, &Unwatched);
            let Ok((live, _)) = shared.warm_up(0, &candidates[0]) else {
                panic!("the subject does not fail");
            };
            live.stride
        };
        let cheap = stride(|operations| {
            (0..operations).for_each(|_| std::hint::spin_loop());
            Ok(())
        });
        let dear = stride(|operations| {
            std::thread::sleep(Duration::from_millis(operations));
            Ok(())
        });
        assert!(cheap > 10, "{cheap}");
        assert_eq!(dear, 1);
    }
}
