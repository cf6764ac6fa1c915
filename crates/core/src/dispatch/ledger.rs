//! What using devices has cost and gained so far, against doing everything at home: the
//! account that keeps `auto` from ever falling far behind.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

/// One part in so many of all work may be lost.
const WORK_PER_LOSS: u64 = 50;

/// Work that pays for a loss.
pub(crate) fn pays(loss: Duration) -> Duration {
    loss.saturating_mul(WORK_PER_LOSS as u32)
}

/// Nanoseconds of callers' time.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// What all work so far would have taken without devices.
    work: AtomicU64,
    /// Gained by devices so far; below zero if they have cost more.
    gained: AtomicI64,
}

impl Ledger {
    /// Whether a loss of so much could be borne now.
    #[inline]
    pub(crate) fn affords(&self, loss: u64) -> bool {
        let allowed = self.work.load(Ordering::Relaxed) / WORK_PER_LOSS;
        allowed as i64 + self.gained.load(Ordering::Relaxed) >= loss as i64
    }

    /// Nanoseconds of work before so much could be lost that all is well, and of work so far.
    pub(crate) fn due(&self, loss: u64) -> (u64, u64) {
        let gained = self.gained.load(Ordering::Relaxed);
        let short = (loss as i64).saturating_sub(gained).max(0) as u64;
        (
            short.saturating_mul(WORK_PER_LOSS),
            self.work.load(Ordering::Relaxed),
        )
    }

    /// Work that takes so long at home was done.
    pub(crate) fn worked(&self, nanoseconds: f32) {
        self.work.fetch_add(nanoseconds as u64, Ordering::Relaxed);
    }

    /// A caller was spared so much by a device.
    pub(crate) fn gain(&self, nanoseconds: f32) {
        self.gained.fetch_add(nanoseconds as i64, Ordering::Relaxed);
    }

    /// A caller spent so much on a device.
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
