//! What setting up a key costs on this core, in ns: made, used for nothing, wiped and
//! dropped. `cargo run --release --example keys [NAME]` prints the best of short slices.
//!
//! Programs that take a new key for every message pay this for each of them.

use std::hint::black_box;
use std::time::{Duration, Instant};

use cipherlane_kernels::aes::AesKey;
use cipherlane_kernels::authenc::{AuthencKey, CbcAes};
use cipherlane_kernels::chacha::ChaChaKey;
use cipherlane_kernels::cpu;
use cipherlane_kernels::gcm::GcmKey;
use cipherlane_kernels::hmac::{HmacSha256Key, HmacSha512Key};
use cipherlane_kernels::kuznyechik::KuznyechikKey;
use cipherlane_kernels::magma::MagmaKey;
use cipherlane_kernels::xts::XtsKey;

const SLICES: usize = 100;
const SLICE: Duration = Duration::from_micros(200);

fn main() {
    println!("features: {}", cpu::features().join(" "));
    let key = [0x2b; 64];
    show("aes 128", || AesKey::new(black_box(&key[..16])));
    show("aes 192", || AesKey::new(black_box(&key[..24])));
    show("aes 256", || AesKey::new(black_box(&key[..32])));
    show("gcm 128", || GcmKey::new(black_box(&key[..16])));
    show("gcm 256", || GcmKey::new(black_box(&key[..32])));
    let mut gcm = GcmKey::new(&key[..16]).expect("16 bytes");
    show("gcm 128, rekeyed", || gcm.rekey(black_box(&key[..16])));
    show("xts 256", || XtsKey::new(black_box(&key[..])));
    show("chacha", || ChaChaKey::new(black_box(&key[..32])));
    show("kuznyechik", || KuznyechikKey::new(black_box(&key[..32])));
    show("magma", || MagmaKey::new(black_box(&key[..32])));
    show("hmac sha256", || HmacSha256Key::new(black_box(&key[..32])));
    show("hmac sha512", || HmacSha512Key::new(black_box(&key[..])));
    show("authenc 128", || {
        AuthencKey::<HmacSha256Key, CbcAes>::new(black_box(&key[..32]), black_box(&key[..16]))
    });
}

fn show<K>(name: &str, mut make: impl FnMut() -> K) {
    if std::env::args().nth(1).is_some_and(|only| only != name) {
        return;
    }
    let mut best = f64::INFINITY;
    let mut rounds = 64;
    let mut slices = 0;
    while slices < SLICES {
        let start = Instant::now();
        for _ in 0..rounds {
            drop(black_box(make()));
        }
        let took = start.elapsed();
        if took < SLICE / 2 {
            rounds *= 2;
        } else {
            best = best.min(took.as_nanos() as f64 / f64::from(rounds));
            slices += 1;
        }
    }
    println!("{name:20}{best:6.1}");
}
