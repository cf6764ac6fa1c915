//! How a receiver of extended sequence numbers finds its sender again after 2^32 or more
//! packets were lost in a row (RFC 4303 appendix A3).
//!
//! The upper half of the number is not sent. After such a loss the receiver infers a wrong one,
//! and no packet is authentic any more. So it counts packets that were not authentic in a row,
//! and after every [`TRIGGER`] of them it verifies one packet a second time, with a greater upper
//! half than it inferred: by one, the next time by two, up to [`MAX_LEAP`], and then from one again.
//! A packet that is authentic that way moves the replay window on, and all is well.
//!
//! Who forges packets makes the receiver work by 1 in [`TRIGGER`] more than without this: so it
//! is no lever. No packet of the peer is lost by it.

use std::sync::atomic::{AtomicU64, Ordering};

/// Packets in a row that were not authentic, for each trial.
pub(crate) const TRIGGER: u64 = 64;

/// The longest packet that is tried, in bytes: a jumbo frame. A copy of it stands on the stack.
pub(crate) const LONGEST: usize = 9216;

/// The farthest leap in upper halves. The replay window refuses one of 2^36 numbers.
pub(crate) const MAX_LEAP: u64 = 15;

/// The state of one SA. Written only while packets are not authentic.
pub(crate) struct Resynchronization {
    /// Packets since the last authentic one.
    failures: AtomicU64,
    /// How many there were at the last trial.
    tried_at: AtomicU64,
    trials: AtomicU64,
}

impl Resynchronization {
    pub(crate) fn new() -> Self {
        Resynchronization {
            failures: AtomicU64::new(0),
            tried_at: AtomicU64::new(0),
            trials: AtomicU64::new(0),
        }
    }

    /// Whether a packet of this batch is to be tried, and how many upper halves ahead.
    #[inline]
    pub(crate) fn leap(&self) -> Option<u64> {
        let failures = self.failures.load(Ordering::Relaxed);
        match failures < TRIGGER {
            true => None,
            false => self.trial(failures),
        }
    }

    #[cold]
    fn trial(&self, failures: u64) -> Option<u64> {
        let relaxed = Ordering::Relaxed;
        let last = self.tried_at.load(relaxed);
        // More than there are: written by a thread that did not know of the reset.
        if failures
            .checked_sub(last)
            .is_some_and(|since| since < TRIGGER)
        {
            return None;
        }
        // Of several threads one tries.
        let taken = self
            .tried_at
            .compare_exchange(last, failures, relaxed, relaxed);
        taken.ok()?;
        Some(1 + self.trials.fetch_add(1, relaxed) % MAX_LEAP)
    }

    /// Some packets of a batch were not authentic, and none was.
    #[cold]
    pub(crate) fn failed(&self, packets: u64) {
        self.failures.fetch_add(packets, Ordering::Relaxed);
    }

    /// A packet was authentic.
    #[inline]
    pub(crate) fn succeeded(&self) {
        if self.failures.load(Ordering::Relaxed) != 0 {
            self.reset();
        }
    }

    #[cold]
    fn reset(&self) {
        self.failures.store(0, Ordering::Relaxed);
        self.tried_at.store(0, Ordering::Relaxed);
        self.trials.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_packet_in_64_failures_is_tried_ever_farther_and_then_from_the_beginning() {
        let state = Resynchronization::new();
        let mut leaps = Vec::new();
        for _ in 0..TRIGGER * (MAX_LEAP + 2) {
            leaps.extend(state.leap());
            state.failed(1);
        }
        let expected: Vec<u64> = (1..=MAX_LEAP).chain([1]).collect();
        assert_eq!(leaps, expected);
    }

    #[test]
    fn an_authentic_packet_ends_the_search() {
        let state = Resynchronization::new();
        state.failed(TRIGGER);
        assert_eq!(state.leap(), Some(1));
        assert_eq!(state.leap(), None, "one trial for 64 failures");
        state.succeeded();
        state.failed(TRIGGER - 1);
        assert_eq!(state.leap(), None);
        state.failed(1);
        assert_eq!(state.leap(), Some(1));
    }

    #[test]
    fn of_many_threads_one_tries() {
        let state = Resynchronization::new();
        state.failed(TRIGGER);
        let tried: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| state.leap())).collect();
            threads
                .into_iter()
                .filter_map(|t| t.join().unwrap())
                .count()
        });
        assert_eq!(tried, 1);
    }
}
