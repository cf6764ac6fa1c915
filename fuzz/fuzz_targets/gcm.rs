//! AES-GCM of whole messages, both ways.
#![no_main]

use cipherlane_kernels::gcm::{self, GcmKey};
use cipherlane_kernels::job::Direction;
use cipherlane_kernels::naive;
use fuzz::{Batch, Place, check};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|batch: Batch| {
    let dir = batch.direction();
    check(
        &batch.messages(|len| len),
        |m| GcmKey::new(m.aes_key()).expect("an AES key"),
        |places| {
            let mut jobs: Vec<_> = places.iter_mut().map(Place::aead).collect();
            match dir {
                Direction::Encrypt => gcm::seal(&mut jobs),
                Direction::Decrypt => gcm::open(&mut jobs),
            }
            drop(jobs);
            places.iter().map(|place| place.tag.to_vec()).collect()
        },
        |m| {
            let reference = match dir {
                Direction::Encrypt => naive::gcm_seal,
                Direction::Decrypt => naive::gcm_open,
            };
            let (output, tag) = reference(m.aes_key(), m.nonce(), &m.aad, &m.data);
            (output, tag.to_vec())
        },
    );
});
