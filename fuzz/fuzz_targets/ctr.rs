//! CTR, and the counter that it leaves.
#![no_main]

use cipherlane_kernels::aes::AesKey;
use cipherlane_kernels::{ctr, naive};
use fuzz::{Batch, Place, check};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|batch: Batch| {
    check(
        &batch.messages(|len| len),
        |m| AesKey::new(m.aes_key()).expect("an AES key"),
        |places| {
            let mut jobs: Vec<_> = places.iter_mut().map(Place::cipher).collect();
            ctr::apply(&mut jobs);
            jobs.iter().map(|job| job.iv.to_vec()).collect()
        },
        |m| {
            let blocks = m.data.len().div_ceil(16) as u128;
            (
                naive::ctr_apply(m.aes_key(), &m.iv, &m.data),
                u128::from_be_bytes(m.iv)
                    .wrapping_add(blocks)
                    .to_be_bytes()
                    .to_vec(),
            )
        },
    );
});
