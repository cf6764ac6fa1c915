//! CTR over the portable cipher.

use zeroize::Zeroize;

use super::aes::BATCH;
use crate::aes::key::AesKey;
use crate::ctr::counter::counter_add;
use crate::job::{CipherJob, Direction};

pub(crate) fn apply(jobs: &mut [CipherJob<'_, AesKey>]) {
    let mut stream = [[0; 16]; BATCH];
    for job in jobs {
        let cipher = job.key.portable();
        let mut rest = job.data.reborrow();
        while !rest.is_empty() {
            let len = rest.len().min(16 * BATCH);
            let (mut data, next) = rest.split_at(len);
            let blocks = &mut stream[..len.div_ceil(16)];
            for block in blocks.iter_mut() {
                *block = job.iv;
                job.iv = counter_add(&job.iv, 1);
            }
            cipher.crypt(Direction::Encrypt, blocks);
            data.xor_in2out(&blocks.as_flattened()[..len]);
            rest = next;
        }
    }
    stream.zeroize();
}
