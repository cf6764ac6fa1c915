//! XTS (IEEE 1619, NIST SP 800-38E) with ciphertext stealing.

use inout::InOutBuf;
use zeroize::Zeroize;

use crate::aes::{AesKey, Block};
use crate::job::{CipherJob, Direction};
use crate::{choose, ecb};

/// The two expanded keys of XTS-AES.
#[derive(Clone)]
pub struct XtsKey {
    data: AesKey,
    tweak: AesKey,
}

impl XtsKey {
    /// Expands a key of 32, 48 or 64 bytes, the data key and then the tweak key;
    /// `None` for any other length. Equal halves, which FIPS 140 forbids, are the
    /// caller's to refuse.
    pub fn new(key: &[u8]) -> Option<XtsKey> {
        let (data, tweak) = key.split_at(key.len() / 2);
        if data.len() != tweak.len() {
            return None;
        }
        let mut new = XtsKey {
            data: AesKey::new(data)?,
            tweak: AesKey::unset(tweak.len())?,
        };
        // Tweaks are encrypted whichever way the data goes.
        new.tweak.expand(tweak);
        Some(new)
    }

    #[inline(always)]
    pub(crate) fn data(&self) -> &AesKey {
        &self.data
    }

    #[inline(always)]
    pub(crate) fn tweak(&self) -> &AesKey {
        &self.tweak
    }
}

/// Every job as a whole data unit.
///
/// # Panics
/// If the length of a job's data is less than 16.
pub fn crypt(dir: Direction, jobs: &mut [CipherJob<'_, XtsKey>]) {
    for job in jobs.iter() {
        assert!(job.data.len() >= 16, "XTS takes a block or more");
    }
    choose!(xts(dir, jobs), xts::crypt(dir, jobs))
}

/// The part of a data unit that starts at block `first_block`, with the IV that
/// the whole unit has. Its length is a multiple of 16 unless it is the last part:
/// stealing crosses no border, so a last part with an odd length has 16 bytes or
/// more before its odd ones.
///
/// # Panics
/// If the length of the job's data is less than 16.
pub fn crypt_from(dir: Direction, job: &mut CipherJob<'_, XtsKey>, first_block: u64) {
    assert!(job.data.len() >= 16, "XTS takes a block or more");
    let mut tweak = tweak_at(job.key, job.iv, first_block);
    rest_of_unit(dir, job, &tweak);
    tweak.zeroize();
}

/// The encrypted tweak of the first block of the data unit `iv`, for [`crypt_one`]: it can
/// be made before the data is there.
pub fn first_tweak(key: &XtsKey, iv: Block) -> Block {
    tweak_at(key, iv, 0)
}

/// A data unit from its [`first_tweak`]; the IV of the job is not looked at.
///
/// # Panics
/// If the length of the job's data is less than 16.
pub fn crypt_one(dir: Direction, job: &mut CipherJob<'_, XtsKey>, tweak: &Block) {
    assert!(job.data.len() >= 16, "XTS takes a block or more");
    rest_of_unit(dir, job, tweak);
}

/// The encrypted tweak of a block of the data unit `iv`.
fn tweak_at(key: &XtsKey, mut iv: Block, block: u64) -> Block {
    let mut jobs = [CipherJob {
        key: &key.tweak,
        iv: [0; 16],
        data: InOutBuf::from(&mut iv[..]),
    }];
    ecb::crypt(Direction::Encrypt, &mut jobs);
    times_power(u128::from_le_bytes(iv), block).to_le_bytes()
}

fn rest_of_unit(dir: Direction, job: &mut CipherJob<'_, XtsKey>, tweak: &Block) {
    choose!(xts_from(dir, job, tweak), xts::crypt_from(dir, job, tweak))
}

/// The product with x modulo x^128 + x^7 + x^2 + x + 1, the tweak of the next block
/// (section 5.2), in constant time.
pub(crate) fn double(a: u128) -> u128 {
    (a << 1) ^ ((a >> 127) * 0x87)
}

/// The product of the secret `a` with x^`n`; `n` is public.
fn times_power(mut a: u128, n: u64) -> u128 {
    let power = power(n);
    let mut product = 0;
    for bit in 0..128 - power.leading_zeros() {
        if power >> bit & 1 == 1 {
            product ^= a;
        }
        a = double(a);
    }
    product
}

/// x^`n`, by squaring from the top bits of `n` on.
fn power(n: u64) -> u128 {
    // What fits below 128 is a single bit.
    let squarings = (64 - n.leading_zeros()).saturating_sub(7);
    let mut power = 1 << (n >> squarings);
    for bit in (0..squarings).rev() {
        power = square(power);
        if n >> bit & 1 == 1 {
            power = double(power);
        }
    }
    power
}

/// Squaring spreads the bits apart; the upper half then folds down.
fn square(a: u128) -> u128 {
    let (low, high) = (spread(a as u64), spread((a >> 64) as u64));
    let fold = |a: u128| a ^ (a << 1) ^ (a << 2) ^ (a << 7);
    let carried = (high >> 127) ^ (high >> 126) ^ (high >> 121);
    low ^ fold(high) ^ fold(carried)
}

/// A zero above each bit.
fn spread(a: u64) -> u128 {
    let mut a = u128::from(a);
    for (shift, mask) in [
        (32, 0x0000_0000_ffff_ffff_0000_0000_ffff_ffff),
        (16, 0x0000_ffff_0000_ffff_0000_ffff_0000_ffff),
        (8, 0x00ff_00ff_00ff_00ff_00ff_00ff_00ff_00ff),
        (4, 0x0f0f_0f0f_0f0f_0f0f_0f0f_0f0f_0f0f_0f0f),
        (2, 0x3333_3333_3333_3333_3333_3333_3333_3333),
        (1, 0x5555_5555_5555_5555_5555_5555_5555_5555),
    ] {
        a = (a | a << shift) & mask;
    }
    a
}

#[cfg(test)]
mod tests {
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
                        let tweak = first_tweak(job.key, job.iv);
                        crypt_one(dir, job, &tweak);
                    }
                };
                judge("from the first tweak", &keys, &requests, run, &expected);
                for tier in tiers() {
                    let run = |jobs: &mut [CipherJob<'_, XtsKey>]| in_parts(jobs, &cut, |job, first| {
                        let tweak = tweak_at(job.key, job.iv, first);
                        (tier.xts_from)(dir, job, &tweak);
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
}
