//! Drivers of Cipherlane.
//!
//! | driver | where it runs |
//! |---|---|
//! | [`software`] | the caller's core |

pub mod software;

use std::sync::Arc;

use cipherlane::{Config, Error, Framework};

/// A framework with every driver there is, under the given settings.
pub fn framework(config: Config) -> Result<Framework, Error> {
    Framework::builder(Arc::new(software::Software))
        .config(config)
        .build()
}
