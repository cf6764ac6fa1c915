//! ECB (NIST SP 800-38A section 6.1).

use crate::aes::AesKey;
use crate::choose;
use crate::job::{CipherJob, Direction};

/// Every job's data through the cipher, block by block.
///
/// # Panics
/// If the length of a job's data is not a multiple of 16.
pub fn crypt(dir: Direction, jobs: &mut [CipherJob<'_, AesKey>]) {
    for job in jobs.iter() {
        assert!(job.data.len().is_multiple_of(16), "ECB takes whole blocks");
    }
    choose!(ecb(dir, jobs), ecb::crypt(dir, jobs))
}
