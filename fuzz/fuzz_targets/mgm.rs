//! MGM over Kuznyechik and Magma, both ways.
#![no_main]

use cipherlane_kernels::job::{AeadJob, Direction};
use cipherlane_kernels::kuznyechik::KuznyechikKey;
use cipherlane_kernels::magma::MagmaKey;
use cipherlane_kernels::{mgm, naive};
use fuzz::{Batch, Message, Place, check};
use libfuzzer_sys::fuzz_target;

fn job<'p, K>(place: &'p mut Place<'_, K>, tag_len: usize) -> AeadJob<'p, K> {
    let mut job = place.aead();
    job.tag = &mut std::mem::take(&mut job.tag)[..tag_len];
    job
}

fn aead<K: mgm::Cipher>(
    (dir, tag_len): (Direction, usize),
    messages: &[Message],
    key: fn(&[u8]) -> Option<K>,
    expected: impl Fn(&Message) -> (Vec<u8>, Vec<u8>),
) {
    check(
        messages,
        |m| key(m.key_32()).expect("32 bytes"),
        |places| {
            let mut jobs: Vec<_> = places.iter_mut().map(|place| job(place, tag_len)).collect();
            match dir {
                Direction::Encrypt => mgm::seal(&mut jobs),
                Direction::Decrypt => mgm::open(&mut jobs),
            }
            .expect("right nonces");
            drop(jobs);
            let tags = places.iter().map(|place| place.tag[..tag_len].to_vec());
            tags.collect()
        },
        expected,
    );
}

fuzz_target!(|input: (bool, Batch)| {
    let (is_magma, batch) = input;
    let dir = batch.direction();
    let encrypts = dir == Direction::Encrypt;
    // The reference takes microseconds per block.
    let mut messages = batch.messages(|len| len % 3000);
    // The first bit of a nonce is not a part of it.
    messages.iter_mut().for_each(|m| m.iv[0] &= 0x7f);
    if is_magma {
        let reference = match encrypts {
            true => naive::magma_mgm_seal,
            false => naive::magma_mgm_open,
        };
        aead((dir, 8), &messages, MagmaKey::new, |m| {
            let nonce = m.iv.first_chunk().expect("8 of 16 bytes");
            let (output, tag) = reference(m.key_32(), nonce, &m.aad, &m.data);
            (output, tag.to_vec())
        });
    } else {
        let reference = match encrypts {
            true => naive::kuznyechik_mgm_seal,
            false => naive::kuznyechik_mgm_open,
        };
        aead((dir, 16), &messages, KuznyechikKey::new, |m| {
            let (output, tag) = reference(m.key_32(), &m.iv, &m.aad, &m.data);
            (output, tag.to_vec())
        });
    }
});
