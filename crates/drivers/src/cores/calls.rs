//! When a sleeping worker is called, decided from times alone.
//!
//! A worker that is called comes after tens of microseconds, and sleeps again when it has found
//! nothing to do for [`Settings::spin`](super::Settings::spin). So a call pays at once for work
//! that is longer than the wake-up, and for shorter work only if more such work follows before
//! the worker sleeps again. What callers lose by working alone is added up while their calls
//! follow one another closely, and a worker is called when the sum has reached the price of the
//! wake-up: callers then lose at most twice what they would have lost by calling at once, and a
//! caller that pauses after each call wakes a worker in vain only now and then, where its work takes
//! about as long as a wake-up: nothing else would show that wake-ups have become shorter.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The wake-up of a worker before one was measured, in nanoseconds.
const FIRST_DELAY: u32 = 50_000;
/// Where a worker is believed to come too late, it is called for one in this many pieces of work all
/// the same, if they take longer than this part of the learned wake-up.
const CALL_ANYWAY: u32 = 32;
const MAY_BE_SHORTER: u64 = 2;

/// What is known of wake-ups, and what callers have lost since the last one. All times are
/// nanoseconds on one clock.
pub(super) struct Calls {
    /// How long an idle worker looks for work before it sleeps.
    spin: u64,
    /// Learned time from a call to the worker's first look for work.
    delay: AtomicU32,
    /// What callers lost because all workers slept, since one was last called.
    lost: AtomicU64,
    /// When a caller last lost something.
    last: AtomicU64,
    /// How often no worker was called, though one that comes sooner would have helped.
    declined: AtomicU32,
}

impl Calls {
    /// For workers that look for work for `spin` nanoseconds before they sleep.
    pub(super) fn new(spin: u64) -> Self {
        Calls {
            spin,
            delay: AtomicU32::new(FIRST_DELAY),
            lost: AtomicU64::new(0),
            last: AtomicU64::new(0),
            declined: AtomicU32::new(0),
        }
    }

    /// The learned wake-up.
    #[inline]
    pub(super) fn delay(&self) -> u32 {
        self.delay.load(Ordering::Relaxed)
    }

    /// How many sleepers are worth their wake-up, `most` at most, for work that takes one core
    /// `alone` nanoseconds.
    pub(super) fn at_once(&self, most: u32, alone: u64) -> u32 {
        (alone / u64::from(self.delay().max(1))).min(most.into()) as u32
    }

    /// A caller works alone since all workers sleep, and loses `lost` nanoseconds by it. Says
    /// whether to call a worker now, for the calls that will follow.
    pub(super) fn lose(&self, now: u64, lost: u32) -> bool {
        let since = now.saturating_sub(self.last.swap(now, Ordering::Relaxed));
        // The work itself takes about twice what one more worker would have saved.
        let close = self.spin + 2 * u64::from(lost);
        let calls = if since > close {
            // A worker called by the last caller would be asleep again.
            self.lost.store(lost.into(), Ordering::Relaxed);
            self.doubts(2 * u64::from(lost))
        } else {
            let sum = self.lost.fetch_add(lost.into(), Ordering::Relaxed);
            sum + u64::from(lost) > self.delay().into()
        };
        if calls {
            self.called();
        }
        calls
    }

    /// Whether to call a worker though it is believed to come too late for work that takes one core
    /// `alone` nanoseconds. Where others had the machine for a while, wake-ups took longer then, and
    /// workers that nobody calls since do not show that this is over.
    fn doubts(&self, alone: u64) -> bool {
        alone > u64::from(self.delay()) / MAY_BE_SHORTER
            && (self.declined.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(CALL_ANYWAY)
    }

    /// Workers were called: what was lost before is paid for.
    pub(super) fn called(&self) {
        self.lost.store(0, Ordering::Relaxed);
    }

    /// Learns from one wake-up.
    pub(super) fn learn(&self, seen: u64) {
        let (seen, old) = (seen.min(10_000_000) as u32, self.delay());
        // A shorter wake-up is believed at once: a longer one may be another program on the core.
        let new = match seen < old {
            true => (old + seen) / 2,
            false => old + 1 + (seen - old).min(old) / 8,
        };
        self.delay.store(new, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_delay_follows_what_is_seen() {
        let calls = Calls::new(50_000);
        for _ in 0..40 {
            calls.learn(3000);
        }
        assert!((2500..3500).contains(&calls.delay()), "{}", calls.delay());
        // One interruption changes little; a lasting change is followed.
        calls.learn(9_000_000);
        assert!(calls.delay() < 4000, "{}", calls.delay());
        for _ in 0..100 {
            calls.learn(60_000);
        }
        let delay = calls.delay();
        assert!((50_000..70_000).contains(&delay), "{delay}");
        for _ in 0..100 {
            calls.learn(0);
        }
        calls.learn(100);
        assert!(calls.delay() > 0, "it can rise again");
    }

    #[test]
    fn a_steady_caller_gets_a_worker_for_the_price_of_one_wake_up() {
        let calls = Calls::new(50_000);
        let (mut now, mut alone) = (1_000_000, 0);
        while !calls.lose(now, 12_000) {
            now += 24_000;
            alone += 1;
        }
        assert!((4..6).contains(&alone), "{alone} calls without help");
    }

    #[test]
    fn a_wake_up_that_was_long_for_a_while_is_tried_again() {
        let calls = Calls::new(50_000);
        let (alone, pause) = (170_000, 2_000_000);
        for _ in 0..100 {
            calls.learn(250_000);
        }
        assert_eq!(calls.at_once(1, alone), 0);
        // From now on wake-ups are short, and only a worker that is called can show that.
        let (mut now, mut called) = (0, 0);
        let alone_for = (0..200).take_while(|_| {
            now += pause;
            if calls.lose(now, alone as u32 / 2) {
                called += 1;
                calls.learn(50_000);
            }
            calls.at_once(1, alone) == 0
        });
        let alone_for = alone_for.count();
        assert!(alone_for < 40 && called == 1, "{alone_for} {called}");
        // Where they stay long, few are in vain.
        for _ in 0..100 {
            calls.learn(250_000);
        }
        let in_vain = (0..1000).filter(|_| {
            now += pause;
            let called = calls.lose(now, alone as u32 / 2);
            if called {
                calls.learn(250_000);
            }
            called
        });
        assert!(in_vain.count() <= 32);
    }

    #[test]
    fn a_caller_that_pauses_wakes_nobody() {
        let calls = Calls::new(50_000);
        let mut now = 0;
        for _ in 0..1000 {
            now += 24_000 + 60_000;
            assert!(!calls.lose(now, 12_000));
        }
        // Once it no longer pauses it is a steady caller.
        let calls_one = (0..5).any(|_| {
            now += 24_000;
            calls.lose(now, 12_000)
        });
        assert!(calls_one);
    }
}
