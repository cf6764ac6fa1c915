//! The `dma` driver in place of a cost model: rings, pieces, copies and interrupts are real, the
//! device behind them is a preset in virtual time.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use cipherlane_core::{Config, Driver, Framework, VirtualTime};
use cipherlane_drivers::dma::{self, Dma, model};

use crate::callers::{ALGORITHM, KEY};
use crate::cells::Bench;
use crate::model::{Price, World, software};
use crate::simulation::Simulation;

/// A preset, and milliseconds after which its driver gives a request up: a little more than the
/// largest request of the self-test takes.
pub(crate) const PRESETS: [(&str, u64); 3] = [
    ("glxsb-geode-lx", 20),
    ("cyclone-v-soc-aes", 16),
    ("pcie-modern", 1),
];

pub(crate) struct Accelerator {
    name: &'static str,
    pub(crate) driver: Arc<Dma>,
    time: VirtualTime,
    processor: Price,
}

impl Simulation for Accelerator {
    fn name(&self) -> &'static str {
        self.name
    }

    fn driver(&self) -> &str {
        self.driver.name()
    }

    fn time(&self) -> &VirtualTime {
        &self.time
    }

    fn software(&self) -> Price {
        self.processor
    }

    /// It is not tried before a loss of this length can be afforded, which is one part in fifty.
    fn learning(&self) -> Duration {
        75 * self.driver.patience()
    }
}

impl Bench<Accelerator> {
    /// A preset with some changes. One in `verify` results is verified; without, nothing is
    /// computed.
    pub(crate) fn accelerator(
        (name, timeout_ms): (&'static str, u64),
        verify: u64,
        change: impl FnOnce(&mut model::Settings),
    ) -> Bench<Accelerator> {
        let world = World::new();
        let mut device = model::Settings::preset(name).unwrap();
        change(&mut device);
        device.check().unwrap();
        let settings = dma::Settings {
            timeout_ms,
            reset_ms: 1,
            ..dma::Settings::default()
        };
        let processor = Price {
            call: 0.0,
            request: device.processor.request_ns,
            byte: 1e9 / device.processor.encrypt_bytes_per_second,
        };
        let driver = Dma::simulated(name, &settings, device, world.time.clone()).unwrap();
        let driver = Arc::new(driver);
        let config = Config {
            verify: Some(verify),
            auto: vec![driver.name().to_owned()],
            ..Config::default()
        };
        let framework = Framework::builder(software(&world, processor))
            .driver(driver.clone())
            .clock(world.time.clock())
            .config(config)
            .build()
            .unwrap();
        // Admission computes.
        drop(framework.session(ALGORITHM, &KEY).unwrap().open().unwrap());
        world.computing.store(verify > 0, Ordering::Relaxed);
        driver.controls().unwrap().set_computing(verify > 0);
        let device = Arc::new(Accelerator {
            name,
            driver,
            time: world.time,
            processor,
        });
        Bench { framework, device }
    }
}
