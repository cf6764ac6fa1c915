//! `openssl speed -evp CIPHER -elapsed -bytes SIZE`.
//!
//! Its shortest time is a second. So that turns are short and many, it is told to stop by the
//! signal that its own alarm would send, and the time until then is taken here.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use crate::figure::{Figure, Turns, turns};
use crate::place::{From, Place, skip};
use crate::running::{Running, wait_until};

/// Options, and the provider's name of the cipher.
const CASES: [(&str, &str); 9] = [
    ("aes-128-gcm", "AES-128-GCM"),
    ("aes-128-gcm -decrypt", "AES-128-GCM"),
    ("aes-128-gcm -aead", "AES-128-GCM"),
    ("aes-128-ctr", "AES-128-CTR"),
    ("aes-128-cbc", "AES-128-CBC"),
    ("aes-128-cbc -decrypt", "AES-128-CBC"),
    ("aes-128-xts", "AES-128-XTS"),
    ("aes-128-ecb", "AES-128-ECB"),
    ("chacha20-poly1305", "ChaCha20-Poly1305"),
];

/// Those of `openssl speed`, and a packet's.
const SIZES: [u64; 7] = [16, 64, 256, 1024, 1400, 8192, 16384];

pub(crate) fn measure(rounds: usize, slice: Duration, only: &str) -> Vec<Figure> {
    let place = Place::uncounted();
    let mut figures = Vec::new();
    for (options, cipher) in CASES {
        let name = format!("openssl speed -evp {options} -elapsed");
        if !name.contains(only) {
            continue;
        }
        let counted = Place::new();
        turn(&counted, From::Cipherlane, options, 16, slice);
        if !counted.used().contains_key(cipher) {
            skip(&name, "not the provider's");
            continue;
        }
        for size in SIZES {
            let mut both = Turns::default();
            for round in 0..rounds {
                for from in turns(round) {
                    both.add(from, turn(&place, from, options, size, slice) / 1e9);
                }
            }
            figures.extend(both.figure(&name, Some(size), "GB/s"));
        }
    }
    figures
}

/// Bytes per second.
fn turn(place: &Place, from: From, options: &str, size: u64, slice: Duration) -> f64 {
    let mut command = place.command("openssl", from);
    command
        .args(["speed", "-mr", "-elapsed", "-seconds", "30"])
        .args(["-bytes", &size.to_string(), "-evp"])
        .args(options.split(' '))
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut speed = Running::of(child);
    // Such as +DT:AES-128-GCM:30:16.
    let mut line = |start: &str| loop {
        let line = said.next().unwrap_or_else(|| panic!("{command:?} ended"));
        let line = line.unwrap();
        if line.starts_with(start) {
            break line;
        }
    };
    line("+DT:");
    let start = Instant::now();
    thread::sleep(slice);
    speed.signal(libc::SIGALRM);
    let elapsed = start.elapsed();
    // Such as +R:2376034:AES-128-GCM:0.250000.
    let result = line("+R:");
    wait_until("the end of openssl", || speed.ended());
    let operations: f64 = result.split(':').nth(1).unwrap().parse().unwrap();
    operations * size as f64 / elapsed.as_secs_f64()
}
