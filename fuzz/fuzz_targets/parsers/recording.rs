//! Recordings of `cipherlane profile`, with damage: each is refused with a reason, or can be
//! summed up, compared, printed and shown.
#![no_main]

use cipherlane_profile::diff::Diff;
use cipherlane_profile::recording::Recording;
use cipherlane_profile::rules::Rules;
use cipherlane_profile::{page, script};
use fuzz::Damaged;
use libfuzzer_sys::fuzz_target;

const SAMPLE: &[u8] = include_bytes!("../../../crates/profile/tests/recordings/small.json");

fuzz_target!(|damaged: Damaged| {
    let bytes = damaged.file(&[SAMPLE]);
    let Ok(recording) = Recording::parse(&bytes) else {
        return;
    };
    let rules = Rules::built_in();
    let sound = Recording::parse(SAMPLE).expect("the sample is sound");
    let diff = Diff::new(&sound, &recording, &rules);
    assert!(!page::html(&recording, &rules).is_empty());
    assert!(!page::diff(&sound, &recording, &diff, &rules).is_empty());
    script::write(&recording, Vec::new()).expect("memory takes everything");
});
