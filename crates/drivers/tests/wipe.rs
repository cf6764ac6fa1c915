//! After a session is closed its key is nowhere in the memory of the process, whatever the
//! processor has: what a compiler keeps on the stack depends on it.
//!
//! Alone in its file: other tests' keys and buffers would be in the same memory.

#[path = "../../kernels/tests/feature_sets/mod.rs"]
mod feature_sets;
mod memory;

use std::fs;
use std::os::unix::fs::FileExt;

use cipherlane_core::{Algorithm, Batch, Config, Direction, Kind, OwnedRequest, Payload, Request};
use memory::{Masked, scan};

fn random(len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    fs::File::open("/dev/urandom")
        .unwrap()
        .read_exact_at(&mut bytes, 0)
        .unwrap();
    bytes
}

/// What the expansion of the key 00 01 .. 0f ends with (FIPS 197 appendix C.1), masked.
const SEQUENCE_LAST_ROUND_KEY: [u8; 16] = [
    0x13 ^ 0xc3,
    0x11 ^ 0xc3,
    0x1d ^ 0xc3,
    0x7f ^ 0xc3,
    0xe3 ^ 0xc3,
    0x94 ^ 0xc3,
    0x4a ^ 0xc3,
    0x17 ^ 0xc3,
    0xf3 ^ 0xc3,
    0x07 ^ 0xc3,
    0xa7 ^ 0xc3,
    0x8b ^ 0xc3,
    0x4d ^ 0xc3,
    0x2b ^ 0xc3,
    0x30 ^ 0xc3,
    0xc5 ^ 0xc3,
];

/// The 16 bytes of a key that are looked for: where the AES key stands, if there is one.
fn secret(algorithm: &Algorithm, key: &mut [u8]) -> Masked {
    let from = match algorithm.name {
        name if !name.starts_with("authenc") || name.contains("cipher_null") => 0,
        name if name.contains("sha512") => 64,
        _ => 32,
    };
    let secret = Masked::new(&mut key[from..from + 16]);
    key.fill(0);
    secret
}

/// Set in processes that this test has started, with the drivers that they try.
const DRIVERS: &str = "CIPHERLANE_TEST_DRIVERS";

/// Whether a driver computes by the kernels: what the processor lacks makes it another one.
fn is_own(driver: &str) -> bool {
    ["software", "cores"].contains(&driver) || driver.starts_with("dma")
}

#[test]
fn no_driver_leaves_a_key_behind() {
    let nested = cipherlane_core::environment::variable(DRIVERS).is_some();
    drivers_leave_no_key(|driver| !nested || is_own(driver));
    if nested {
        return;
    }
    feature_sets::side_by_side(feature_sets::denials().skip(1), |denied| {
        let run = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "no_driver_leaves_a_key_behind"])
            .env(feature_sets::VARIABLE, denied)
            .env(DRIVERS, "own")
            .output()
            .unwrap();
        let report = String::from_utf8_lossy(&run.stdout);
        assert!(run.status.success(), "without '{denied}': {report}");
        assert!(report.contains("1 passed"), "{report}");
    });
}

fn drivers_leave_no_key(is_tried: impl Fn(&str) -> bool) {
    let mut config = Config::default();
    let device = toml::from_str("devices = ['pcie-modern']\npool_kib = 256").unwrap();
    config.drivers.insert("dma".to_owned(), device);
    let framework = cipherlane_drivers::framework(config).unwrap();
    let names: Vec<String> = framework
        .driver_names()
        .into_iter()
        .map(str::to_owned)
        .filter(|driver| is_tried(driver))
        .collect();
    let (mut sessions, mut found_open) = (0, 0);
    for driver in &names {
        for algorithm in Algorithm::all() {
            let mut key = random(algorithm.key_lengths()[0]);
            if algorithm.name == "cbc(aes)" {
                key.iter_mut()
                    .enumerate()
                    .for_each(|(i, byte)| *byte = i as u8);
            }
            let builder = framework
                .session(algorithm.name, &key)
                .unwrap()
                .driver(driver);
            let Ok(session) = builder.open() else {
                continue;
            };
            let secret = match algorithm.name {
                // This key is all over memory; what is looked for is its expansion.
                "cbc(aes)" => Masked(SEQUENCE_LAST_ROUND_KEY.to_vec()),
                _ => secret(algorithm, &mut key),
            };
            let aad = vec![1; algorithm.aad.fit(0)];
            let iv = vec![3; algorithm.iv_len];
            let mut data = vec![7; 100_000 / 16 * 16];
            let mut tag = vec![0; session.tag_len()];
            let request = match algorithm.kind {
                Kind::Mac => Request::mac(&data),
                _ => Request::in_place(&mut data),
            };
            let request = request.iv(&iv).aad(&aad).tag(&mut tag);
            session.process(Direction::Encrypt, &mut [request]).unwrap();
            let mut batch = Batch::new(Direction::Encrypt);
            for _ in 0..8 {
                let payload = match algorithm.kind {
                    Kind::Mac => Payload::Mac(vec![5; 1600]),
                    _ => Payload::InPlace(vec![5; 1600]),
                };
                let tag = vec![0; session.tag_len()];
                batch.push(
                    OwnedRequest::new(payload)
                        .iv(iv.clone())
                        .aad(aad.clone())
                        .tag(tag),
                );
            }
            let ticket = session.submit(&mut batch).unwrap();
            let open = scan(&secret);
            session.close();
            found_open += usize::from(open > 0);
            let left = scan(&secret);
            assert_eq!(left, 0, "{driver} {}: key left in memory", algorithm.name);
            // A ticket that is still kept keeps no key.
            drop(ticket.wait());
            sessions += 1;
        }
    }
    assert!(sessions >= Algorithm::all().len());
    // MAC keys are kept as hash states only, and a driver may keep a key in another form.
    assert!(
        found_open >= 4,
        "open keys were found in {found_open} of {sessions} sessions only"
    );
}
