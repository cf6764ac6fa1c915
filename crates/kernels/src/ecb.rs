//! ECB (NIST SP 800-38A section 6.1).

use inout::InOutBuf;

use crate::aes::key::AesKey;
use crate::choose::{alone, block, by_tier, part};
use crate::job::{CipherJob, Direction};
use crate::portable;

/// Every job's data through the cipher, block by block.
///
/// # Panics
/// If the length of a job's data is not a multiple of 16.
pub fn crypt(dir: Direction, jobs: &mut [CipherJob<'_, AesKey>]) {
    for job in jobs.iter() {
        assert!(job.data.len().is_multiple_of(16), "ECB takes whole blocks");
    }
    if let [job] = jobs {
        alone!(ecb_one(dir, job));
    }
    by_tier!(ecb(dir, jobs), _ => portable::ecb::crypt(dir, jobs))
}

/// One message, or the next part of one.
///
/// # Panics
/// If the length of the data is not a multiple of 16.
#[inline(always)]
pub fn crypt_one(dir: Direction, key: &AesKey, data: InOutBuf<'_, '_, u8>) {
    block!(data.len(), ecb(dir, key, data));
    part!(data.len(), ecb(dir, key, data));
    crypt(
        dir,
        &mut [CipherJob {
            key,
            iv: [0; 16],
            data,
        }],
    );
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

    /// SP 800-38A sections F.1.1, F.1.3 and F.1.5.
    const CIPHER: [&str; 3] = [
        "3ad77bb40d7a3660a89ecaf32466ef97f5d3d58503b9699de785895a96fdbaaf\
            43b1cd7f598ece23881b00e3ed0306887b0c785e27e8ad3f8223207104725dd4",
        "bd334f1d6e45f25ff712a214571fa5cc974104846d0ad3ad7734ecb3ecee4eef\
            ef7afd2270e2e60adce0ba2face6444e9a4b41ba738d6c72fb16691603c18e0e",
        "f3eed1bdb5d2a03c064b5a7e3db181f8591ccb10d410ed26dc5ba74a31362870\
            b6ed21b99ca6f4f9f153e7b1beafed1d23304b7a39f9f3ff067d8d8f9e24ecc7",
    ];

    #[test]
    fn sp_800_38a() {
        for (bytes, cipher) in SP_800_38A_KEYS.iter().zip(CIPHER) {
            let (key, iv) = (key(bytes), "00".repeat(16));
            for tier in tiers() {
                let run = |jobs: &mut [CipherJob<'_, AesKey>]| (tier.ecb)(Direction::Encrypt, jobs);
                assert_eq!(known(&key, &iv, SP_800_38A_PLAIN, run).0, cipher);
                let run = |jobs: &mut [CipherJob<'_, AesKey>]| (tier.ecb)(Direction::Decrypt, jobs);
                assert_eq!(known(&key, &iv, cipher, run).0, SP_800_38A_PLAIN);
            }
            let run = |jobs: &mut [CipherJob<'_, AesKey>]| crypt(Direction::Encrypt, jobs);
            assert_eq!(known(&key, &iv, SP_800_38A_PLAIN, run).0, cipher);
        }
    }

    #[test]
    #[should_panic(expected = "whole blocks")]
    fn part_of_a_block_is_refused() {
        let run = |jobs: &mut [CipherJob<'_, AesKey>]| crypt(Direction::Encrypt, jobs);
        known(&key(SP_800_38A_KEYS[0]), &"00".repeat(16), "00", run);
    }

    proptest! {
        #[test]
        fn batches_agree_with_the_naive_reference((bytes, requests) in batches(|len| len / 16 * 16)) {
            let keys = keys(&bytes);
            let encrypted = answers(keys.len(), &requests, |r, key| {
                (naive::ecb_encrypt(&bytes[key], &r.data), r.iv)
            });
            let decrypted = answers(keys.len(), &requests, |r, key| {
                (naive::ecb_decrypt(&bytes[key], &r.data), r.iv)
            });
            for (dir, expected) in [
                (Direction::Encrypt, &encrypted),
                (Direction::Decrypt, &decrypted),
            ] {
                let run = |jobs: &mut [CipherJob<'_, AesKey>]| {
                    by_parts(jobs, |key, _, data| crypt_one(dir, key, data))
                };
                judge("by parts", &keys, &requests, run, expected);
            }
            for tier in tiers() {
                let run = |jobs: &mut [CipherJob<'_, AesKey>]| (tier.ecb)(Direction::Encrypt, jobs);
                judge(tier.name, &keys, &requests, run, &encrypted);
                let run = |jobs: &mut [CipherJob<'_, AesKey>]| (tier.ecb)(Direction::Decrypt, jobs);
                judge(tier.name, &keys, &requests, run, &decrypted);
            }
        }
    }
}
