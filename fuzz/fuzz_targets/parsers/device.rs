//! Descriptions of devices: settings that make sense, or words.
#![no_main]

use cipherlane_drivers::dma::model::Settings;
use fuzz::Damaged;
use libfuzzer_sys::fuzz_target;

/// The presets, and one with all that a device can do wrong.
macro_rules! samples {
    ($($file:literal),* $(,)?) => {
        [$(include_bytes!(concat!("../../../crates/dma-model/src/presets/", $file)) as &[u8]),*]
    };
}

const PRESETS: [&[u8]; 3] = samples![
    "glxsb-geode-lx.toml",
    "cyclone-v-soc-aes.toml",
    "pcie-modern.toml"
];
const BEHAVIOUR: &str = r#"
[behaviour]
seed = 7
jitter = 0.1
collapse = { above = 10, factor = 4.0 }
changes = [{ at_ns = 1000, factor = 2.0 }, { at_ns = 2000, factor = 0.5 }]
faults = [{ kind = "wrong-result", after = 10, count = 2 }, { kind = "late-dma", delay_ns = 5 }]
"#;

fuzz_target!(|damaged: Damaged| {
    let ill = [PRESETS[2], BEHAVIOUR.as_bytes()].concat();
    let mut samples = PRESETS.to_vec();
    samples.push(&ill);
    let file = damaged.file(&samples);
    let Ok(text) = std::str::from_utf8(&file) else {
        return;
    };
    match Settings::parse(text) {
        Ok(settings) => assert_eq!(settings.check(), Ok(())),
        Err(problem) => assert!(!problem.is_empty()),
    }
});
