//! What `Session::process` costs over the kernel itself, on small requests.
//!
//! Prints nanoseconds of a call, direct and through the session, interleaved in short
//! blocks; medians. With `--count WAY N` it only makes N calls one WAY, for callgrind.

use std::hint::black_box;
use std::slice::from_mut;
use std::time::Instant;

use cipherlane_core::{Config, Direction, Request, Session};
use cipherlane_kernels::aes::AesKey;
use cipherlane_kernels::gcm::{self, GcmKey};
use cipherlane_kernels::job::{AeadJob, CipherJob};
use cipherlane_kernels::{cbc, ctr};

const KEY: [u8; 16] = [0x2b; 16];

/// Encrypts the data in place; the number makes the IV.
type Call = Box<dyn FnMut(&mut [u8], u32)>;

/// One way to encrypt one small request.
struct Way {
    name: &'static str,
    call: Call,
}

fn iv(counter: u32) -> [u8; 16] {
    let mut iv = [0; 16];
    iv[..4].copy_from_slice(&counter.to_le_bytes());
    iv
}

fn session(name: &str) -> Session {
    let framework = cipherlane_drivers::framework(Config::default()).expect("no settings");
    framework
        .session(name, &KEY)
        .expect("a right key")
        .open()
        .expect("software serves")
}

fn ways() -> Vec<Way> {
    let mut ways: Vec<Way> = Vec::new();
    let mut add = |name, call| ways.push(Way { name, call });
    let key = AesKey::new(&KEY).expect("a right key");
    add(
        "ctr(aes) kernel",
        Box::new(move |data: &mut [u8], i| {
            ctr::apply(&mut [CipherJob {
                key: &key,
                iv: iv(i),
                data: data.into(),
            }]);
        }) as Call,
    );
    let s = session("ctr(aes)");
    add(
        "ctr(aes) session",
        Box::new(move |data, i| {
            let mut request = Request::in_place(data).iv(&iv(i));
            s.process(Direction::Encrypt, from_mut(&mut request))
                .expect("a right request");
        }),
    );
    let key = AesKey::new(&KEY).expect("a right key");
    add(
        "cbc(aes) kernel",
        Box::new(move |data, i| {
            cbc::encrypt(&mut [CipherJob {
                key: &key,
                iv: iv(i),
                data: data.into(),
            }]);
        }),
    );
    let s = session("cbc(aes)");
    add(
        "cbc(aes) session",
        Box::new(move |data, i| {
            let mut request = Request::in_place(data).iv(&iv(i));
            s.process(Direction::Encrypt, from_mut(&mut request))
                .expect("a right request");
        }),
    );
    let key = GcmKey::new(&KEY).expect("a right key");
    add(
        "gcm(aes) kernel",
        Box::new(move |data, i| {
            let mut tag = [0; 16];
            gcm::seal(&mut [AeadJob {
                key: &key,
                iv: iv(i),
                aad: &[],
                data: data.into(),
                tag: &mut tag,
            }]);
            black_box(tag);
        }),
    );
    let s = session("gcm(aes)");
    add(
        "gcm(aes) session",
        Box::new(move |data, i| {
            let mut tag = [0; 16];
            let mut request = Request::in_place(data).iv(&iv(i)[..12]).tag(&mut tag);
            s.process(Direction::Encrypt, from_mut(&mut request))
                .expect("a right request");
            black_box(tag);
        }),
    );
    ways
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let mut ways = ways();
    if let Some(at) = arguments.iter().position(|a| a == "--count") {
        let way = ways
            .iter_mut()
            .find(|w| w.name == arguments[at + 1])
            .expect("a way's name");
        let calls: u32 = arguments[at + 2].parse().expect("a number of calls");
        let mut data = [0; 16];
        for i in 0..calls {
            (way.call)(black_box(&mut data), i);
        }
        return;
    }
    for size in [16usize, 64, 256, 1024] {
        let mut data = vec![0; size];
        let mut times = vec![Vec::new(); ways.len()];
        for _ in 0..200 {
            for (way, times) in ways.iter_mut().zip(&mut times) {
                let started = Instant::now();
                for i in 0..2000 {
                    (way.call)(black_box(&mut data), i);
                }
                times.push(started.elapsed().as_nanos() as f64 / 2000.0);
            }
        }
        for (way, times) in ways.iter().zip(&mut times) {
            times.sort_by(f64::total_cmp);
            println!(
                "{size:6} B  {:18} {:8.1} ns",
                way.name,
                times[times.len() / 2]
            );
        }
    }
}
