//! How far dedicated cores are from the others, by the time of a word there and back.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::finding::{Finding, Outcome};

/// Nanoseconds there and back from which on cores are far apart. Cores that share a cache take 40
/// to 130, two parts of one EPYC over 400.
const FAR: f64 = 250.0;
/// Rounds of one stretch, of which the quickest counts: others may have interrupted a longer one.
const ROUNDS: u32 = 2000;
const STRETCHES: usize = 8;
/// Looks at the word before a thread lets others have its core.
const LOOKS: u32 = 10_000;
/// A core that others never leave is given up after this time.
const PATIENCE: Duration = Duration::from_millis(500);

/// Dedicated cores that are far from the processor on which a caller may be.
pub(super) fn dedicated(dedicated: &[usize]) -> Outcome {
    if dedicated.is_empty() {
        return Outcome::Unknown("no cores are dedicated".to_owned());
    }
    let Ok(allowed) = sched_getaffinity(None) else {
        return Outcome::Unknown("the processors of this process are not known".to_owned());
    };
    let mut others = (0..CpuSet::MAX_CPU).filter(|cpu| !dedicated.contains(cpu));
    let Some(caller) = others.find(|&cpu| allowed.is_set(cpu)) else {
        return Outcome::Unknown("all processors are dedicated".to_owned());
    };
    // The command keeps itself off the dedicated cores, which does not mean that it may not be
    // there.
    let times: Option<Vec<(usize, f64)>> = (dedicated.iter())
        .map(|&core| Some((core, there_and_back(caller, core)?)))
        .collect();
    match times {
        Some(times) => outcome(caller, &times),
        None => Outcome::Unknown(
            "this process may not run on the dedicated cores, or others keep them busy".to_owned(),
        ),
    }
}

fn outcome(caller: usize, times: &[(usize, f64)]) -> Outcome {
    let far: Vec<String> = (times.iter())
        .filter(|(_, time)| *time > FAR)
        .map(|(core, time)| format!("{caller} to {core} {time:.0} ns"))
        .collect();
    Outcome::of(&far, |names| Finding {
        check: "",
        what: "Dedicated cores are far from the others: help for requests below 1 MiB is worth \
               less."
            .to_owned(),
        times_slower: None,
        guess: 1.1,
        evidence: format!("a word there and back, 40 to 130 ns where cores share a cache: {names}"),
        remedy: "dedicate cores that share a cache with those of the programs; in a virtual \
                 machine, ask that the host keeps its processors together"
            .to_owned(),
        command: Some("lscpu --extended=CPU,CORE,CACHE".to_owned()),
    })
}

/// Nanoseconds that a word takes from one processor to the other and back.
fn there_and_back(here: usize, there: usize) -> Option<f64> {
    let word = AtomicU32::new(0);
    let last = 2 * ROUNDS * STRETCHES as u32;
    let deadline = Instant::now() + PATIENCE;
    std::thread::scope(|scope| {
        let echo = scope.spawn(|| {
            stay_on(there)?;
            (1..last).step_by(2).try_for_each(|turn| {
                wait_for(&word, turn, deadline)?;
                word.store(turn + 1, Ordering::Release);
                Some(())
            })
        });
        let caller = scope.spawn(|| {
            stay_on(here)?;
            let mut best = f64::INFINITY;
            for stretch in 0..STRETCHES as u32 {
                let began = Instant::now();
                for round in 0..ROUNDS {
                    let turn = 2 * (stretch * ROUNDS + round);
                    word.store(turn + 1, Ordering::Release);
                    wait_for(&word, turn + 2, deadline)?;
                }
                best = best.min(began.elapsed().as_nanos() as f64 / f64::from(ROUNDS));
            }
            Some(best)
        });
        let (echoed, best) = (echo.join().ok()?, caller.join().ok()?);
        echoed.and(best)
    })
}

fn stay_on(cpu: usize) -> Option<()> {
    if cpu >= CpuSet::MAX_CPU {
        return None;
    }
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set).ok()
}

fn wait_for(word: &AtomicU32, turn: u32, deadline: Instant) -> Option<()> {
    let mut looks = 0;
    while word.load(Ordering::Acquire) != turn {
        std::hint::spin_loop();
        looks += 1;
        if looks == LOOKS {
            if Instant::now() > deadline {
                return None;
            }
            std::thread::yield_now();
            looks = 0;
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn far_cores_are_named() {
        let found = outcome(0, &[(2, 95.0), (3, 512.4)]).found();
        assert!(found.evidence.ends_with(": 0 to 3 512 ns"), "{found:?}");
        assert!(matches!(outcome(0, &[(2, 95.0)]), Outcome::Fine));
        assert!(matches!(dedicated(&[]), Outcome::Unknown(_)));
    }

    #[test]
    fn a_word_comes_back() {
        let allowed = sched_getaffinity(None).unwrap();
        let mut cpus = (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu));
        let (Some(here), Some(there)) = (cpus.next(), cpus.next()) else {
            eprintln!("NOT TESTED: there is one processor");
            return;
        };
        if let Some(time) = there_and_back(here, there) {
            assert!(time > 0.0 && time.is_finite());
        }
        // A processor that is not there.
        assert_eq!(there_and_back(here, CpuSet::MAX_CPU), None);
    }
}
