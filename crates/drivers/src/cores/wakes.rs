//! Whom to wake, and when that pays.

use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::calls::Calls;
use super::sleep::Sleepers;

/// The sleepers of a pool and what waking one costs.
pub(super) struct Wakes {
    sleepers: Sleepers,
    began: Instant,
    calls: Calls,
    /// Workers that were called and do not work yet. For a moment it may be less than zero.
    coming: AtomicI32,
    /// When the last of them was called.
    called: AtomicU64,
}

impl Wakes {
    /// For workers that look for work for `spin` before they sleep.
    pub(super) fn new(workers: usize, spin: Duration) -> Self {
        Wakes {
            sleepers: Sleepers::new(workers),
            began: Instant::now(),
            calls: Calls::new(spin.as_nanos() as u64),
            coming: AtomicI32::new(0),
            called: AtomicU64::new(0),
        }
    }

    /// A worker sleeps until called, unless `work` finds something to do; its wake-up is
    /// measured.
    pub(super) fn sleep(&self, worker: usize, work: impl Fn() -> bool) {
        if let Some(called) = self.sleepers.sleep(worker, work) {
            self.coming.fetch_sub(1, Ordering::Relaxed);
            self.calls.learn(self.now().saturating_sub(called));
        }
    }

    /// Calls helpers, `most` at most, for published work of a caller that works as well, where
    /// that pays. A stale view of who sleeps costs help, not progress.
    #[inline]
    pub(super) fn help(&self, most: u32, alone_ns: u64) {
        if self.sleepers.asleep() > 0 {
            self.call_helpers(most, alone_ns);
        }
    }

    #[cold]
    fn call_helpers(&self, most: u32, alone_ns: u64) {
        let useful = self.calls.at_once(most, alone_ns);
        if useful > 0 {
            self.calls.called();
            self.call(useful, self.now());
        } else {
            self.lose((alone_ns / 2) as u32);
        }
    }

    /// Whether a caller that waits works alone: all sleep, and neither this work nor what was
    /// lost before it is worth a wake-up.
    #[inline]
    pub(super) fn works_alone(&self, workers: usize, alone_ns: u64) -> bool {
        let asleep = self.sleepers.asleep() as usize >= workers;
        asleep && self.calls.at_once(1, alone_ns) == 0 && !self.lose((alone_ns / 2) as u32)
    }

    /// Sees to it that somebody is awake for published work that nobody waits for.
    pub(super) fn serve(&self, most: u32, alone_ns: u64, workers: usize) {
        self.sleepers.publish();
        let asleep = self.sleepers.asleep();
        if asleep > 0 {
            let idle = asleep as usize >= workers;
            let calls = self.calls.at_once(most, alone_ns).max(u32::from(idle));
            self.call(calls.min(asleep), self.now());
        }
    }

    /// Calls everybody, after a change that all must see.
    pub(super) fn wake_all(&self) {
        self.sleepers.publish();
        self.call(u32::MAX, self.now());
    }

    /// Calls up to `most` sleepers, and says how many.
    fn call(&self, most: u32, now: u64) -> u32 {
        self.called.store(now, Ordering::Relaxed);
        let called = self.sleepers.wake(most, now);
        self.coming.fetch_add(called as i32, Ordering::Relaxed);
        called
    }

    /// Notes that a caller lost `nanoseconds` because all workers sleep. Calls a worker, and
    /// says so, when that pays.
    pub(super) fn lose(&self, nanoseconds: u32) -> bool {
        let now = self.now();
        self.calls.lose(now, nanoseconds) && self.call(1, now) > 0
    }

    /// Nanoseconds until a worker can begin: none while one is awake.
    pub(super) fn delay_now(&self, workers: usize) -> u32 {
        let workers = workers as i32;
        let up = workers - self.sleepers.asleep() as i32;
        let coming = self.coming.load(Ordering::Relaxed).max(0);
        if up > coming {
            return 0;
        }
        let delay = self.calls.delay();
        match up > 0 && coming > 0 {
            // It was called some time ago.
            true => {
                let since = self
                    .now()
                    .saturating_sub(self.called.load(Ordering::Relaxed));
                delay.saturating_sub(since.try_into().unwrap_or(u32::MAX))
            }
            false => delay,
        }
    }

    fn now(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }
}
