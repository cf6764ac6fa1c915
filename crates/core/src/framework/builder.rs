//! How a framework is put together: drivers, settings, a clock, and what was learned before.

use std::sync::{Arc, Mutex};

use super::{Framework, RegisteredDriver, Shared};
use crate::dispatch::BASE;
use crate::profile::Profile;
use crate::stats::{MAX_DRIVERS, Statistics};
use crate::{Clock, Config, Driver, Error};

/// Puts a framework together.
pub struct FrameworkBuilder {
    pub(super) drivers: Vec<Arc<dyn Driver>>,
    pub(super) config: Config,
    pub(super) clock: Clock,
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
            .map(|driver| RegisteredDriver::new(driver, &config, &self.clock))
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
