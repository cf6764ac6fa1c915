//! Drivers over foreign libraries (`openssl`, `gcrypt`): every algorithm that they are admitted for gives
//! what software gives, and an absent library is a reason that the user can read.

mod against_software;
#[path = "../skip/mod.rs"]
mod skip;

use cipherlane::{Algorithm, Config, Framework, SelfTest};

/// Checks a driver against software in every algorithm but `lacking`, which it must refuse
/// with a reason.
fn check(driver: &str, lacking: &[&str]) {
    let Some(framework) = against_software::with(driver) else {
        return;
    };
    for row in framework.rows().iter().filter(|row| row.driver == driver) {
        let reason = row.not_used_because.as_deref().unwrap_or_default();
        if lacking.contains(&row.algorithm) {
            assert_eq!(
                row.self_test,
                SelfTest::NotRun,
                "{}: {reason}",
                row.algorithm
            );
            assert!(!reason.is_empty());
        } else {
            assert_eq!(
                row.self_test,
                SelfTest::Passed,
                "{}: {reason}",
                row.algorithm
            );
            assert!(reason.contains("auto = ["), "'auto' takes {driver} unasked");
            let algorithm = Algorithm::find(row.algorithm).unwrap();
            against_software::check(&framework, driver, algorithm);
        }
    }
}

/// The reason in the row of a driver whose library is said to be `library`.
fn reason_with_library(driver: &str, library: &str) -> String {
    let text = format!("library = '{library}'");
    let config = Config {
        drivers: [(driver.to_owned(), toml::from_str(&text).unwrap())].into(),
        ..Config::default()
    };
    let framework: Framework = cipherlane_drivers::framework(config).unwrap();
    let mut rows = framework
        .rows()
        .into_iter()
        .filter(|row| row.driver == driver);
    let first = rows.next().unwrap();
    assert_eq!(first.self_test, SelfTest::NotRun);
    first.not_used_because.unwrap()
}

/// A setting that does not exist.
fn check_misspelt(driver: &str) {
    let config = Config {
        drivers: [(driver.to_owned(), toml::from_str("libary = 'x'").unwrap())].into(),
        ..Config::default()
    };
    let refused = cipherlane_drivers::framework(config).unwrap_err();
    let message = refused.to_string();
    assert!(
        message.contains("libary") && message.contains(driver),
        "{message}"
    );
}

/// A file that is absent, and a library that is another one.
fn check_reasons(driver: &str, package: &str, function: &str) {
    let reason = reason_with_library(driver, "/no/such/library.so");
    for part in [
        "/no/such/library.so",
        package,
        &format!("[drivers.{driver}]"),
    ] {
        assert!(reason.contains(part), "{reason}");
    }
    let reason = reason_with_library(driver, "libc.so.6");
    assert!(reason.contains("libc.so.6 has no function"), "{reason}");
    assert!(reason.contains(function), "{reason}");
}

#[test]
fn openssl_gives_what_software_gives() {
    check("openssl", &[]);
}

#[test]
fn openssl_says_why_it_is_absent() {
    check_reasons("openssl", "libssl3", "OPENSSL_init_crypto");
}

#[test]
fn openssl_refuses_a_misspelt_setting_by_name() {
    check_misspelt("openssl");
}

#[test]
fn gcrypt_gives_what_software_gives() {
    check("gcrypt", &[]);
}

#[test]
fn gcrypt_says_why_it_is_absent() {
    check_reasons("gcrypt", "libgcrypt20", "gcry_check_version");
}

#[test]
fn gcrypt_refuses_a_misspelt_setting_by_name() {
    check_misspelt("gcrypt");
}
