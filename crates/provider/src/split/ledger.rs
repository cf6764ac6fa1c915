//! What large calls of a cipher cost, alone and shared, and which way the next one takes.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

use cipherlane_kernels::job::Direction;

/// Classes of lengths: 512 KiB, 1 MiB, and so on; the last has all that are longer.
const CLASSES: usize = 8;
const FIRST_CLASS: u32 = 19;

/// So many calls go both ways in turn before either is preferred. The first of each way
/// tells nothing: memory is new to it, and workers are just starting.
const TRIALS: u32 = 6;
const UNTOLD: u32 = 2;

/// Then one in so many goes the other way, or fewer where that is much slower: what is lost
/// by it is less than one part in so many.
const RETRIAL: u64 = 128;

/// Shared is preferred where it takes less than this percentage of the time, since it takes
/// processor time from others.
const PREFERRED: u64 = 97;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Alone = 0,
    Shared = 1,
}

impl Way {
    fn other(self) -> Way {
        match self {
            Way::Alone => Way::Shared,
            Way::Shared => Way::Alone,
        }
    }
}

/// For one cipher; by direction and class of length.
pub(crate) struct Ledger([[Entry; CLASSES]; 2]);

struct Entry {
    calls: AtomicU32,
    /// Learned picoseconds for 1 KiB, each way; 0 before there are any.
    paces: [AtomicU32; 2],
}

impl Ledger {
    pub(crate) const fn new() -> Ledger {
        Ledger([const { [const { Entry::new() }; CLASSES] }; 2])
    }

    /// The way that a call with so much data takes, which begins now.
    pub(super) fn turn(&self, direction: Direction, len: usize) -> Turn<'_> {
        let class = len.max(1).ilog2().saturating_sub(FIRST_CLASS) as usize;
        let entry = &self.0[direction as usize][class.min(CLASSES - 1)];
        let call = entry.calls.fetch_add(1, Relaxed);
        Turn {
            entry,
            way: entry.way(call),
            told: call >= UNTOLD,
            len,
            began: Instant::now(),
        }
    }
}

impl Entry {
    const fn new() -> Entry {
        Entry {
            calls: AtomicU32::new(0),
            paces: [const { AtomicU32::new(0) }; 2],
        }
    }

    fn pace(&self, way: Way) -> u64 {
        self.paces[way as usize].load(Relaxed).into()
    }

    fn way(&self, call: u32) -> Way {
        if call < TRIALS {
            return if call.is_multiple_of(2) {
                Way::Alone
            } else {
                Way::Shared
            };
        }
        let better = match self.pace(Way::Shared) * 100 < self.pace(Way::Alone) * PREFERRED {
            true => Way::Shared,
            false => Way::Alone,
        };
        let (best, worst) = (self.pace(better), self.pace(better.other()));
        let every = RETRIAL * worst.div_ceil(best.max(1)).max(1);
        match (u64::from(call - TRIALS) + 1).is_multiple_of(every) {
            true => better.other(),
            false => better,
        }
    }

    fn learn(&self, way: Way, len: usize, took: Duration) {
        let seen = took.as_nanos() * 1000 * 1024 / len.max(1) as u128;
        let seen = seen.clamp(1, u32::MAX.into()) as u32;
        let pace = &self.paces[way as usize];
        let old = pace.load(Relaxed);
        // Faster is believed sooner: slower may be an interruption.
        let new = match old {
            0 => seen,
            _ if seen < old => old - (old - seen).div_ceil(2),
            _ => old + (seen - old).min(old).div_ceil(8),
        };
        pace.store(new, Relaxed);
    }
}

/// One call.
pub(super) struct Turn<'l> {
    entry: &'l Entry,
    way: Way,
    told: bool,
    len: usize,
    began: Instant,
}

impl Turn<'_> {
    pub(super) fn way(&self) -> Way {
        self.way
    }

    /// About what the call takes alone, in nanoseconds; a fast core's time before one is
    /// known.
    pub(super) fn alone_ns(&self) -> u64 {
        let pace = match self.entry.pace(Way::Alone) {
            0 => 100 << 10,
            pace => pace,
        };
        pace * (self.len as u64 / 1024) / 1000
    }

    /// The call is over.
    pub(super) fn end(self) {
        if self.told {
            self.entry.learn(self.way, self.len, self.began.elapsed());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEN: usize = 1 << 20;

    /// So many calls, with times in microseconds for a MiB; the calls that were shared, and
    /// the time of all.
    fn run(entry: &Entry, calls: u32, alone: u64, shared: u64) -> (u32, u64) {
        let (mut count, mut sum) = (0, 0);
        for _ in 0..calls {
            let call = entry.calls.fetch_add(1, Relaxed);
            let way = entry.way(call);
            let time = [alone, shared][way as usize];
            (count, sum) = (count + way as u32, sum + time);
            if call >= UNTOLD {
                entry.learn(way, LEN, Duration::from_micros(time));
            }
        }
        (count, sum)
    }

    #[test]
    fn both_ways_are_tried_before_one_is_preferred() {
        let (shared, _) = run(&Entry::new(), TRIALS, 50, 500);
        assert_eq!(shared, TRIALS / 2);
    }

    #[test]
    fn sharing_that_does_not_pay_costs_nearly_nothing() {
        for shared in [49, 50, 60, 150, 5000] {
            let entry = Entry::new();
            run(&entry, TRIALS, 50, shared);
            let (_, time) = run(&entry, 10_000, 50, shared);
            assert!(time < 50 * 10_000 * 102 / 100, "{shared}: {time}");
        }
    }

    #[test]
    fn sharing_that_pays_is_used() {
        for shared in [10, 25, 40, 47] {
            let entry = Entry::new();
            run(&entry, TRIALS, 50, shared);
            let (count, _) = run(&entry, 10_000, 50, shared);
            assert!(count > 9_900, "{shared}: {count}");
        }
    }

    #[test]
    fn a_change_is_noticed() {
        let entry = Entry::new();
        run(&entry, 1000, 50, 25);
        // Another program has come to the workers' cores, and goes again.
        run(&entry, 20, 50, 400);
        let (count, _) = run(&entry, 1000, 50, 400);
        assert!(count < 20, "{count}");
        run(&entry, 40_000, 50, 25);
        let (count, _) = run(&entry, 1000, 50, 25);
        assert!(count > 900, "{count}");
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
        let calls = |direction: usize| {
            ledger.0[direction]
                .each_ref()
                .map(|e| e.calls.load(Relaxed))
        };
        assert_eq!(calls(0), [2, 1, 0, 0, 0, 0, 0, 2]);
        assert_eq!(calls(1), calls(0));
    }

    #[test]
    fn what_one_core_takes_is_a_guess_and_then_known() {
        let ledger = Ledger::new();
        let guess = ledger.turn(Direction::Encrypt, LEN).alone_ns();
        assert_eq!(guess, 104_857);
        ledger.0[0][1].learn(Way::Alone, LEN, Duration::from_micros(50));
        let known = ledger.turn(Direction::Encrypt, LEN).alone_ns();
        assert!((49_900..50_100).contains(&known), "{known}");
    }
}
