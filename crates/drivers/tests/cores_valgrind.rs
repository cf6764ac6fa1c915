//! A program that has dedicated cores can be run under valgrind, which its authors do.

#![cfg(not(loom))]

use std::io::{ErrorKind, Write};
use std::process::Command;
use std::sync::Arc;

use cipherlane_core::{Direction, Framework, Request};
use cipherlane_drivers::cores::{Cores, Fault, Settings};
use cipherlane_drivers::software::Software;

const LEN: usize = 1 << 20;

fn encrypted(framework: &Framework, driver: &str) -> Vec<u8> {
    let builder = framework.session("ctr(aes)", &[7; 16]).unwrap();
    let session = builder.driver(driver).open().unwrap();
    let mut data = vec![5; LEN];
    let request = Request::in_place(&mut data).iv(&[3; 16]);
    session.process(Direction::Encrypt, &mut [request]).unwrap();
    data
}

#[test]
#[ignore = "what the test below runs under valgrind"]
fn work() {
    let settings = Settings {
        cores: vec![0],
        ..Settings::default()
    };
    let cores = Arc::new(Cores::with_fault(settings, Fault::default()));
    let builder = Framework::builder(Arc::new(Software)).driver(cores);
    let framework = builder.build().unwrap();
    let alone = encrypted(&framework, "software");
    for _ in 0..20 {
        assert_eq!(encrypted(&framework, "cores"), alone);
    }
}

#[test]
fn memcheck_finds_nothing() {
    let checked = Command::new("valgrind")
        .args(["-q", "--error-exitcode=9"])
        .arg(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "work", "--test-threads=1"])
        .output();
    let output = match checked {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            // To the stream itself: the harness keeps what a test that passes prints.
            let message = b"SKIPPED: memcheck_finds_nothing: valgrind is not installed\n";
            return std::io::stderr().write_all(message).unwrap();
        }
        output => output.unwrap(),
    };
    let (said, found) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{said}{found}");
    assert!(said.contains("1 passed"), "{said}{found}");
}
