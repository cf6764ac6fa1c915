//! That it was the provider which did the work: its own counters, which a process tells
//! when it ends.

use std::fs;
use std::process::Command;

use crate::contents::{CIPHERS, is_aead};

#[test]
fn the_provider_counts_its_pipelines() {
    let folder = tempfile::tempdir().unwrap();
    let statistics = folder.path().join("statistics");
    let equal = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "equality::any_number_of_pipes"])
        .env("CIPHERLANE_OPENSSL_STATS", &statistics)
        .output()
        .unwrap();
    assert!(equal.status.success(), "{equal:?}");
    let mut pipelines = [0; CIPHERS.len()];
    for line in fs::read_to_string(statistics).unwrap().lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        for (name, count) in CIPHERS.iter().zip(&mut pipelines) {
            *count += line["ciphers"][name]["pipelines"].as_u64().unwrap_or(0);
        }
    }
    for (name, count) in CIPHERS.iter().zip(pipelines) {
        // One call each way for 1 to 32 pipes, and for AEADs one more for additional data.
        let expected = if is_aead(name) { 128 } else { 64 };
        assert!(count >= expected, "{name}: {count}");
    }
}
