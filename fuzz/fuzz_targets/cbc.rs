//! CBC, both ways, and the IV that it leaves.
#![no_main]

use cipherlane_kernels::aes::AesKey;
use cipherlane_kernels::job::Direction;
use cipherlane_kernels::{cbc, naive};
use fuzz::{Batch, Place, check};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|batch: Batch| {
    let dir = batch.direction();
    check(
        &batch.messages(|len| len & !15),
        |m| AesKey::new(m.aes_key()).expect("an AES key"),
        |places| {
            let mut jobs: Vec<_> = places.iter_mut().map(Place::cipher).collect();
            match dir {
                Direction::Encrypt => cbc::encrypt(&mut jobs),
                Direction::Decrypt => cbc::decrypt(&mut jobs),
            }
            jobs.iter().map(|job| job.iv.to_vec()).collect()
        },
        |m| {
            let last = |ciphertext: &[u8]| ciphertext.last_chunk().unwrap_or(&m.iv).to_vec();
            match dir {
                Direction::Encrypt => {
                    let output = naive::cbc_encrypt(m.aes_key(), &m.iv, &m.data);
                    let iv = last(&output);
                    (output, iv)
                }
                Direction::Decrypt => (
                    naive::cbc_decrypt(m.aes_key(), &m.iv, &m.data),
                    last(&m.data),
                ),
            }
        },
    );
});
