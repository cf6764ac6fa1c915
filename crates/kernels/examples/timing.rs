//! Do the times of the kernels depend on keys or data? Welch's t-test between two classes
//! of secrets, fixed and random, in random order: after Reparaz, Balasch and Verbauwhede,
//! "Dude, is my code constant time?" (DATE 2017).
//!
//! `cargo run --release --example timing [THOUSANDS]` prints t for each kernel, from that
//! many thousand runs (100 unless given). Beyond plus or minus 10 it certainly depends;
//! below 4.5 these runs show nothing. The last line is a control that leaks.
//!
//! This looks from outside at the paths that valgrind cannot run, VAES and AVX-512. What
//! it cannot see may still be there: the proof is in the tests `constant_time`.

use std::hint::black_box;
use std::sync::atomic::{Ordering, fence};
use std::time::{Duration, Instant};

use cipherlane_kernels::aes::AesKey;
use cipherlane_kernels::authenc::{self, AuthencKey, CbcAes, Cipher, Mac};
use cipherlane_kernels::chacha::{self, ChaChaKey};
use cipherlane_kernels::gcm::{self, GcmKey};
use cipherlane_kernels::hmac::{self, HmacSha256Key, HmacSha512Key};
use cipherlane_kernels::job::{AeadJob, AuthencJob, CipherJob, Direction, MacJob};
use cipherlane_kernels::xts::{self, XtsKey};
use cipherlane_kernels::{cbc, cpu, ctr, ecb};

/// Of a message: some strides of every kernel and a rest.
const DATA: usize = 336;
const KEY: usize = 64;
const BATCH: usize = 16;

fn main() {
    let thousands = std::env::args().nth(1).and_then(|n| n.parse().ok());
    let runs = 1000 * thousands.unwrap_or(100);
    println!("features: {}", cpu::features().join(" "));
    println!("{:24}{:>10}{:>10}", "t", "alone", format!("x{BATCH}"));
    let show = |name: &str, time: &dyn Fn(&mut [u8]) -> Duration| {
        let [alone, batch] = [1, BATCH].map(|n| t(runs, n * (KEY + DATA), time));
        println!("{name:24}{alone:>10.2}{batch:>10.2}");
    };
    show("aes key", &|secrets| {
        let keys = secrets.chunks(KEY + DATA).map(|secret| &secret[..32]);
        timed(|| keys.for_each(|key| drop(black_box(AesKey::new(key)))))
    });
    show("gcm key", &|secrets| {
        let keys = secrets.chunks(KEY + DATA).map(|secret| &secret[..32]);
        timed(|| keys.for_each(|key| drop(black_box(GcmKey::new(key)))))
    });
    let aes = |key: &[u8]| AesKey::new(&key[..32]).expect("32 bytes");
    let encrypt: fn(&mut [CipherJob<'_, AesKey>]) = |jobs| ecb::crypt(Direction::Encrypt, jobs);
    show("ecb encrypt", &|s| ciphers(s, aes, encrypt));
    show("ecb decrypt", &|s| {
        ciphers(s, aes, |jobs| ecb::crypt(Direction::Decrypt, jobs))
    });
    show("cbc encrypt", &|s| ciphers(s, aes, cbc::encrypt));
    show("cbc decrypt", &|s| ciphers(s, aes, cbc::decrypt));
    show("ctr", &|s| ciphers(s, aes, ctr::apply));
    let xts = |key: &[u8]| XtsKey::new(key).expect("64 bytes");
    show("xts encrypt", &|s| {
        ciphers(s, xts, |jobs| xts::crypt(Direction::Encrypt, jobs))
    });
    show("xts decrypt", &|s| {
        ciphers(s, xts, |jobs| xts::crypt(Direction::Decrypt, jobs))
    });
    let gcm = |key: &[u8]| GcmKey::new(&key[..32]).expect("32 bytes");
    show("gcm seal", &|s| aeads(s, gcm, gcm::seal));
    show("gcm open", &|s| aeads(s, gcm, gcm::open));
    let chacha = |key: &[u8]| ChaChaKey::new(&key[..32]).expect("32 bytes");
    show("chacha seal", &|s| aeads(s, chacha, chacha::seal));
    show("chacha open", &|s| aeads(s, chacha, chacha::open));
    let both = |key: &[u8]| {
        AuthencKey::<HmacSha256Key, CbcAes>::new(&key[32..], &key[..32]).expect("32 bytes")
    };
    show("authenc seal", &|s| seals(s, both));
    show("hmac sha256", &|s| {
        macs(s, HmacSha256Key::new, hmac::sha256)
    });
    show("hmac sha512", &|s| {
        macs(s, HmacSha512Key::new, hmac::sha512)
    });
    show("leaks: zeros at the end", &|secrets| {
        timed(|| {
            black_box(secrets.iter().rposition(|&byte| byte != 0));
        })
    });
}

fn ciphers<K>(
    secrets: &mut [u8],
    key: impl Fn(&[u8]) -> K,
    run: fn(&mut [CipherJob<'_, K>]),
) -> Duration {
    let keys: Vec<K> = secrets.chunks(KEY + DATA).map(|s| key(&s[..KEY])).collect();
    let jobs = secrets.chunks_mut(KEY + DATA).zip(&keys);
    let mut jobs: Vec<_> = jobs
        .map(|(secret, key)| CipherJob {
            key,
            iv: [7; 16],
            data: (&mut secret[KEY..]).into(),
        })
        .collect();
    timed(|| run(black_box(&mut jobs)))
}

fn aeads<K>(
    secrets: &mut [u8],
    key: impl Fn(&[u8]) -> K,
    run: fn(&mut [AeadJob<'_, K>]),
) -> Duration {
    let keys: Vec<K> = secrets.chunks(KEY + DATA).map(|s| key(&s[..KEY])).collect();
    let mut tags = vec![[0; 16]; keys.len()];
    let jobs = secrets.chunks_mut(KEY + DATA).zip(&keys).zip(&mut tags);
    let mut jobs: Vec<_> = jobs
        .map(|((secret, key), tag)| AeadJob {
            key,
            iv: [7; 16],
            aad: &[1; 12],
            data: (&mut secret[KEY..]).into(),
            tag,
        })
        .collect();
    timed(|| run(black_box(&mut jobs)))
}

/// Sealing only: what opening does to the data hangs on the tag, which is public.
fn seals<M: Mac, C: Cipher>(
    secrets: &mut [u8],
    key: impl Fn(&[u8]) -> AuthencKey<M, C>,
) -> Duration {
    let keys: Vec<_> = secrets.chunks(KEY + DATA).map(|s| key(&s[..KEY])).collect();
    let mut tags = vec![([0; 32], false); keys.len()];
    let jobs = secrets.chunks_mut(KEY + DATA).zip(&keys).zip(&mut tags);
    let mut jobs: Vec<_> = jobs
        .map(|((secret, key), (tag, right))| AuthencJob {
            key,
            iv: [7; 16],
            aad: &[1; 12],
            data: (&mut secret[KEY..]).into(),
            suffix: &[],
            tag,
            right,
        })
        .collect();
    timed(|| authenc::seal(black_box(&mut jobs)))
}

fn macs<K>(secrets: &[u8], key: fn(&[u8]) -> K, run: fn(&mut [MacJob<'_, K>])) -> Duration {
    let keys: Vec<K> = secrets.chunks(KEY + DATA).map(|s| key(&s[..KEY])).collect();
    let mut macs = vec![[0; 32]; keys.len()];
    let jobs = secrets.chunks(KEY + DATA).zip(&keys).zip(&mut macs);
    let mut jobs: Vec<_> = jobs
        .map(|((secret, key), mac)| MacJob {
            key,
            head: &[1; 12],
            data: &secret[KEY..],
            suffix: &[],
            mac,
        })
        .collect();
    timed(|| run(black_box(&mut jobs)))
}

fn timed(run: impl FnOnce()) -> Duration {
    // What was written before is in the cache, not on its way there.
    fence(Ordering::SeqCst);
    let start = Instant::now();
    run();
    start.elapsed()
}

/// Welch's t between the times of fixed and of random secrets.
fn t(runs: usize, len: usize, time: &dyn Fn(&mut [u8]) -> Duration) -> f64 {
    let (mut random, mut secrets) = (Random(1), vec![0; len]);
    let mut times: Vec<(bool, f64)> = Vec::with_capacity(runs);
    for run in 0..runs + runs / 10 {
        // Both classes are made in the same way: only their values differ.
        let fixed = random.next() & 1 == 0;
        let mask = black_box(if fixed { 0 } else { u64::MAX });
        for bytes in secrets.chunks_mut(8) {
            let word = (random.next() & mask).to_le_bytes();
            bytes.copy_from_slice(&word[..bytes.len()]);
        }
        let took = time(black_box(&mut secrets)).as_nanos() as f64;
        // The first tenth warms up.
        if run >= runs / 10 {
            times.push((fixed, took));
        }
    }
    // The slowest tenth is the machine's doing.
    let mut sorted: Vec<f64> = times.iter().map(|&(_, time)| time).collect();
    sorted.sort_by(f64::total_cmp);
    let most = sorted[runs * 9 / 10];
    let [fixed, random] = [true, false].map(|class| {
        let of_class = times
            .iter()
            .filter(|(c, time)| *c == class && *time <= most);
        let times: Vec<f64> = of_class.map(|&(_, time)| time).collect();
        let n = times.len() as f64;
        let mean = times.iter().sum::<f64>() / n;
        let squares: f64 = times.iter().map(|time| (time - mean).powi(2)).sum();
        (mean, squares / (n - 1.0) / n)
    });
    (fixed.0 - random.0) / (fixed.1 + random.1).sqrt()
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}
