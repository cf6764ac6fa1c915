//! CBC (NIST SP 800-38A section 6.2). Padding is the caller's.

use inout::InOutBuf;

use crate::aes::key::{AesKey, Block};
use crate::choose::{alone, block, by_tier, part};
use crate::job::CipherJob;
use crate::portable;
use crate::wipe::on_portable;

/// Encrypts every job, with the IV left at its last ciphertext block.
///
/// # Panics
/// If the length of a job's data is not a multiple of 16.
pub fn encrypt(jobs: &mut [CipherJob<'_, AesKey>]) {
    check(jobs);
    by_tier!(cbc_encrypt(jobs), _ => portable::cbc::encrypt(jobs))
}

/// Encrypts one message, or the next part of one, with the IV left at its last ciphertext
/// block. It stays where it is from part to part: short ones wait for little else.
///
/// # Panics
/// If the length of the data is not a multiple of 16.
#[inline(always)]
pub fn encrypt_one(key: &AesKey, iv: &mut Block, data: InOutBuf<'_, '_, u8>) {
    assert!(data.len().is_multiple_of(16), "CBC takes whole blocks");
    part!(cbc_encrypt(key, iv, data));
    on_portable(move || portable::cbc::encrypt_one(key, iv, data))
}

/// As [`encrypt_one`], for decryption.
///
/// # Panics
/// If the length of the data is not a multiple of 16.
#[inline(always)]
pub fn decrypt_one(key: &AesKey, iv: &mut Block, data: InOutBuf<'_, '_, u8>) {
    block!(data.len(), cbc_decrypt(key, iv, data));
    part!(data.len(), cbc_decrypt(key, iv, data));
    let mut jobs = [CipherJob { key, iv: *iv, data }];
    decrypt(&mut jobs);
    *iv = jobs[0].iv;
}

/// Decrypts every job, with the IV left at its last ciphertext block.
///
/// # Panics
/// If the length of a job's data is not a multiple of 16.
pub fn decrypt(jobs: &mut [CipherJob<'_, AesKey>]) {
    check(jobs);
    if let [job] = jobs {
        alone!(cbc_decrypt_one(job));
    }
    by_tier!(cbc_decrypt(jobs), _ => portable::cbc::decrypt(jobs))
}

fn check(jobs: &[CipherJob<'_, AesKey>]) {
    for job in jobs {
        assert!(job.data.len().is_multiple_of(16), "CBC takes whole blocks");
    }
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

    fn one_by_one(jobs: &mut [CipherJob<'_, AesKey>]) {
        for job in jobs {
            encrypt_one(job.key, &mut job.iv, job.data.reborrow());
        }
    }

    const IV: &str = "000102030405060708090a0b0c0d0e0f";

    /// SP 800-38A sections F.2.1, F.2.3 and F.2.5.
    const CIPHER: [&str; 3] = [
        "7649abac8119b246cee98e9b12e9197d5086cb9b507219ee95db113a917678b2\
            73bed6b8e3c1743b7116e69e222295163ff1caa1681fac09120eca307586e1a7",
        "4f021db243bc633d7178183a9fa071e8b4d9ada9ad7dedf4e5e738763f69145a\
            571b242012fb7ae07fa9baac3df102e008b0e27988598881d920a9e64f5615cd",
        "f58c4c04d6e5f1ba779eabfb5f7bfbd69cfc4e967edb808d679f777bc6702c7d\
            39f23369a9d9bacfa530e26304231461b2eb05e2c39be9fcda6c19078c6a9d1b",
    ];

    #[test]
    fn sp_800_38a() {
        for (bytes, cipher) in SP_800_38A_KEYS.iter().zip(CIPHER) {
            let key = key(bytes);
            let encrypted = (cipher.to_string(), cipher[96..].to_string());
            let decrypted = (SP_800_38A_PLAIN.to_string(), cipher[96..].to_string());
            for tier in tiers() {
                assert_eq!(
                    known(&key, IV, SP_800_38A_PLAIN, tier.cbc_encrypt),
                    encrypted
                );
                assert_eq!(known(&key, IV, cipher, tier.cbc_decrypt), decrypted);
            }
            assert_eq!(known(&key, IV, SP_800_38A_PLAIN, encrypt), encrypted);
            assert_eq!(known(&key, IV, cipher, decrypt), decrypted);
        }
    }

    #[test]
    #[should_panic(expected = "whole blocks")]
    fn part_of_a_block_is_refused() {
        known(&key(SP_800_38A_KEYS[0]), IV, "00", encrypt);
    }

    /// Lanes that would crowd a set of the cache begin one after the other.
    #[test]
    fn buffers_at_one_offset_in_their_pages() {
        const PAGE: usize = 4096;
        let keys = [[1; 16].as_slice(), &[2; 32], &[3; 16]].map(|key| AesKey::new(key).unwrap());
        let plain: Vec<u8> = (0..45 * 2 * PAGE).map(|i| ((i * 7) >> 3) as u8).collect();
        let lengths: [fn(usize) -> usize; 3] = [
            |_| 2 * PAGE,
            |i| [1024, 1040, 16, 8000, 0, 1088][i % 6],
            |i| 1024 + 16 * i,
        ];
        for (length, keys) in lengths
            .iter()
            .flat_map(|l| [(l, &keys[..1]), (l, &keys[..])])
        {
            let run = |encrypt: fn(&mut [CipherJob<'_, AesKey>])| {
                let mut data = plain.clone();
                let mut jobs: Vec<_> = data
                    .chunks_mut(2 * PAGE)
                    .zip(keys.iter().cycle())
                    .enumerate()
                    .map(|(i, (data, key))| CipherJob {
                        key,
                        iv: [i as u8; 16],
                        data: InOutBuf::from(&mut data[..length(i)]),
                    })
                    .collect();
                encrypt(&mut jobs);
                let ivs: Vec<Block> = jobs.iter().map(|job| job.iv).collect();
                drop(jobs);
                (data, ivs)
            };
            let expected = run(one_by_one);
            for tier in tiers() {
                assert!(run(tier.cbc_encrypt) == expected, "{}", tier.name);
            }
        }
    }

    proptest! {
        #[test]
        fn batches_agree_with_the_naive_reference((bytes, requests) in batches(|len| len / 16 * 16)) {
            let keys = keys(&bytes);
            let last = |data: &[u8], iv| data.last_chunk().copied().unwrap_or(iv);
            let encrypted = answers(keys.len(), &requests, |r, key| {
                let data = naive::cbc_encrypt(&bytes[key], &r.iv, &r.data);
                let iv = last(&data, r.iv);
                (data, iv)
            });
            let decrypted = answers(keys.len(), &requests, |r, key| {
                (naive::cbc_decrypt(&bytes[key], &r.iv, &r.data), last(&r.data, r.iv))
            });
            judge("one by one", &keys, &requests, one_by_one, &encrypted);
            let run = |jobs: &mut [CipherJob<'_, AesKey>]| by_parts(jobs, encrypt_one);
            judge("by parts", &keys, &requests, run, &encrypted);
            let run = |jobs: &mut [CipherJob<'_, AesKey>]| by_parts(jobs, decrypt_one);
            judge("by parts", &keys, &requests, run, &decrypted);
            for tier in tiers() {
                judge(tier.name, &keys, &requests, tier.cbc_encrypt, &encrypted);
                judge(tier.name, &keys, &requests, tier.cbc_decrypt, &decrypted);
            }
        }
    }
}
