//! Profiles: whatever the file says, requests are served right, and what is learned goes on.
#![no_main]

use std::io::Write;
use std::sync::{Arc, LazyLock};

use cipherlane_core::{Algorithm, Config, Direction, Framework, Goal, Mode, Question, Request};
use cipherlane_drivers::software::Software;
use fuzz::Damaged;
use libfuzzer_sys::fuzz_target;
use tempfile::NamedTempFile;

const ALGORITHM: &str = "ctr(aes)";
const KEY: [u8; 16] = [1; 16];

fn framework(file: &NamedTempFile) -> Result<Framework, cipherlane_core::Error> {
    let config = Config {
        profile: Some(file.path().to_owned()),
        calibration_seconds: Some(0.01),
        ..Config::default()
    };
    Framework::builder(Arc::new(Software))
        .config(config)
        .build()
}

/// What this machine's own profile looks like.
static SAMPLE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let file = NamedTempFile::new().expect("a temporary file");
    std::fs::write(file.path(), "{\"format\": 0, \"processors\": {}}").expect("it is written");
    let framework = framework(&file).expect("a file of another format is ignored");
    let algorithm = Algorithm::find(ALGORITHM).expect("a known name");
    framework
        .calibrate(&[(algorithm, KEY.len())], &mut |_| {})
        .expect("software is measured");
    framework.save_profile().expect("it is written");
    std::fs::read(file.path()).expect("it is read")
});

fuzz_target!(|damaged: Damaged| {
    let content = damaged.file(&[&SAMPLE]);
    let mut file = NamedTempFile::new().expect("a temporary file");
    file.write_all(&content).expect("it is written");
    let framework = match framework(&file) {
        Ok(framework) => framework,
        Err(error) => {
            let name = file.path().display().to_string();
            return assert!(error.to_string().starts_with(&name), "{error}");
        }
    };
    // What follows begins with a self-test, which takes a thousand times as long.
    if content.iter().fold(0_u8, |a, b| a ^ b) & 15 != 0 {
        return;
    }
    let algorithm = Algorithm::find(ALGORITHM).expect("a known name");
    for (goal, mode) in [
        (Goal::Latency, Mode::Wait),
        (Goal::Throughput, Mode::Submit),
        (Goal::Cpu, Mode::Submit),
    ] {
        let question = Question {
            algorithm,
            key_len: KEY.len(),
            goal,
            mode,
            direction: Direction::Encrypt,
            requests: 3,
            size: 1000,
        };
        let why = framework.explain(question).expect("a fair question");
        assert_eq!(why.served_by, "software");
    }
    let session = framework.session(ALGORITHM, &KEY).expect("a key of AES");
    let session = session.open().expect("software serves it");
    let mut data = [7; 4096];
    for direction in [Direction::Encrypt, Direction::Decrypt] {
        let request = Request::in_place(&mut data).iv(&[2; 16]);
        let served = session.process(direction, &mut [request]);
        served.expect("a request that keeps to the rules");
    }
    assert_eq!(data, [7; 4096]);
});
