//! How fast one core is, learned from calls.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

/// The slowest pace, in femtoseconds per byte.
pub(super) const SLOWEST: u64 = 1_000_000_000;
/// One in this number of calls of a thread is timed.
const SAMPLE_EVERY: u32 = 64;

thread_local! {
    /// Calls until one is timed.
    static UNTIL_SAMPLE: Cell<u32> = const { Cell::new(0) };
}

/// Whether this thread should time the call.
#[inline]
pub(super) fn sample() -> bool {
    let left = UNTIL_SAMPLE.get();
    UNTIL_SAMPLE.set(left.checked_sub(1).unwrap_or(SAMPLE_EVERY));
    left == 0
}

/// The nanoseconds that bytes take at a pace in femtoseconds per byte.
#[inline]
pub(super) fn nanoseconds(bytes: usize, pace: u32) -> u64 {
    (bytes as u64).saturating_mul(pace.into()) / 1_000_000
}

/// Learned femtoseconds per byte of one core.
pub(super) struct Pace(AtomicU32);

impl Pace {
    /// A pace that calls change.
    pub(super) fn from(first: u32) -> Self {
        Pace(AtomicU32::new(first))
    }

    /// Estimated nanoseconds of one core.
    #[inline]
    pub(super) fn alone_ns(&self, bytes: usize) -> u64 {
        nanoseconds(bytes, self.0.load(Ordering::Relaxed))
    }

    /// Learns from what one thread did.
    #[cold]
    pub(super) fn learn(&self, watch: Watch) {
        let Some(nanoseconds) = watch.nanoseconds.filter(|_| watch.bytes > 0) else {
            return;
        };
        let seen = nanoseconds.saturating_mul(1_000_000) / watch.bytes as u64;
        let old = u64::from(self.0.load(Ordering::Relaxed));
        // Faster is believed sooner: slower may be an interruption.
        let new = match seen < old {
            true => (old + seen) / 2,
            false => old + 1 + (seen - old).min(old) / 8,
        };
        self.0
            .store(new.clamp(1, SLOWEST) as u32, Ordering::Relaxed);
    }
}

/// The work of one thread in one call, with a clock beside it where that is wanted.
#[derive(Default)]
pub(super) struct Watch {
    started: Option<Instant>,
    nanoseconds: Option<u64>,
    /// What was done until the watch was stopped.
    pub(super) bytes: usize,
}

impl Watch {
    /// One that measures.
    pub(super) fn start() -> Self {
        Watch {
            started: Some(Instant::now()),
            ..Watch::default()
        }
    }

    /// The thread has no more to do; counts the first time.
    #[inline]
    pub(super) fn stop(&mut self) {
        if let Some(started) = self.started.take() {
            self.nanoseconds = Some(started.elapsed().as_nanos() as u64);
        }
    }

    /// Whether it has measured.
    #[inline]
    pub(super) fn has_stopped(&self) -> bool {
        self.nanoseconds.is_some()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn seen(bytes: usize, nanoseconds: u64) -> Watch {
        Watch {
            started: None,
            nanoseconds: Some(nanoseconds),
            bytes,
        }
    }

    #[test]
    fn the_pace_follows_what_is_seen() {
        let pace = Pace::from(100_000);
        assert_eq!(pace.alone_ns(1_000_000), 100_000);
        for _ in 0..20 {
            pace.learn(seen(1_000_000, 25_000));
        }
        assert!((25_000..27_000).contains(&pace.alone_ns(1_000_000)));
        // One interruption changes little; a lasting change is followed.
        pace.learn(seen(1000, 10_000_000));
        assert!(pace.alone_ns(1_000_000) < 32_000);
        for _ in 0..200 {
            pace.learn(seen(1_000_000, 400_000));
        }
        assert!((390_000..=401_000).contains(&pace.alone_ns(1_000_000)));
        // A thread that did nothing, or had no clock, tells nothing.
        pace.learn(seen(0, 5));
        pace.learn(Watch::default());
        assert!((390_000..=401_000).contains(&pace.alone_ns(1_000_000)));
    }

    #[test]
    fn a_watch_measures_until_it_is_stopped_first() {
        let mut watch = Watch::start();
        assert!(!watch.has_stopped());
        watch.stop();
        let first = watch.nanoseconds;
        assert!(watch.has_stopped());
        std::thread::sleep(std::time::Duration::from_millis(1));
        watch.stop();
        assert_eq!(watch.nanoseconds, first);
        let mut none = Watch::default();
        none.stop();
        assert!(!none.has_stopped());
    }
}
