//! A device on a thread of its own, in real time. The rings are in a memfd, doorbell and
//! interrupt are eventfds, so that the thread could as well be another process.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use super::{Arena, Device, Port, Region, Transport};

/// The thread sleeps until this time before an event, and looks at the clock from then on: a
/// sleep ends late by tens of microseconds.
const EARLY: Duration = Duration::from_micros(60);

/// The driver's end of a device on a thread.
#[derive(Debug)]
pub struct Shared {
    port: Port,
    wires: Arc<Wires>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Wires {
    doorbell: OwnedFd,
    interrupt: OwnedFd,
    stop: AtomicBool,
    origin: Instant,
}

impl Wires {
    fn now_ns(&self) -> u64 {
        self.origin.elapsed().as_nanos() as u64
    }
}

impl Shared {
    /// Starts the thread of a device.
    pub fn new(port: Port, device: Box<dyn Device>) -> io::Result<Self> {
        let flags = EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC;
        let wires = Arc::new(Wires {
            doorbell: eventfd(0, flags)?,
            interrupt: eventfd(0, flags)?,
            stop: AtomicBool::new(false),
            origin: Instant::now(),
        });
        let thread = std::thread::Builder::new().name("dma-device".to_owned());
        let thread = thread.spawn({
            let wires = wires.clone();
            move || serve(device, &wires)
        })?;
        Ok(Shared {
            port,
            wires,
            thread: Some(thread),
        })
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if self.port.arena.is_orphaned() {
            // The thread is the parent's.
            return std::mem::forget(self.thread.take());
        }
        self.wires.stop.store(true, Ordering::Relaxed);
        signal(&self.wires.doorbell);
        if let Some(thread) = self.thread.take() {
            // A device that panicked has nothing more to say.
            let _ = thread.join();
        }
    }
}

/// The life of a device.
fn serve(mut device: Box<dyn Device>, wires: &Wires) {
    while !wires.stop.load(Ordering::Relaxed) {
        if drain(&wires.doorbell) {
            device.doorbell(wires.now_ns());
        }
        if device.advance(wires.now_ns()) {
            signal(&wires.interrupt);
        }
        let Some(next) = device.next_event() else {
            wait(&wires.doorbell, None);
            continue;
        };
        let left = Duration::from_nanos(next.saturating_sub(wires.now_ns()));
        match left.checked_sub(EARLY) {
            Some(sleep) if !sleep.is_zero() => wait(&wires.doorbell, Some(sleep)),
            // Another thread of this core goes first, if there is one.
            _ if left > EARLY / 8 => std::thread::yield_now(),
            _ => std::hint::spin_loop(),
        }
    }
}

/// Adds to an eventfd. It cannot fail but by a count of 2^64.
fn signal(wire: &OwnedFd) {
    let _ = rustix::io::write(wire, &1u64.to_ne_bytes());
}

/// Whether the eventfd was signalled since the last time.
fn drain(wire: &OwnedFd) -> bool {
    rustix::io::read(wire, &mut [0u8; 8]).is_ok()
}

/// Sleeps until a signal, or for `time` at most.
fn wait(wire: &OwnedFd, time: Option<Duration>) {
    let timeout = time.map(|time| Timespec {
        tv_sec: time.as_secs() as i64,
        tv_nsec: i64::from(time.subsec_nanos()),
    });
    // Interrupted or not, whoever waits looks again.
    let _ = poll(&mut [PollFd::new(wire, PollFlags::IN)], timeout.as_ref());
}

impl Transport for Shared {
    fn arena(&self) -> &Arena {
        &self.port.arena
    }

    fn ring_doorbell(&self) {
        signal(&self.wires.doorbell);
    }

    fn now_ns(&self) -> u64 {
        self.wires.now_ns()
    }

    fn sleep(&self, until_ns: u64) -> bool {
        let left = until_ns.saturating_sub(self.now_ns());
        wait(&self.wires.interrupt, Some(Duration::from_nanos(left)));
        drain(&self.wires.interrupt)
    }

    fn pause(&self, _: u64) {
        std::hint::spin_loop();
    }

    fn spend(&self, since_ns: u64, cost_ns: u64) {
        while self.now_ns() < since_ns + cost_ns {
            std::hint::spin_loop();
        }
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
}
