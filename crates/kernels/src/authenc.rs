//! `authenc(hmac(sha256),cbc(aes))`: AES-CBC and HMAC-SHA-256, encrypt then MAC.
//!
//! As the template of the Linux CryptoAPI: the MAC is over the associated data
//! and the ciphertext. Data is a whole number of blocks; padding is the caller's.

use core::array::from_fn;

use inout::InOutBuf;

use crate::aes::AesKey;
use crate::hmac::HmacSha256Key;
use crate::job::{AeadJob, CipherJob};
use crate::{cbc, hash_lanes};

/// Jobs that are encrypted before the MAC of the first of them begins: few
/// enough for their ciphertext to stay in the cache.
const GROUP: usize = 16;

/// The keys of both halves. Wiped on drop.
pub struct AuthencKey {
    auth: HmacSha256Key,
    enc: AesKey,
}

impl AuthencKey {
    /// Prepares an HMAC key of any length and an AES key of 16, 24 or 32 bytes;
    /// `None` for another length of the latter.
    pub fn new(auth: &[u8], enc: &[u8]) -> Option<AuthencKey> {
        Some(AuthencKey {
            enc: AesKey::new(enc)?,
            auth: HmacSha256Key::new(auth),
        })
    }
}

/// Encrypts every job and computes its MAC of 32 bytes.
///
/// # Panics
/// If the data of a job is not a whole number of blocks of 16 bytes.
pub fn seal(jobs: &mut [AeadJob<'_, AuthencKey>]) {
    for group in jobs.chunks_mut(GROUP) {
        ciphers(group, cbc::encrypt);
        hash_lanes::sha256(group.iter_mut().map(|job| {
            let auth = &job.key.auth;
            auth.message(job.aad, job.data.get_out(), &mut job.tag)
        }));
    }
}

/// Computes the MAC of 32 bytes that every job should have, and decrypts it.
///
/// # Panics
/// If the data of a job is not a whole number of blocks of 16 bytes.
pub fn open(jobs: &mut [AeadJob<'_, AuthencKey>]) {
    for group in jobs.chunks_mut(GROUP) {
        hash_lanes::sha256(group.iter_mut().map(|job| {
            let auth = &job.key.auth;
            auth.message(job.aad, job.data.get_in(), &mut job.tag)
        }));
        ciphers(group, cbc::decrypt);
    }
}

/// Runs the CBC half of at most [`GROUP`] jobs.
fn ciphers(jobs: &mut [AeadJob<'_, AuthencKey>], run: fn(&mut [CipherJob<'_, AesKey>])) {
    if let [job] = jobs {
        return run(&mut [cipher(job)]);
    }
    let Some(key) = jobs.first().map(|job| job.key) else {
        return;
    };
    let len = jobs.len();
    let mut jobs = jobs.iter_mut();
    let mut ciphers: [CipherJob<'_, AesKey>; GROUP] = from_fn(|_| match jobs.next() {
        Some(job) => cipher(job),
        None => CipherJob {
            key: &key.enc,
            iv: [0; 16],
            data: InOutBuf::from(&mut [][..]),
        },
    });
    run(&mut ciphers[..len]);
}

fn cipher<'j>(job: &'j mut AeadJob<'_, AuthencKey>) -> CipherJob<'j, AesKey> {
    CipherJob {
        key: &job.key.enc,
        iv: job.iv,
        data: job.data.reborrow(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aead_batches::{Message, batches, results};
    use crate::naive;
    use proptest::prelude::*;

    /// Keys of any length for the MAC, of each of three for the cipher.
    fn halves(message: &Message) -> (&[u8], &[u8]) {
        let auth_len = message.iv[0] as usize % 65;
        let (auth, enc) = message.key.split_at(64);
        (&auth[..auth_len], &enc[..16 + 8 * message.key_len])
    }

    fn key(message: &Message) -> AuthencKey {
        let (auth, enc) = halves(message);
        AuthencKey::new(auth, enc).unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn batches_agree_with_the_reference(messages in batches(16), in_place: bool) {
            let sealed = results(&messages, in_place, key, seal);
            let opened = results(&messages, in_place, key, open);
            for ((m, sealed), opened) in messages.iter().zip(sealed).zip(opened) {
                let (auth, enc) = halves(m);
                prop_assert_eq!(sealed, naive::authenc_seal(auth, enc, &m.iv, &m.aad, &m.data));
                prop_assert_eq!(opened, naive::authenc_open(auth, enc, &m.iv, &m.aad, &m.data));
            }
        }
    }

    #[test]
    fn cipher_keys_of_other_lengths_are_refused() {
        for len in (0..100).filter(|len| ![16, 24, 32].contains(len)) {
            assert!(AuthencKey::new(&[1; 32], &vec![0; len]).is_none());
        }
    }

    #[test]
    #[should_panic]
    fn a_broken_block_is_refused() {
        let key = AuthencKey::new(&[1; 32], &[2; 16]).unwrap();
        let mut data = [0; 17];
        seal(&mut [AeadJob {
            key: &key,
            iv: [0; 16],
            aad: &[],
            data: InOutBuf::from(&mut data[..]),
            tag: [0; 32],
        }]);
    }
}
