//! Kuznyechik and Magma: ECB both ways, CTR, and the counter that it leaves.
#![no_main]

use cipherlane_kernels::job::{CipherJob, Direction};
use cipherlane_kernels::kuznyechik::{self, KuznyechikKey};
use cipherlane_kernels::magma::{self, MagmaKey};
use cipherlane_kernels::naive;
use fuzz::{Batch, Message, Place, check};
use libfuzzer_sys::fuzz_target;

/// The reference takes microseconds per block.
fn short(len: usize) -> usize {
    len % 3000
}

fn ciphers<K>(
    messages: &[Message],
    key: fn(&[u8]) -> Option<K>,
    run: impl Fn(&mut [CipherJob<'_, K>]),
    expected: impl Fn(&Message) -> (Vec<u8>, [u8; 16]),
) {
    check(
        messages,
        |m| key(m.key_32()).expect("32 bytes"),
        |places| {
            let mut jobs: Vec<_> = places.iter_mut().map(Place::cipher).collect();
            run(&mut jobs);
            jobs.iter().map(|job| job.iv.to_vec()).collect()
        },
        |m| {
            let (output, iv) = expected(m);
            (output, iv.to_vec())
        },
    );
}

fuzz_target!(|input: (u8, Batch)| {
    let (mode, batch) = input;
    let dir = batch.direction();
    let encrypts = dir == Direction::Encrypt;
    match mode & 3 {
        0 => {
            let reference = match encrypts {
                true => naive::kuznyechik_ecb_encrypt,
                false => naive::kuznyechik_ecb_decrypt,
            };
            let blocks = batch.messages(|len| short(len) & !15);
            let run = |jobs: &mut [CipherJob<'_, _>]| kuznyechik::ecb(dir, jobs);
            ciphers(&blocks, KuznyechikKey::new, run, |m| {
                (reference(m.key_32(), &m.data), m.iv)
            });
        }
        1 => {
            let reference = match encrypts {
                true => naive::magma_ecb_encrypt,
                false => naive::magma_ecb_decrypt,
            };
            let blocks = batch.messages(|len| short(len) & !7);
            let run = |jobs: &mut [CipherJob<'_, _>]| magma::ecb(dir, jobs);
            ciphers(&blocks, MagmaKey::new, run, |m| {
                (reference(m.key_32(), &m.data), m.iv)
            });
        }
        2 => ciphers(
            &batch.messages(short),
            KuznyechikKey::new,
            kuznyechik::ctr,
            |m| {
                let next = u128::from_be_bytes(m.iv);
                let next = next.wrapping_add(m.data.len().div_ceil(16) as u128);
                let output = naive::kuznyechik_ctr(m.key_32(), &m.iv, &m.data);
                (output, next.to_be_bytes())
            },
        ),
        _ => ciphers(&batch.messages(short), MagmaKey::new, magma::ctr, |m| {
            let (counter, rest) = m.iv.split_first_chunk().expect("16 bytes");
            let next = u64::from_be_bytes(*counter);
            let next = next.wrapping_add(m.data.len().div_ceil(8) as u64);
            let output = naive::magma_ctr(m.key_32(), counter, &m.data);
            let iv = [&next.to_be_bytes()[..], rest].concat();
            (output, iv.try_into().expect("16 bytes"))
        }),
    }
});
