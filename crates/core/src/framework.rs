//! The registry: drivers, their admission, what may be used, and what was learned.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::dispatch::ledger;
use crate::dispatch::queue::Queue;
use crate::dispatch::{BASE, Dispatch, DriverFacts};
use crate::health::{Breaker, Health};
use crate::profile::Profile;
use crate::selftest::FirstSight;
use crate::session::SessionBuilder;
use crate::stats::{MAX_DRIVERS, Statistics, Totals};
use crate::verify::{self, Sampler, Verifier};
use crate::{Algorithm, Clock, Config, Driver, Error, Mismatch, selftest};

/// Drivers, settings and everything learned. Cheap to clone; clones are one framework.
///
/// [`builder`](Self::builder) puts one together from drivers; crate `cipherlane` has one with all
/// built-in drivers.
///
/// ```
/// let framework = cipherlane::Framework::new()?;
/// let session = framework.session("ctr(aes)", &[0x2b; 16])?.open()?;
/// let mut data = *b"attack at dawn";
/// session.apply(&[0; 16], &mut data)?;
/// # Ok::<(), cipherlane::Error>(())
/// ```
#[derive(Clone)]
pub struct Framework {
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) entries: Vec<RegisteredDriver>,
    pub(crate) config: Config,
    pub(crate) clock: Clock,
    pub(crate) stats: Statistics,
    pub(crate) verifier: Arc<Verifier>,
    dispatches: Mutex<HashMap<(usize, usize), Arc<Dispatch>>>,
    /// What the profile file held at start; dispatches take from it as they are made.
    profile: Mutex<Profile>,
}

/// A driver in the registry.
pub(crate) struct RegisteredDriver {
    pub(crate) driver: Arc<dyn Driver>,
    pub(crate) breaker: Breaker,
    /// What it has under way, if it is a device.
    pub(crate) queue: Queue,
    pub(crate) sampler: Sampler,
    /// Why the whole driver is not used, if so.
    barred: Option<String>,
    /// Self-tests, run at first need, by algorithm.
    admissions: Vec<OnceLock<Result<Option<FirstSight>, String>>>,
}

impl RegisteredDriver {
    /// What the user should know of the driver.
    fn notes(&self) -> Vec<String> {
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
    ) -> Result<Option<FirstSight>, String> {
        if let Some(reason) = &self.barred {
            return Err(reason.clone());
        }
        if self.breaker.is_quarantined() {
            return Err(self.breaker.health().to_string());
        }
        let admission = &self.admissions[algorithm.index()];
        admission
            .get_or_init(|| {
                self.driver.offers(algorithm)?;
                selftest::run(&*self.driver, algorithm)?;
                match self.driver.patience().is_zero() {
                    true => Ok(None),
                    false => selftest::first_sight(&*self.driver, algorithm, clock).map(Some),
                }
            })
            .clone()
    }
}

/// Puts a framework together.
pub struct FrameworkBuilder {
    drivers: Vec<Arc<dyn Driver>>,
    config: Config,
    clock: Clock,
}

impl FrameworkBuilder {
    /// Adds a driver.
    pub fn driver(mut self, driver: Arc<dyn Driver>) -> Self {
        self.drivers.push(driver);
        self
    }

    /// Settings; the default is none.
    pub fn config(mut self, config: Config) -> Self {
        self.config = config;
        self
    }

    /// Where times come from; the default is this machine's clocks.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Checks the settings and probes the drivers. Reads what was learned before, if the
    /// settings name a profile file and it is there.
    pub fn build(self) -> Result<Framework, Error> {
        let names: Vec<String> = self.drivers.iter().map(|d| d.name().to_owned()).collect();
        let unknown = |name: &String| Error::UnknownDriver {
            name: name.clone(),
            known: names.join(", "),
        };
        let config = self.config;
        let senseless = |problem| Error::Config {
            origin: "settings".to_owned(),
            problem,
        };
        config.check().map_err(senseless)?;
        let named = config
            .disable
            .iter()
            .chain(&config.auto)
            .chain(&config.force);
        for name in named {
            if !names.contains(name) {
                return Err(unknown(name));
            }
        }
        if config.disable.contains(&names[BASE]) {
            return Err(senseless(format!(
                "'{}' cannot be disabled: it finishes what other drivers give up; to have another \
                 driver serve, force that one",
                names[BASE]
            )));
        }
        if let Some(name) = config.force.as_ref().filter(|n| config.disable.contains(n)) {
            return Err(senseless(format!(
                "'{name}' is both forced and disabled; take one of the two back"
            )));
        }
        if self.drivers.len() > MAX_DRIVERS {
            return Err(Error::Config {
                origin: "drivers".to_owned(),
                problem: format!("more than {MAX_DRIVERS}; leave some out"),
            });
        }
        let entries: Vec<RegisteredDriver> = self
            .drivers
            .into_iter()
            .map(|driver| {
                let disabled = config.disable.iter().any(|name| name == driver.name());
                let barred = match disabled {
                    true => Some("disabled by the user".to_owned()),
                    false => driver.probe().err(),
                };
                let admissions = Algorithm::all().iter().map(|_| OnceLock::new()).collect();
                RegisteredDriver {
                    driver,
                    breaker: Breaker::new(self.clock.clone()),
                    queue: Queue::default(),
                    sampler: Sampler::new(config.verify.unwrap_or(verify::DEFAULT_INTERVAL)),
                    barred,
                    admissions,
                }
            })
            .collect();
        let profile = match &config.profile {
            Some(path) if path.exists() => Profile::read(path)?,
            _ => Profile::default(),
        };
        let shared = Shared {
            entries,
            config,
            clock: self.clock,
            stats: Statistics::new(),
            verifier: Arc::default(),
            dispatches: Mutex::default(),
            profile: Mutex::new(profile),
        };
        Ok(Framework {
            shared: Arc::new(shared),
        })
    }
}

impl Framework {
    /// Begins with the base driver: the yardstick for all others and the refuge when one
    /// fails, so it must offer every algorithm.
    pub fn builder(base: Arc<dyn Driver>) -> FrameworkBuilder {
        FrameworkBuilder {
            drivers: vec![base],
            config: Config::default(),
            clock: Clock::default(),
        }
    }

    /// Where times come from.
    pub fn clock(&self) -> &Clock {
        &self.shared.clock
    }

    /// A session to be, for an algorithm by CryptoAPI name and a key.
    pub fn session(&self, algorithm: &str, key: &[u8]) -> Result<SessionBuilder, Error> {
        SessionBuilder::new(self.clone(), Algorithm::find(algorithm)?, key)
    }

    /// Names of the drivers, in the order of the registry.
    pub fn driver_names(&self) -> Vec<&str> {
        self.shared
            .entries
            .iter()
            .map(|e| e.driver.name())
            .collect()
    }

    /// A row for each driver and algorithm, like `/proc/crypto`. Runs the self-tests that
    /// have not run yet.
    pub fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        for (index, entry) in self.shared.entries.iter().enumerate() {
            for algorithm in Algorithm::all() {
                let admission = entry.admit(algorithm, &self.shared.clock);
                let key_len = algorithm.key_lengths()[0];
                let learned = admission
                    .is_ok()
                    .then(|| self.dispatch(algorithm, key_len).models(index)[0][0].line())
                    .flatten();
                rows.push(Row {
                    algorithm: algorithm.name,
                    driver: entry.driver.name().to_owned(),
                    priority: entry.driver.priority(),
                    not_used_because: self.not_used(index, algorithm),
                    notes: entry.notes(),
                    self_test: match &admission {
                        Ok(_) => SelfTest::Passed,
                        Err(reason) if reason.starts_with("self-test") => SelfTest::Failed,
                        Err(_) => SelfTest::NotRun,
                    },
                    health: entry.breaker.health(),
                    fixed_ns: learned.map(|l| l.0),
                    gigabytes_per_second: learned.map(|l| l.1),
                    totals: self.shared.stats.read(index, algorithm.index()),
                });
            }
        }
        rows
    }

    /// Why `auto` does not use a driver for an algorithm; `None` if it may.
    pub(crate) fn not_used(&self, index: usize, algorithm: &'static Algorithm) -> Option<String> {
        let entry = &self.shared.entries[index];
        let name = entry.driver.name();
        if let Err(reason) = entry.admit(algorithm, &self.shared.clock) {
            return Some(reason);
        }
        if let Some(forced) = &self.shared.config.force
            && forced != name
        {
            return Some(format!("the user forces '{forced}'"));
        }
        match entry.breaker.health() {
            Health::Working => {}
            health => return Some(health.to_string()),
        }
        (index != BASE && !entry.driver.automatic() && !self.wanted(name)).then(|| {
            format!("not chosen by 'auto' unless the setting auto = [\"{name}\"] allows it")
        })
    }

    fn wanted(&self, name: &str) -> bool {
        let config = &self.shared.config;
        config.auto.iter().any(|n| n == name) || config.force.as_deref() == Some(name)
    }

    /// Whether a driver works, by name.
    pub fn health(&self, driver: &str) -> Result<Health, Error> {
        let index = self.driver_index(driver)?;
        Ok(self.shared.entries[index].breaker.health())
    }

    /// Statistics of a driver, by name and CryptoAPI name.
    pub fn statistics(&self, driver: &str, algorithm: &str) -> Result<Totals, Error> {
        let index = self.driver_index(driver)?;
        Ok(self
            .shared
            .stats
            .read(index, Algorithm::find(algorithm)?.index()))
    }

    pub(crate) fn driver_index(&self, name: &str) -> Result<usize, Error> {
        let position = self
            .shared
            .entries
            .iter()
            .position(|e| e.driver.name() == name);
        position.ok_or_else(|| Error::UnknownDriver {
            name: name.to_owned(),
            known: self.driver_names().join(", "),
        })
    }

    pub(crate) fn dispatches(&self) -> MutexGuard<'_, HashMap<(usize, usize), Arc<Dispatch>>> {
        self.shared
            .dispatches
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn profile(&self) -> MutexGuard<'_, Profile> {
        self.shared
            .profile
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// What is learned for an algorithm and key length; sessions share it.
    pub(crate) fn dispatch(&self, algorithm: &'static Algorithm, key_len: usize) -> Arc<Dispatch> {
        let key = (algorithm.index(), key_len);
        if let Some(dispatch) = self.dispatches().get(&key) {
            return dispatch.clone();
        }
        // Admission runs self-tests, which must not hold the lock.
        let usable: Vec<bool> = (0..self.shared.entries.len())
            .map(|index| {
                let driver = &self.shared.entries[index].driver;
                self.not_used(index, algorithm).is_none() && driver.takes_key(algorithm, key_len)
            })
            .collect();
        let facts = self.shared.entries.iter().map(|entry| DriverFacts {
            patience: entry.driver.patience().as_nanos() as u64,
            first_sight: entry
                .admit(algorithm, &self.shared.clock)
                .unwrap_or_default(),
        });
        let dispatch = Dispatch::new(facts.collect());
        for (index, entry) in self.shared.entries.iter().enumerate() {
            let learned = self.profile().models(&*entry.driver, algorithm, key_len);
            if let Some(models) = learned {
                dispatch.set_models(index, models);
            }
            dispatch.set_eligible(index, usable[index]);
        }
        self.dispatches()
            .entry(key)
            .or_insert_with(|| Arc::new(dispatch))
            .clone()
    }

    /// Forgets all costs and failures, as if nothing had been calibrated and no request had
    /// been served. Sessions that are open keep what they know; those opened from now on
    /// begin anew. A driver that was wrong stays in quarantine.
    pub fn forget(&self) {
        self.dispatches().clear();
        *self.profile() = Profile::default();
        for (index, entry) in self.shared.entries.iter().enumerate() {
            entry.breaker.forget();
            self.set_eligible(index, true);
        }
    }

    /// Opens or closes a driver for `auto` in every dispatch where nothing else bars it.
    pub(crate) fn set_eligible(&self, index: usize, allowed: bool) {
        let driver = &self.shared.entries[index].driver;
        for (&(algorithm, key_len), dispatch) in self.dispatches().iter() {
            let algorithm = Algorithm::all()[algorithm];
            let allowed = allowed
                && self.not_used(index, algorithm).is_none()
                && driver.takes_key(algorithm, key_len);
            dispatch.set_eligible(index, allowed);
        }
    }

    /// A driver was wrong: it is not used any more, by any session.
    pub(crate) fn quarantine(&self, index: usize, mismatch: Mismatch) {
        self.shared.entries[index].breaker.quarantine(mismatch);
        self.set_eligible(index, false);
    }

    /// Waits until the requests sampled so far are verified.
    pub fn finish_verification(&self) {
        self.shared.verifier.finish();
    }

    /// Suspended drivers whose rest is over may be tried again.
    pub(crate) fn revive(&self) {
        for (index, entry) in self.shared.entries.iter().enumerate() {
            if entry.breaker.recovers() {
                self.set_eligible(index, true);
            }
        }
    }
}

impl std::fmt::Debug for Framework {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Framework")
            .field("drivers", &self.driver_names())
            .finish_non_exhaustive()
    }
}

/// One driver and algorithm, for listings.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Row {
    /// CryptoAPI name.
    pub algorithm: &'static str,
    /// Driver name.
    pub driver: String,
    /// As in the Linux CryptoAPI; only the tie-break.
    pub priority: i32,
    /// Outcome of the self-test.
    pub self_test: SelfTest,
    /// Health of the driver.
    pub health: Health,
    /// Learned fixed cost of a request in nanoseconds, encrypting, waiting.
    pub fixed_ns: Option<f32>,
    /// Learned rate on large requests in GB/s, encrypting, waiting.
    pub gigabytes_per_second: Option<f32>,
    /// Why `auto` does not use it.
    pub not_used_because: Option<String>,
    /// What else the user should know of the driver.
    pub notes: Vec<String>,
    /// Statistics.
    pub totals: Totals,
}

/// Outcome of a self-test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SelfTest {
    /// Admitted.
    Passed,
    /// Refused.
    Failed,
    /// Absent, disabled, or the driver does not offer the algorithm.
    NotRun,
}
