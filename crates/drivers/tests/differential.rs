//! Random batches through every driver present, judged by the naive reference.

use std::sync::OnceLock;

use cipherlane_core::{Algorithm, Config, Direction, Framework, conformance};
use cipherlane_drivers::dma;
use proptest::prelude::*;
use proptest::sample::Index;

/// With a dedicated core, so that the `cores` driver is there, and models of devices: one that
/// takes everything, one with rules for memory.
fn framework() -> &'static Framework {
    static FRAMEWORK: OnceLock<Framework> = OnceLock::new();
    FRAMEWORK.get_or_init(|| {
        let mut config = Config::default();
        let table = config.drivers.entry("cores".to_owned()).or_default();
        table.insert("cores".to_owned(), "0".into());
        for device in ["pcie-modern", "am335x"] {
            dma::Settings::add(&mut config, device);
        }
        cipherlane_drivers::framework(config).unwrap()
    })
}

fn length() -> impl Strategy<Value = usize> {
    prop_oneof![8 => 0..300usize, 3 => 300..2000usize, 1 => 2000..70_000usize]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(48) })]

    #[test]
    fn every_driver_agrees_with_the_reference(
        which in any::<Index>(),
        key_len in any::<Index>(),
        key in prop::collection::vec(any::<u8>(), 256),
        decrypt in any::<bool>(),
        lengths in prop::collection::vec(length(), 1..20),
        seed in any::<u64>(),
    ) {
        let algorithm = *which.get(Algorithm::all());
        let key = &key[..*key_len.get(&algorithm.key_lengths())];
        let direction = if decrypt { Direction::Decrypt } else { Direction::Encrypt };
        for driver in framework().driver_names() {
            let builder = framework().session(algorithm.name, key).unwrap().driver(driver);
            let Ok(session) = builder.open() else { continue };
            let judged = conformance::batch(&session, key, direction, &lengths, seed);
            prop_assert_eq!(judged, Ok(()), "{} {}", driver, algorithm.name);
        }
    }
}
