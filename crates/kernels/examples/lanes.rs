//! Speed of the AES modes on this core, in GB/s by mode, request size and batch.
//!
//! `cargo run --release --example lanes [mode or size ...]` prints a table. Requests
//! are in place in hot buffers, with one key or (`mixed`) a key each, apart so that they
//! do not share sets of the cache, or (`paged`) all at one offset in their pages. Those of the
//! column `imix` have the lengths of a simple Internet mix. A figure is the best of
//! short slices of time, which leaves interruptions out.
//!
//! The implementation is the best that the processor has. To measure another, build
//! with `RUSTFLAGS="--cfg cipherlane_cpu_disable"` and deny features at run time with
//! `CIPHERLANE_CPU_DISABLE=avx512`, `=vaes` or `=aes`.

use std::hint::black_box;
use std::time::{Duration, Instant};

use cipherlane_kernels::aes::AesKey;
use cipherlane_kernels::job::{CipherJob, Direction};
use cipherlane_kernels::xts::XtsKey;
use cipherlane_kernels::{cbc, cpu, ctr, ecb, xts};
use inout::InOutBuf;

const SIZES: [usize; 7] = [16, 64, 256, 1400, 4096, 16 << 10, 1 << 20];
/// Twelve packets: seven of 64 bytes, four of 576 and one of 1500.
const IMIX: [usize; 12] = [64, 576, 64, 64, 1500, 64, 576, 64, 576, 64, 576, 64];
const SLICES: usize = 15;
const SLICE: Duration = Duration::from_millis(2);

/// A mode, with the unit that its request sizes are rounded down to.
struct Mode<K> {
    name: &'static str,
    unit: usize,
    run: fn(&mut [CipherJob<'_, K>]),
}

const AES_MODES: [Mode<AesKey>; 4] = [
    Mode {
        name: "ecb",
        unit: 16,
        run: |jobs| ecb::crypt(Direction::Encrypt, jobs),
    },
    Mode {
        name: "cbc-encrypt",
        unit: 16,
        run: cbc::encrypt,
    },
    Mode {
        name: "cbc-decrypt",
        unit: 16,
        run: cbc::decrypt,
    },
    Mode {
        name: "ctr",
        unit: 1,
        run: ctr::apply,
    },
];

const XTS_MODES: [Mode<XtsKey>; 2] = [
    Mode {
        name: "xts-encrypt",
        unit: 1,
        run: |jobs| xts::crypt(Direction::Encrypt, jobs),
    },
    Mode {
        name: "xts-decrypt",
        unit: 1,
        run: |jobs| xts::crypt(Direction::Decrypt, jobs),
    },
];

fn main() {
    let (sizes, modes): (Vec<String>, Vec<String>) = std::env::args()
        .skip(1)
        .partition(|arg| arg.parse::<usize>().is_ok());
    let mut sizes: Vec<usize> = sizes.iter().flat_map(|size| size.parse()).collect();
    if sizes.is_empty() {
        sizes.extend(SIZES);
    }
    let want = |name: &str| modes.is_empty() || modes.iter().any(|mode| mode == name);
    println!("features: {}", cpu::features().join(" "));
    print!("{:28}", "GB/s");
    sizes.iter().for_each(|size| print!("{size:>9}"));
    println!("{:>9}", "imix");
    for len in [16, 32] {
        for mode in AES_MODES.iter().filter(|mode| want(mode.name)) {
            table(mode, len, &sizes, |seed| {
                AesKey::new(&vec![seed; len]).expect("an AES key")
            });
        }
        for mode in XTS_MODES.iter().filter(|mode| want(mode.name)) {
            table(mode, len, &sizes, |seed| {
                XtsKey::new(&vec![seed; 2 * len]).expect("an XTS key")
            });
        }
    }
}

fn table<K>(mode: &Mode<K>, key_len: usize, sizes: &[usize], key: impl Fn(u8) -> K) {
    let keys: Vec<K> = (0..32).map(key).collect();
    let batches = [
        (1, ""),
        (4, ""),
        (16, ""),
        (16, " mixed"),
        (16, " paged"),
        (32, ""),
    ];
    for (batch, note) in batches {
        let mixed = note == " mixed";
        let keys = if mixed { &keys[..batch] } else { &keys[..1] };
        let unit = if note == " paged" { 4096 } else { 64 };
        print!(
            "{:28}",
            format!("{}-{} x{batch}{note}", mode.name, 8 * key_len)
        );
        for size in sizes {
            print!(
                "{:9.2}",
                speed(mode, keys, &[size / mode.unit * mode.unit], batch, unit)
            );
        }
        match batch {
            1..12 => println!("{:>9}", "-"),
            _ => println!(
                "{:9.2}",
                speed(
                    mode,
                    keys,
                    &IMIX.map(|size| size / mode.unit * mode.unit),
                    batch,
                    unit
                )
            ),
        }
    }
}

/// GB/s in the best slice, of a batch with these sizes in turn, in buffers that begin at
/// multiples of `unit`, a line of the cache or a page.
fn speed<K>(mode: &Mode<K>, keys: &[K], sizes: &[usize], batch: usize, unit: usize) -> f64 {
    // More than their size, so that with lines they do not share cache sets.
    let stride = sizes
        .iter()
        .max()
        .map_or(0, |size| (size + 192).next_multiple_of(unit));
    let bytes: usize = sizes.iter().cycle().take(batch).sum();
    let mut memory = vec![0u8; stride * batch];
    let mut jobs: Vec<CipherJob<'_, K>> = memory
        .chunks_mut(stride)
        .zip(keys.iter().cycle().zip(sizes.iter().cycle()))
        .map(|(data, (key, &size))| CipherJob {
            key,
            iv: [7; 16],
            data: InOutBuf::from(&mut data[..size]),
        })
        .collect();
    let mut rounds = 1;
    let mut best = 0f64;
    let mut slices = 0;
    while slices < SLICES {
        let start = Instant::now();
        for _ in 0..rounds {
            (mode.run)(black_box(&mut jobs));
        }
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
