//! ECB, both ways.
#![no_main]

use cipherlane_kernels::aes::AesKey;
use cipherlane_kernels::job::Direction;
use cipherlane_kernels::{ecb, naive};
use fuzz::{Batch, Place, check};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|batch: Batch| {
    let dir = batch.direction();
    check(
        &batch.messages(|len| len & !15),
        |m| AesKey::new(m.aes_key()).expect("an AES key"),
        |places| {
            let mut jobs: Vec<_> = places.iter_mut().map(Place::cipher).collect();
            ecb::crypt(dir, &mut jobs);
            vec![Vec::new(); jobs.len()]
        },
        |m| match dir {
            Direction::Encrypt => (naive::ecb_encrypt(m.aes_key(), &m.data), Vec::new()),
            Direction::Decrypt => (naive::ecb_decrypt(m.aes_key(), &m.data), Vec::new()),
        },
    );
});
