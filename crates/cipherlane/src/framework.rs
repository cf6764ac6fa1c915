//! The framework with the built-in drivers.

use std::ops::Deref;

use cipherlane_core::{Config, Error, FrameworkBuilder};

/// The built-in drivers, settings, and everything learned. Cheap to clone; clones are one
/// framework. A program needs one.
///
/// It is a [`cipherlane_core::Framework`], whose methods it has.
#[derive(Clone, Debug)]
pub struct Framework(cipherlane_core::Framework);

impl Framework {
    /// Every built-in driver, with the default settings: no file and no variable of the
    /// environment is read. Drivers are tested when they are first needed.
    pub fn new() -> Result<Self, Error> {
        Self::with_config(Config::default())
    }

    /// The same with settings: those of the files and variables that the command obeys
    /// are [`load_config(None)`](crate::load_config).
    pub fn with_config(config: Config) -> Result<Self, Error> {
        cipherlane_drivers::framework(config).map(Framework)
    }

    /// The built-in drivers, to which others can be added.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use cipherlane::{Config, Framework};
    /// # fn add(mine: Arc<dyn cipherlane::Driver>) -> Result<(), cipherlane::Error> {
    /// let builder = Framework::builder(Config::default())?;
    /// let framework: Framework = builder.driver(mine).build()?.into();
    /// # Ok(())
    /// # }
    /// ```
    pub fn builder(config: Config) -> Result<FrameworkBuilder, Error> {
        cipherlane_drivers::builder(config)
    }
}

impl Deref for Framework {
    type Target = cipherlane_core::Framework;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl From<cipherlane_core::Framework> for Framework {
    fn from(framework: cipherlane_core::Framework) -> Self {
        Framework(framework)
    }
}

impl From<Framework> for cipherlane_core::Framework {
    fn from(framework: Framework) -> Self {
        framework.0
    }
}
