//! AES-CBC with HMAC-SHA-256, both ways, with right and wrong tags.
#![no_main]

use cipherlane_kernels::authenc::{self, AuthencKey, CbcAes};
use cipherlane_kernels::hmac::HmacSha256Key;
use cipherlane_kernels::job::{AeadJob, AuthencJob, Direction};
use cipherlane_kernels::naive;
use fuzz::{Batch, Message, Place, check};
use libfuzzer_sys::fuzz_target;

type Key = AuthencKey<HmacSha256Key, CbcAes>;

fuzz_target!(|batch: Batch| {
    let dir = batch.direction();
    let messages = batch.messages(|len| len & !15);
    let mut ends: Vec<_> = messages.iter().map(|m| (given(dir, m), false)).collect();
    check(
        &messages,
        |m| Key::new(&m.any_key(), m.aes_key()).expect("an AES key"),
        |places| {
            let mut jobs: Vec<_> = places
                .iter_mut()
                .zip(&mut ends)
                .map(|(place, (tag, right))| job(place, tag, right))
                .collect();
            match dir {
                Direction::Encrypt => authenc::seal(&mut jobs),
                Direction::Decrypt => authenc::open(&mut jobs),
            }
            jobs.iter()
                .map(|job| match dir {
                    Direction::Encrypt => job.tag.to_vec(),
                    Direction::Decrypt => vec![u8::from(*job.right)],
                })
                .collect()
        },
        |m| match dir {
            Direction::Encrypt => {
                let output = naive::cbc_encrypt(m.aes_key(), &m.iv, &m.data);
                let tag = mac(m, &output);
                (output, tag.to_vec())
            }
            // Where the tag is wrong nothing is written: the place keeps what it held.
            Direction::Decrypt if is_right(m) => {
                (naive::cbc_decrypt(m.aes_key(), &m.iv, &m.data), vec![1])
            }
            Direction::Decrypt => (m.before(), vec![0]),
        },
    );
});

fn job<'p>(
    place: &'p mut Place<'_, Key>,
    tag: &'p mut [u8; 32],
    right: &'p mut bool,
) -> AuthencJob<'p, Key> {
    let AeadJob {
        key, iv, aad, data, ..
    } = place.aead();
    AuthencJob {
        key,
        iv,
        aad,
        data,
        suffix: &[],
        tag,
        right,
    }
}

fn mac(m: &Message, ciphertext: &[u8]) -> [u8; 32] {
    naive::hmac_sha256(&m.any_key(), &[&m.aad[..], ciphertext].concat())
}

/// Every other message to be opened has a tag with one bit wrong.
fn is_right(m: &Message) -> bool {
    m.iv[0].is_multiple_of(2)
}

fn given(dir: Direction, m: &Message) -> [u8; 32] {
    let mut tag = [0; 32];
    if dir == Direction::Decrypt {
        tag = mac(m, &m.data);
        tag[usize::from(m.iv[1] % 32)] ^= u8::from(!is_right(m)) << (m.iv[2] % 8);
    }
    tag
}
