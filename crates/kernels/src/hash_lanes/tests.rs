//! Random batches through every engine, and the ends of blocks.

#[cfg(target_arch = "x86_64")]
use super::features::{Sha256Features, Sha512Features};
use super::lanes::run;
use super::message::{Lengths, Message};
use super::{sha256, sha512};
use crate::hmac::{HmacSha256Key, HmacSha512Key};
use crate::job::SUFFIX;
use crate::naive;
use crate::portable::sha2::OneByOne;
use crate::sha2::hash::{Hash, Sha256, Sha512};
use proptest::collection::vec;
use proptest::prelude::*;

/// A key (none for the plain hash), the bytes, and where they are cut in two; of
/// the second part the last few bytes, as many as the third number, are the suffix.
type Case = (Option<Vec<u8>>, Vec<u8>, usize, usize);

fn cases() -> impl Strategy<Value = Vec<Case>> {
    let len = prop_oneof![3 => 0..=300_usize, 1 => 0..=9000_usize];
    let data = len.prop_flat_map(|len| (vec(any::<u8>(), len), 0..=len));
    let key = proptest::option::weighted(0.8, vec(any::<u8>(), 0..=150));
    let suffix = prop_oneof![Just(0), Just(4), 0..=SUFFIX];
    let case = (key, data, suffix).prop_map(|(key, (data, cut), suffix)| {
        let suffix = suffix.min(data.len() - cut);
        (key, data, cut, suffix)
    });
    vec(case, 0..=40)
}

/// The digests of all cases through `N` lanes, one after the other, as the
/// engine gives them into buffers that were not zero before.
macro_rules! digests {
    ($hash:ident, $key:ident, $lanes:literal, $features:expr, $cases:expr) => {{
        let keys: Vec<_> = $cases
            .iter()
            .map(|(key, ..)| key.as_ref().map(|key| $key::new(key)))
            .collect();
        let mut digests: Vec<_> = (0..keys.len())
            .map(|i| vec![0xff_u8; asked($hash::DIGEST, i)])
            .collect();
        let jobs = digests.iter_mut().zip($cases).zip(&keys);
        let messages = jobs.map(|((digest, (_, data, cut, suffix)), key)| {
            let (head, data) = data.split_at(*cut);
            let (data, suffix) = data.split_at(data.len() - suffix);
            match key {
                Some(key) => key.message(head, data, suffix, digest),
                None => Message {
                    states: None,
                    before: 0,
                    head,
                    data,
                    suffix,
                    digest,
                },
            }
        });
        run::<$hash, _, $lanes>($features, messages);
        digests
    }};
}

/// How many bytes of its digest a message asks for: every third for fewer than there are.
fn asked(digest: usize, i: usize) -> usize {
    if i % 3 == 2 { i / 3 % digest } else { digest }
}

fn expected_256((key, data, ..): &Case) -> Vec<u8> {
    match key {
        Some(key) => naive::hmac_sha256(key, data).to_vec(),
        None => naive::sha256(data).to_vec(),
    }
}

fn expected_512((key, data, ..): &Case) -> Vec<u8> {
    match key {
        Some(key) => naive::hmac_sha512(key, data).to_vec(),
        None => naive::sha512(data).to_vec(),
    }
}

/// As many bytes of each as are asked for.
fn cut_all(digests: impl Iterator<Item = Vec<u8>>) -> Vec<Vec<u8>> {
    let cut = |(i, digest): (usize, Vec<u8>)| digest[..asked(digest.len(), i)].to_vec();
    digests.enumerate().map(cut).collect()
}

/// All sets of features of this machine, from the smallest on.
#[cfg(target_arch = "x86_64")]
macro_rules! subsets {
    ($features:ident { $($field:ident: $token:ident),* }) => {{
        let fields = [$(stringify!($field)),*].len();
        (0..1 << fields).map(move |set: u32| {
            let mut bits = (0..fields).map(move |bit| (set >> bit) & 1 == 1);
            $features {
                $($field: bits.next().expect("a bit each").then(crate::cpu::$token::new).flatten()),*
            }
        })
    }};
}

fn check_256(cases: &[Case]) {
    let expected = cut_all(cases.iter().map(expected_256));
    let digests = digests!(Sha256, HmacSha256Key, 3, OneByOne, cases);
    assert_eq!(digests, expected);
    #[cfg(target_arch = "x86_64")]
    for features in subsets!(Sha256Features {
        sha_ni: HaveShaNi,
        avx2: HaveAvx2,
        bmi2: HaveBmi2,
        avx512: HaveAvx512
    }) {
        assert_eq!(
            digests!(Sha256, HmacSha256Key, 1, features, cases),
            expected
        );
        assert_eq!(
            digests!(Sha256, HmacSha256Key, 4, features, cases),
            expected
        );
        assert_eq!(
            digests!(Sha256, HmacSha256Key, 16, features, cases),
            expected
        );
    }
}

fn check_512(cases: &[Case]) {
    let expected = cut_all(cases.iter().map(expected_512));
    let digests = digests!(Sha512, HmacSha512Key, 3, OneByOne, cases);
    assert_eq!(digests, expected);
    #[cfg(target_arch = "x86_64")]
    for features in subsets!(Sha512Features {
        avx2: HaveAvx2,
        bmi2: HaveBmi2,
        avx512: HaveAvx512
    }) {
        assert_eq!(
            digests!(Sha512, HmacSha512Key, 1, features, cases),
            expected
        );
        assert_eq!(
            digests!(Sha512, HmacSha512Key, 4, features, cases),
            expected
        );
        assert_eq!(
            digests!(Sha512, HmacSha512Key, 8, features, cases),
            expected
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn sha256_of_random_batches(cases in cases()) {
        check_256(&cases);
    }

    #[test]
    fn sha512_of_random_batches(cases in cases()) {
        check_512(&cases);
    }
}

/// Every length around the ends of blocks and of their padding, cut in two
/// at every such place, without a suffix and with one of each kind of length.
#[test]
fn ends_of_blocks() {
    let places = [
        0, 1, 3, 4, 7, 8, 15, 16, 31, 32, 55, 56, 63, 64, 65, 111, 112, 119, 120, 127, 128, 129,
        191, 192, 255, 256,
    ];
    let data: Vec<u8> = (0..=256).map(|i| i as u8).collect();
    for key in [None, Some(vec![0x5c; 20])] {
        let mut cases = Vec::new();
        for len in places {
            for cut in places.into_iter().filter(|&cut| cut <= len) {
                for suffix in [0, 4, SUFFIX].into_iter().filter(|&s| s <= len - cut) {
                    cases.push((key.clone(), data[..len].to_vec(), cut, suffix));
                }
            }
        }
        check_256(&cases);
        check_512(&cases);
    }
}

/// Keys for sixteen messages.
struct Keys {
    bytes: Vec<Vec<u8>>,
    of_256: Vec<HmacSha256Key>,
    of_512: Vec<HmacSha512Key>,
}

impl Keys {
    fn new() -> Keys {
        let bytes: Vec<Vec<u8>> = (0..16).map(|i| vec![i as u8; 20 + i]).collect();
        Keys {
            of_256: bytes.iter().map(|key| HmacSha256Key::new(key)).collect(),
            of_512: bytes.iter().map(|key| HmacSha512Key::new(key)).collect(),
            bytes,
        }
    }

    /// The MACs of messages that come together. The first has the first key, and so on.
    fn check(&self, cases: &[Case], what: &str) {
        macro_rules! macs {
            ($hash:ident, $keys:ident, $function:expr) => {{
                let digests = (0..cases.len()).map(|i| vec![0xff_u8; asked($hash::DIGEST, i)]);
                let mut digests: Vec<_> = digests.collect();
                let jobs = digests.iter_mut().zip(cases).zip(&self.$keys);
                ($function)(jobs.map(|((digest, (_, data, cut, suffix)), key)| {
                    let (head, data) = data.split_at(*cut);
                    let (data, suffix) = data.split_at(data.len() - suffix);
                    key.message(head, data, suffix, digest)
                }));
                digests
            }};
        }
        let pieces = |(_, data, cut, suffix): &Case| [data.len(), *cut, *suffix];
        let lengths = cases.first().map(|first| Lengths {
            first: first.1.len(),
            are_alike: cases.iter().all(|case| pieces(case) == pieces(first)),
        });
        let expected = cut_all(cases.iter().map(expected_256));
        let digests = macs!(Sha256, of_256, |jobs| sha256(lengths, jobs));
        assert_eq!(digests, expected, "{what}");
        let expected = cut_all(cases.iter().map(expected_512));
        assert_eq!(macs!(Sha512, of_512, sha512), expected, "{what}");
    }
}

/// Messages go two at a time where few come, until two are not alike or long. How many are few
/// depends on the length of the first.
#[test]
fn few_messages() {
    let data: Vec<u8> = (0..=1100).map(|i: u32| ((i * 7) >> 2) as u8).collect();
    let keys = Keys::new();
    let lens = (0..=130).chain([180, 192, 300, 1024, 1030]);
    for (len, other) in lens.flat_map(|len| [(len, len), (len, 55), (len, 56), (len, 200)]) {
        for messages in (2..=9).chain([10, 11, 12, 13, 14, 16]) {
            // The last but one is of another length, or none is.
            let len = |i: usize| if i + 2 == messages { other } else { len };
            let cut = |i: usize| [0, 1, len(i) / 2, len(i)][(i + len(i)) % 4].min(len(i));
            let cases: Vec<Case> = (0..messages)
                .map(|i| {
                    let suffix = [0, 0, 4, SUFFIX][i % 4].min(len(i) - cut(i));
                    (
                        Some(keys.bytes[i].clone()),
                        data[i..][..len(i)].to_vec(),
                        cut(i),
                        suffix,
                    )
                })
                .collect();
            let what = format!("{messages} of {}, one of {other}", len(0));
            keys.check(&cases, &what);
        }
    }
}

/// Messages of one length, cut at the same places, go two or four at a time.
#[test]
fn messages_alike() {
    let keys = Keys::new();
    let data: Vec<u8> = (0..=1200).map(|i: u32| ((i * 5) >> 2) as u8).collect();
    for len in [
        100, 119, 120, 128, 130, 191, 192, 193, 256, 300, 1024, 1030, 1100,
    ] {
        for cut in [0, 1, 13, 64, 70, len / 2, len - 20, len] {
            for suffix in [0, 4, SUFFIX] {
                let suffix = suffix.min(len - cut);
                for messages in (2..=9).chain([16]) {
                    let case = |i: usize| {
                        let key = Some(keys.bytes[i].clone());
                        (key, data[i..][..len].to_vec(), cut, suffix)
                    };
                    let cases: Vec<Case> = (0..messages).map(case).collect();
                    keys.check(&cases, &format!("{messages} of {len} cut at {cut}"));
                }
            }
        }
    }
}

/// A lone message takes a way of its own.
#[test]
fn lone_messages() {
    let data: Vec<u8> = (0..=400).map(|i: u32| ((i * 3) >> 1) as u8).collect();
    let key = vec![0x77; 32];
    let (key_256, key_512) = (HmacSha256Key::new(&key), HmacSha512Key::new(&key));
    for len in (0..=200).chain([255, 256, 257, 320, 384, 400]) {
        let cuts = [
            (0, 0),
            (0, 4),
            (1, 0),
            (64, SUFFIX),
            (len / 2, 3),
            (len - len % 64, 2),
            (len, 0),
        ];
        for (cut, suffix) in cuts {
            let (head, rest) = data[..len].split_at(cut.min(len));
            let suffix = suffix.min(rest.len());
            let (rest, end) = rest.split_at(rest.len() - suffix);
            let case = (Some(key.clone()), data[..len].to_vec(), cut, suffix);
            for short in [0, 1, 16, 27] {
                let (mut mac_256, mut mac_512) = (vec![0xff; 32 - short], vec![0xff; 64 - short]);
                let message = key_256.message(head, rest, end, &mut mac_256);
                let lengths = Lengths {
                    first: message.len(),
                    are_alike: true,
                };
                sha256(Some(lengths), core::iter::once(message));
                let message = key_512.message(head, rest, end, &mut mac_512);
                sha512(core::iter::once(message));
                let what = format!("{len} bytes cut at {cut}, {suffix}, short of {short}");
                assert_eq!(mac_256, expected_256(&case)[..32 - short], "{what}");
                assert_eq!(mac_512, expected_512(&case)[..64 - short], "{what}");
            }
        }
    }
}
