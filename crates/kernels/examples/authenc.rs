//! Speed of ciphers with a MAC on this core, in GB/s, beside their two halves alone.
//!
//! `cargo run --release --example authenc [size ...]` prints a table. Messages are in
//! place in hot buffers, have one key, 24 bytes of associated data, and a suffix of 4.
//! The column `both` is what one half after the other can reach at most. A figure is
//! the best of short slices of time, which leaves interruptions out. How to deny
//! features of the processor, the example `lanes` says.

use std::hint::black_box;
use std::time::{Duration, Instant};

use cipherlane_kernels::authenc::{self, AuthencKey, CbcAes, Cipher, CtrAes, Mac};
use cipherlane_kernels::cpu;
use cipherlane_kernels::hmac::{HmacSha256Key, HmacSha512Key};
use cipherlane_kernels::job::{AuthencJob, CipherJob, MacJob};
use inout::InOutBuf;

const SIZES: [usize; 4] = [64, 512, 1392, 16 << 10];
const BATCHES: [usize; 4] = [1, 4, 16, 32];
const SLICES: usize = 60;
const SLICE: Duration = Duration::from_micros(300);

fn main() {
    let sizes = std::env::args().skip(1).flat_map(|size| size.parse());
    let mut sizes: Vec<usize> = sizes.collect();
    if sizes.is_empty() {
        sizes.extend(SIZES);
    }
    println!("features: {}", cpu::features().join(" "));
    println!(
        "{:34}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}",
        "GB/s", "encrypt", "decrypt", "mac", "both", "seal", "both", "open"
    );
    for size in sizes {
        table::<HmacSha256Key, CbcAes>("sha256, cbc", size);
        table::<HmacSha512Key, CbcAes>("sha512, cbc", size);
        table::<HmacSha256Key, CtrAes>("sha256, ctr", size);
        table::<HmacSha512Key, CtrAes>("sha512, ctr", size);
    }
}

fn table<M: Mac, C: Cipher>(name: &str, size: usize) {
    let key = AuthencKey::<M, C>::new(&[1; 32], &[2; 16]).expect("an AES key");
    let (mac, cipher) = (M::new(&[1; 32]), C::key(&[2; 16]).expect("an AES key"));
    for batch in BATCHES {
        let mut memory = vec![0; (size + 192) * batch];
        let mut ciphers: Vec<_> = memory
            .chunks_mut(size + 192)
            .map(|data| CipherJob {
                key: &cipher,
                iv: [7; 16],
                data: InOutBuf::from(&mut data[..size]),
            })
            .collect();
        let encrypt = speed(size * batch, || C::encrypt(black_box(&mut ciphers)));
        let decrypt = speed(size * batch, || C::decrypt(black_box(&mut ciphers)));
        drop(ciphers);
        let mut tags = vec![[0; 16]; batch];
        let mut macs: Vec<_> = memory
            .chunks(size + 192)
            .zip(&mut tags)
            .map(|(data, tag)| MacJob {
                key: &mac,
                head: &[0; 24],
                data: &data[..size],
                suffix: &[0; 4],
                mac: tag,
            })
            .collect();
        let mac = speed(size * batch, || M::run(black_box(&mut macs)));
        drop(macs);
        let mut tags = vec![[0; 16]; batch];
        let mut right = vec![false; batch];
        let mut jobs: Vec<_> = memory
            .chunks_mut(size + 192)
            .zip(tags.iter_mut().zip(&mut right))
            .map(|(data, (tag, right))| AuthencJob {
                key: &key,
                iv: [7; 16],
                aad: &[0; 24],
                data: InOutBuf::from(&mut data[..size]),
                suffix: &[0; 4],
                tag,
                right,
            })
            .collect();
        let seal = speed(size * batch, || authenc::seal(black_box(&mut jobs)));
        drop(jobs);
        // Not in place, so that the tags stay right.
        let mut plain = memory.clone();
        let mut jobs: Vec<_> = memory
            .chunks(size + 192)
            .zip(plain.chunks_mut(size + 192))
            .zip(tags.iter_mut().zip(&mut right))
            .map(|((data, plain), (tag, right))| AuthencJob {
                key: &key,
                iv: [7; 16],
                aad: &[0; 24],
                data: InOutBuf::new(&data[..size], &mut plain[..size]).expect("one length"),
                suffix: &[0; 4],
                tag,
                right,
            })
            .collect();
        let open = speed(size * batch, || authenc::open(black_box(&mut jobs)));
        drop(jobs);
        assert!(right.iter().all(|right| *right));
        let after = |cipher: f64| 1.0 / (1.0 / cipher + 1.0 / mac);
        println!(
            "{:34}{encrypt:9.2}{decrypt:9.2}{mac:9.2}{:9.2}{seal:9.2}{:9.2}{open:9.2}",
            format!("{name}, {batch} x {size}"),
            after(encrypt),
            after(decrypt),
        );
    }
}

/// GB/s in the best slice.
fn speed(bytes: usize, mut run: impl FnMut()) -> f64 {
    let mut rounds = 1;
    let mut best = 0f64;
    let mut slices = 0;
    while slices < SLICES {
        let start = Instant::now();
        (0..rounds).for_each(|_| run());
        let took = start.elapsed();
        if took < SLICE / 2 {
            rounds *= 2;
        } else {
            best = best.max((rounds * bytes) as f64 / took.as_nanos() as f64);
            slices += 1;
        }
    }
    best
}
