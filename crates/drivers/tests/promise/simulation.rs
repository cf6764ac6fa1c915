//! What the matrix asks of a device in virtual time: the cost model here, or a real driver over
//! a simulated transport.

use std::time::Duration;

use cipherlane::VirtualTime;

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

    /// The best of all numbers of batches under way that are done at home.
    fn together(&self, cell: &Cell, software: &Mark, device: &Mark) -> f64 {
        let settings = self.settings();
        let (home, core) = (software.pace(), device.work());
        let (batch, size) = (cell.way.batch(), cell.size);
        let sessions = cell.sessions as f64;
        let slower = match settings.temper {
            Temper::Lies(factor) => factor,
            Temper::Jitter(one_in, factor) => 1.0 + (factor - 1.0) / one_in as f64,
            // So many times as long as nothing.
            Temper::Dies(_) => return 1.0,
            Temper::Even | Temper::Collapse(_) => 1.0,
        };
        let service = slower * settings.service.of(batch, batch * size);
        let latency = service + settings.latency;
        let best = home.min(device.pace());
        let paces = match cell.way {
            Way::Submit { depth, .. } => (0..depth)
                .map(|at_home| {
                    let (at_home, away) = (at_home as f64, (depth - at_home) as f64);
                    let core = at_home * home + away * core;
                    core.max(latency).max(away * service * sessions) / depth as f64
                })
                .fold(f64::INFINITY, f64::min),
            // So many callers wait for the device, the others work.
            Way::Wait { .. } => (1..=cell.sessions)
                .map(|away| {
                    let away = away as f64;
                    let pace = ((latency + core) / away).max(service);
                    sessions / (1.0 / pace + (sessions - away) / home)
                })
                .fold(f64::INFINITY, f64::min),
        };
        (best / paces).max(1.0)
    }
}
