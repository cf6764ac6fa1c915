//! CBC over the portable cipher.

use inout::InOutBuf;
use zeroize::Zeroize;

use super::aes::BATCH;
use crate::aes::key::{AesKey, Block};
use crate::job::{CipherJob, Direction};

pub(crate) fn encrypt(jobs: &mut [CipherJob<'_, AesKey>]) {
    for job in jobs {
        encrypt_one(job.key, &mut job.iv, job.data.reborrow());
    }
}

pub(crate) fn encrypt_one(key: &AesKey, iv: &mut Block, data: InOutBuf<'_, '_, u8>) {
    let cipher = key.portable();
    let (mut blocks, _) = data.into_chunks();
    for i in 0..blocks.len() {
        let mut block = blocks.get(i);
        block.xor_in2out(&(*iv).into());
        cipher.crypt_in_out(Direction::Encrypt, InOutBuf::from_mut(block.get_out()));
        *iv = (*block.get_out()).into();
    }
}

pub(crate) fn decrypt(jobs: &mut [CipherJob<'_, AesKey>]) {
    let mut plain = [[0; 16]; BATCH];
    for job in jobs {
        let cipher = job.key.portable();
        let mut rest = job.data.reborrow();
        while rest.len() >= 16 {
            let n = (rest.len() / 16).min(BATCH);
            let (mut data, next) = rest.split_at(16 * n);
            let plain = &mut plain[..n];
            plain.as_flattened_mut().copy_from_slice(data.get_in());
            cipher.crypt(Direction::Decrypt, plain);
            // In place the output replaces the ciphertext that the next block
            // chains from, so that is kept in the IV.
            for (i, plain) in plain.iter().enumerate() {
                let mut chain = [0; 16];
                chain.copy_from_slice(&data.get_in()[16 * i..16 * i + 16]);
                core::mem::swap(&mut chain, &mut job.iv);
                for (j, out) in data.get_out()[16 * i..16 * i + 16].iter_mut().enumerate() {
                    *out = plain[j] ^ chain[j];
                }
            }
            rest = next;
        }
    }
    plain.zeroize();
}
