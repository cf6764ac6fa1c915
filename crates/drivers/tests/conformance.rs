//! Every driver present goes through the conformance kit, for each algorithm that it offers.

use std::sync::Arc;

use cipherlane_core::conformance::check;
use cipherlane_core::{Config, Driver};
use cipherlane_drivers::cores::Cores;
use cipherlane_drivers::dma::{self, Dma};
use cipherlane_drivers::gcrypt::Gcrypt;
use cipherlane_drivers::ipsec_mb::IpsecMb;
use cipherlane_drivers::openssl::OpenSsl;
use cipherlane_drivers::software::Software;

fn passes(driver: impl Driver + 'static) {
    let driver: Arc<dyn Driver> = Arc::new(driver);
    if let Err(reason) = driver.probe() {
        eprintln!("skipped: {}: {reason}", driver.name());
        return;
    }
    let report = check(&driver);
    assert!(report.passed(), "{report}");
}

/// With a dedicated core, and two models of devices: one that takes everything, one with rules
/// for memory.
fn config() -> Config {
    let mut config = Config::default();
    let table = config.drivers.entry("cores".to_owned()).or_default();
    table.insert("cores".to_owned(), "0".into());
    for device in ["pcie-modern", "am335x"] {
        dma::Settings::add(&mut config, device);
    }
    config
}

#[test]
fn software_conforms() {
    passes(Software);
}

#[test]
fn cores_conform() {
    passes(Cores::new(&config()).unwrap());
}

#[test]
fn devices_conform() {
    let devices = Dma::configured(&config()).unwrap();
    assert_eq!(devices.len(), 2);
    devices.into_iter().for_each(passes);
}

#[test]
fn openssl_conforms() {
    passes(OpenSsl::new(&config()).unwrap());
}

#[test]
fn gcrypt_conforms() {
    passes(Gcrypt::new(&config()).unwrap());
}

#[test]
fn ipsec_mb_conforms() {
    passes(IpsecMb::new(&config()).unwrap());
}
