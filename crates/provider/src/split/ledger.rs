//! What large calls of a cipher cost, alone and shared, and which way the next one takes.
//!
//! A call that is shared leaves some of its data in another core's cache, where the next one
//! finds it: neither way shows what it is worth in turn with the other. So calls go one way
//! for a while, of which the first tell nothing. Sharing is kept up while its mean, in which
//! every interruption of a worker counts, is well below the time alone. Where it is not,
//! calls go alone, four times as many each time before sharing is tried again, and at least
//! until what the trial cost is a hundredth of what they took.

use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use cipherlane_kernels::job::Direction;

/// Classes of lengths: 512 KiB, 1 MiB, and so on; the last has all that are longer.
const CLASSES: usize = 8;
const FIRST_CLASS: u32 = 19;

/// The first calls of a way that tell nothing.
const UNTOLD: u32 = 2;
/// Then this number of calls tells whether to go on sharing, or refreshes what is known of going
/// alone.
const TRIAL: u32 = 4;
/// Shared calls over which the mean is taken from then on.
const WINDOW: u32 = 64;
/// Windows until the time alone is looked at again.
const WINDOWS: u32 = 16;
/// Calls that go alone after sharing has failed: at first, and at most...
const REST: u32 = 128;
const LONGEST_REST: u32 = 1 << 15;
/// ...unless the trial cost more than one part in this number of their time.
const LOSS: u64 = 100;

/// In a mean a call counts as at most this number of times as long as alone.
const MAX_AT_ONCE: u64 = 16;

/// Sharing must take less than this percentage of the time alone: it takes processor time
/// from others.
const WORTHWHILE: u64 = 95;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Alone,
    Shared,
}

/// For one cipher; by direction and class of length.
pub(crate) struct Ledger([[Mutex<Entry>; CLASSES]; 2]);

impl Ledger {
    pub(crate) const fn new() -> Ledger {
        Ledger([const { [const { Mutex::new(Entry::new()) }; CLASSES] }; 2])
    }

    /// The way that a call with `len` bytes takes, which begins now.
    pub(super) fn turn(&self, direction: Direction, len: usize) -> Turn<'_> {
        let class = len.max(1).ilog2().saturating_sub(FIRST_CLASS) as usize;
        let entry = &self.0[direction as usize][class.min(CLASSES - 1)];
        let (way, told, alone) = match open(entry) {
            Some(mut entry) => {
                let (way, told) = entry.next();
                (way, told, entry.alone)
            }
            None => (Way::Alone, false, 0),
        };
        Turn {
            entry,
            way,
            told,
            alone,
            len,
            began: Instant::now(),
        }
    }
}

/// An entry, unless another thread has it: that may be one of a parent process, which will
/// never give it back.
fn open(entry: &Mutex<Entry>) -> Option<MutexGuard<'_, Entry>> {
    entry.try_lock().ok()
}

/// Times are in picoseconds for 1 KiB.
struct Entry {
    way: Way,
    /// Calls that went this way since the other.
    calls: u32,
    /// After this number of calls it is the other way's turn.
    turn: u32,
    /// What a call takes alone; 0 before that is known.
    alone: u64,
    /// Shared calls of this window, and the sum of their times.
    seen: u32,
    sum: u64,
    windows: u32,
    /// What the trial took beyond the time alone.
    lost: u64,
    rest: u32,
}

impl Entry {
    const fn new() -> Entry {
        Entry {
            way: Way::Alone,
            calls: 0,
            turn: UNTOLD + TRIAL,
            alone: 0,
            seen: 0,
            sum: 0,
            windows: 0,
            lost: 0,
            rest: REST,
        }
    }

    /// The way of the next call, and whether it will tell anything.
    fn next(&mut self) -> (Way, bool) {
        if self.way == Way::Alone && self.calls >= self.turn && self.alone > 0 {
            (self.way, self.calls) = (Way::Shared, 0);
            (self.seen, self.sum, self.windows, self.lost) = (0, 0, 0, 0);
        }
        self.calls = self.calls.saturating_add(1);
        (self.way, self.calls > UNTOLD)
    }

    fn go_alone(&mut self, calls: u32) {
        (self.way, self.calls, self.turn) = (Way::Alone, 0, calls);
    }

    /// Notes how long a call took that went this way, and whether that tells something.
    fn learn(&mut self, way: Way, told: bool, time: u64) {
        match way {
            // One that began before the way was changed tells nothing.
            _ if way != self.way => {}
            Way::Shared => self.learn_shared(told, time),
            Way::Alone if !told => {}
            Way::Alone if self.alone == 0 => self.alone = time.max(1),
            // Faster is believed sooner: one that was interrupted is no measure of what going
            // alone is worth.
            Way::Alone if time < self.alone => self.alone = ((self.alone + time) / 2).max(1),
            Way::Alone => self.alone += (time - self.alone).min(self.alone) / 8,
        }
    }

    fn learn_shared(&mut self, told: bool, time: u64) {
        let on_trial = self.windows == 0 && self.seen < TRIAL;
        if on_trial {
            self.lost = self.lost.saturating_add(time.saturating_sub(self.alone));
        }
        // What is hopeless is seen at once, but the workers may have been started just now.
        if on_trial && time > 2 * self.alone && self.calls > 1 {
            return self.fail();
        }
        if !told {
            return;
        }
        self.seen += 1;
        // One long stop is chance, and befalls callers alone as well.
        self.sum += time.min(MAX_AT_ONCE * self.alone);
        let worthwhile = self.sum * 100 < self.alone * u64::from(self.seen) * WORTHWHILE;
        if (self.seen == WINDOW || on_trial && self.seen == TRIAL) && !worthwhile {
            self.fail();
        } else if self.seen == WINDOW {
            (self.seen, self.sum) = (0, 0);
            self.windows += 1;
            self.rest = REST;
            if self.windows == WINDOWS {
                self.go_alone(UNTOLD + TRIAL);
            }
        }
    }

    fn fail(&mut self) {
        let window = self.sum.saturating_sub(self.alone * u64::from(self.seen));
        let dear = self.lost.max(window).saturating_mul(LOSS) / self.alone.max(1);
        self.go_alone(self.rest.max(dear.try_into().unwrap_or(u32::MAX)));
        self.rest = (self.rest * 4).min(LONGEST_REST);
    }
}

/// One call.
pub(super) struct Turn<'l> {
    entry: &'l Mutex<Entry>,
    way: Way,
    told: bool,
    alone: u64,
    len: usize,
    began: Instant,
}

impl Turn<'_> {
    pub(super) fn way(&self) -> Way {
        self.way
    }

    /// About what the call takes alone, in nanoseconds.
    pub(super) fn alone_ns(&self) -> u64 {
        self.alone * (self.len as u64 / 1024) / 1000
    }

    /// The call is over.
    pub(super) fn end(self) {
        if let Some(mut entry) = open(self.entry) {
            let took = self.began.elapsed();
            entry.learn(self.way, self.told, pace(took, self.len));
        }
    }
}

/// Picoseconds for 1 KiB.
fn pace(took: Duration, len: usize) -> u64 {
    let pace = took.as_nanos() * 1000 * 1024 / len.max(1) as u128;
    // A second a KiB is long enough.
    pace.min(1_000_000_000_000) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALONE: u64 = 50_000;

    /// Makes calls, each of which takes the time that `time` gives for its number and way. Returns
    /// the number of shared calls, and the time of all calls.
    fn run(entry: &mut Entry, calls: u64, time: impl Fn(u64, Way) -> u64) -> (u64, u64) {
        let (mut shared, mut sum) = (0, 0);
        for call in 0..calls {
            let (way, told) = entry.next();
            let time = time(call, way);
            shared += way as u64;
            sum += time;
            entry.learn(way, told, time);
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
        let mut entry = Entry::new();
        assert_eq!(run(&mut entry, 6, always(1)), (0, 6 * ALONE));
        assert_eq!(run(&mut entry, 6, always(1)), (6, 6));
    }

    #[test]
    fn sharing_that_does_not_pay_costs_nearly_nothing() {
        for shared in [ALONE - ALONE / 25, ALONE, 60_000, 99_000, 150_000, 500_000] {
            let mut entry = Entry::new();
            let (_, time) = run(&mut entry, 20_000, always(shared));
            let most = ALONE * 20_000 * 101 / 100;
            assert!(time < most, "{shared}: {time} of {most}");
        }
    }

    #[test]
    fn sharing_that_pays_is_used() {
        for shared in [10_000, 25_000, 40_000, 47_000] {
            let mut entry = Entry::new();
            let (count, _) = run(&mut entry, 10_000, always(shared));
            assert!(count > 9_900, "{shared}: {count}");
        }
    }

    #[test]
    fn a_trial_that_was_dear_is_not_soon_made_again() {
        let mut entry = Entry::new();
        let (count, time) = run(&mut entry, 19_000, always(100 * ALONE));
        assert_eq!(count, 2);
        assert!(time < ALONE * 19_000 * 102 / 100, "{time}");
    }

    #[test]
    fn a_rare_interruption_ends_nothing() {
        let mut entry = Entry::new();
        let (count, _) = run(&mut entry, 10_000, |call, way| match way {
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
        let mut entry = Entry::new();
        let (count, time) = run(&mut entry, 50_000, often);
        assert!(count < 2_500, "{count}");
        assert!(time < ALONE * 50_000 * 103 / 100, "{time}");
    }

    #[test]
    fn a_change_is_noticed() {
        let mut entry = Entry::new();
        run(&mut entry, 1000, always(25_000));
        // Another program has come to the workers' cores, and goes again.
        run(&mut entry, u64::from(WINDOW), always(400_000));
        let (count, _) = run(&mut entry, 1000, always(400_000));
        assert!(count < 20, "{count}");
        run(&mut entry, u64::from(LONGEST_REST), always(25_000));
        let (count, _) = run(&mut entry, 1000, always(25_000));
        assert!(count > 900, "{count}");
        // Alone has become faster than sharing.
        let turned = |_, way| [10_000, 25_000][way as usize];
        run(&mut entry, 2 * u64::from(WINDOW * WINDOWS), turned);
        let (count, _) = run(&mut entry, 1000, turned);
        assert!(count < 20, "{count}");
    }

    #[test]
    fn sharing_is_not_judged_before_the_time_alone_is_known() {
        let mut entry = Entry::new();
        // Many threads begin at once, and none has ended.
        for _ in 0..100 {
            assert_eq!(entry.next().0, Way::Alone);
        }
        entry.learn(Way::Alone, true, ALONE);
        assert_eq!(run(&mut entry, 6, always(25_000)).0, 6);
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
