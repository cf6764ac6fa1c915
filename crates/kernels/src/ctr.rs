//! CTR (NIST SP 800-38A section 6.5) with a 128-bit big-endian counter that wraps.

use crate::aes::AesKey;
use crate::choose;
use crate::job::CipherJob;

/// Encrypts or decrypts, which is the same, every job, of any length. The IV is
/// left at the first counter not used: a part of a block uses one up.
pub fn apply(jobs: &mut [CipherJob<'_, AesKey>]) {
    choose!(ctr(jobs), ctr::apply(jobs))
}

/// The counter `blocks` further on.
pub fn counter_add(iv: &[u8; 16], blocks: u128) -> [u8; 16] {
    u128::from_be_bytes(*iv).wrapping_add(blocks).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::naive;
    use crate::testing::{
        SP_800_38A_KEYS, SP_800_38A_PLAIN, answers, batches, judge, known, tiers,
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

    proptest! {
        #[test]
        fn batches_agree_with_the_naive_reference((bytes, requests) in batches(|len| len)) {
            let keys = keys(&bytes);
            let expected = answers(keys.len(), &requests, |r, key| {
                let blocks = r.data.len().div_ceil(16) as u128;
                (naive::ctr_apply(&bytes[key], &r.iv, &r.data), counter_add(&r.iv, blocks))
            });
            for tier in tiers() {
                judge(tier.name, &keys, &requests, tier.ctr, &expected);
            }
        }
    }
}
