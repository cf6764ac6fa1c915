//! The accelerator that is not there: its model in virtual time, behind the real driver.

use std::sync::Arc;
use std::time::Duration;

use cipherlane_core::{Config, Framework, Session, VirtualTime};
use cipherlane_drivers::dma::{Dma, Settings, model};
use cipherlane_drivers::software::Software;
use cipherlane_measure::counters::Usage;
use cipherlane_measure::latency::Latency;
use cipherlane_measure::run::{Block, ResourceUse, Run};
use cipherlane_measure::subject::Subject;

use crate::algorithms::Choice;
use crate::failure::Failure;
use crate::speed::{Submitting, Waiting, Work, key};

/// Payload that a prediction goes through, and batches, within limits.
const BYTES: usize = 8 << 20;
const LEAST_BATCHES: usize = 4;
const MOST_BATCHES: usize = 128;

/// A description, and its driver's settings.
#[derive(Debug)]
pub(super) struct Device {
    /// As drivers are named: `dma:NAME`.
    pub(super) driver: String,
    pub(super) settings: model::Settings,
    /// Faults to order in the description. A forecast is made without them.
    pub(super) ignored_faults: usize,
    name: String,
    options: Settings,
}

/// The device with a key, ready for requests.
#[derive(Debug)]
pub(super) struct Model {
    time: VirtualTime,
    driver: Arc<Dma>,
    framework: Framework,
    session: Session,
}

/// What an operation, a batch of requests, takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prediction {
    operations: u64,
    /// From one result to the next.
    period: Duration,
    /// From submission to result.
    latency: Duration,
    /// Of the caller's processor.
    processor: Duration,
    /// Interrupts that woke somebody, in all.
    wakes: u64,
}

impl Device {
    pub(super) fn load(name: &str, config: &Config) -> Result<Device, Failure> {
        let mut settings = model::Settings::load(name).map_err(|problem| {
            let presets = model::Settings::presets().join(", ");
            let remedy = match problem.contains(&presets) {
                true => "; or name a TOML file, such as ./card.toml".to_owned(),
                false => format!("; or use a preset: {presets}"),
            };
            Failure::Usage(format!("--device {problem}{remedy}"))
        })?;
        let short = name.rsplit('/').next().unwrap_or(name);
        let short = short.strip_suffix(".toml").unwrap_or(short);
        let faults = std::mem::take(&mut settings.behaviour.faults);
        Ok(Device {
            ignored_faults: faults.len(),
            driver: format!("dma:{short}"),
            settings,
            name: short.to_owned(),
            options: Settings::new(config)?,
        })
    }

    /// The device as it is before its first request, with a key set.
    pub(super) fn model(&self, choice: &Choice) -> Result<Model, Failure> {
        let time = VirtualTime::new();
        let settings = self.settings.clone();
        let driver = Dma::simulated(&self.name, &self.options, settings, time.clone())
            .map_err(|error| Failure::io("make", "the rings of the model", &error))?;
        let driver = Arc::new(driver);
        let config = Config {
            verify: Some(0),
            ..Config::default()
        };
        let framework = Framework::builder(Arc::new(Software))
            .driver(driver.clone())
            .clock(time.clock())
            .config(config)
            .build()?;
        let session = framework
            .session(choice.algorithm.name, &key(choice.key_len))?
            .driver(&self.driver)
            .open()?;
        Ok(Model {
            time,
            driver,
            framework,
            session,
        })
    }
}

impl Model {
    /// Runs batches of `work` in virtual time; `None` if the device leaves some of them to
    /// software. `serial` is another for every call.
    pub(super) fn predict(
        &self,
        driver: &Device,
        work: Work,
        depth: Option<usize>,
        serial: u64,
    ) -> Result<Option<Prediction>, Failure> {
        let failed = |error: cipherlane_measure::subject::Failure| {
            Failure::Runtime(format!("the model of {} failed: {error}", driver.driver))
        };
        let mut subject: Box<dyn Subject + '_> = match depth {
            None => Box::new(Waiting::new(&self.session, work, serial, 0).map_err(failed)?),
            Some(depth) => {
                Box::new(Submitting::new(&self.session, work, depth, serial, 0).map_err(failed)?)
            }
        };
        let algorithm = work.algorithm.name;
        let retries = || {
            Ok(self
                .framework
                .statistics(&driver.driver, algorithm)?
                .retries)
        };
        let before: Result<u64, Failure> = retries();
        let under_way = depth.unwrap_or(1);
        let count = (BYTES / (work.size * work.batch).max(1)).clamp(LEAST_BATCHES, MOST_BATCHES);
        let count = count.max(2 * under_way) as u64;
        // The driver learns how long to look for results before it sleeps.
        subject.run(count).map_err(failed)?;
        let mut run = |operations: u64| {
            let start = self.moment();
            subject.run(operations).map_err(failed)?;
            let end = self.moment();
            Ok::<_, Failure>((end.0 - start.0, end.1 - start.1, end.2 - start.2))
        };
        // The difference of two runs is free of their beginnings and ends.
        let (short, long) = (run(count)?, run(2 * count)?);
        if retries()? > before? {
            return Ok(None);
        }
        let part = |total: Duration| total.div_f64(count as f64).max(Duration::from_nanos(1));
        let period = part(long.0.saturating_sub(short.0));
        Ok(Some(Prediction {
            operations: count,
            period,
            // Little's law.
            latency: period * under_way as u32,
            processor: part(long.1.saturating_sub(short.1)),
            wakes: long.2.saturating_sub(short.2),
        }))
    }

    /// Time, processor time, and interrupts so far.
    fn moment(&self) -> (Duration, Duration, u64) {
        let clock = self.time.clock();
        (
            clock.now(),
            clock.processor(),
            self.driver.incidents().interrupts,
        )
    }
}

impl Prediction {
    /// As if it had been measured beside others, in as many blocks as they.
    pub(super) fn as_run(&self, name: &str, blocks: usize) -> Run {
        let block = Block {
            operations: self.operations,
            rate: 1.0 / self.period.as_secs_f64(),
            resources: ResourceUse {
                usage: Usage {
                    wall: self.period * self.operations as u32,
                    user: self.processor * self.operations as u32,
                    voluntary_switches: self.wakes,
                    ..Usage::default()
                },
                steal: Duration::ZERO,
            },
            disturbed: false,
        };
        let mut latency = Latency::default();
        latency.record(self.latency);
        Run {
            name: name.to_owned(),
            blocks: vec![block; blocks],
            latency,
        }
    }
}
