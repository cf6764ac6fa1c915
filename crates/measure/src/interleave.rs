//! Measures candidates side by side.
//!
//! All candidates of a cell are measured together, in short blocks: a round
//! holds one block of each, in random order. Blocks of one round are neighbours
//! in time, so whatever disturbs a shared machine for longer than a round
//! disturbs them alike, and ratios are taken within rounds.
//!
//! A block begins with a short stretch that does not count, in which caches
//! fill, the candidate's helper threads wake and those of the block before fall
//! asleep. It then runs for its time and counts the operations done. Single
//! operations are timed in between, at most so often that it costs 1 %.

use std::time::Duration;

use crate::caller::{Caller, Shared};
use crate::disturbance;
use crate::error::Error;
use crate::latency::Latency;
use crate::run::{Block, Measurement, Run};
use crate::subject::Candidate;
use crate::watcher::{Unwatched, Watcher};

/// The most caller threads a plan may ask for.
pub const MOST_THREADS: usize = 1024;

/// How long, how finely and from how many threads a cell is measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Time given to each candidate, warm-up not included; default 1 s. At
    /// least six blocks are run however long they take, since fewer allow no
    /// verdict; at most 20,000.
    pub time: Duration,
    /// Length of a block, default 30 ms. An operation that takes longer makes a
    /// block of its own.
    pub block: Duration,
    /// Time for which each candidate is run before the first block; default 30 ms.
    pub warm_up: Duration,
    /// Threads that call at once, each with its own subject; default 1.
    pub threads: usize,
    /// Seed of the random order.
    pub seed: u64,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            time: Duration::from_secs(1),
            block: Duration::from_millis(30),
            warm_up: Duration::from_millis(30),
            threads: 1,
            seed: 1,
        }
    }
}

/// How far a measurement has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Rounds finished; the warm-up is before round 0.
    pub round: usize,
    /// Rounds in all.
    pub rounds: usize,
}

/// Measures `candidates` against each other. `progress` is called on this
/// thread after the warm-up and after every round, outside timed blocks. This
/// thread is caller thread 0.
///
/// # Errors
/// If there is no candidate, the plan is impossible, a thread cannot be had, or
/// a candidate fails.
///
/// # Panics
/// If a subject panics.
pub fn measure(
    plan: &Plan,
    candidates: &[Candidate<'_>],
    progress: impl FnMut(Progress),
) -> Result<Measurement, Error> {
    measure_watched(plan, candidates, &Unwatched, progress)
}

/// The same, and `watcher` is told whose blocks begin and end.
///
/// # Errors
/// As [`measure`].
///
/// # Panics
/// As [`measure`].
pub fn measure_watched(
    plan: &Plan,
    candidates: &[Candidate<'_>],
    watcher: &dyn Watcher,
    mut progress: impl FnMut(Progress),
) -> Result<Measurement, Error> {
    if candidates.is_empty() {
        return Err(Error::NoCandidates);
    }
    if plan.threads == 0 || plan.threads > MOST_THREADS {
        return Err(Error::Threads(plan.threads));
    }
    let shared = Shared::new(plan, candidates, watcher);
    let mut callers = Vec::with_capacity(plan.threads);
    std::thread::scope(|scope| {
        let mut threads = Vec::with_capacity(plan.threads - 1);
        for thread in 1..plan.threads {
            let shared = &shared;
            let spawned = std::thread::Builder::new()
                .name(format!("caller {thread}"))
                .spawn_scoped(scope, move || shared.call(thread, &mut |_| ()));
            match spawned {
                Ok(spawned) => threads.push(spawned),
                Err(source) => {
                    shared.fail(Error::Spawn { thread, source });
                    return;
                }
            }
        }
        callers.push(shared.call(0, &mut progress));
        for thread in threads {
            match thread.join() {
                Ok(caller) => callers.push(caller),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
    });
    if let Some(error) = shared.into_failure() {
        return Err(error);
    }
    let callers: Result<Vec<Caller>, _> = callers.into_iter().collect();
    // Only a failure, reported above, or a panic, passed on above, aborts.
    let callers = callers.expect("no meeting is aborted without a failure");
    Ok(join(candidates, &callers))
}

/// Puts together what the caller threads have found; thread 0 comes first.
fn join(candidates: &[Candidate<'_>], callers: &[Caller]) -> Measurement {
    let runs = candidates.iter().enumerate().map(|(index, candidate)| {
        let mut latency = Latency::default();
        for caller in callers {
            latency.merge(&caller.latencies[index]);
        }
        let blocks = (0..callers[0].shares.len()).map(|round| {
            let shares = callers.iter().map(|caller| &caller.shares[round][index]);
            let mut block = Block {
                operations: 0,
                rate: 0.0,
                resources: callers[0].shares[round][index].resources,
                disturbed: false,
            };
            for share in shares {
                block.operations += share.operations;
                block.rate += share.operations as f64 / share.elapsed.as_secs_f64();
                block.disturbed |= disturbance::matters(share.lost, share.elapsed);
                block.resources.usage = block.resources.usage.without(share.idle);
            }
            block.disturbed |= block.resources.steal > Duration::ZERO;
            block
        });
        Run {
            name: candidate.name.clone(),
            blocks: blocks.collect(),
            latency,
        }
    });
    Measurement {
        runs: runs.collect(),
    }
}

#[cfg(test)]
mod tests {
    use crate::watcher::tests::Turns;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Instant;

    use super::*;
    use crate::stats::FEWEST_PAIRS;
    use crate::subject::Failure;

    /// Keeps the processor busy for that long, `operations` times.
    fn spin(each: Duration) -> impl FnMut(u64) -> Result<(), Failure> {
        move |operations| {
            for _ in 0..operations {
                let start = Instant::now();
                while start.elapsed() < each {}
            }
            Ok(())
        }
    }

    fn plan(threads: usize) -> Plan {
        Plan {
            time: Duration::from_millis(60),
            block: Duration::from_millis(5),
            warm_up: Duration::from_millis(2),
            threads,
            ..Plan::default()
        }
    }

    #[test]
    fn tells_the_slower_from_the_faster() {
        let fast = Candidate::new("fast", |_| Ok(spin(Duration::from_micros(20))));
        let slow = Candidate::new("slow", |_| Ok(spin(Duration::from_micros(800))));
        let measured = measure(&plan(1), &[fast, slow], |_| ()).unwrap();
        // Forty times apart: no load of the machine turns that round.
        let ratio = measured.ratio("slow", "fast").unwrap();
        assert!(ratio.median < 1.0, "{ratio:?}");
        let slow = measured.run("slow").unwrap();
        // Busy waiting is never shorter than asked for.
        assert!(slow.latency.quantile(0.0).unwrap() >= 799_000.0);
        assert!(slow.usage().cpu() > Duration::ZERO);
    }

    #[test]
    fn all_operations_of_all_threads_are_counted_and_orders_are_mixed() {
        let (counted, order) = (AtomicU64::new(0), Mutex::new(Vec::new()));
        let names = ["a", "b", "c"];
        let candidates = names.map(|name| {
            let (counted, order) = (&counted, &order);
            Candidate::new(name, move |thread| {
                let mut work = spin(Duration::from_micros(50));
                Ok(move |operations: u64| {
                    counted.fetch_add(operations, Ordering::Relaxed);
                    if thread == 0 {
                        let mut order = order.lock().unwrap();
                        if order.last() != Some(&name) {
                            order.push(name);
                        }
                    }
                    work(operations)
                })
            })
        });
        let mut told = Vec::new();
        let measured = measure(&plan(3), &candidates, |progress| told.push(progress)).unwrap();
        let rounds = told[0].rounds;
        assert!(rounds >= FEWEST_PAIRS);
        assert_eq!(
            told.iter().map(|at| at.round).collect::<Vec<_>>(),
            (0..=rounds).collect::<Vec<_>>()
        );
        let reported: u64 = names
            .iter()
            .map(|name| measured.run(name).unwrap().operations())
            .sum();
        // Warm-up and run-in are not reported.
        let counted = counted.load(Ordering::Relaxed);
        assert!(
            0 < reported && reported < counted,
            "{reported} of {counted}"
        );
        for name in names {
            assert_eq!(measured.run(name).unwrap().blocks.len(), rounds);
        }
        let order = order.lock().unwrap();
        let steps: std::collections::BTreeSet<_> =
            order.windows(2).map(|pair| (pair[0], pair[1])).collect();
        assert_eq!(
            steps.len(),
            6,
            "every candidate after every other: {steps:?}"
        );
    }

    #[test]
    fn a_watcher_is_told_of_every_block() {
        let candidates = ["a", "b"].map(|name| {
            let work = |_| Ok(spin(Duration::from_micros(50)));
            Candidate::new(name, work)
        });
        let watched = Turns::default();
        let measured = measure_watched(&plan(2), &candidates, &watched, |_| ()).unwrap();
        let told = watched.told();
        for number in [0, 1] {
            let of = told.iter().filter(|told| **told == number).count();
            assert_eq!(of, measured.runs[number].blocks.len());
        }
    }

    #[test]
    fn helper_threads_are_counted() {
        let candidate = Candidate::new("offload", |_| {
            Ok(|operations| {
                for _ in 0..operations {
                    let helper = std::thread::spawn(|| spin(Duration::from_millis(2))(1));
                    helper.join().expect("does not panic")?;
                }
                Ok(())
            })
        });
        let measured = measure(&plan(1), &[candidate], |_| ()).unwrap();
        let run = measured.run("offload").unwrap();
        let used = run.usage().per_operation(run.operations());
        // Other tests' threads are counted as well: no upper bound.
        assert!(used.user_seconds + used.system_seconds > 0.5e-3, "{used:?}");
        assert!(used.voluntary_switches >= 0.9, "{used:?}");
    }

    #[test]
    fn long_operations_still_give_enough_blocks() {
        let candidate = Candidate::new("long", |_| Ok(spin(Duration::from_millis(20))));
        let measured = measure(&plan(1), &[candidate], |_| ()).unwrap();
        assert_eq!(measured.run("long").unwrap().blocks.len(), FEWEST_PAIRS);
    }

    #[test]
    fn a_plan_without_lengths_measures_once_a_round() {
        let plan = Plan {
            time: Duration::ZERO,
            block: Duration::ZERO,
            warm_up: Duration::ZERO,
            ..Plan::default()
        };
        let candidate = Candidate::new("one", |_| Ok(spin(Duration::from_micros(1))));
        let measured = measure(&plan, &[candidate], |_| ()).unwrap();
        assert_eq!(measured.runs[0].blocks.len(), FEWEST_PAIRS);
        assert!(measured.runs[0].rate().unwrap().median <= 1.01e6);
    }

    #[test]
    fn failures_name_the_candidate_and_end_the_measurement() {
        assert!(matches!(
            measure(&plan(1), &[], |_| ()),
            Err(Error::NoCandidates)
        ));
        let good = || Candidate::new("good", |_| Ok(spin(Duration::from_micros(10))));
        for threads in [0, MOST_THREADS + 1] {
            let result = measure(&plan(threads), &[good()], |_| ());
            assert!(matches!(result, Err(Error::Threads(asked)) if asked == threads));
        }
        for threads in [1, 3] {
            let last = threads - 1;
            let unmade = Candidate::new("unmade", move |thread| {
                if thread == last {
                    return Err("no such device".into());
                }
                Ok(spin(Duration::from_micros(10)))
            });
            let error = measure(&plan(threads), &[good(), unmade], |_| ()).unwrap_err();
            let said = error.to_string();
            assert!(
                said.contains("unmade") && said.contains("no such device"),
                "{said}"
            );

            let breaks = Candidate::new("breaks", move |thread| {
                let mut left = 20u64;
                let mut work = spin(Duration::from_micros(10));
                Ok(move |operations: u64| {
                    left = left.saturating_sub(operations);
                    if left == 0 && thread == last {
                        return Err("device vanished".into());
                    }
                    work(operations)
                })
            });
            let error = measure(&plan(threads), &[breaks, good()], |_| ()).unwrap_err();
            assert!(
                matches!(&error, Error::Candidate { candidate, thread, .. }
                    if candidate == "breaks" && *thread == last),
                "{error}"
            );
        }
    }

    #[test]
    #[should_panic(expected = "subject lost its mind")]
    fn a_panic_is_passed_on_and_leaves_nobody_waiting() {
        let candidate = Candidate::new("panics", |thread| {
            Ok(move |_| {
                assert!(thread != 1, "subject lost its mind");
                Ok(())
            })
        });
        let _ = measure(&plan(3), &[candidate], |_| ());
    }
}
