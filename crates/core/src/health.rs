//! Whether a driver works: a circuit breaker with back-off, and quarantine.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use serde::Serialize;

use crate::{Clock, Mismatch};

/// Failures in a row that open the breaker.
const TRIP: u32 = 8;
/// The first back-off; it doubles with each trip.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// The longest back-off.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// The state a driver is in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Health {
    /// It works.
    Working,
    /// It failed several times in a row and is given a rest.
    Suspended {
        /// Rests so far.
        trips: u32,
        /// Until it is tried again, in milliseconds.
        remaining_ms: u64,
    },
    /// It gave a wrong result, and is not used any more.
    Quarantined {
        /// The result.
        mismatch: Arc<Mismatch>,
    },
}

impl std::fmt::Display for Health {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Health::Working => write!(f, "working"),
            Health::Suspended {
                trips,
                remaining_ms,
            } => {
                write!(
                    f,
                    "suspended (trip {trips}, tried again in {remaining_ms} ms)"
                )
            }
            Health::Quarantined { mismatch } => write!(f, "quarantined: {mismatch}"),
        }
    }
}

/// Watches one driver.
#[derive(Debug, Default)]
pub(crate) struct Breaker {
    failures: AtomicU32,
    open: AtomicBool,
    back_off: Mutex<BackOff>,
    quarantine: OnceLock<Arc<Mismatch>>,
    clock: Clock,
}

#[derive(Debug, Default)]
struct BackOff {
    trips: u32,
    /// By the breaker's clock.
    until: Option<Duration>,
}

impl Breaker {
    pub(crate) fn new(clock: Clock) -> Self {
        Breaker {
            clock,
            ..Breaker::default()
        }
    }

    fn back_off(&self) -> MutexGuard<'_, BackOff> {
        self.back_off.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes failed requests; `true` if the driver must not be used from now on.
    pub(crate) fn fail(&self, requests: u32) -> bool {
        if self
            .failures
            .fetch_add(requests, Ordering::Relaxed)
            .saturating_add(requests)
            < TRIP
        {
            return false;
        }
        self.failures.store(0, Ordering::Relaxed);
        let mut back_off = self.back_off();
        let pause = FIRST_PAUSE
            .saturating_mul(1 << back_off.trips.min(16))
            .min(LONGEST_PAUSE);
        back_off.trips += 1;
        back_off.until = Some(self.clock.now() + pause);
        self.open.store(true, Ordering::Relaxed);
        true
    }

    /// Notes a success: failures count only in a row.
    #[inline]
    pub(crate) fn succeed(&self) {
        if self.failures.load(Ordering::Relaxed) != 0 {
            self.failures.store(0, Ordering::Relaxed);
        }
    }

    /// As if it had never failed.
    pub(crate) fn forget(&self) {
        self.failures.store(0, Ordering::Relaxed);
        *self.back_off() = BackOff::default();
        self.open.store(false, Ordering::Relaxed);
    }

    /// `true` once, when a rest is over.
    pub(crate) fn recovers(&self) -> bool {
        if !self.open.load(Ordering::Relaxed) {
            return false;
        }
        let mut back_off = self.back_off();
        let over = back_off
            .until
            .is_some_and(|until| self.clock.now() >= until);
        if over {
            back_off.until = None;
            // On trial: the first failure is one too many.
            self.failures.store(TRIP - 1, Ordering::Relaxed);
            self.open.store(false, Ordering::Relaxed);
        }
        over
    }

    /// Ends the driver's use; the first reason is kept.
    pub(crate) fn quarantine(&self, mismatch: Mismatch) {
        // Set before: then the first one stands.
        let _ = self.quarantine.set(Arc::new(mismatch));
    }

    #[inline]
    pub(crate) fn is_quarantined(&self) -> bool {
        self.quarantine.get().is_some()
    }

    pub(crate) fn health(&self) -> Health {
        if let Some(mismatch) = self.quarantine.get() {
            let mismatch = mismatch.clone();
            return Health::Quarantined { mismatch };
        }
        let back_off = self.back_off();
        match back_off
            .until
            .map(|until| until.saturating_sub(self.clock.now()))
        {
            Some(remaining) => Health::Suspended {
                trips: back_off.trips,
                remaining_ms: remaining.as_millis() as u64,
            },
            None => Health::Working,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::VirtualTime;

    #[test]
    fn only_failures_in_a_row_trip_and_rests_grow() {
        let time = VirtualTime::new();
        let breaker = Breaker::new(time.clock());
        for _ in 0..100 {
            assert!(!breaker.fail(TRIP - 1));
            breaker.succeed();
        }
        assert_eq!(breaker.health(), Health::Working);
        for trips in 1..5 {
            // After a rest one failure is enough.
            assert!(breaker.fail(if trips == 1 { TRIP } else { 1 }));
            let pause = FIRST_PAUSE * (1 << (trips - 1));
            let remaining_ms = pause.as_millis() as u64;
            let suspended = Health::Suspended {
                trips,
                remaining_ms,
            };
            assert_eq!(breaker.health(), suspended);
            time.work(pause - Duration::from_nanos(1));
            assert!(!breaker.recovers());
            time.work(Duration::from_nanos(1));
            assert!(breaker.recovers() && !breaker.recovers());
            assert_eq!(breaker.health(), Health::Working);
        }
    }
}
