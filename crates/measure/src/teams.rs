//! Measures teams of different sizes side by side, where every stretch of work has to be
//! prepared.
//!
//! Like [`interleave`](crate::interleave), all teams have short blocks by turns, in random
//! order, and ratios are taken within rounds. Beyond that a team may be smaller than another,
//! so that what several threads do is compared with what one of them does alone; and a block
//! is a sequence of phases: all members prepare, which is not timed, then all work at the same
//! time. Each member's work is timed by itself, and the rates are added up.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::counters;
use crate::disturbance::{self, Lost};
use crate::error::Error;
use crate::latency::Latency;
use crate::random::Random;
use crate::rendezvous::{Aborted, Rendezvous};
use crate::run::{Block, Measurement, ResourceUse, Run};
use crate::stats::FEWEST_PAIRS;
use crate::subject::Failure;
use crate::watcher::Watcher;

/// The shortest block.
const MIN_BLOCK: Duration = Duration::from_micros(1);

/// One thread's share of the work.
pub trait Member: Send {
    /// Makes everything ready for [`Member::work`]; not timed.
    ///
    /// # Errors
    /// If it cannot be; the whole measurement then ends with that error.
    fn prepare(&mut self) -> Result<(), Failure>;

    /// Works as a member of the team with that number, all at once; timed.
    fn work(&mut self, team: usize);

    /// Looks at what was done; not timed. The operations that count.
    ///
    /// # Errors
    /// As [`Member::prepare`].
    fn check(&mut self) -> Result<u64, Failure>;
}

/// The first of the members, as many as it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Team {
    /// By which results are told apart.
    pub name: String,
    /// How many; 1 at least.
    pub members: usize,
}

/// How long and how finely.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Time for which each team works.
    pub time: Duration,
    /// Time for which every member of a team works in a block, at least. At least six blocks
    /// are run.
    pub block: Duration,
    /// Seed of the random order.
    pub seed: u64,
}

impl Plan {
    /// Blocks of every team.
    pub fn rounds(&self) -> usize {
        let rounds = self.time.as_secs_f64() / self.block.as_secs_f64().max(1e-6);
        (rounds as usize).max(FEWEST_PAIRS)
    }
}

/// Measures teams against each other. `renew` is called before every phase, before anybody
/// prepares. `goes_on` is asked after every round, and where it says no the rounds so far are all
/// there is. `watcher` is told whose phases begin and end.
///
/// # Errors
/// If there is no team, a team is empty or larger than `members`, or a member fails.
///
/// # Panics
/// If a member panics.
pub fn measure<M: Member>(
    plan: &Plan,
    teams: &[Team],
    members: &mut [M],
    renew: impl Fn() -> Result<(), Failure> + Sync,
    watcher: &dyn Watcher,
    mut goes_on: impl FnMut(usize) -> bool,
) -> Result<Measurement, Error> {
    if teams.is_empty() {
        return Err(Error::NoCandidates);
    }
    if let Some(team) = teams
        .iter()
        .find(|team| !(1..=members.len()).contains(&team.members))
    {
        return Err(Error::Threads(team.members));
    }
    let mut random = Random::new(plan.seed);
    let mut runs: Vec<Run> = teams
        .iter()
        .map(|team| Run {
            name: team.name.clone(),
            blocks: Vec::new(),
            latency: Latency::default(),
        })
        .collect();
    for round in 1..=plan.rounds() {
        for index in random.order(teams.len()) {
            let block = plan.block.max(MIN_BLOCK);
            let block = Turn::new(index, &teams[index], block, &renew, watcher)
                .run(&mut members[..teams[index].members])?;
            runs[index].blocks.push(block);
        }
        if !goes_on(round) {
            break;
        }
    }
    Ok(Measurement { runs })
}

/// A block of one team.
struct Turn<'t, R> {
    index: usize,
    team: &'t Team,
    time: Duration,
    renew: &'t R,
    watcher: &'t dyn Watcher,
    rendezvous: Rendezvous,
    /// Members that have worked for as long as they should.
    done: AtomicUsize,
    failure: Mutex<Option<Error>>,
}

/// One member's part of a block.
#[derive(Default)]
struct Share {
    operations: u64,
    elapsed: Duration,
    /// In which this member was ready to work and others had its processor.
    lost: Duration,
}

impl<'t, R: Fn() -> Result<(), Failure> + Sync> Turn<'t, R> {
    fn new(
        index: usize,
        team: &'t Team,
        time: Duration,
        renew: &'t R,
        watcher: &'t dyn Watcher,
    ) -> Self {
        Turn {
            index,
            team,
            time,
            renew,
            watcher,
            rendezvous: Rendezvous::new(team.members),
            done: AtomicUsize::new(0),
            failure: Mutex::new(None),
        }
    }

    fn run<M: Member>(self, members: &mut [M]) -> Result<Block, Error> {
        let steal = counters::steal();
        let shares: Vec<Result<Share, Aborted>> = std::thread::scope(|scope| {
            let (leader, others) = members.split_first_mut().expect("a team is not empty");
            let turn = &self;
            let threads: Vec<_> = others
                .iter_mut()
                .enumerate()
                .map(|(index, member)| scope.spawn(move || turn.take(index + 1, member)))
                .collect();
            let first = turn.take(0, leader);
            let others = threads.into_iter().map(|thread| match thread.join() {
                Ok(share) => share,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            std::iter::once(first).chain(others).collect()
        });
        let failure = self.failure.into_inner();
        if let Some(error) = failure.unwrap_or_else(PoisonError::into_inner) {
            return Err(error);
        }
        let mut block = Block {
            operations: 0,
            rate: 0.0,
            resources: ResourceUse::default(),
            disturbed: false,
        };
        // Only a failure, returned above, or a panic, passed on above, aborts.
        for share in shares
            .into_iter()
            .map(|share| share.expect("nobody aborted"))
        {
            block.operations += share.operations;
            block.rate += share.operations as f64 / share.elapsed.as_secs_f64().max(1e-9);
            block.disturbed |= disturbance::matters(share.lost, share.elapsed);
        }
        if let (Some(before), Some(after)) = (steal, counters::steal()) {
            block.resources.steal = after.saturating_sub(before);
            block.disturbed |= after > before;
        }
        Ok(block)
    }

    /// The whole block of one member; the first phase does not count.
    fn take<M: Member>(&self, number: usize, member: &mut M) -> Result<Share, Aborted> {
        let _guard = self.rendezvous.abort_on_panic();
        self.watcher.joins();
        let mut share = Share::default();
        let mut phase = 0;
        while self.done.load(Ordering::Relaxed) < self.team.members {
            if number == 0 {
                (self.renew)().map_err(|source| self.fail(number, source))?;
            }
            self.rendezvous.spin()?;
            member
                .prepare()
                .map_err(|source| self.fail(number, source))?;
            // Whoever else wants the processor has it now, rather than in the middle of the
            // work. A team of one would never offer it otherwise.
            std::thread::yield_now();
            let own = Lost::now();
            self.rendezvous.spin()?;
            // The first phase does not count.
            let watched = number == 0 && phase > 0;
            if watched {
                self.watcher.begins(self.index);
            }
            let start = Instant::now();
            member.work(self.index);
            let elapsed = start.elapsed();
            if watched {
                self.watcher.ended();
            }
            let lost = Lost::now().since(&own);
            let operations = member.check().map_err(|source| self.fail(number, source))?;
            if phase > 0 {
                let before = share.elapsed;
                share.operations += operations;
                share.elapsed += elapsed;
                share.lost += lost;
                if before < self.time && share.elapsed >= self.time {
                    self.done.fetch_add(1, Ordering::Relaxed);
                }
            }
            phase += 1;
            // Nobody renews or asks whether all are done before all have worked.
            self.rendezvous.spin()?;
        }
        Ok(share)
    }

    fn fail(&self, thread: usize, source: Failure) -> Aborted {
        self.failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_or_insert(Error::Candidate {
                candidate: self.team.name.clone(),
                thread,
                source,
            });
        self.rendezvous.abort();
        Aborted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watcher::Unwatched;
    use crate::watcher::tests::Turns;

    /// Counts what is asked of it, and fails on its nth preparation.
    struct Counter<'c> {
        prepared: bool,
        works: &'c AtomicUsize,
        fails_at: Option<usize>,
    }

    impl Member for Counter<'_> {
        fn prepare(&mut self) -> Result<(), Failure> {
            self.prepared = true;
            match &mut self.fails_at {
                Some(0) => return Err("worn out".into()),
                Some(left) => *left -= 1,
                None => (),
            }
            Ok(())
        }

        fn work(&mut self, _team: usize) {
            assert!(std::mem::take(&mut self.prepared), "work comes prepared");
            self.works.fetch_add(1, Ordering::Relaxed);
            std::thread::sleep(Duration::from_micros(200));
        }

        fn check(&mut self) -> Result<u64, Failure> {
            Ok(3)
        }
    }

    fn plan() -> Plan {
        Plan {
            time: Duration::from_millis(6),
            block: Duration::from_millis(1),
            seed: 1,
        }
    }

    fn teams() -> [Team; 2] {
        [1, 3].map(|members| Team {
            name: members.to_string(),
            members,
        })
    }

    fn members(works: &AtomicUsize) -> [Counter<'_>; 3] {
        [(); 3].map(|()| Counter {
            prepared: false,
            works,
            fails_at: None,
        })
    }

    #[test]
    fn every_phase_is_renewed_prepared_and_worked_by_all_members() {
        let (works, renewals) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let renew = || {
            renewals.fetch_add(1, Ordering::Relaxed);
            Ok(())
        };
        let (mut rounds, watched) = (0, Turns::default());
        let measured = measure(
            &plan(),
            &teams(),
            &mut members(&works),
            renew,
            &watched,
            |round| {
                rounds = round;
                true
            },
        )
        .unwrap();
        assert_eq!(rounds, plan().rounds());
        for run in &measured.runs {
            assert_eq!(run.blocks.len(), rounds);
            assert!(run.blocks.iter().all(|block| block.operations >= 3));
            assert!(run.rate().unwrap().median > 0.0);
        }
        // A phase is one renewal, and one piece of work by each member.
        let one = measured.runs[0].operations() / 3 + rounds as u64;
        let three = measured.runs[1].operations() / 9 + rounds as u64;
        assert_eq!(renewals.into_inner() as u64, one + three);
        assert_eq!(works.into_inner() as u64, one + 3 * three);
        assert!(measured.ratio("3", "1").is_some());
        // Of all phases but the first one of each block it is told whose they are.
        let told = watched.told();
        let of = |team: usize| told.iter().filter(|told| **told == team).count() as u64;
        assert_eq!(of(0), measured.runs[0].operations() / 3);
        assert_eq!(of(1), measured.runs[1].operations() / 9);
    }

    #[test]
    fn it_ends_when_told_to() {
        let works = AtomicUsize::new(0);
        let measured = measure(
            &plan(),
            &teams(),
            &mut members(&works),
            || Ok(()),
            &Unwatched,
            |_| false,
        );
        assert_eq!(measured.unwrap().runs[1].blocks.len(), 1);
    }

    #[test]
    fn a_failure_of_one_ends_all_with_its_name() {
        let works = AtomicUsize::new(0);
        let mut members = members(&works);
        members[2].fails_at = Some(5);
        let error = measure(
            &plan(),
            &teams(),
            &mut members,
            || Ok(()),
            &Unwatched,
            |_| true,
        )
        .unwrap_err();
        let error = error.to_string();
        assert!(error.contains('3') && error.contains("worn out"), "{error}");
        let empty = [Team {
            name: "none".into(),
            members: 0,
        }];
        assert!(
            measure(
                &plan(),
                &empty,
                &mut members,
                || Ok(()),
                &Unwatched,
                |_| true
            )
            .is_err()
        );
        assert!(measure(&plan(), &[], &mut members, || Ok(()), &Unwatched, |_| true).is_err());
    }
}
