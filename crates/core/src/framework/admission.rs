//! A driver in the registry, and its admission: by a self-test per algorithm, at first need.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::dispatch::ledger;
use crate::dispatch::queue::Queue;
use crate::health::Breaker;
use crate::selftest::{self, FirstSight};
use crate::verify::{self, Sampler};
use crate::{Algorithm, Clock, Config, Driver, NotAdmitted, Unavailable};

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
    /// Held by the self-test that runs.
    testing: Mutex<()>,
}

impl RegisteredDriver {
    /// A driver that is put into the registry. It is probed now, unless the user disabled it.
    pub(super) fn new(driver: Arc<dyn Driver>, config: &Config, clock: &Clock) -> Self {
        let disabled = config.disable.iter().any(|name| name == driver.name());
        let barred = match disabled {
            true => Some(NotAdmitted::Disabled),
            false => driver.probe().err().map(NotAdmitted::Unavailable),
        };
        let admissions = Algorithm::all().iter().map(|_| OnceLock::new()).collect();
        RegisteredDriver {
            driver,
            breaker: Breaker::new(clock.clone()),
            queue: Queue::default(),
            sampler: Sampler::new(config.verify.unwrap_or(verify::DEFAULT_INTERVAL)),
            barred,
            admissions,
            testing: Mutex::default(),
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
                ledger::work_for(patience).as_secs_f64()
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
        if let Some(known) = admission.get() {
            return known.clone();
        }
        let _testing = self.testing.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = admission.get() {
            return known.clone();
        }
        let tested = self.test(algorithm, clock);
        // There may be room another time.
        if let Err(NotAdmitted::Unavailable(Unavailable::NoRoom(_))) = &tested {
            return tested;
        }
        admission.get_or_init(|| tested).clone()
    }

    fn test(
        &self,
        algorithm: &'static Algorithm,
        clock: &Clock,
    ) -> Result<Option<FirstSight>, NotAdmitted> {
        let driver = &*self.driver;
        driver.offers(algorithm)?;
        selftest::takes_a_key(driver, algorithm)?;
        selftest::run(driver, algorithm)?;
        match driver.patience().is_zero() {
            true => Ok(None),
            false => Ok(Some(selftest::first_sight(driver, algorithm, clock)?)),
        }
    }
}

impl From<selftest::Failure> for NotAdmitted {
    fn from(failure: selftest::Failure) -> Self {
        match failure {
            selftest::Failure::Unavailable(reason) => NotAdmitted::Unavailable(reason),
            selftest::Failure::Wrong(problem) => NotAdmitted::SelfTest(problem),
        }
    }
}
