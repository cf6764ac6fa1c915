//! Vectors in JSON, of Wycheproof and of the project's layouts: vectors, or an error that names
//! the file.
#![no_main]

use cipherlane_cli::parsers;
use fuzz::Damaged;
use libfuzzer_sys::fuzz_target;

/// A sample of each layout of `vectors/README.md`.
macro_rules! samples {
    ($($file:literal),* $(,)?) => { [$(include_bytes!(concat!("../../../vectors/", $file)) as &[u8]),*] };
}

const SAMPLES: [&[u8]; 11] = samples![
    "authenc/derived.json",
    "authenc/derived-esp.json",
    "authenc/dpdk-esp.json",
    "esp/mcgrew-gcm-test-01.json",
    "esp/rfc3602-section-4.json",
    "gost/esp-gost-draft04.json",
    "gost/gost28147-kernel.json",
    "gost/rfc7801-8891-7836.json",
    "gost/rfc9058.json",
    "gost/rfc9227.json",
    "rfc/rfc4543-esp.json",
];
const WYCHEPROOF: &[u8] = br#"{"algorithm": "AES-GCM", "schema": "aead_test_schema_v1.json",
"numberOfTests": 1, "testGroups": [{"type": "AeadTest", "ivSize": 96, "keySize": 128,
"tagSize": 128, "tests": [{"tcId": 1, "comment": "", "flags": ["Ktv"],
"key": "5b9604fe14eadba931b0ccf34843dab9", "iv": "028318abc1824029138141a2", "aad": "",
"msg": "001d0c231287c1182784554ca3a21908", "ct": "26073cc1d851beff176384dc9896d5ff",
"tag": "0a3ea7a5487cb5f7d70fb6c58d038554", "result": "valid"}]}]}"#;

fuzz_target!(|damaged: Damaged| {
    let mut samples = SAMPLES.to_vec();
    samples.push(WYCHEPROOF);
    let file = damaged.file(&samples);
    match parsers::vectors("f.json", &file) {
        Ok(vectors) => assert!(vectors > 0),
        Err(problem) => assert!(problem.starts_with("f.json"), "{problem}"),
    }
});
