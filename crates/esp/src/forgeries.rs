//! Packets that were not authentic: how many an SA bears, and who hears of them.
//!
//! Each of them is a guess of an ICV. The limits, and what an operator can do, stand with
//! [`Lifetimes::forgeries`](crate::Lifetimes::forgeries).
//!
//! A limit is a means to stop an SA for anybody on the way who can write packets. With
//! ESP_GOST-4M-IMIT he needs one look at a packet, from which the sum of the SPI-Auth-Code
//! follows that the IV is checked by, and a tenth of a second at a million packets per second.
//! To verify no more than some guesses per second would be worse: it would drop the peer's packets
//! with the guesses, at the cost of a few forged packets per second. So the owner is told, with
//! numbers and in time to negotiate another SA.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::{Error, Event, Lifetime};

/// What a suite's ICV bears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ForgeryLimit {
    /// Packets that were not authentic.
    pub(crate) packets: u64,
    /// Their bytes.
    pub(crate) bytes: u64,
}

impl ForgeryLimit {
    /// An ICV of 96 bits or more.
    pub(crate) const NONE: Self = ForgeryLimit {
        packets: u64::MAX,
        bytes: u64::MAX,
    };
}

/// The soft limit where none is given: this part of the hard one.
const SOFT: u64 = 10;

/// The count of one SA. Written only by batches that have such packets.
pub(crate) struct Forgeries {
    packets: AtomicU64,
    bytes: AtomicU64,
    soft: u64,
    hard: ForgeryLimit,
    /// The second of the last report, and 1; 0 before the first.
    reported_at: AtomicU64,
    /// What had been counted then.
    reported: AtomicU64,
}

impl Forgeries {
    /// `asked` may be stricter than the suite's limit, not more lenient.
    pub(crate) fn new(asked: Lifetime, mut limit: ForgeryLimit) -> Result<Self, Error> {
        if let Some(hard) = asked.hard {
            if hard > limit.packets {
                let (given, most) = (hard, limit.packets);
                return Err(Error::Forgeries { given, most });
            }
            limit.packets = hard;
        }
        Ok(Forgeries {
            packets: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            soft: asked.soft.unwrap_or(limit.packets / SOFT),
            hard: limit,
            reported_at: AtomicU64::new(0),
            reported: AtomicU64::new(0),
        })
    }

    /// Counts some, at least one; `now` is any clock. What is to be told.
    #[cold]
    pub(crate) fn count(&self, packets: u64, bytes: u64, now: Duration) -> [Option<Event>; 3] {
        use crate::Measure::Forgeries as MEASURE;
        let packets = self.packets.fetch_add(packets, Ordering::Relaxed) + packets;
        let bytes = self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let is_soft = packets >= self.soft || bytes >= self.hard.bytes / SOFT;
        let is_hard = packets >= self.hard.packets || bytes >= self.hard.bytes;
        [
            self.report(packets, now.as_secs() + 1),
            is_soft.then_some(Event::Soft(MEASURE)),
            is_hard.then_some(Event::Hard(MEASURE)),
        ]
    }

    /// Once per second, by one thread.
    fn report(&self, total: u64, second: u64) -> Option<Event> {
        let last = self.reported_at.load(Ordering::Relaxed);
        if last == second {
            return None;
        }
        let (relaxed, at) = (Ordering::Relaxed, &self.reported_at);
        at.compare_exchange(last, second, relaxed, relaxed).ok()?;
        let before = self.reported.swap(total, relaxed);
        let seconds = match last {
            0 => 1,
            last => second.saturating_sub(last).max(1),
        };
        Some(Event::Forgeries {
            total,
            per_second: total.saturating_sub(before).div_ceil(seconds),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Measure;

    fn forgeries(soft: Option<u64>, hard: Option<u64>, limit: ForgeryLimit) -> Forgeries {
        Forgeries::new(Lifetime { soft, hard }, limit).unwrap()
    }

    fn events(told: [Option<Event>; 3]) -> Vec<Event> {
        told.into_iter().flatten().collect()
    }

    #[test]
    fn the_rate_is_told_once_a_second_while_it_goes_on() {
        let forgeries = forgeries(None, None, ForgeryLimit::NONE);
        let report = |total, per_second| vec![Event::Forgeries { total, per_second }];
        let at = |milliseconds| Duration::from_millis(milliseconds);
        assert_eq!(events(forgeries.count(1, 60, at(0))), report(1, 1));
        assert_eq!(events(forgeries.count(30, 60, at(10))), []);
        assert_eq!(events(forgeries.count(30, 60, at(990))), []);
        assert_eq!(events(forgeries.count(30, 60, at(1001))), report(91, 90));
        // After ten quiet seconds it is a mean.
        assert_eq!(events(forgeries.count(1, 60, at(11_100))), report(92, 1));
    }

    #[test]
    fn packets_and_bytes_have_limits_of_their_own() {
        let limit = ForgeryLimit {
            packets: 100,
            bytes: 10_000,
        };
        let soft = Event::Soft(Measure::Forgeries);
        let hard = Event::Hard(Measure::Forgeries);
        let few = forgeries(None, None, limit);
        let zero = Duration::ZERO;
        few.count(9, 9, zero);
        assert_eq!(events(few.count(1, 1, zero)), [soft]);
        assert_eq!(events(few.count(90, 1, zero)), [soft, hard]);
        let long = forgeries(None, None, limit);
        long.count(1, 999, zero);
        assert_eq!(events(long.count(1, 1, zero)), [soft]);
        assert_eq!(events(long.count(1, 9_000, zero)), [soft, hard]);
    }

    #[test]
    fn an_owner_may_be_stricter_than_the_suite_only() {
        let limit = ForgeryLimit {
            packets: 100,
            bytes: u64::MAX,
        };
        let strict = forgeries(Some(2), Some(3), limit);
        let zero = Duration::ZERO;
        assert_eq!(events(strict.count(1, 1, zero)).len(), 1);
        let soft = Event::Soft(Measure::Forgeries);
        assert_eq!(events(strict.count(1, 1, zero)), [soft]);
        let (soft, hard) = (None, Some(101));
        let refused = Forgeries::new(Lifetime { soft, hard }, limit);
        assert!(matches!(
            refused.map(|_| ()),
            Err(Error::Forgeries {
                given: 101,
                most: 100
            })
        ));
    }
}
