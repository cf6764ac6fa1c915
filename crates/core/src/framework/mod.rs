//! The registry: which drivers there are, which may be used, and what was learned.
//!
//! | module | what it holds |
//! |---|---|
//! | `builder` | how a framework is put together |
//! | `admission` | a driver in the registry, and its self-tests |
//! | `listing` | the table of drivers and algorithms |

mod admission;
mod builder;
mod listing;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub(crate) use self::admission::RegisteredDriver;
pub use self::builder::FrameworkBuilder;
pub use self::listing::{Row, SelfTest};
use crate::dispatch::{BASE, Dispatch, DriverFacts};
use crate::health::Health;
use crate::profile::Profile;
use crate::session::SessionBuilder;
use crate::stats::{Statistics, Totals};
use crate::verify::Verifier;
use crate::{Algorithm, Clock, Config, Driver, Error, Mismatch, Mode, NotUsedBecause};

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

    /// Whether `auto` may choose a driver, as far as the settings say. The others are asked
    /// nothing before a user names or lists them: their libraries are not loaded, and their
    /// devices not opened.
    fn is_candidate(&self, index: usize) -> bool {
        let driver = &self.shared.entries[index].driver;
        match &self.shared.config.force {
            _ if index == BASE => true,
            Some(forced) => forced == driver.name(),
            None => driver.automatic() || self.wanted(driver.name()),
        }
    }

    /// Whether `auto` may choose a driver for an algorithm.
    fn is_usable(&self, index: usize, algorithm: &'static Algorithm) -> bool {
        self.is_candidate(index) && self.not_used(index, algorithm).is_none()
    }

    /// Why `auto` does not use a driver for an algorithm; `None` if it may.
    pub(crate) fn not_used(
        &self,
        index: usize,
        algorithm: &'static Algorithm,
    ) -> Option<NotUsedBecause> {
        let entry = &self.shared.entries[index];
        let name = entry.driver.name();
        if let Err(reason) = entry.admit(algorithm, &self.shared.clock) {
            return Some(NotUsedBecause::NotAdmitted(reason));
        }
        if let Some(forced) = &self.shared.config.force
            && forced != name
        {
            return Some(NotUsedBecause::Forced(forced.clone()));
        }
        match entry.breaker.health() {
            Health::Working => {}
            health => return Some(NotUsedBecause::Unhealthy(health)),
        }
        (!self.is_candidate(index)).then(|| NotUsedBecause::NotListed(name.to_owned()))
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
                self.is_usable(index, algorithm) && driver.takes_key(algorithm, key_len)
            })
            .collect();
        let entries = self.shared.entries.iter().enumerate();
        let facts = entries.map(|(index, entry)| DriverFacts {
            patience: entry.driver.patience().as_nanos() as u64,
            first_sight: match self.is_candidate(index) {
                true => entry.admit(algorithm, &self.shared.clock),
                false => Ok(None),
            }
            .unwrap_or_default(),
            least_work: [Mode::Wait, Mode::Submit]
                .map(|mode| entry.driver.least_work(mode).as_nanos() as u64),
        });
        let dispatch = Dispatch::new(facts.collect(), self.shared.clock.clone());
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
            let allowed =
                allowed && self.is_usable(index, algorithm) && driver.takes_key(algorithm, key_len);
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
