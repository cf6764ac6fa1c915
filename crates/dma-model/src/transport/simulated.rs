//! A device in virtual time: it lives only when it is looked at, and a caller that waits
//! moves time on to the next event. One thread plays all parts.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cipherlane_core::VirtualTime;

use super::{Arena, Device, Port, Region, Transport};

/// The driver's end of a device in virtual time.
pub struct Simulated {
    port: Port,
    time: VirtualTime,
    state: Mutex<State>,
}

struct State {
    device: Box<dyn Device>,
    /// Raised and not yet taken.
    interrupt: bool,
}

impl State {
    fn catch_up(&mut self, now_ns: u64) {
        self.interrupt |= self.device.advance(now_ns);
    }
}

impl Simulated {
    /// A device on that clock. Its own events are as exact as the clock: nanoseconds.
    pub fn new(port: Port, time: VirtualTime, device: Box<dyn Device>) -> Self {
        let interrupt = false;
        Simulated {
            port,
            time,
            state: Mutex::new(State { device, interrupt }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Transport for Simulated {
    fn arena(&self) -> &Arena {
        &self.port.arena
    }

    fn ring_doorbell(&self) {
        let mut state = self.state();
        let now = self.now_ns();
        state.catch_up(now);
        state.device.doorbell(now);
        state.catch_up(now);
    }

    fn catch_up(&self) {
        self.state().catch_up(self.now_ns());
    }

    fn now_ns(&self) -> u64 {
        self.time.now().as_nanos() as u64
    }

    fn sleep(&self, until_ns: u64) -> bool {
        let mut state = self.state();
        loop {
            state.catch_up(self.now_ns());
            if std::mem::take(&mut state.interrupt) {
                return true;
            }
            let next = state
                .device
                .next_event()
                .map_or(until_ns, |next| next.min(until_ns));
            if next <= self.now_ns() {
                return false;
            }
            self.time.sleep_until(Duration::from_nanos(next));
        }
    }

    fn pause(&self, until_ns: u64) {
        let mut state = self.state();
        let now = self.now_ns();
        let next = state.device.next_event().unwrap_or(until_ns);
        let step = next.min(until_ns).saturating_sub(now);
        self.time.work(Duration::from_nanos(step));
        state.catch_up(now + step);
    }

    fn spend(&self, _: u64, cost_ns: u64) {
        self.time.work(Duration::from_nanos(cost_ns));
    }

    unsafe fn map(&self, region: Region) -> Option<u64> {
        // SAFETY: promised by the caller.
        unsafe { self.port.map(region) }
    }

    fn unmap(&self, address: u64) {
        self.port.iommu.unmap(address);
    }

    fn attach(&self, attached: bool) -> bool {
        self.port.attach(attached)
    }

    fn dma_faults(&self) -> u64 {
        self.port.iommu.faults()
    }

    fn is_inline(&self) -> bool {
        true
    }
}

impl std::fmt::Debug for Simulated {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Simulated")
            .field("time", &self.time)
            .finish_non_exhaustive()
    }
}
