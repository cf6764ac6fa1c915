use super::tweak::{double, power};
use super::*;
use crate::naive;
use crate::testing::{Request, answers, batches, judge, known, tiers};
use proptest::prelude::*;

fn key(hex: &str) -> XtsKey {
    XtsKey::new(&hex::decode(hex).unwrap()).unwrap()
}

/// IEEE 1619 annex B: keys, tweak, plaintext and ciphertext of vectors 2, 10
/// (its first two blocks), and 15 to 18, which steal.
const IEEE_1619: [[&str; 4]; 6] = [
    [
        "1111111111111111111111111111111122222222222222222222222222222222",
        "33333333330000000000000000000000",
        "4444444444444444444444444444444444444444444444444444444444444444",
        "c454185e6a16936e39334038acef838bfb186fff7480adc4289382ecd6d394f0",
    ],
    [
        "2718281828459045235360287471352662497757247093699959574966967627\
         3141592653589793238462643383279502884197169399375105820974944592",
        "ff000000000000000000000000000000",
        "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
        "1c3b3a102f770386e4836c99e370cf9bea00803f5e482357a4ae12d414a3e63b",
    ],
    [
        STEALING_KEY,
        STEALING_TWEAK,
        "000102030405060708090a0b0c0d0e0f10",
        "6c1625db4671522d3d7599601de7ca09ed",
    ],
    [
        STEALING_KEY,
        STEALING_TWEAK,
        "000102030405060708090a0b0c0d0e0f1011",
        "d069444b7a7e0cab09e24447d24deb1fedbf",
    ],
    [
        STEALING_KEY,
        STEALING_TWEAK,
        "000102030405060708090a0b0c0d0e0f101112",
        "e5df1351c0544ba1350b3363cd8ef4beedbf9d",
    ],
    [
        STEALING_KEY,
        STEALING_TWEAK,
        "000102030405060708090a0b0c0d0e0f10111213",
        "9d84c813f719aa2c7be3f66171c7c5c2edbf9dac",
    ],
];
const STEALING_KEY: &str = "fffefdfcfbfaf9f8f7f6f5f4f3f2f1f0bfbebdbcbbbab9b8b7b6b5b4b3b2b1b0";
const STEALING_TWEAK: &str = "9a785634120000000000000000000000";

#[test]
fn ieee_1619() {
    for [bytes, tweak, plain, cipher] in IEEE_1619 {
        let key = key(bytes);
        let encrypted = (cipher.to_string(), tweak.to_string());
        let decrypted = (plain.to_string(), tweak.to_string());
        for tier in tiers() {
            let run = |jobs: &mut [CipherJob<'_, XtsKey>]| (tier.xts)(Direction::Encrypt, jobs);
            assert_eq!(known(&key, tweak, plain, run), encrypted, "{}", tier.name);
            let run = |jobs: &mut [CipherJob<'_, XtsKey>]| (tier.xts)(Direction::Decrypt, jobs);
            assert_eq!(known(&key, tweak, cipher, run), decrypted, "{}", tier.name);
        }
        let run = |jobs: &mut [CipherJob<'_, XtsKey>]| crypt(Direction::Encrypt, jobs);
        assert_eq!(known(&key, tweak, plain, run), encrypted);
    }
}

#[test]
#[should_panic(expected = "a block or more")]
fn less_than_a_block_is_refused() {
    let run = |jobs: &mut [CipherJob<'_, XtsKey>]| crypt(Direction::Encrypt, jobs);
    known(&key(STEALING_KEY), STEALING_TWEAK, &"00".repeat(15), run);
}

#[test]
fn a_replaced_key_is_as_good_as_new() {
    let mut key = XtsKey::none();
    for (len, seed) in [(64, 1), (32, 2), (48, 3), (32, 4)] {
        let bytes: Vec<u8> = (0..len).map(|i| i * 3 + seed).collect();
        key.rekey(&bytes).unwrap();
        assert!(key.rekey(&[0; 31]).is_none() && key.rekey(&[0; 40]).is_none());
        let mut data = [0x33; 300];
        let job = CipherJob {
            key: &key,
            iv: [9; 16],
            data: (&mut data[..]).into(),
        };
        crypt(Direction::Encrypt, &mut [job]);
        assert_eq!(data[..], naive::xts_encrypt(&bytes, &[9; 16], &[0x33; 300]));
    }
}

#[test]
fn keys_of_other_lengths_are_refused() {
    for len in (0..100).filter(|len| ![32, 48, 64].contains(len)) {
        assert!(XtsKey::new(&vec![0; len]).is_none());
    }
}

/// Both keys of XTS from one of AES.
fn doubled(bytes: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let other = |key: &Vec<u8>| key.iter().map(|byte| byte ^ 0x3c).collect();
    bytes
        .iter()
        .map(|key| [key.clone(), other(key)].concat())
        .collect()
}

fn keys(bytes: &[Vec<u8>]) -> Vec<XtsKey> {
    bytes.iter().map(|key| XtsKey::new(key).unwrap()).collect()
}

fn naive(dir: Direction, bytes: &[u8], request: &Request) -> Vec<u8> {
    match dir {
        Direction::Encrypt => naive::xts_encrypt(bytes, &request.iv, &request.data),
        Direction::Decrypt => naive::xts_decrypt(bytes, &request.iv, &request.data),
    }
}

const BOTH: [Direction; 2] = [Direction::Encrypt, Direction::Decrypt];

#[test]
fn powers_step_by_doubling() {
    for start in [0, 1, 100, 127, 128, 1 << 20, u64::MAX - 300] {
        let mut expected = power(start);
        for n in start..start + 300 {
            assert_eq!(power(n), expected, "x^{n}");
            expected = double(expected);
        }
    }
    assert_eq!(power(0), 1);
    assert_eq!(power(127), 1 << 127);
}

#[test]
fn powers_multiply() {
    let a = 0x0123_4567_89ab_cdef_fedc_ba98_7654_3210;
    let mut expected = a;
    for n in 0..1000 {
        assert_eq!(times_power(a, n), expected);
        expected = double(expected);
    }
    let far = times_power(times_power(a, u64::MAX / 2), u64::MAX / 2);
    assert_eq!(far, times_power(a, u64::MAX - 1));
}

proptest! {
    #[test]
    fn batches_agree_with_the_naive_reference((bytes, requests) in batches(|len| len.max(16))) {
        let bytes = doubled(&bytes);
        let keys = keys(&bytes);
        for dir in BOTH {
            let expected = answers(keys.len(), &requests, |r, key| (naive(dir, &bytes[key], r), r.iv));
            for tier in tiers() {
                let run = |jobs: &mut [CipherJob<'_, XtsKey>]| (tier.xts)(dir, jobs);
                judge(tier.name, &keys, &requests, run, &expected);
            }
        }
    }

    #[test]
    fn parts_of_a_unit_join(
        (bytes, requests) in batches(|len| len.max(16)),
        cut in any::<proptest::sample::Index>(),
    ) {
        let bytes = doubled(&bytes);
        let keys = keys(&bytes);
        for dir in BOTH {
            let expected = answers(keys.len(), &requests, |r, key| (naive(dir, &bytes[key], r), r.iv));
            let run = |jobs: &mut [CipherJob<'_, XtsKey>]| in_parts(jobs, &cut, |job, first| {
                crypt_from(dir, job, first);
            });
            judge("chosen", &keys, &requests, run, &expected);
            let run = |jobs: &mut [CipherJob<'_, XtsKey>]| {
                for job in jobs {
                    let mut tweak = [0; 16];
                    first_tweak(job.key, &job.iv, &mut tweak);
                    crypt_one(dir, job.key, &tweak, job.data.reborrow());
                }
            };
            judge("from the first tweak", &keys, &requests, run, &expected);
            for tier in tiers() {
                let run = |jobs: &mut [CipherJob<'_, XtsKey>]| in_parts(jobs, &cut, |job, first| {
                    let tweak = tweak_at(job.key, job.iv, first);
                    (tier.xts_from)(dir, job.key.data(), &tweak, job.data.reborrow());
                });
                judge(tier.name, &keys, &requests, run, &expected);
            }
        }
    }
}

/// Each job in two parts, cut somewhere between blocks.
fn in_parts(
    jobs: &mut [CipherJob<'_, XtsKey>],
    cut: &proptest::sample::Index,
    crypt_from: impl Fn(&mut CipherJob<'_, XtsKey>, u64),
) {
    for job in jobs {
        let (key, iv) = (job.key, job.iv);
        let first = cut.index(job.data.len() / 16);
        let (head, tail) = job.data.reborrow().split_at(16 * first);
        for (data, first) in [(head, 0), (tail, first)] {
            if !data.is_empty() {
                crypt_from(&mut CipherJob { key, iv, data }, first as u64);
            }
        }
    }
}
