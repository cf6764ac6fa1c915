//! Programs in Go, with damage: whatever their table of functions says, each function that is found
//! has its own place.
#![no_main]

use cipherlane_profile::go::Functions;
use fuzz::Damaged;
use libfuzzer_sys::fuzz_target;

const SAMPLE: &[u8] = include_bytes!("../../../crates/profile/tests/programs/go");

fuzz_target!(|damaged: Damaged| {
    let bytes = damaged.file(&[SAMPLE]);
    let Some(functions) = Functions::parse(&bytes) else {
        return;
    };
    for offset in 0..bytes.len() as u64 {
        if let Some((start, name)) = functions.at(offset) {
            assert!(start <= offset && !name.is_empty());
        }
    }
});
