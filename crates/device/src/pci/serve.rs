//! The life of a device for one guest: doorbells in, work, interrupts out.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use cipherlane_dma_model::transport::wire::Layout;
use cipherlane_dma_model::transport::{Device, Port};
use cipherlane_dma_model::{Controls, Model, Settings};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use super::{Ram, Summary};

/// The process sleeps until this time before an event, and looks at the clock from then on:
/// a sleep ends late by tens of microseconds.
const EARLY: Duration = Duration::from_micros(60);

/// What rings between guest and device.
#[derive(Debug)]
pub(super) struct Wires {
    pub(super) doorbell: OwnedFd,
    pub(super) interrupt: OwnedFd,
}

impl Wires {
    pub(super) fn new() -> io::Result<Wires> {
        let wire = || eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC);
        Ok(Wires {
            doorbell: wire()?,
            interrupt: wire()?,
        })
    }
}

/// A device at the bus of a guest.
pub(super) struct Attached {
    port: Port,
    controls: Arc<Controls>,
    model: Model,
    doorbells: u64,
    interrupts: u64,
}

impl Attached {
    pub(super) fn new(settings: &Settings, layout: Layout, ram: Arc<Ram>) -> io::Result<Self> {
        let port = Port::on_bus(layout, ram)?;
        let controls = Arc::new(Controls::new(&settings.behaviour));
        let model = Model::new(settings, port.clone(), controls.clone());
        Ok(Attached {
            port,
            controls,
            model,
            doorbells: 0,
            interrupts: 0,
        })
    }

    /// The file that is the guest's BAR.
    pub(super) fn memory(&self) -> BorrowedFd<'_> {
        self.port.arena.file()
    }

    pub(super) fn summary(&self) -> Summary {
        let faults = self.port.iommu.faults();
        Summary::new(
            self.controls.done(),
            self.doorbells,
            self.interrupts,
            faults,
        )
    }

    /// Until the guest's end of the connection is closed.
    pub(super) fn serve(mut self, wires: &Wires, guest: BorrowedFd<'_>) -> Summary {
        let origin = Instant::now();
        let now_ns = || origin.elapsed().as_nanos() as u64;
        loop {
            if rustix::io::read(&wires.doorbell, &mut [0u8; 8]).is_ok() {
                self.doorbells += 1;
                self.model.doorbell(now_ns());
            }
            if self.model.advance(now_ns()) {
                self.interrupts += 1;
                // It cannot fail but by a count of 2^64.
                let _ = rustix::io::write(&wires.interrupt, &1u64.to_ne_bytes());
            }
            let left = (self.model.next_event())
                .map(|next| Duration::from_nanos(next.saturating_sub(now_ns())));
            let gone = match left.map(|left| left.checked_sub(EARLY)) {
                None => wait(wires, guest, None),
                Some(Some(sleep)) if !sleep.is_zero() => wait(wires, guest, Some(sleep)),
                Some(_) => {
                    // The guest's processor goes first, if it has to share this one.
                    std::thread::yield_now();
                    false
                }
            };
            if gone {
                return self.summary();
            }
        }
    }
}

/// Sleeps until the doorbell or for `time` at most; says whether the guest is gone.
fn wait(wires: &Wires, guest: BorrowedFd<'_>, time: Option<Duration>) -> bool {
    let timeout = time.map(|time| Timespec {
        tv_sec: time.as_secs() as i64,
        tv_nsec: i64::from(time.subsec_nanos()),
    });
    let mut files = [
        PollFd::new(&wires.doorbell, PollFlags::IN),
        PollFd::from_borrowed_fd(guest, PollFlags::IN),
    ];
    match poll(&mut files, timeout.as_ref()) {
        // QEMU says nothing on this connection; so it is its end.
        Ok(_) => !files[1].revents().is_empty(),
        // Interrupted: look again.
        Err(_) => false,
    }
}
