//! Drivers of Cipherlane.
//!
//! | driver | where it runs |
//! |---|---|
//! | [`software`] | the caller's core |
//! | [`cores`] | the caller's core and worker threads on dedicated cores |
//! | [`dma`] | an accelerator behind descriptor rings |
//! | [`openssl`] | the caller's core, by libcrypto 3 where it is present |
//! | [`gcrypt`] | the caller's core, by libgcrypt where it is present |
//! | [`ipsec_mb`] | the caller's core, by intel-ipsec-mb where it is present |
//!
//! `foreign` is what drivers over foreign libraries share.

#![deny(unsafe_code)]

#[allow(unsafe_code)]
pub mod cores;
#[allow(unsafe_code)]
pub mod dma;
#[allow(unsafe_code)]
mod foreign;
#[allow(unsafe_code)]
pub mod gcrypt;
#[allow(unsafe_code)]
pub mod ipsec_mb;
#[allow(unsafe_code)]
pub mod openssl;
pub mod software;

use std::sync::Arc;

use cipherlane::{Config, Error, Framework};

/// [`Config::load`], and after it the variables of the drivers: `CIPHERLANE_CORES`,
/// `CIPHERLANE_DMA`, `CIPHERLANE_OPENSSL_LIBRARY`, `CIPHERLANE_GCRYPT_LIBRARY`, `CIPHERLANE_IPSEC_MB_LIBRARY`.
pub fn load_config(file: Option<&std::path::Path>) -> Result<Config, Error> {
    let mut config = Config::load(file)?;
    cores::Settings::environment(&mut config);
    dma::Settings::environment(&mut config);
    openssl::OpenSsl::environment(&mut config);
    gcrypt::Gcrypt::environment(&mut config);
    ipsec_mb::IpsecMb::environment(&mut config);
    Ok(config)
}

/// The drivers that have settings: `[drivers.NAME]` of the configuration.
const WITH_SETTINGS: [&str; 5] = ["cores", "dma", "openssl", "gcrypt", "ipsec_mb"];

/// A framework with every driver there is, under the given settings.
pub fn framework(config: Config) -> Result<Framework, Error> {
    let unknown = |name: &&String| !WITH_SETTINGS.contains(&name.as_str());
    if let Some(name) = config.drivers.keys().find(unknown) {
        return Err(Error::Config {
            origin: format!("[drivers.{name}]"),
            problem: format!(
                "no driver of that name has settings; those that have are {}",
                WITH_SETTINGS.join(", ")
            ),
        });
    }
    let cores = cores::Cores::new(&config)?;
    let devices = dma::Dma::configured(&config)?;
    let openssl = openssl::OpenSsl::new(&config)?;
    let gcrypt = gcrypt::Gcrypt::new(&config)?;
    let ipsec_mb = ipsec_mb::IpsecMb::new(&config)?;
    let builder = Framework::builder(Arc::new(software::Software))
        .driver(Arc::new(cores))
        .driver(Arc::new(openssl))
        .driver(Arc::new(gcrypt))
        .driver(Arc::new(ipsec_mb));
    let devices = devices.into_iter().map(Arc::new);
    let builder = devices.fold(builder, |builder, device| builder.driver(device));
    builder.config(config).build()
}
