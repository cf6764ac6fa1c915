//! Nothing of a key is left on the stack when a program has freed a context, whatever the processor
//! has and however long its messages were: how much of the stack is wiped depends on that.
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

use std::process::Command;

use cipherlane_kernels::aes::AesKey;
use cipherlane_kernels::chacha::ChaChaKey;
use cipherlane_kernels::gcm::GcmKey;
use cipherlane_kernels::xts::XtsKey;

use crate::differential::{CIPHERS, has_tag};
use crate::feature_sets;
use crate::libcrypto::{Cipher, OURS};
use crate::search;

/// Around the lengths for which kernels take another way, and at which more of the stack is wiped.
const LENGTHS: [usize; 16] = [
    16, 17, 48, 64, 100, 128, 200, 240, 256, 257, 300, 512, 700, 1408, 2100, 4208,
];

#[test]
fn no_key_is_left_on_the_stack() {
    let mut found = Vec::new();
    for denied in feature_sets::denials() {
        let run = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "left_behind::with_these_features"])
            .args(["--ignored", "--nocapture"])
            .env(feature_sets::VARIABLE, &denied)
            .output()
            .unwrap();
        let report = String::from_utf8_lossy(&run.stdout);
        let left = report.lines().filter(|line| line.starts_with("left:"));
        found.extend(left.map(|left| format!("without '{denied}': {left}")));
        assert!(
            run.status.success() || !found.is_empty(),
            "without '{denied}': {report}{}",
            String::from_utf8_lossy(&run.stderr)
        );
    }
    assert!(found.is_empty(), "keys on the stack: {found:#?}");
}

/// Not a test of its own: one set of features.
#[test]
#[ignore = "run by the test above, for each set of features"]
fn with_these_features() {
    for name in CIPHERS.into_iter().chain(["AES-128-CBC-CTS"]) {
        let cipher = OURS.cipher(name);
        for len in LENGTHS {
            for (encrypt, direction) in [(true, "encrypted"), (false, "decrypted")] {
                let key = key(cipher.key_len(), len);
                // What is not initialised in an expanded key shall be no data.
                search::paint();
                let calls = format!("{name}, {len} bytes {direction}");
                let message = || message(&cipher, has_tag(name), encrypt, &key, len);
                match name {
                    _ if name.ends_with("GCM") => watched(GcmKey::new(&key), calls, message),
                    _ if name.ends_with("XTS") => watched(XtsKey::new(&key), calls, message),
                    _ if has_tag(name) => watched(ChaChaKey::new(&key), calls, message),
                    _ => watched(AesKey::new(&key), calls, message),
                }
            }
        }
    }
    let found = search::found();
    for (calls, depth) in &found {
        println!("left: {calls}, {depth} bytes deep at most");
    }
    assert!(found.is_empty());
}

/// Looks for all words of the expanded key.
fn watched<K>(key: Option<K>, calls: String, message: impl FnOnce()) {
    let key = Box::new(key.expect("a key of the cipher"));
    search::keys(&[&*key], calls);
    search::after(message);
}

/// A message in a context of its own, in two pieces. Stealing and XTS take one.
fn message(cipher: &Cipher, tag: bool, encrypt: bool, key: &[u8], len: usize) {
    let mut context = cipher.context();
    let iv = vec![9; cipher.iv_len()];
    context.init(encrypt, Some(key), Some(&iv)).unwrap();
    context.set_padding(false);
    let data = vec![0; len];
    if tag {
        context.aad(&data[..13]).unwrap();
    }
    // Ciphers of whole blocks refuse the end of others.
    let first = if tag { len / 16 / 2 * 16 } else { 0 };
    let (first, second) = data.split_at(first);
    for piece in [first, second] {
        if !piece.is_empty() {
            let _ = context.update(piece);
        }
    }
    if tag && !encrypt {
        context.set_tag(&[1; 16]).unwrap();
    }
    let _ = context.finish();
}

/// Bytes in which no word is one of the data (SplitMix64).
fn key(len: usize, seed: usize) -> Vec<u8> {
    let word = |i: usize| {
        let mut x = ((seed * 64 + i + 1) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (x ^ x >> 31).to_le_bytes()
    };
    (0..len.div_ceil(8)).flat_map(word).take(len).collect()
}
