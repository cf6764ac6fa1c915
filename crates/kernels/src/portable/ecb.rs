//! ECB over the portable cipher.

use crate::aes::key::AesKey;
use crate::job::{CipherJob, Direction};

pub(crate) fn crypt(dir: Direction, jobs: &mut [CipherJob<'_, AesKey>]) {
    for job in jobs {
        let (blocks, _) = job.data.reborrow().into_chunks();
        job.key.portable().crypt_in_out(dir, blocks);
    }
}
