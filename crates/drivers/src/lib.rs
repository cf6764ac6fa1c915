//! Drivers of Cipherlane.
//!
//! | driver | where it runs |
//! |---|---|
//! | [`software`] | the caller's core |
//! | [`openssl`] | the caller's core, by libcrypto 3 where it is present |
//! | [`gcrypt`] | the caller's core, by libgcrypt where it is present |
//!
//! `foreign` is what drivers over foreign libraries share.

mod foreign;
pub mod gcrypt;
pub mod openssl;
pub mod software;

use std::sync::Arc;

use cipherlane::{Config, Error, Framework};

/// A framework with every driver there is, under the given settings.
pub fn framework(config: Config) -> Result<Framework, Error> {
    let openssl = openssl::OpenSsl::new(&config)?;
    let gcrypt = gcrypt::Gcrypt::new(&config)?;
    Framework::builder(Arc::new(software::Software))
        .driver(Arc::new(openssl))
        .driver(Arc::new(gcrypt))
        .config(config)
        .build()
}
