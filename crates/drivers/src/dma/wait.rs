//! Waiting for the device: by interrupt, by polling, and adaptively. A caller polls for the
//! time that such a batch is known to take, if that is short, and then sleeps.
//!
//! One thread at a time sleeps at the transport and takes what comes in for all. When it has
//! its own, it wakes the next to take its place.

use std::sync::atomic::{AtomicU32, Ordering, fence};
use std::time::Duration;

use cipherlane_core::Direction;

use super::engine::{Engine, count, lock};
use super::settings::Completions;
use super::slot::Group;
use cipherlane_dma_model::transport::wire::Register;

/// The least time after which a sleeper looks whether an interrupt was lost.
const LEAST_WATCH: u64 = 1_000_000;

/// What batches take, by direction, number of requests and bytes.
#[derive(Debug)]
pub(super) struct Learned {
    nanoseconds: [[[AtomicU32; 32]; 8]; 2],
}

impl Default for Learned {
    fn default() -> Self {
        let row = || std::array::from_fn(|_| AtomicU32::new(0));
        let table = || std::array::from_fn(|_| row());
        Learned {
            nanoseconds: [table(), table()],
        }
    }
}

impl Learned {
    fn of(&self, (direction, requests, bytes): Batch) -> &AtomicU32 {
        let count = requests.max(1).ilog2().min(7) as usize;
        let size = bytes.max(1).ilog2().min(31) as usize;
        &self.nanoseconds[direction as usize][count][size]
    }

    /// Nanoseconds that such a batch takes; 0 if none was seen.
    fn expected(&self, batch: Batch) -> u64 {
        self.of(batch).load(Ordering::Relaxed).into()
    }

    fn note(&self, batch: Batch, nanoseconds: u64) {
        let seen = u32::try_from(nanoseconds).unwrap_or(u32::MAX).max(1);
        let cell = self.of(batch);
        let old = cell.load(Ordering::Relaxed);
        let new = match old {
            0 => seen,
            old => old - old / 4 + seen / 4,
        };
        cell.store(new, Ordering::Relaxed);
    }
}

/// Direction, requests and bytes.
pub(super) type Batch = (Direction, usize, usize);

impl Engine {
    /// Waits until all of a group has ended; the device is reset if it takes too long.
    pub(super) fn wait(&self, group: &Group, batch: Batch) {
        let started = self.transport.now_ns();
        let expected = self.learned.expected(batch);
        let spin = self.options.spin_ns;
        let polls_until = match self.options.completions {
            Completions::Poll => u64::MAX,
            Completions::Interrupt => started,
            Completions::Adaptive if expected > 0 && expected <= spin => started + 2 * expected,
            Completions::Adaptive => started,
        };
        let mut now = started;
        loop {
            let epoch = self.epoch();
            self.drain();
            if group.is_done() {
                break;
            }
            self.check(epoch);
            if group.is_done() {
                break;
            }
            if now < polls_until {
                self.spend(now, self.device.host.poll_ns);
                self.transport.pause(self.overdue_ns());
            } else {
                self.listen(expected, || group.is_done());
            }
            now = self.transport.now_ns();
        }
        self.learned.note(batch, now - started);
    }

    /// Sleeps until the device reports something, or another thread took what it reported, or
    /// it is time to look anyway.
    fn listen(&self, expected_ns: u64, is_done: impl Fn() -> bool) {
        let now = self.transport.now_ns();
        let watch = (8 * expected_ns).clamp(LEAST_WATCH, self.options.timeout_ns.max(LEAST_WATCH));
        let until = (now + watch).min(self.overdue_ns().max(now));
        let Ok(listener) = self.listener.try_lock() else {
            return self.follow(until - now, is_done);
        };
        let wanted = self.transport.arena().register(Register::INTERRUPTS);
        wanted.store(1, Ordering::Relaxed);
        // Against the device's, which reports and then looks whether we want interrupts: one
        // of the two sees the other.
        fence(Ordering::SeqCst);
        self.drain();
        if !is_done() {
            let interrupted = self.transport.sleep(until);
            let woken = self.transport.now_ns();
            if interrupted {
                count(&self.counters.interrupts);
                self.spend(woken, self.device.interrupt.host_ns);
            }
            let found = self.drain();
            if !interrupted && found > 0 {
                count(&self.counters.lost_interrupts);
            }
        }
        wanted.store(0, Ordering::Relaxed);
        drop(listener);
        if let Some(next) = lock(&self.followers).pop() {
            next.unpark();
        }
    }

    /// Sleeps while another thread sleeps at the transport.
    fn follow(&self, time_ns: u64, is_done: impl Fn() -> bool) {
        let me = std::thread::current();
        let id = me.id();
        lock(&self.followers).push(me);
        if !is_done() {
            std::thread::park_timeout(Duration::from_nanos(time_ns.min(LEAST_WATCH)));
        }
        lock(&self.followers).retain(|thread| thread.id() != id);
    }

    /// For callers without a group of their own: waits a moment for others to end.
    pub(super) fn wait_for_others(&self) {
        let epoch = self.epoch();
        if self.drain() > 0 {
            return;
        }
        self.check(epoch);
        let before = self.flying();
        if before == 0 {
            // They are at work between the rings.
            std::thread::yield_now();
            return self.unstick();
        }
        self.listen(0, || self.flying() < before);
    }
}
