//! What devices have gained and cost so far, compared with doing all work at home. This account
//! keeps `auto` from falling more than 2 % behind.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

/// A loss of one nanosecond needs this many nanoseconds of work: devices may lose 2 % of all work.
const WORK_PER_LOSS: u64 = 50;

/// The work that must have been done before `loss` may be risked.
pub(crate) fn work_for(loss: Duration) -> Duration {
    loss.saturating_mul(WORK_PER_LOSS as u32)
}

/// Nanoseconds of callers' time.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// The time that all work so far would have taken without devices.
    work: AtomicU64,
    /// The time that devices have gained so far; below zero if the devices have lost time.
    gained: AtomicI64,
}

impl Ledger {
    /// Whether a loss of `loss` nanoseconds is allowed now.
    #[inline]
    pub(crate) fn affords(&self, loss: u64) -> bool {
        let allowed = self.work.load(Ordering::Relaxed) / WORK_PER_LOSS;
        allowed as i64 + self.gained.load(Ordering::Relaxed) >= loss as i64
    }

    /// The nanoseconds of work after which a loss of `loss` nanoseconds is allowed, and the
    /// nanoseconds of work done so far.
    pub(crate) fn due(&self, loss: u64) -> (u64, u64) {
        let gained = self.gained.load(Ordering::Relaxed);
        let short = (loss as i64).saturating_sub(gained).max(0) as u64;
        (
            short.saturating_mul(WORK_PER_LOSS),
            self.work.load(Ordering::Relaxed),
        )
    }

    /// Adds work that takes this many nanoseconds at home.
    pub(crate) fn worked(&self, nanoseconds: f32) {
        self.work.fetch_add(nanoseconds as u64, Ordering::Relaxed);
    }

    /// Adds the time that a device saved its caller; below zero if the device was slower.
    pub(crate) fn gain(&self, nanoseconds: f32) {
        self.gained.fetch_add(nanoseconds as i64, Ordering::Relaxed);
    }

    /// Subtracts the time that a caller spent on a device.
    pub(crate) fn lose(&self, nanoseconds: u64) {
        self.gained.fetch_sub(nanoseconds as i64, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_must_have_been_worked_for() {
        let ledger = Ledger::default();
        assert!(ledger.affords(0) && !ledger.affords(1));
        ledger.worked(1e6);
        assert!(ledger.affords(20_000) && !ledger.affords(20_001));
        assert_eq!(ledger.due(30_000), (1_500_000, 1_000_000));
        ledger.lose(15_000);
        assert!(ledger.affords(5_000) && !ledger.affords(5_001));
        ledger.gain(100_000.0);
        assert!(ledger.affords(105_000));
    }
}
