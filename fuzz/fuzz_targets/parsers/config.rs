//! Configurations: settings that a framework starts with, or an error that names what is wrong.
#![no_main]

use std::sync::Arc;

use cipherlane_core::{Config, Framework};
use cipherlane_drivers::software::Software;
use cipherlane_drivers::{cores, dma};
use fuzz::Damaged;
use libfuzzer_sys::fuzz_target;

const SAMPLE: &[u8] = br#"force = "software"
disable = ["openssl"]
auto = ["software"]
goal = "latency"
profile = "/var/cache/cipherlane/profile.json"
calibration_seconds = 2.0
verify = 4096
mismatch_data = false
[drivers.cores]
cores = "0-1,0"
realtime = 10
spin_us = 50
[drivers.dma]
devices = ["cyclone-v-soc-aes", "card.toml"]
completions = "adaptive"
spin_us = 50
timeout_ms = 1000
reset_ms = 10
pool_kib = 4096
"#;

fuzz_target!(|damaged: Damaged| {
    let file = damaged.file(&[SAMPLE]);
    let Ok(text) = std::str::from_utf8(&file) else {
        return;
    };
    let mut config = match Config::parse("f.toml", text) {
        Ok(config) => config,
        Err(error) => return assert!(error.to_string().starts_with("f.toml")),
    };
    // No path of the fuzzer's choice is opened.
    config.profile = None;
    for error in [
        cores::Settings::new(&config).err(),
        dma::Settings::new(&config).err(),
    ] {
        let message = error.map(|error| error.to_string()).unwrap_or_default();
        assert!(
            message.is_empty() || message.starts_with("[drivers."),
            "{message}"
        );
    }
    let framework = Framework::builder(Arc::new(Software)).config(config);
    if let Ok(framework) = framework.build() {
        assert_eq!(framework.driver_names(), ["software"]);
    }
});
