//! GOST ciphers against gost-engine, libgcrypt and the crates of RustCrypto, side by side in
//! one run: in place, one key, a fresh IV for every message.
//!
//! `cargo bench -p cipherlane-kernels --bench gost_peers -- [--seconds S] [--json FILE]`
//! measures each candidate for S seconds per cell (0.1 unless given) and prints a table; the
//! record goes to FILE. A library that is not installed is not in the table.

use std::array::from_fn;
use std::error::Error;
use std::fs::File;
use std::hint::black_box;
use std::time::Duration;

use cipherlane_kernels::gost28147::{Key, Sbox, cfb, cnt, imit};
use cipherlane_kernels::job::{AeadJob, CipherJob, MacJob};
use cipherlane_kernels::kuznyechik::{self, KuznyechikKey};
use cipherlane_kernels::magma::{self, MagmaKey};
use cipherlane_kernels::mgm;
use cipherlane_measure::interleave::{Plan, measure};
use cipherlane_measure::machine::Machine;
use cipherlane_measure::record::Case;
use cipherlane_measure::recorder::Recorder;
use cipherlane_measure::subject::Candidate;
use mgm_peer::aead::{AeadInPlace, KeyInit};

use engine::engine;
use gcrypt::gcrypt;

#[allow(dead_code, reason = "the tests call all of it")]
#[path = "../tests/gost_peers/engine.rs"]
mod engine;
#[allow(dead_code, reason = "the tests call all of it")]
#[path = "../tests/gost_peers/gcrypt.rs"]
mod gcrypt;
#[allow(unreachable_pub, reason = "the other bench has it in its library")]
#[path = "../../../bench/rust-peers/src/table.rs"]
mod table;

const KERNELS: &str = "kernels";
const SIZES: [usize; 3] = [64, 1400, 16 << 10];
const KEY: [u8; 32] = [0x2b; 32];

/// An operation: its names in the record, and who does it, `N` messages at a time.
struct Operation {
    algorithm: &'static str,
    direction: &'static str,
    candidates: [fn(usize) -> Vec<Candidate<'static>>; 2],
}

const BATCHES: [usize; 2] = [1, 32];

macro_rules! operations {
    ($($algorithm:literal, $direction:literal, $candidates:ident;)+) => {
        [$(Operation {
            algorithm: $algorithm,
            direction: $direction,
            candidates: [$candidates::<{ BATCHES[0] }>, $candidates::<{ BATCHES[1] }>],
        }),+]
    };
}

fn main() -> Result<(), Box<dyn Error>> {
    let (mut seconds, mut json) = (0.1, None);
    // Cargo adds an option of its own.
    let mut arguments = std::env::args().skip(1).filter(|a| a != "--bench");
    while let Some(argument) = arguments.next() {
        let value = arguments
            .next()
            .ok_or(format!("{argument} needs a value"))?;
        match argument.as_str() {
            "--seconds" => seconds = value.parse()?,
            "--json" => json = Some(value),
            _ => return Err(format!("{argument} is no option; use --seconds or --json").into()),
        }
    }
    let plan = Plan {
        time: Duration::try_from_secs_f64(seconds)?,
        block: Duration::from_millis(2),
        ..Plan::default()
    };
    let operations = operations! {
        "cnt(gost28147-cryptopro-a)", "encrypt", counter;
        "cfb(gost28147-cryptopro-a)", "encrypt", feedback;
        "imit(gost28147-cryptopro-a)", "digest", macs;
        "ctr(magma)", "encrypt", magma_counter;
        "ctr(kuznyechik)", "encrypt", kuznyechik_counter;
        "mgm(magma)", "encrypt", magma_mgm;
        "mgm(kuznyechik)", "encrypt", kuznyechik_mgm;
    };
    let mut recorder = Recorder::new(KERNELS);
    for operation in &operations {
        for (batch, candidates) in BATCHES.into_iter().zip(operation.candidates) {
            let case = Case {
                algorithm: operation.algorithm.into(),
                keybits: 256,
                direction: operation.direction.into(),
                batch: batch as u64,
                threads: 1,
                depth: None,
                pause_us: None,
            };
            for size in SIZES {
                let measurement = measure(&plan, &candidates(size), |_| ())?;
                recorder.add(&case, size as u64, &measurement);
                eprint!(".");
            }
        }
    }
    eprintln!();
    let record = recorder.finish(Machine::detect());
    if let Some(path) = json {
        record.write_json(File::create(path)?)?;
    }
    print!("{}", table::text(&record));
    Ok(())
}

fn counter<const N: usize>(size: usize) -> Vec<Candidate<'static>> {
    let mut all = vec![
        ciphers::<_, N>(KERNELS, size, gost28147, cnt::apply),
        ciphers::<_, N>("… meshed", size, gost28147, cnt::apply_meshed),
    ];
    all.extend(by_engine::<N>(size, c"gost89-cnt"));
    all
}

fn feedback<const N: usize>(size: usize) -> Vec<Candidate<'static>> {
    let mut all = vec![
        ciphers::<_, N>(KERNELS, size, gost28147, cfb::encrypt),
        ciphers::<_, N>("… meshed", size, gost28147, cfb::encrypt_meshed),
    ];
    all.extend(by_engine::<N>(size, c"gost89"));
    all.extend(gcrypt().map(|gcrypt| {
        one_by_one::<N, _>("libgcrypt", size, || {
            let sbox = c"1.2.643.2.2.31.1";
            let mut cipher = gcrypt.cipher(gcrypt::CIPHERS[0], gcrypt::CFB, sbox, &KEY);
            move |data: &mut [u8], iv: [u8; 16]| cipher.encrypt(Some(&iv[..8]), data)
        })
    }));
    all
}

fn macs<const N: usize>(size: usize) -> Vec<Candidate<'static>> {
    let kernel = |name, mode: fn(&mut [MacJob<'_, Key>])| {
        Candidate::new(name, move |_| {
            let (key, mut messages) = (gost28147(), Messages::<N>::new(size));
            Ok(move |operations: u64| {
                for _ in 0..operations {
                    let mut fresh = messages.fresh();
                    let mut macs = [[0; 4]; N];
                    let mut macs = macs.iter_mut();
                    let mut jobs = from_fn::<_, N, _>(|_| MacJob {
                        key: &key,
                        head: &[],
                        data: fresh.next().expect("N messages").0,
                        suffix: &[],
                        mac: macs.next().expect("N MACs"),
                    });
                    mode(black_box(&mut jobs));
                }
                Ok(())
            })
        })
    };
    let mut all = vec![
        kernel(KERNELS, imit::mac),
        kernel("… meshed", imit::mac_meshed),
    ];
    all.extend(engine().map(|engine| {
        one_by_one::<N, _>("gost-engine", size, || {
            let mut mac = engine.imit(c"id-Gost28147-89-CryptoPro-A-ParamSet", &KEY);
            move |data: &mut [u8], _| _ = black_box(mac.mac(data))
        })
    }));
    all.extend(gcrypt().map(|gcrypt| {
        one_by_one::<N, _>("libgcrypt", size, || {
            let mut mac = gcrypt.imit(&KEY);
            move |data: &mut [u8], _| _ = black_box(mac.mac(data))
        })
    }));
    all
}

fn magma_counter<const N: usize>(size: usize) -> Vec<Candidate<'static>> {
    let mut all = vec![ciphers::<_, N>(KERNELS, size, magma, magma::ctr)];
    all.extend(by_engine::<N>(size, c"magma-ctr"));
    all
}

fn kuznyechik_counter<const N: usize>(size: usize) -> Vec<Candidate<'static>> {
    let mut all = vec![ciphers::<_, N>(KERNELS, size, kuznyechik, kuznyechik::ctr)];
    all.extend(by_engine::<N>(size, c"kuznyechik-ctr"));
    all
}

fn magma_mgm<const N: usize>(size: usize) -> Vec<Candidate<'static>> {
    vec![
        aeads::<_, N>(size, magma),
        one_by_one::<N, _>("RustCrypto", size, || {
            let cipher = mgm_peer::Mgm::<magma_peer::Magma>::new(&KEY.into());
            move |data: &mut [u8], iv: [u8; 16]| {
                let nonce = iv.first_chunk::<8>().expect("16 bytes");
                _ = black_box(cipher.encrypt_in_place_detached(&(*nonce).into(), &[], data));
            }
        }),
    ]
}

fn kuznyechik_mgm<const N: usize>(size: usize) -> Vec<Candidate<'static>> {
    vec![
        aeads::<_, N>(size, kuznyechik),
        one_by_one::<N, _>("RustCrypto", size, || {
            let cipher = mgm_peer::Mgm::<kuznyechik_peer::Kuznyechik>::new(&KEY.into());
            move |data: &mut [u8], iv: [u8; 16]| {
                _ = black_box(cipher.encrypt_in_place_detached(&iv.into(), &[], data));
            }
        }),
    ]
}

fn gost28147() -> Key {
    Key::new(&KEY, &Sbox::crypto_pro_a()).expect("32 bytes")
}

fn magma() -> MagmaKey {
    MagmaKey::new(&KEY).expect("32 bytes")
}

fn kuznyechik() -> KuznyechikKey {
    KuznyechikKey::new(&KEY).expect("32 bytes")
}

/// Messages of `size` bytes, apart by more than that, so that they do not share cache sets.
struct Messages<const N: usize> {
    memory: Vec<u8>,
    size: usize,
    ivs: u64,
}

impl<const N: usize> Messages<N> {
    fn new(size: usize) -> Self {
        Messages {
            memory: vec![0; N * Self::stride(size)],
            size,
            ivs: 0,
        }
    }

    fn stride(size: usize) -> usize {
        size.next_multiple_of(64) + 192
    }

    /// Every message, with an IV that was never used before; its first bit is not set.
    fn fresh(&mut self) -> impl Iterator<Item = (&mut [u8], [u8; 16])> {
        let (ivs, size) = (&mut self.ivs, self.size);
        let messages = self.memory.chunks_mut(Self::stride(size));
        messages.map(move |message| {
            *ivs += 1;
            let mut iv = [0; 16];
            iv[..8].copy_from_slice(&ivs.to_be_bytes());
            (&mut message[..size], iv)
        })
    }
}

/// The kernel of a cipher.
fn ciphers<K: 'static, const N: usize>(
    name: &str,
    size: usize,
    key: fn() -> K,
    mode: fn(&mut [CipherJob<'_, K>]),
) -> Candidate<'static> {
    Candidate::new(name, move |_| {
        let (key, mut messages) = (key(), Messages::<N>::new(size));
        Ok(move |operations: u64| {
            for _ in 0..operations {
                let mut fresh = messages.fresh();
                mode(&mut from_fn::<_, N, _>(|_| {
                    let (data, iv) = fresh.next().expect("N messages");
                    let (key, data) = (&key, data.into());
                    CipherJob { key, iv, data }
                }));
            }
            Ok(())
        })
    })
}

/// The kernel of an AEAD.
fn aeads<K: mgm::Cipher + 'static, const N: usize>(
    size: usize,
    key: fn() -> K,
) -> Candidate<'static> {
    Candidate::new(KERNELS, move |_| {
        let (key, mut messages) = (key(), Messages::<N>::new(size));
        Ok(move |operations: u64| {
            for _ in 0..operations {
                let mut fresh = messages.fresh();
                let mut tags = [[0; 8]; N];
                let mut tags = tags.iter_mut();
                let sealed = mgm::seal(&mut from_fn::<_, N, _>(|_| {
                    let (data, iv) = fresh.next().expect("N messages");
                    AeadJob {
                        key: &key,
                        iv,
                        aad: &[],
                        data: data.into(),
                        tag: tags.next().expect("N tags"),
                    }
                }));
                sealed.expect("right nonces");
            }
            Ok(())
        })
    })
}

/// A cipher of gost-engine; those of GOST 28147-89 with CryptoPro-A, and meshed.
fn by_engine<const N: usize>(
    size: usize,
    name: &'static std::ffi::CStr,
) -> Option<Candidate<'static>> {
    let engine = engine()?;
    Some(one_by_one::<N, _>("gost-engine", size, move || {
        let mut cipher = engine.cipher(name, None, &KEY);
        move |data: &mut [u8], iv: [u8; 16]| cipher.encrypt(Some(&iv), data)
    }))
}

/// A library that has no batches. `make` gives what does one message in place.
fn one_by_one<const N: usize, F>(
    name: &str,
    size: usize,
    make: impl Fn() -> F + Sync + 'static,
) -> Candidate<'static>
where
    F: FnMut(&mut [u8], [u8; 16]) + 'static,
{
    Candidate::new(name, move |_| {
        let (mut run, mut messages) = (make(), Messages::<N>::new(size));
        Ok(move |operations: u64| {
            for _ in 0..operations {
                messages.fresh().for_each(|(data, iv)| run(data, iv));
            }
            Ok(())
        })
    })
}
