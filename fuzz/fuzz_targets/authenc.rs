//! AES-CBC with HMAC-SHA-256, both ways.
#![no_main]

use cipherlane_kernels::authenc::{self, AuthencKey};
use cipherlane_kernels::job::Direction;
use cipherlane_kernels::naive;
use fuzz::{Batch, Place, check};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|batch: Batch| {
    let dir = batch.direction();
    check(
        &batch.messages(|len| len & !15),
        |m| AuthencKey::new(&m.any_key(), m.aes_key()).expect("an AES key"),
        |places| {
            let mut jobs: Vec<_> = places.iter_mut().map(Place::aead).collect();
            match dir {
                Direction::Encrypt => authenc::seal(&mut jobs),
                Direction::Decrypt => authenc::open(&mut jobs),
            }
            jobs.iter().map(|job| job.tag.to_vec()).collect()
        },
        |m| {
            let reference = match dir {
                Direction::Encrypt => naive::authenc_seal,
                Direction::Decrypt => naive::authenc_open,
            };
            let (output, mac) = reference(&m.any_key(), m.aes_key(), &m.iv, &m.aad, &m.data);
            (output, mac.to_vec())
        },
    );
});
