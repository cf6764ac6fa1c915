//! What large calls of a cipher cost alone and shared with workers, and which way the next call
//! takes.
//!
//! A call that is shared leaves some of its data in the cache of another core, where the next call
//! finds the data. So calls that take both ways by turns show the worth of neither way. Instead,
//! calls take one way for a while, and the first calls after a change do not count. Calls are
//! shared for as long as their mean time is well below the time of a call alone; interruptions of
//! a worker count in that mean. When the mean is not below, calls go alone for a pause before
//! sharing is tried again. Each pause has four times as many calls as the pause before, and lasts
//! at least until the loss by the trial is a hundredth of the time of these calls.

use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use cipherlane_kernels::job::Direction;

/// Classes of lengths: 512 KiB, 1 MiB, and so on. The last class has all longer calls.
const CLASSES: usize = 8;
const FIRST_CLASS: u32 = 19;

/// The first calls after a change of the way, which do not count.
const UNCOUNTED_CALLS: u32 = 2;
/// This number of calls then decides whether calls are shared further, or measures a call alone
/// again.
const TRIAL_CALLS: u32 = 4;
/// Later, the mean is taken over this number of shared calls, which are a window.
const WINDOW_CALLS: u32 = 64;
/// Windows of shared calls before some calls go alone, to measure that time again.
const WINDOWS_BEFORE_ALONE: u32 = 16;
/// Calls that go alone after sharing has failed for the first time.
const FIRST_PAUSE: u32 = 128;
/// The most calls that go alone then, unless the trial lost a lot of time.
const LONGEST_PAUSE: u32 = 1 << 15;
/// After a trial that lost time, calls go alone for at least this many times the loss.
const TIME_PER_LOSS: u64 = 100;

/// A shared call counts in the mean as at most this many times the time of a call alone.
const MAX_RATIO: u64 = 16;

/// A shared call must take less than this percentage of the time of a call alone, since sharing
/// takes processor time from other programs.
const WORTHWHILE_PERCENT: u64 = 95;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Alone,
    Shared,
}

/// The costs of one cipher, by direction and class of length.
pub(crate) struct Ledger([[Mutex<Costs>; CLASSES]; 2]);

impl Ledger {
    pub(crate) const fn new() -> Ledger {
        Ledger([const { [const { Mutex::new(Costs::new()) }; CLASSES] }; 2])
    }

    /// Chooses the way of a call with `len` bytes, which begins now.
    pub(super) fn turn(&self, direction: Direction, len: usize) -> Turn<'_> {
        let class = len.max(1).ilog2().saturating_sub(FIRST_CLASS) as usize;
        let costs = &self.0[direction as usize][class.min(CLASSES - 1)];
        let (way, counts, alone) = match open(costs) {
            Some(mut costs) => {
                let (way, counts) = costs.next();
                (way, counts, costs.alone)
            }
            None => (Way::Alone, false, 0),
        };
        Turn {
            costs,
            way,
            counts,
            alone,
            len,
            began: Instant::now(),
        }
    }
}

/// The costs, unless another thread has locked them. That thread may belong to the parent process,
/// and then it never unlocks them in this process.
fn open(costs: &Mutex<Costs>) -> Option<MutexGuard<'_, Costs>> {
    costs.try_lock().ok()
}

/// What is known of calls of one class. Times are in picoseconds per KiB.
struct Costs {
    way: Way,
    /// Calls that have taken this way since the last change.
    calls: u32,
    /// The number of calls after which the way changes.
    turn_after: u32,
    /// The time of a call alone; 0 while it is not known.
    alone: u64,
    /// Shared calls of this window that count, and the sum of their times.
    shared_calls: u32,
    shared_time: u64,
    /// Windows of shared calls since the last change.
    windows: u32,
    /// The time that the trial has taken beyond that of the same calls alone.
    trial_loss: u64,
    /// Calls that go alone after sharing has failed the next time.
    pause: u32,
}

impl Costs {
    const fn new() -> Costs {
        Costs {
            way: Way::Alone,
            calls: 0,
            turn_after: UNCOUNTED_CALLS + TRIAL_CALLS,
            alone: 0,
            shared_calls: 0,
            shared_time: 0,
            windows: 0,
            trial_loss: 0,
            pause: FIRST_PAUSE,
        }
    }

    /// The way of the next call, and whether the call counts.
    fn next(&mut self) -> (Way, bool) {
        if self.way == Way::Alone && self.calls >= self.turn_after && self.alone > 0 {
            (self.way, self.calls) = (Way::Shared, 0);
            (
                self.shared_calls,
                self.shared_time,
                self.windows,
                self.trial_loss,
            ) = (0, 0, 0, 0);
        }
        self.calls = self.calls.saturating_add(1);
        (self.way, self.calls > UNCOUNTED_CALLS)
    }

    fn go_alone(&mut self, calls: u32) {
        (self.way, self.calls, self.turn_after) = (Way::Alone, 0, calls);
    }

    /// Notes how long a call took.
    fn learn(&mut self, way: Way, counts: bool, time: u64) {
        match way {
            // The call began before the way changed.
            _ if way != self.way => {}
            Way::Shared => self.learn_shared(counts, time),
            Way::Alone if !counts => {}
            Way::Alone if self.alone == 0 => self.alone = time.max(1),
            // A faster call counts for more, since a slower one may have been interrupted.
            Way::Alone if time < self.alone => self.alone = ((self.alone + time) / 2).max(1),
            Way::Alone => self.alone += (time - self.alone).min(self.alone) / 8,
        }
    }

    fn learn_shared(&mut self, counts: bool, time: u64) {
        let on_trial = self.windows == 0 && self.shared_calls < TRIAL_CALLS;
        if on_trial {
            self.trial_loss = self
                .trial_loss
                .saturating_add(time.saturating_sub(self.alone));
        }
        // One call shows that sharing is hopeless, but not the first: the workers may just have
        // been started.
        if on_trial && time > 2 * self.alone && self.calls > 1 {
            return self.fail();
        }
        if !counts {
            return;
        }
        self.shared_calls += 1;
        // A single long interruption is chance, and happens to calls alone as well.
        self.shared_time += time.min(MAX_RATIO * self.alone);
        let worthwhile =
            self.shared_time * 100 < self.alone * u64::from(self.shared_calls) * WORTHWHILE_PERCENT;
        if (self.shared_calls == WINDOW_CALLS || on_trial && self.shared_calls == TRIAL_CALLS)
            && !worthwhile
        {
            self.fail();
        } else if self.shared_calls == WINDOW_CALLS {
            (self.shared_calls, self.shared_time) = (0, 0);
            self.windows += 1;
            self.pause = FIRST_PAUSE;
            if self.windows == WINDOWS_BEFORE_ALONE {
                self.go_alone(UNCOUNTED_CALLS + TRIAL_CALLS);
            }
        }
    }

    fn fail(&mut self) {
        let window = self
            .shared_time
            .saturating_sub(self.alone * u64::from(self.shared_calls));
        let dear = self.trial_loss.max(window).saturating_mul(TIME_PER_LOSS) / self.alone.max(1);
        self.go_alone(self.pause.max(dear.try_into().unwrap_or(u32::MAX)));
        self.pause = (self.pause * 4).min(LONGEST_PAUSE);
    }
}

/// A call under way, which [`Turn::end`] measures.
pub(super) struct Turn<'l> {
    costs: &'l Mutex<Costs>,
    way: Way,
    counts: bool,
    alone: u64,
    len: usize,
    began: Instant,
}

impl Turn<'_> {
    pub(super) fn way(&self) -> Way {
        self.way
    }

    /// The time that the call would take alone, in nanoseconds, by estimate.
    pub(super) fn alone_ns(&self) -> u64 {
        self.alone * (self.len as u64 / 1024) / 1000
    }

    /// Notes that the call is over.
    pub(super) fn end(self) {
        if let Some(mut costs) = open(self.costs) {
            let took = self.began.elapsed();
            costs.learn(self.way, self.counts, pace(took, self.len));
        }
    }
}

/// Picoseconds per KiB.
fn pace(took: Duration, len: usize) -> u64 {
    let pace = took.as_nanos() * 1000 * 1024 / len.max(1) as u128;
    // No call is assumed to take longer than a second per KiB.
    pace.min(1_000_000_000_000) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALONE: u64 = 50_000;

    /// Makes calls, each of which takes the time that `time` gives for its number and way. Returns
    /// the number of shared calls, and the time of all calls.
    fn run(costs: &mut Costs, calls: u64, time: impl Fn(u64, Way) -> u64) -> (u64, u64) {
        let (mut shared, mut sum) = (0, 0);
        for call in 0..calls {
            let (way, counts) = costs.next();
            let time = time(call, way);
            shared += way as u64;
            sum += time;
            costs.learn(way, counts, time);
        }
        (shared, sum)
    }

    /// Whatever the call's number.
    fn always(shared: u64) -> impl Fn(u64, Way) -> u64 {
        move |_, way| match way {
            Way::Alone => ALONE,
            Way::Shared => shared,
        }
    }

    #[test]
    fn the_first_calls_go_alone_and_then_sharing_is_tried() {
        let mut costs = Costs::new();
        assert_eq!(run(&mut costs, 6, always(1)), (0, 6 * ALONE));
        assert_eq!(run(&mut costs, 6, always(1)), (6, 6));
    }

    #[test]
    fn sharing_that_does_not_pay_costs_nearly_nothing() {
        for shared in [ALONE - ALONE / 25, ALONE, 60_000, 99_000, 150_000, 500_000] {
            let mut costs = Costs::new();
            let (_, time) = run(&mut costs, 20_000, always(shared));
            let most = ALONE * 20_000 * 101 / 100;
            assert!(time < most, "{shared}: {time} of {most}");
        }
    }

    #[test]
    fn sharing_that_pays_is_used() {
        for shared in [10_000, 25_000, 40_000, 47_000] {
            let mut costs = Costs::new();
            let (count, _) = run(&mut costs, 10_000, always(shared));
            assert!(count > 9_900, "{shared}: {count}");
        }
    }

    #[test]
    fn a_trial_that_was_dear_is_not_soon_made_again() {
        let mut costs = Costs::new();
        let (count, time) = run(&mut costs, 19_000, always(100 * ALONE));
        assert_eq!(count, 2);
        assert!(time < ALONE * 19_000 * 102 / 100, "{time}");
    }

    #[test]
    fn a_rare_interruption_ends_nothing() {
        let mut costs = Costs::new();
        let (count, _) = run(&mut costs, 10_000, |call, way| match way {
            Way::Shared if call % 500 == 99 => 600 * ALONE,
            way => always(25_000)(call, way),
        });
        assert!(count > 9_000, "{count}");
    }

    #[test]
    fn a_worker_that_often_loses_its_core_is_done_without() {
        // Mostly it takes half of the time, and one in ten times ten times as long.
        let often = |call, way| match way {
            Way::Shared if call % 10 == 3 => 10 * ALONE,
            way => always(25_000)(call, way),
        };
        let mut costs = Costs::new();
        let (count, time) = run(&mut costs, 50_000, often);
        assert!(count < 2_500, "{count}");
        assert!(time < ALONE * 50_000 * 103 / 100, "{time}");
    }

    #[test]
    fn a_change_is_noticed() {
        let mut costs = Costs::new();
        run(&mut costs, 1000, always(25_000));
        // Another program has come to the workers' cores, and goes again.
        run(&mut costs, u64::from(WINDOW_CALLS), always(400_000));
        let (count, _) = run(&mut costs, 1000, always(400_000));
        assert!(count < 20, "{count}");
        run(&mut costs, u64::from(LONGEST_PAUSE), always(25_000));
        let (count, _) = run(&mut costs, 1000, always(25_000));
        assert!(count > 900, "{count}");
        // Alone has become faster than sharing.
        let turned = |_, way| [10_000, 25_000][way as usize];
        run(
            &mut costs,
            2 * u64::from(WINDOW_CALLS * WINDOWS_BEFORE_ALONE),
            turned,
        );
        let (count, _) = run(&mut costs, 1000, turned);
        assert!(count < 20, "{count}");
    }

    #[test]
    fn sharing_is_not_judged_before_the_time_alone_is_known() {
        let mut costs = Costs::new();
        // Many threads begin at once, and none has ended.
        for _ in 0..100 {
            assert_eq!(costs.next().0, Way::Alone);
        }
        costs.learn(Way::Alone, true, ALONE);
        assert_eq!(run(&mut costs, 6, always(25_000)).0, 6);
    }

    #[test]
    fn lengths_and_directions_are_told_apart() {
        let ledger = Ledger::new();
        let lens = [1 << 19, (1 << 20) - 1, 1 << 20, 1 << 26, 1 << 30];
        for direction in [Direction::Encrypt, Direction::Decrypt] {
            for len in lens {
                ledger.turn(direction, len).end();
            }
        }
        let calls = |way: usize| ledger.0[way].each_ref().map(|e| e.lock().unwrap().calls);
        assert_eq!(calls(0), [2, 1, 0, 0, 0, 0, 0, 2]);
        assert_eq!(calls(1), calls(0));
    }

    #[test]
    fn an_entry_that_somebody_has_is_done_without() {
        let ledger = Ledger::new();
        let had = ledger.0[0][0].lock().unwrap();
        for _ in 0..100 {
            let turn = ledger.turn(Direction::Encrypt, 1 << 19);
            assert_eq!(turn.way(), Way::Alone);
            turn.end();
        }
        assert_eq!(had.calls, 0);
    }

    #[test]
    fn times_are_by_length() {
        assert_eq!(pace(Duration::from_micros(50), 1 << 20), 48_828);
        let ledger = Ledger::new();
        ledger.0[0][1].lock().unwrap().alone = 48_828;
        let turn = ledger.turn(Direction::Encrypt, 1 << 20);
        assert!((49_900..50_100).contains(&turn.alone_ns()));
    }
}
