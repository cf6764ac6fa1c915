//! Drivers of Cipherlane.
//!
//! | driver | where it runs |
//! |---|---|
//! | [`software`] | the caller's core |
//! | [`cores`] | the caller's core and worker threads on dedicated cores |

pub mod cores;
pub mod software;

use std::sync::Arc;

use cipherlane::{Config, Error, Framework};

/// [`Config::load`], and after it the variables of the drivers: `CIPHERLANE_CORES`.
pub fn load_config() -> Result<Config, Error> {
    let mut config = Config::load()?;
    cores::Settings::environment(&mut config);
    Ok(config)
}

/// A framework with every driver there is, under the given settings.
pub fn framework(config: Config) -> Result<Framework, Error> {
    let cores = cores::Cores::new(&config)?;
    Framework::builder(Arc::new(software::Software))
        .driver(Arc::new(cores))
        .config(config)
        .build()
}
