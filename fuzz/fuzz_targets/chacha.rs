//! ChaCha20-Poly1305, both ways.
#![no_main]

use cipherlane_kernels::chacha::{self, ChaChaKey};
use cipherlane_kernels::job::Direction;
use cipherlane_kernels::naive;
use fuzz::{Batch, Place, check};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|batch: Batch| {
    let dir = batch.direction();
    check(
        &batch.messages(|len| len),
        |m| ChaChaKey::new(m.key_32()).expect("32 bytes"),
        |places| {
            let mut jobs: Vec<_> = places.iter_mut().map(Place::aead).collect();
            match dir {
                Direction::Encrypt => chacha::seal(&mut jobs),
                Direction::Decrypt => chacha::open(&mut jobs),
            }
            drop(jobs);
            places.iter().map(|place| place.tag.to_vec()).collect()
        },
        |m| {
            let reference = match dir {
                Direction::Encrypt => naive::chacha20poly1305_seal,
                Direction::Decrypt => naive::chacha20poly1305_open,
            };
            let (output, tag) = reference(m.key_32(), m.nonce(), &m.aad, &m.data);
            (output, tag.to_vec())
        },
    );
});
