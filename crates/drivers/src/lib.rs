//! Drivers of Cipherlane.
//!
//! | driver | feature | where it runs |
//! |---|---|---|
//! | [`software`] | | the caller's core |
//! | [`cores`] | `cores` | the caller's core and worker threads on dedicated cores |
//! | [`dma`] | `dma` | an accelerator behind descriptor rings |
//! | [`openssl`] | `openssl` | the caller's core, by libcrypto 3 where it is present |
//! | [`gcrypt`] | `gcrypt` | the caller's core, by libgcrypt where it is present |
//! | [`ipsec_mb`] | `ipsec-mb` | the caller's core, by intel-ipsec-mb where it is present |
//! | [`af_alg`] | `af-alg` | where the kernel has the implementation: the caller's core, or a device |
//! | [`cryptodev`] | `cryptodev` | where `/dev/crypto` has it |
//!
//! [`framework`] registers all of them; [`builder`] does too, and takes drivers of the caller's
//! beside them. `foreign` is what drivers over foreign libraries share, and `kernel`
//! what those of the kernel share. All features are on by
//! default.

#![deny(unsafe_code)]

#[cfg(feature = "af-alg")]
pub mod af_alg;
#[cfg(feature = "cores")]
#[allow(unsafe_code)]
pub mod cores;
#[cfg(feature = "cryptodev")]
pub mod cryptodev;
#[cfg(feature = "dma")]
#[allow(unsafe_code)]
pub mod dma;
// Each library's driver uses a part of it.
#[cfg(feature = "foreign")]
#[cfg_attr(
    not(all(feature = "openssl", feature = "gcrypt", feature = "ipsec-mb")),
    allow(dead_code, unused_imports, unused_macros)
)]
#[allow(unsafe_code)]
mod foreign;
#[cfg(feature = "gcrypt")]
#[allow(unsafe_code)]
pub mod gcrypt;
#[cfg(feature = "ipsec-mb")]
#[allow(unsafe_code)]
pub mod ipsec_mb;
#[cfg(any(feature = "af-alg", feature = "cryptodev"))]
mod kernel;
#[cfg(feature = "openssl")]
#[allow(unsafe_code)]
pub mod openssl;
pub mod software;

use std::sync::Arc;

use cipherlane_core::{Config, Error, Framework, FrameworkBuilder};

/// [`Config::load`], and after it the variables of the drivers: `CIPHERLANE_CORES`,
/// `CIPHERLANE_DMA`, `CIPHERLANE_OPENSSL_LIBRARY`, `CIPHERLANE_GCRYPT_LIBRARY`, `CIPHERLANE_IPSEC_MB_LIBRARY`,
/// `CIPHERLANE_AF_ALG`, `CIPHERLANE_CRYPTODEV`.
pub fn load_config(file: Option<&std::path::Path>) -> Result<Config, Error> {
    #[cfg_attr(
        not(any(feature = "cores", feature = "dma", feature = "foreign")),
        expect(unused_mut)
    )]
    let mut config = Config::load(file)?;
    #[cfg(feature = "cores")]
    cores::Settings::environment(&mut config);
    #[cfg(feature = "dma")]
    dma::Settings::environment(&mut config);
    #[cfg(feature = "openssl")]
    openssl::OpenSsl::environment(&mut config);
    #[cfg(feature = "gcrypt")]
    gcrypt::Gcrypt::environment(&mut config);
    #[cfg(feature = "ipsec-mb")]
    ipsec_mb::IpsecMb::environment(&mut config);
    #[cfg(feature = "af-alg")]
    af_alg::Settings::environment(&mut config);
    #[cfg(feature = "cryptodev")]
    cryptodev::Settings::environment(&mut config);
    Ok(config)
}

/// The drivers that have settings: `[drivers.NAME]` of the configuration.
const WITH_SETTINGS: &[&str] = &[
    #[cfg(feature = "cores")]
    "cores",
    #[cfg(feature = "dma")]
    "dma",
    #[cfg(feature = "openssl")]
    "openssl",
    #[cfg(feature = "gcrypt")]
    "gcrypt",
    #[cfg(feature = "ipsec-mb")]
    "ipsec_mb",
    #[cfg(feature = "af-alg")]
    "af_alg",
    #[cfg(feature = "cryptodev")]
    "cryptodev",
];

/// A framework with every driver there is, under the given settings.
pub fn framework(config: Config) -> Result<Framework, Error> {
    builder(config)?.build()
}

/// The same before it is built: other drivers can be added.
pub fn builder(config: Config) -> Result<FrameworkBuilder, Error> {
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
    let builder = Framework::builder(Arc::new(software::Software));
    #[cfg(feature = "cores")]
    let builder = builder.driver(Arc::new(cores::Cores::new(&config)?));
    // The devices stand last, but a mistake in their settings is told before a library is loaded.
    #[cfg(feature = "dma")]
    let devices = dma::Dma::configured(&config)?;
    #[cfg(feature = "openssl")]
    let builder = builder.driver(Arc::new(openssl::OpenSsl::new(&config)?));
    #[cfg(feature = "gcrypt")]
    let builder = builder.driver(Arc::new(gcrypt::Gcrypt::new(&config)?));
    #[cfg(feature = "ipsec-mb")]
    let builder = builder.driver(Arc::new(ipsec_mb::IpsecMb::new(&config)?));
    #[cfg(feature = "af-alg")]
    let builder = (af_alg::AfAlg::configured(&config)?
        .into_iter()
        .map(Arc::new))
    .fold(builder, |builder, kernel| builder.driver(kernel));
    #[cfg(feature = "cryptodev")]
    let builder = builder.driver(Arc::new(cryptodev::Cryptodev::new(&config)?));
    #[cfg(feature = "dma")]
    let builder =
        (devices.into_iter().map(Arc::new)).fold(builder, |builder, device| builder.driver(device));
    Ok(builder.config(config))
}
