//! What the matrix asks of a device in virtual time: the cost model here, or a real driver over
//! a simulated transport.

use std::time::Duration;

use cipherlane_core::VirtualTime;

use crate::callers::{Mark, Way};
use crate::cells::Cell;
use crate::model::{Device, Price, Temper};

/// A device and the processor beside it.
pub(crate) trait Simulation {
    /// As the summary calls it.
    fn name(&self) -> &'static str;

    /// The driver's name.
    fn driver(&self) -> &str;

    fn time(&self) -> &VirtualTime;

    /// What software takes.
    fn software(&self) -> Price;

    /// When learning must be over, of all callers together.
    fn learning(&self) -> Duration;

    /// Whether it is the same device all the time.
    fn is_steady(&self) -> bool {
        true
    }

    /// Lands what has ended by now, if nobody but the simulation does.
    fn interrupts(&self) {}

    /// Makes it as it was before its first request.
    fn renew(&self) {}

    /// How many times as much software and device would do together as the better of them, if
    /// nothing were lost; 1 where that is not known.
    fn together(&self, _cell: &Cell, _software: &Mark, _device: &Mark) -> f64 {
        1.0
    }
}

impl Simulation for Device {
    fn name(&self) -> &'static str {
        self.settings().name
    }

    fn driver(&self) -> &str {
        "device"
    }

    fn time(&self) -> &VirtualTime {
        &self.world.time
    }

    fn software(&self) -> Price {
        crate::cells::SOFTWARE
    }

    fn learning(&self) -> Duration {
        Duration::from_millis(120)
    }

    fn is_steady(&self) -> bool {
        !matches!(self.settings().temper, Temper::Dies(_) | Temper::Lies(_))
    }

    fn interrupts(&self) {
        self.land();
    }

    fn renew(&self) {
        self.reset();
    }

    fn together(&self, cell: &Cell, software: &Mark, device: &Mark) -> f64 {
        if let Temper::Dies(_) = self.settings().temper {
            return 1.0;
        }
        let shared = self.splits(cell, software, device);
        let paces = shared.iter().map(|split| split.pace);
        let best = software.pace().min(device.pace());
        (best / paces.fold(f64::INFINITY, f64::min)).max(1.0)
    }
}

/// Some of the work at home, the rest by the device.
pub(crate) struct Split {
    /// Nanoseconds per batch.
    pub(crate) pace: f64,
    /// Of these, the processor's.
    pub(crate) work: f64,
}

impl Device {
    /// All ways to split the work, if nothing were lost.
    pub(crate) fn splits(&self, cell: &Cell, software: &Mark, device: &Mark) -> Vec<Split> {
        let settings = self.settings();
        let (home, core) = (software.pace(), device.work());
        let (batch, size) = (cell.way.batch(), cell.size);
        let sessions = cell.sessions as f64;
        let slower = match settings.temper {
            Temper::Lies(factor) => factor,
            Temper::Jitter(one_in, factor) => 1.0 + (factor - 1.0) / one_in as f64,
            // So many times as long as nothing.
            Temper::Even | Temper::Collapse(_) | Temper::Dies(_) => 1.0,
        };
        let service = slower * settings.service.of(batch, batch * size);
        let latency = service + settings.latency;
        match cell.way {
            // The number of those under way that are done at home.
            Way::Submit { depth, .. } => (0..depth)
                .map(|at_home| {
                    let (at_home, away) = (at_home as f64, (depth - at_home) as f64);
                    let work = at_home * home + away * core;
                    let round = work.max(latency).max(away * service * sessions);
                    Split {
                        pace: round / depth as f64,
                        work: work / depth as f64,
                    }
                })
                .collect(),
            // So many callers wait for the device, the others work.
            Way::Wait { .. } | Way::Pause { .. } => (1..=cell.sessions)
                .map(|away| {
                    let away = away as f64;
                    let device = away.min((latency + core) / service) / (latency + core);
                    let software = (sessions - away) / home;
                    Split {
                        pace: sessions / (device + software),
                        work: (device * core + software * home) / (device + software),
                    }
                })
                .collect(),
        }
    }
}
