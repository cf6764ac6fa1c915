//! Published vectors and the naive reference judge every engine that this machine has.

use inout::InOutBuf;
use proptest::collection::vec;
use proptest::prelude::*;
use serde::Deserialize;

use super::diversify::Diversify;
use super::packets::{INNER, PacketJob};
use super::scalar::Scalar;
use super::{Key, Sbox, cfb, cnt, diversify, each_sbox, ecb, imit, schedulers};
use crate::job::{CipherJob, Direction, MacJob};
use crate::naive;
use crate::testing::{Request, answers, judge};

mod packets;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod stack;

type Cipher = fn(&mut [CipherJob<'_, Key>]);

/// With whether packets are opened, and keys meshed.
type Packets = fn(&mut [PacketJob<'_>], bool, bool);

/// The functions of one engine.
struct Ops {
    name: &'static str,
    /// ECB, CNT, meshed CNT, CFB encryption, its decryption, both meshed.
    ecb_encrypt: Cipher,
    ecb_decrypt: Cipher,
    cnt: [Cipher; 2],
    cfb_encrypt: [Cipher; 2],
    cfb_decrypt: [Cipher; 2],
    imit: [fn(&mut [MacJob<'_, Key>]); 2],
    diversify: fn(&mut [Diversify<'_>]),
    packets: Packets,
}

/// The functions over an engine, each given as what takes an S-box and jobs.
macro_rules! ops {
    (
        $name:expr, $ecb:expr, $cnt:expr, $cnt_meshed:expr, $cfb_encrypt:expr,
        $cfb_decrypt:expr, $cfb_decrypt_meshed:expr, $imit:expr, $diversify:expr, $packets:expr
    ) => {
        Ops {
            name: $name,
            ecb_encrypt: |jobs| ops!(@each jobs, $ecb, Direction::Encrypt),
            ecb_decrypt: |jobs| ops!(@each jobs, $ecb, Direction::Decrypt),
            cnt: [|jobs| ops!(@each jobs, $cnt), |jobs| ops!(@each jobs, $cnt_meshed)],
            cfb_encrypt: [
                |jobs| ops!(@each jobs, $cfb_encrypt, false),
                |jobs| ops!(@each jobs, $cfb_encrypt, true),
            ],
            cfb_decrypt: [
                |jobs| ops!(@each jobs, $cfb_decrypt),
                |jobs| ops!(@each jobs, $cfb_decrypt_meshed),
            ],
            imit: [|jobs| ops!(@each jobs, $imit, false), |jobs| ops!(@each jobs, $imit, true)],
            diversify: |jobs| ops!(@each jobs, $diversify),
            packets: |jobs, opening, meshed| $packets(jobs, opening, meshed),
        }
    };
    (@each $jobs:ident, $run:expr $(, $arg:expr)*) => {
        each_sbox($jobs, |job| job.key, |jobs, sbox| ($run)(sbox, jobs $(, $arg)*))
    };
}

/// The engines of this machine, and what users call.
fn engines() -> Vec<Ops> {
    let mut engines = vec![
        ops!(
            "portable",
            |sbox, jobs, dir| schedulers::ecb::run(Scalar, sbox, jobs, dir),
            |sbox, jobs| schedulers::cnt::run(Scalar, sbox, jobs),
            |sbox, jobs| schedulers::cnt::run_meshed(Scalar, sbox, jobs),
            |sbox, jobs, meshed| schedulers::cfb::run_encrypt(Scalar, sbox, jobs, meshed),
            |sbox, jobs| schedulers::cfb::run_decrypt(Scalar, sbox, jobs),
            |sbox, jobs| schedulers::cfb::run_decrypt_meshed(Scalar, sbox, jobs),
            |sbox, jobs, meshed| schedulers::imit::run(Scalar, sbox, jobs, meshed),
            |sbox, jobs| schedulers::diversify::run(Scalar, sbox, jobs),
            |jobs: &mut [PacketJob<'_>], opening, meshed| {
                jobs.chunks_mut(super::packets::MOST)
                    .for_each(|jobs| super::packets::in_turn(jobs, opening, meshed));
            }
        ),
        Ops {
            name: "chosen",
            ecb_encrypt: ecb::encrypt,
            ecb_decrypt: ecb::decrypt,
            cnt: [cnt::apply, cnt::apply_meshed],
            cfb_encrypt: [cfb::encrypt, cfb::encrypt_meshed],
            cfb_decrypt: [cfb::decrypt, cfb::decrypt_meshed],
            imit: [imit::mac, imit::mac_meshed],
            diversify: diversify::diversify,
            packets: |jobs, opening, meshed| match opening {
                true => super::packets::open(jobs, meshed),
                false => super::packets::seal(jobs, meshed),
            },
        },
    ];
    #[cfg(target_arch = "x86_64")]
    {
        use crate::cpu::{HaveAvx2, HaveAvx512Vbmi};
        use crate::x86_64::gost28147::{byte_planes, wide_words};
        macro_rules! push {
            ($engine:ident, $token:ident) => {{
                const HELD: &str = "the engine was listed because its token was given";
                if $token::new().is_some() {
                    engines.push(ops!(
                        stringify!($engine),
                        |sbox, jobs, dir| $engine::ecb($token::new().expect(HELD), sbox, jobs, dir),
                        |sbox, jobs| $engine::cnt($token::new().expect(HELD), sbox, jobs),
                        |sbox, jobs| $engine::cnt_meshed($token::new().expect(HELD), sbox, jobs),
                        |sbox, jobs, on| {
                            $engine::cfb_encrypt($token::new().expect(HELD), sbox, jobs, on)
                        },
                        |sbox, jobs| $engine::cfb_decrypt($token::new().expect(HELD), sbox, jobs),
                        |sbox, jobs| {
                            $engine::cfb_decrypt_meshed($token::new().expect(HELD), sbox, jobs)
                        },
                        |sbox, jobs, on| $engine::imit($token::new().expect(HELD), sbox, jobs, on),
                        |sbox, jobs| $engine::diversify($token::new().expect(HELD), sbox, jobs),
                        |jobs: &mut [PacketJob<'_>], opening, meshed| each_sbox(
                            jobs,
                            |job| job.keys[INNER],
                            |jobs, sbox| {
                                let token = $token::new().expect(HELD);
                                $engine::packets(token, sbox, jobs, opening, meshed);
                            }
                        )
                    ));
                }
            }};
        }
        push!(byte_planes, HaveAvx2);
        push!(wide_words, HaveAvx512Vbmi);
    }
    engines
}

/// By the names that the vectors give them.
fn sbox(name: &str) -> Sbox {
    match name {
        "cpa" => Sbox::crypto_pro_a(),
        "cpb" => Sbox::crypto_pro_b(),
        "cpc" => Sbox::crypto_pro_c(),
        "cpd" => Sbox::crypto_pro_d(),
        "tc26z" => Sbox::param_z(),
        _ => panic!("no S-box is called {name}"),
    }
}

#[derive(Deserialize)]
struct File {
    vectors: Vec<Vector>,
}

#[derive(Deserialize)]
struct Vector {
    name: String,
    #[serde(default)]
    key: String,
    #[serde(default)]
    iv: String,
    #[serde(default, alias = "plaintext")]
    ptext: String,
    #[serde(default, alias = "digest")]
    ctext: String,
}

fn crypt(run: Cipher, key: &Key, iv: &[u8], data: &[u8]) -> Vec<u8> {
    let mut data = data.to_vec();
    let mut padded = [0; 16];
    padded[..iv.len()].copy_from_slice(iv);
    run(&mut [CipherJob {
        key,
        iv: padded,
        data: InOutBuf::from(&mut data[..]),
    }]);
    data
}

#[test]
fn gost28147_published_vectors() {
    let path = "../../vectors/gost/gost28147-kernel.json";
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let file: File = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let mut count = 0;
    for vector in &file.vectors {
        let Some(rest) = vector.name.strip_prefix("gost28147") else {
            continue;
        };
        count += 1;
        let bytes = |hex: &str| hex::decode(hex).unwrap();
        let (iv, plain, cipher) = (
            bytes(&vector.iv),
            bytes(&vector.ptext),
            bytes(&vector.ctext),
        );
        let (mode, set) = match rest.strip_prefix("imit_") {
            Some(set) => ("imit", set),
            None => match rest[1..].split_once('_') {
                Some((set, mode)) => (mode, set),
                None => ("ecb", &rest[1..]),
            },
        };
        let meshed = usize::from(set != "tc26z");
        let sbox = sbox(set);
        let key = Key::new(&bytes(&vector.key), &sbox).unwrap();
        for ops in engines() {
            let (encrypt, decrypt) = match mode {
                "ecb" => (ops.ecb_encrypt, ops.ecb_decrypt),
                "cnt" => (ops.cnt[meshed], ops.cnt[meshed]),
                "cfb" => (ops.cfb_encrypt[meshed], ops.cfb_decrypt[meshed]),
                _ => {
                    let mut mac = [0xee; 4];
                    ops.imit[meshed](&mut [MacJob {
                        key: &key,
                        head: &[],
                        data: &plain,
                        suffix: &[],
                        mac: &mut mac,
                    }]);
                    assert_eq!(mac[..], cipher, "{} {}", ops.name, vector.name);
                    continue;
                }
            };
            assert_eq!(
                crypt(encrypt, &key, &iv, &plain),
                cipher,
                "{} {}",
                ops.name,
                vector.name
            );
            assert_eq!(
                crypt(decrypt, &key, &iv, &cipher),
                plain,
                "{} {}",
                ops.name,
                vector.name
            );
        }
    }
    assert_eq!(count, 29);
}

/// The key tree of draft-fedchenko-ipsecme-cpesp-gost-04 section 10.1.
#[test]
fn gost28147_divers_of_the_draft() {
    let steps = [
        (
            "b63d156f7aac0dc7cd915c3563f61b9d5c730a74e331bc8c3fc24a3606463893",
            0_u64,
        ),
        (
            "3a742e54a9e8a3a11f4af5f7c92fdac155142bee86766e8c03fad68d35baf3d7",
            0,
        ),
        (
            "752bdd2799dcde7b92c0459140fac2cb974f39dccf589d4500a67c7599ff9fcc",
            64,
        ),
        (
            "0772fe26c770590f22902ad21a919eeeccab5396baf2f1b554366c3027a38614",
            0,
        ),
    ];
    let sbox = Sbox::crypto_pro_b();
    for ops in engines() {
        for pair in steps.windows(2) {
            let key = hex::decode(pair[0].0).unwrap();
            let key = Key::new(&key, &sbox).unwrap();
            // Of another S-box before.
            let mut derived = Key::new(&[0xee; 32], &Sbox::crypto_pro_a()).unwrap();
            (ops.diversify)(&mut [Diversify {
                key: &key,
                d: pair[0].1.to_be_bytes(),
                derived: &mut derived,
            }]);
            assert_eq!(hex::encode(derived.bytes()), pair[1].0, "{}", ops.name);
            assert_eq!(derived.sbox().rows(), sbox.rows());
        }
    }
}

#[test]
fn custom_sets_are_checked() {
    let mut rows = *Sbox::param_z().rows();
    assert!(Sbox::custom(&rows).is_ok());
    rows[5][3] = rows[5][4];
    assert_eq!(
        Sbox::custom(&rows).unwrap_err(),
        super::SboxError { row: 5 }
    );
    rows[2][0] = 16;
    let error = Sbox::custom(&rows).unwrap_err();
    assert_eq!(
        error.to_string(),
        "row 2 of the S-box is not a permutation: give each of 0 to 15 once"
    );
}

#[test]
fn keys_of_other_lengths_are_refused() {
    for len in (0..100).filter(|&len| len != 32) {
        assert!(Key::new(&vec![0; len], &Sbox::param_z()).is_none());
    }
}

/// The named sets and two of our own; keys made of any bytes, in no order of sets.
fn sets() -> Vec<Sbox> {
    let mut rows = *Sbox::param_z().rows();
    rows.reverse();
    vec![
        Sbox::param_z(),
        Sbox::crypto_pro_a(),
        Sbox::custom(&rows).unwrap(),
        Sbox::crypto_pro_b(),
        Sbox::crypto_pro_c(),
        Sbox::crypto_pro_d(),
    ]
}

/// Keys with the numbers of their sets. Bytes of all ones and zeros carry most.
fn keys() -> impl Strategy<Value = Vec<([u8; 32], usize)>> {
    let byte = prop_oneof![2 => any::<u8>(), 1 => Just(0xff), 1 => Just(0)];
    let key = vec(byte, 32).prop_map(|key| key.try_into().unwrap());
    let set = prop_oneof![3 => Just(0_usize), 1 => 0..6_usize];
    vec((key, set), 1..=5)
}

fn expanded(keys: &[([u8; 32], usize)]) -> Vec<Key> {
    let sets = sets();
    let expand = |(key, set): &([u8; 32], usize)| Key::new(key, &sets[*set]).unwrap();
    keys.iter().map(expand).collect()
}

fn requests() -> impl Strategy<Value = Vec<Request>> {
    let len = prop_oneof![4 => 0..100usize, 3 => 0..1500usize, 1 => 0..=5000usize];
    let request = (
        any::<usize>(),
        any::<[u8; 16]>(),
        len,
        0..64usize,
        any::<u8>(),
        any::<bool>(),
    );
    let request = request.prop_map(|(key, iv, len, offset, seed, in_place)| Request {
        key,
        iv,
        data: (0..len)
            .map(|i| (i as u8).wrapping_mul(seed | 1) ^ (i >> 8) as u8)
            .collect(),
        offset,
        in_place,
    });
    vec(request, 0..=150)
}

fn chunked(keys: &[([u8; 32], usize)]) -> Vec<(&[u8; 32], [[u8; 16]; 8])> {
    let sets = sets();
    keys.iter()
        .map(|(key, set)| (key, *sets[*set].rows()))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn ciphers_agree_with_the_naive_reference(bytes in keys(), requests in requests()) {
        let (keys, plain) = (expanded(&bytes), chunked(&bytes));
        for ops in engines() {
            for meshed in [false, true] {
                let i = usize::from(meshed);
                let expected = answers(keys.len(), &requests, |r, key| {
                    let (key, rows) = &plain[key];
                    (naive::gost28147_cnt(rows, &key[..], &r.iv[..8], &r.data, meshed), r.iv)
                });
                judge(ops.name, &keys, &requests, ops.cnt[i], &expected);
                let expected = answers(keys.len(), &requests, |r, key| {
                    let (key, rows) = &plain[key];
                    (naive::gost28147_cfb_encrypt(rows, &key[..], &r.iv[..8], &r.data, meshed), r.iv)
                });
                judge(ops.name, &keys, &requests, ops.cfb_encrypt[i], &expected);
                let expected = answers(keys.len(), &requests, |r, key| {
                    let (key, rows) = &plain[key];
                    (naive::gost28147_cfb_decrypt(rows, &key[..], &r.iv[..8], &r.data, meshed), r.iv)
                });
                judge(ops.name, &keys, &requests, ops.cfb_decrypt[i], &expected);
            }
            let mut whole = requests.clone();
            whole.iter_mut().for_each(|r| r.data.truncate(r.data.len() / 8 * 8));
            let expected = answers(keys.len(), &whole, |r, key| {
                let (key, rows) = &plain[key];
                (naive::gost28147_ecb_encrypt(rows, &key[..], &r.data), r.iv)
            });
            judge(ops.name, &keys, &whole, ops.ecb_encrypt, &expected);
            let expected = answers(keys.len(), &whole, |r, key| {
                let (key, rows) = &plain[key];
                (naive::gost28147_ecb_decrypt(rows, &key[..], &r.data), r.iv)
            });
            judge(ops.name, &keys, &whole, ops.ecb_decrypt, &expected);
        }
    }

    #[test]
    fn macs_agree_with_the_naive_reference(
        bytes in keys(),
        requests in requests(),
        cuts in vec((0..30_usize, 0..30_usize), 150),
    ) {
        let (keys, plain) = (expanded(&bytes), chunked(&bytes));
        for ops in engines() {
            for meshed in [false, true] {
                // Every third asks for fewer bytes of its MAC.
                let asked = |i: usize| if i % 3 == 2 { i / 3 % 4 } else { 4 };
                let mut macs: Vec<_> = (0..requests.len()).map(|i| vec![0xee; asked(i)]).collect();
                let jobs = requests.iter().zip(&cuts).zip(&mut macs);
                let jobs = jobs.map(|((r, &(front, back)), mac)| {
                    let (head, rest) = r.data.split_at(front.min(r.data.len()));
                    let (data, suffix) = rest.split_at(rest.len() - back.min(rest.len()));
                    MacJob { key: &keys[r.key % keys.len()], head, data, suffix, mac }
                });
                ops.imit[usize::from(meshed)](&mut jobs.collect::<Vec<_>>());
                for (mac, r) in macs.iter().zip(&requests) {
                    let (key, rows) = &plain[r.key % keys.len()];
                    let expected = naive::gost28147_imit(rows, &key[..], &r.data, meshed);
                    prop_assert_eq!(&mac[..], &expected[..mac.len()], "{} {} bytes", ops.name, r.data.len());
                }
            }
        }
    }

    #[test]
    fn derived_keys_agree_with_the_naive_reference(
        bytes in keys(),
        each in vec((any::<usize>(), any::<u64>()), 0..140),
    ) {
        let (keys, plain) = (expanded(&bytes), chunked(&bytes));
        for ops in engines() {
            let mut derived: Vec<_> = each.iter().map(|_| keys[0].clone()).collect();
            let jobs = each.iter().zip(&mut derived).map(|(&(key, d), derived)| Diversify {
                key: &keys[key % keys.len()],
                d: d.to_be_bytes(),
                derived,
            });
            (ops.diversify)(&mut jobs.collect::<Vec<_>>());
            for (derived, &(key, d)) in derived.iter().zip(&each) {
                let (key, rows) = &plain[key % keys.len()];
                let expected = naive::gost28147_divers(rows, &key[..], d.to_be_bytes());
                prop_assert_eq!(derived.bytes(), expected, "{}", ops.name);
            }
        }
    }
}

/// The counter N4 wraps modulo 2^32 - 1.
#[test]
fn counters_around_their_wraps() {
    let key = [7; 32];
    let sbox = Sbox::param_z();
    let rows = sbox.rows();
    let expanded = Key::new(&key, &sbox).unwrap();
    for n4 in [
        0,
        1,
        0xfefe_fefa,
        0xfefe_fefb,
        0xfefe_fefc,
        u32::MAX - 1,
        u32::MAX,
    ] {
        // The IV that becomes this counter.
        let counter = u64::from(n4) << 32 | 0xffff_0000;
        let iv = naive::gost28147_ecb_decrypt(rows, &key, &counter.to_le_bytes());
        let expected = naive::gost28147_cnt(rows, &key, &iv, &[0; 2500], false);
        for ops in engines() {
            assert_eq!(
                crypt(ops.cnt[0], &expanded, &iv, &[0; 2500]),
                expected,
                "{} {n4:x}",
                ops.name
            );
        }
    }
}
