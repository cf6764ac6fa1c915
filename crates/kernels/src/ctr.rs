//! CTR (NIST SP 800-38A section 6.5) with a 128-bit big-endian counter that wraps.

pub(crate) mod counter;

use inout::InOutBuf;

pub use self::counter::counter_add;
use crate::aes::key::{AesKey, Block};
use crate::choose::{alone, by_tier, part};
use crate::job::CipherJob;
use crate::portable;

/// Encrypts or decrypts, which is the same, every job, of any length. The IV is
/// left at the first counter not used: a part of a block uses one up.
pub fn apply(jobs: &mut [CipherJob<'_, AesKey>]) {
    if let [job] = jobs {
        alone!(ctr_one(job));
    }
    by_tier!(ctr(jobs), _ => portable::ctr::apply(jobs))
}

/// One message, or the next part of one, from a counter that is left at the first one not
/// used. The counter stays where it is from part to part: short parts wait for little else.
#[inline(always)]
pub fn apply_one(key: &AesKey, counter: &mut Block, data: InOutBuf<'_, '_, u8>) {
    // Vectors count in the lower half alone.
    let lower = u128::from_be_bytes(*counter) as u64;
    if lower.checked_add(data.len() as u64 / 16).is_some() {
        part!(data.len(), ctr(key, counter, data));
    }
    let mut jobs = [CipherJob {
        key,
        iv: *counter,
        data,
    }];
    apply(&mut jobs);
    *counter = jobs[0].iv;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::naive;
    use crate::testing::{
        SP_800_38A_KEYS, SP_800_38A_PLAIN, answers, batches, by_parts, judge, known, tiers,
    };
    use proptest::prelude::*;

    fn key(hex: &str) -> AesKey {
        AesKey::new(&hex::decode(hex).unwrap()).unwrap()
    }

    fn keys(bytes: &[Vec<u8>]) -> Vec<AesKey> {
        bytes.iter().map(|key| AesKey::new(key).unwrap()).collect()
    }

    const IV: &str = "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff";

    /// SP 800-38A sections F.5.1, F.5.3 and F.5.5.
    const CIPHER: [&str; 3] = [
        "874d6191b620e3261bef6864990db6ce9806f66b7970fdff8617187bb9fffdff\
            5ae4df3edbd5d35e5b4f09020db03eab1e031dda2fbe03d1792170a0f3009cee",
        "1abc932417521ca24f2b0459fe7e6e0b090339ec0aa6faefd5ccc2c6f4ce8e94\
            1e36b26bd1ebc670d1bd1d665620abf74f78a7f6d29809585a97daec58c6b050",
        "601ec313775789a5b7a7f504bbf3d228f443e3ca4d62b59aca84e990cacaf5c5\
            2b0930daa23de94ce87017ba2d84988ddfc9c58db67aada613c2dd08457941a6",
    ];

    #[test]
    fn sp_800_38a() {
        for (bytes, cipher) in SP_800_38A_KEYS.iter().zip(CIPHER) {
            let key = key(bytes);
            // Its last block is cut short: a part of a block uses up a counter too.
            for cut in [0, 2, 8, 30] {
                let (plain, cipher) = (&SP_800_38A_PLAIN[..128 - cut], &cipher[..128 - cut]);
                let expected = (
                    cipher.to_string(),
                    "f0f1f2f3f4f5f6f7f8f9fafbfcfdff03".to_string(),
                );
                for tier in tiers() {
                    assert_eq!(known(&key, IV, plain, tier.ctr), expected, "{}", tier.name);
                }
                assert_eq!(known(&key, IV, plain, apply), expected);
            }
        }
    }

    #[test]
    fn counter_wraps_at_128_bits() {
        assert_eq!(counter_add(&[0xff; 16], 1), [0; 16]);
        assert_eq!(counter_add(&[0xff; 16], 0), [0xff; 16]);
        let mut carried = [0; 16];
        carried[7] = 1;
        assert_eq!(counter_add(&[0; 16], 1 << 64), carried);
    }

    /// Vectors count in the lower half alone: before, at and behind each place where it wraps, the
    /// upper half too, alone and as one of two.
    #[test]
    fn both_halves_wrap_at_any_block() {
        let bytes = [0x42; 24];
        let key = AesKey::new(&bytes).unwrap();
        for upper in [0, u64::MAX] {
            for until in (0..=40).chain([63, 64, 65]) {
                let lower = 0u64.wrapping_sub(until);
                let iv = (u128::from(upper) << 64 | u128::from(lower)).to_be_bytes();
                for len in (0..700).step_by(23).chain([512, 1024, 1040]) {
                    let expected = naive::ctr_apply(&bytes, &iv, &vec![7; len]);
                    let next = counter_add(&iv, len.div_ceil(16) as u128);
                    for jobs in [1, 2] {
                        let mut data = vec![vec![7; len]; jobs];
                        let mut jobs: Vec<_> = data
                            .iter_mut()
                            .map(|data| CipherJob {
                                key: &key,
                                iv,
                                data: (&mut data[..]).into(),
                            })
                            .collect();
                        apply(&mut jobs);
                        assert!(jobs.iter().all(|job| job.iv == next));
                        drop(jobs);
                        assert!(data.iter().all(|data| *data == expected), "{until} {len}");
                    }
                }
            }
        }
    }

    /// Behind 256 blocks kernels begin with what they kept of these: wherever among them the last byte
    /// of the counter begins again, and where bytes carry on which that does not depend, or does.
    #[test]
    fn long_requests() {
        let last_bytes = (0..=8)
            .chain([31, 32, 33, 100, 223, 224, 225])
            .chain(248..=255);
        let carries = [16, 24, 32, 40, 48, 64].map(|bit| (1u128 << bit) - 300);
        // The data before the lower half wraps is long itself.
        let wraps = [384, 416, 500].map(|blocks| (1u128 << 64) - blocks);
        for (i, first) in last_bytes.chain(carries).chain(wraps).enumerate() {
            let bytes = &[0x42; 32][..[16, 24, 32][i % 3]];
            let key = AesKey::new(bytes).unwrap();
            let iv = (first | 0x1234 << 112).to_be_bytes();
            for len in [6143, 6144, 6656, 8192, 9000 + 97 * i] {
                let plain: Vec<u8> = (0..len).map(|i| ((i * 7) >> 3) as u8).collect();
                let expected = naive::ctr_apply(bytes, &iv, &plain);
                let next = counter_add(&iv, len.div_ceil(16) as u128);
                let mut ways = vec![("alone", super::apply as fn(&mut [CipherJob<'_, AesKey>]))];
                ways.extend(tiers().iter().map(|tier| (tier.name, tier.ctr)));
                for (name, apply) in ways {
                    let mut data = plain.clone();
                    let mut job = [CipherJob {
                        key: &key,
                        iv,
                        data: (&mut data[..]).into(),
                    }];
                    apply(&mut job);
                    assert_eq!(job[0].iv, next, "{name} {first} {len}");
                    assert!(data == expected, "{name} {first} {len}");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn batches_agree_with_the_naive_reference((bytes, requests) in batches(|len| len)) {
            let keys = keys(&bytes);
            let expected = answers(keys.len(), &requests, |r, key| {
                let blocks = r.data.len().div_ceil(16) as u128;
                (naive::ctr_apply(&bytes[key], &r.iv, &r.data), counter_add(&r.iv, blocks))
            });
            let run = |jobs: &mut [CipherJob<'_, AesKey>]| by_parts(jobs, apply_one);
            judge("by parts", &keys, &requests, run, &expected);
            for tier in tiers() {
                judge(tier.name, &keys, &requests, tier.ctr, &expected);
            }
        }
    }
}
