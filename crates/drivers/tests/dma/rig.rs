//! A framework with software and one device in virtual time.

use std::sync::Arc;
use std::time::Duration;

use cipherlane_core::{Algorithm, Config, Framework, Kind, Sample, Session, VirtualTime};
use cipherlane_drivers::dma::model::{Fault, FaultKind};
use cipherlane_drivers::dma::{Dma, Settings, model};
use cipherlane_drivers::software::Software;

pub(crate) struct Rig {
    pub(crate) framework: Framework,
    pub(crate) driver: Arc<Dma>,
    pub(crate) time: VirtualTime,
}

/// A device that is quick and demands nothing, but is otherwise as given.
pub(crate) fn device(change: impl FnOnce(&mut model::Settings)) -> model::Settings {
    let mut device = model::Settings::preset("pcie-modern").unwrap();
    change(&mut device);
    device.check().unwrap();
    device
}

pub(crate) fn rig(device: model::Settings) -> Rig {
    rig_with(device, Settings::default())
}

pub(crate) fn rig_with(device: model::Settings, settings: Settings) -> Rig {
    rig_verifying(device, settings, 0)
}

/// One in `verify` requests is verified.
pub(crate) fn rig_verifying(device: model::Settings, settings: Settings, verify: u64) -> Rig {
    let config = Config {
        verify: Some(verify),
        ..Config::default()
    };
    let time = VirtualTime::new();
    let driver = Dma::simulated("test", &settings, device, time.clone()).unwrap();
    let driver = Arc::new(driver);
    let framework = Framework::builder(Arc::new(Software))
        .driver(driver.clone())
        .clock(time.clock())
        .config(config)
        .build()
        .unwrap();
    Rig {
        framework,
        driver,
        time,
    }
}

impl Rig {
    /// A session that uses the device and nothing else.
    pub(crate) fn session(&self, algorithm: &str, key: &[u8]) -> Session {
        let builder = self.framework.session(algorithm, key).unwrap();
        builder.driver("dma:test").open().unwrap()
    }

    /// Virtual nanoseconds that `f` takes.
    pub(crate) fn timed(&self, f: impl FnOnce()) -> u64 {
        let before = self.time.now();
        f();
        (self.time.now() - before).as_nanos() as u64
    }

    /// Nothing happens for `time`.
    pub(crate) fn rest(&self, time: Duration) {
        self.time.sleep_until(self.time.now() + time);
    }

    /// Requests that software had to finish.
    pub(crate) fn retries(&self, algorithm: &str) -> u64 {
        let totals = self.framework.statistics("dma:test", algorithm).unwrap();
        totals.retries
    }
}

/// Orders a fault for the request after `after` others.
pub(crate) fn inject(driver: &Dma, kind: FaultKind, after: u64, delay: Duration) {
    driver.controls().unwrap().inject(Fault {
        kind,
        after,
        count: 1,
        delay_ns: delay.as_nanos() as u64,
    });
}

pub(crate) fn bytes(seed: u8, len: usize) -> Vec<u8> {
    let mut state = u32::from(seed) << 8 | 1;
    let next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    std::iter::repeat_with(next).take(len).collect()
}

/// What the naive reference gives: output and tag.
pub(crate) fn encrypted(
    algorithm: &str,
    key: &[u8],
    iv: &[u8],
    aad: &[u8],
    data: &[u8],
) -> (Vec<u8>, Vec<u8>) {
    let algorithm = Algorithm::find(algorithm).unwrap();
    assert_ne!(algorithm.kind, Kind::Mac);
    (algorithm.reference)(Sample {
        direction: cipherlane_core::Direction::Encrypt,
        key,
        iv,
        aad,
        data,
    })
}
