//! Whom to wake, and when a wake-up pays.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use super::sleep::Beds;

/// A sleeper's wake-up before one was measured, in nanoseconds.
const FIRST_DELAY: u32 = 50_000;
/// What a caller loses, at the least, that would hand over work but finds all asleep.
const MISSED_ASK: u32 = 500;

/// The sleepers of a pool and what waking one costs.
pub(super) struct Wakes {
    beds: Beds,
    began: Instant,
    /// Learned time from a call to the sleeper's first look for work, in nanoseconds.
    delay: AtomicU32,
    /// Nanoseconds that callers lost because all slept, since one was last called.
    missed: AtomicU32,
}

impl Wakes {
    pub(super) fn new(workers: usize) -> Self {
        Wakes {
            beds: Beds::new(workers),
            began: Instant::now(),
            delay: AtomicU32::new(FIRST_DELAY),
            missed: AtomicU32::new(0),
        }
    }

    /// A worker sleeps until called, unless `work` finds something to do; its wake-up is
    /// measured.
    pub(super) fn sleep(&self, worker: usize, work: impl Fn() -> bool) {
        if let Some(called) = self.beds.sleep(worker, work) {
            self.learn(self.now().saturating_sub(called));
        }
    }

    /// Calls helpers, `most` at most, for published work of a caller that works as well.
    /// A stale view of who sleeps costs help, not progress.
    #[inline]
    pub(super) fn help(&self, most: u32, alone_ns: impl FnOnce() -> u64) {
        if self.beds.asleep() > 0 {
            self.call_helpers(most, alone_ns());
        }
    }

    /// For long work at once, for short work when enough of it went by without help.
    #[cold]
    fn call_helpers(&self, most: u32, alone_ns: u64) {
        let useful = self.useful(most, alone_ns);
        if useful > 0 {
            self.missed.store(0, Ordering::Relaxed);
            self.beds.wake(useful, self.now());
        } else {
            self.miss((alone_ns / 2) as u32);
        }
    }

    /// Sees to it that somebody is awake for published work that nobody waits for.
    pub(super) fn serve(&self, most: u32, alone_ns: u64, workers: usize) {
        self.beds.publish();
        let asleep = self.beds.asleep();
        if asleep > 0 {
            let idle = asleep as usize >= workers;
            let calls = self.useful(most, alone_ns).max(u32::from(idle));
            self.beds.wake(calls.min(asleep), self.now());
        }
    }

    /// How many sleepers are worth their wake-up.
    fn useful(&self, most: u32, alone_ns: u64) -> u32 {
        (alone_ns / u64::from(self.delay().max(1))).min(most.into()) as u32
    }

    /// Calls everybody, after a change that all must see.
    pub(super) fn wake_all(&self) {
        self.beds.publish();
        self.beds.wake(u32::MAX, self.now());
    }

    /// Counts what was lost because all slept; a sleeper is called when the sum would
    /// have paid for it.
    fn miss(&self, ns: u32) {
        let missed = self.missed.fetch_add(ns, Ordering::Relaxed);
        if missed.saturating_add(ns) > self.delay() {
            self.missed.store(0, Ordering::Relaxed);
            self.beds.wake(1, self.now());
        }
    }

    /// Nanoseconds until a worker can begin: none while one is awake. Being asked is a
    /// sign that there is work for them.
    pub(super) fn delay_now(&self, workers: usize) -> u32 {
        if (self.beds.asleep() as usize) < workers {
            return 0;
        }
        self.miss(MISSED_ASK);
        self.delay()
    }

    fn delay(&self) -> u32 {
        self.delay.load(Ordering::Relaxed)
    }

    /// Learns from one wake-up.
    fn learn(&self, seen: u64) {
        let (seen, old) = (seen.min(10_000_000) as u32, self.delay());
        // Shorter is believed sooner: longer may be another program on the core.
        let new = match seen < old {
            true => (old + seen) / 2,
            false => old + 1 + (seen - old).min(old) / 8,
        };
        self.delay.store(new, Ordering::Relaxed);
    }

    fn now(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_delay_follows_what_is_seen() {
        let wakes = Wakes::new(1);
        for _ in 0..40 {
            wakes.learn(3000);
        }
        assert!((2500..3500).contains(&wakes.delay()), "{}", wakes.delay());
        // One interruption changes little; a lasting change is followed.
        wakes.learn(9_000_000);
        assert!(wakes.delay() < 4000, "{}", wakes.delay());
        for _ in 0..100 {
            wakes.learn(60_000);
        }
        assert!(
            (50_000..70_000).contains(&wakes.delay()),
            "{}",
            wakes.delay()
        );
        for _ in 0..100 {
            wakes.learn(0);
        }
        wakes.learn(100);
        assert!(wakes.delay() > 0, "it can rise again");
    }
}
