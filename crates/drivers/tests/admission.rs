//! Every driver present must pass its self-tests for every algorithm that it offers.

use cipherlane_core::{Config, SelfTest};

#[test]
fn no_driver_present_fails_a_self_test() {
    let framework = cipherlane_drivers::framework(Config::default()).unwrap();
    let rows = framework.rows();
    let failed: Vec<_> = rows
        .iter()
        .filter(|r| r.self_test == SelfTest::Failed)
        .collect();
    assert!(failed.is_empty(), "{failed:#?}");
    let passed = |driver: &str| {
        rows.iter()
            .filter(|r| r.driver == driver && r.self_test == SelfTest::Passed)
            .count()
    };
    assert_eq!(passed("software"), cipherlane_core::Algorithm::all().len());
}
