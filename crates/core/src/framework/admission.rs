//! A driver in the registry, and its admission: by a self-test per algorithm, at first need.

use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::dispatch::ledger;
use crate::dispatch::queue::Queue;
use crate::health::{Breaker, Health};
use crate::selftest::{self, FirstSight};
use crate::verify::{self, Sampler};
use crate::{Algorithm, Clock, Config, Driver};

/// A driver in the registry.
pub(crate) struct RegisteredDriver {
    pub(crate) driver: Arc<dyn Driver>,
    pub(crate) breaker: Breaker,
    /// What it has under way, if it is a device.
    pub(crate) queue: Queue,
    pub(crate) sampler: Sampler,
    /// Why the whole driver is not used, if so.
    barred: Option<NotAdmitted>,
    /// Self-tests, run at first need, by algorithm.
    admissions: Vec<OnceLock<Result<Option<FirstSight>, NotAdmitted>>>,
}

/// Why a driver may not serve an algorithm.
#[derive(Clone, Debug)]
pub(crate) enum NotAdmitted {
    /// The user disabled the whole driver.
    Disabled,
    /// The driver cannot be used on this machine.
    Absent(String),
    /// The driver gave a wrong result.
    Quarantined(Health),
    /// The driver does not offer the algorithm.
    NotOffered(String),
    /// The self-test failed.
    SelfTest(String),
}

impl fmt::Display for NotAdmitted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotAdmitted::Disabled => f.write_str("disabled by the user"),
            NotAdmitted::Quarantined(health) => health.fmt(f),
            NotAdmitted::Absent(reason)
            | NotAdmitted::NotOffered(reason)
            | NotAdmitted::SelfTest(reason) => f.write_str(reason),
        }
    }
}

impl RegisteredDriver {
    /// A driver that is put into the registry. It is probed now, unless the user disabled it.
    pub(super) fn new(driver: Arc<dyn Driver>, config: &Config, clock: &Clock) -> Self {
        let disabled = config.disable.iter().any(|name| name == driver.name());
        let barred = match disabled {
            true => Some(NotAdmitted::Disabled),
            false => driver.probe().err().map(NotAdmitted::Absent),
        };
        let admissions = Algorithm::all().iter().map(|_| OnceLock::new()).collect();
        RegisteredDriver {
            driver,
            breaker: Breaker::new(clock.clone()),
            queue: Queue::default(),
            sampler: Sampler::new(config.verify.unwrap_or(verify::DEFAULT_INTERVAL)),
            barred,
            admissions,
        }
    }

    /// What the user should know of the driver.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = self.driver.notes();
        let patience = self.driver.patience();
        if !patience.is_zero() {
            notes.push(format!(
                "a request can be stuck in it for {:.3} s: 'auto' uses it after {:.1} s of work, \
                 which pay for that",
                patience.as_secs_f64(),
                ledger::pays(patience).as_secs_f64()
            ));
        }
        notes
    }

    /// Whether the driver may serve an algorithm, and what a device was seen to take; `Err`
    /// says why not.
    pub(crate) fn admit(
        &self,
        algorithm: &'static Algorithm,
        clock: &Clock,
    ) -> Result<Option<FirstSight>, NotAdmitted> {
        if let Some(reason) = &self.barred {
            return Err(reason.clone());
        }
        if self.breaker.is_quarantined() {
            return Err(NotAdmitted::Quarantined(self.breaker.health()));
        }
        let admission = &self.admissions[algorithm.index()];
        admission
            .get_or_init(|| {
                let offered = (self.driver.offers(algorithm))
                    .and_then(|()| selftest::takes_a_key(&*self.driver, algorithm));
                offered.map_err(NotAdmitted::NotOffered)?;
                selftest::run(&*self.driver, algorithm)
                    .and_then(|()| match self.driver.patience().is_zero() {
                        true => Ok(None),
                        false => selftest::first_sight(&*self.driver, algorithm, clock).map(Some),
                    })
                    .map_err(NotAdmitted::SelfTest)
            })
            .clone()
    }
}
