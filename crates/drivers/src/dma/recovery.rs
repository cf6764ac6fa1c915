//! A device that does not answer: reset, proof that it is quiet, and another try later.
//!
//! What the device has is taken back in one of three ways. It acknowledges a reset, and so
//! says itself that it is out of all memory. Or it does not, and the machine cuts it off from
//! memory, which needs no word from it. Or neither: then it never had a caller's memory but
//! only copies ([`Transport::attach`](super::transport::Transport::attach)), and these are
//! withheld until it acknowledges a reset.

use std::sync::atomic::Ordering;

use super::engine::{Engine, count, lock};
use super::slot::{Outcome, Phase};
use cipherlane_dma_model::transport::wire::Register;

/// The first pause before another try; it doubles each time.
const FIRST_PAUSE: u64 = 100_000_000;
/// The longest.
const LONGEST_PAUSE: u64 = 60_000_000_000;
/// A request that is older than this number of timeouts is lost, even if others come back.
const PATIENCE: u64 = 8;

/// Resets so far.
#[derive(Debug, Default)]
pub(super) struct Recovery {
    number: u32,
    pause_ns: u64,
    retry_ns: u64,
    detached: bool,
}

impl Engine {
    /// Whether the device takes work; one that did not answer is tried again when its pause
    /// is over.
    pub(super) fn is_usable(&self) -> bool {
        if self.is_up() {
            return true;
        }
        if self.may_retry() && !self.transport.arena().is_orphaned() {
            self.recover(self.epoch());
        }
        self.is_up()
    }

    /// Whether it is time to try a device again that did not answer.
    pub(super) fn may_retry(&self) -> bool {
        let retry = self.recovery.try_lock().map(|recovery| recovery.retry_ns);
        retry.is_ok_and(|retry| self.transport.now_ns() >= retry)
    }

    /// When the device is overdue unless it reports something.
    pub(super) fn overdue_ns(&self) -> u64 {
        self.progress_ns.load(Ordering::Relaxed) + self.options.timeout_ns
    }

    /// Resets the device if it is overdue or broken, or has lost a request while it went on
    /// with others.
    pub(super) fn check(&self, epoch: u32) {
        if self.broken.load(Ordering::Acquire) {
            return self.recover(epoch);
        }
        if self.flying() == 0 {
            return;
        }
        let now = self.transport.now_ns();
        if now >= self.overdue_ns() || self.has_lost(now) {
            self.recover(epoch);
        }
    }

    /// Looks at the ages of all requests, once a timeout.
    fn has_lost(&self, now: u64) -> bool {
        let timeout = self.options.timeout_ns;
        if now.saturating_sub(self.ages_ns.load(Ordering::Relaxed)) < timeout {
            return false;
        }
        self.ages_ns.store(now, Ordering::Relaxed);
        self.slots().any(|slot| {
            slot.phase == Phase::Flying && now.saturating_sub(slot.since_ns) >= PATIENCE * timeout
        })
    }

    /// Takes everything back from the device, and makes it work again if it can be. Once an
    /// epoch, whoever notices.
    pub(super) fn recover(&self, epoch: u32) {
        let mut landed = Vec::new();
        {
            let mut recovery = lock(&self.recovery);
            if self.epoch() != epoch {
                return;
            }
            let was_up = self.up.swap(false, Ordering::AcqRel);
            let mut tail = lock(&self.submit);
            let mut head = lock(&self.complete);
            // What it has reported is reported; the index may be nonsense.
            self.transport.catch_up();
            self.drain_locked(&mut head, &mut landed);
            let answered = self.reset(&mut recovery, &mut tail, &mut head);
            let quiet = answered || self.transport.attach(false);
            recovery.detached |= !answered;
            if !quiet {
                self.withholds.store(true, Ordering::Release);
            }
            for mut slot in self.slots() {
                if slot.phase == Phase::Flying {
                    self.end(&mut slot, Outcome::Aborted, &mut landed);
                }
            }
            self.next_epoch();
            self.broken.store(false, Ordering::Release);
            if answered {
                self.release_withheld();
                if std::mem::take(&mut recovery.detached) {
                    self.transport.attach(true);
                }
                recovery.pause_ns = 0;
                self.up.store(true, Ordering::Release);
            } else {
                count(&self.counters.unanswered);
                recovery.pause_ns = match was_up {
                    true => FIRST_PAUSE,
                    false => (2 * recovery.pause_ns).clamp(FIRST_PAUSE, LONGEST_PAUSE),
                };
                recovery.retry_ns = self.transport.now_ns() + recovery.pause_ns;
            }
        }
        landed.iter().for_each(|group| self.land(group));
    }

    /// Asks for a reset, with empty rings after it; says whether the device answered.
    fn reset(&self, recovery: &mut Recovery, tail: &mut u32, head: &mut u32) -> bool {
        count(&self.counters.resets);
        recovery.number = recovery.number.wrapping_add(1);
        let arena = self.transport.arena();
        (*tail, *head) = (0, 0);
        arena
            .register(Register::SUBMIT_TAIL)
            .store(0, Ordering::Relaxed);
        arena
            .register(Register::COMPLETE_HEAD)
            .store(0, Ordering::Relaxed);
        // Release: whoever sees the reset sees the empty rings.
        arena
            .register(Register::RESET)
            .store(recovery.number, Ordering::Release);
        self.transport.ring_doorbell();
        let deadline = self.transport.now_ns() + self.options.reset_ns;
        loop {
            self.transport.catch_up();
            let done = arena.register(Register::RESET_DONE).load(Ordering::Acquire);
            if done == recovery.number {
                return true;
            }
            if self.transport.now_ns() >= deadline {
                return false;
            }
            self.transport.pause(deadline);
        }
    }
}
