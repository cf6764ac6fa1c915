//! Simple substitution (RFC 5830 section 5): blocks of eight bytes, each on its own.

use super::by_engine;
use super::key::Key;
use super::schedulers::ecb::run;
use crate::job::{CipherJob, Direction};

/// Encrypts every job. IVs are not used.
///
/// # Panics
/// If the length of a job's data is not a multiple of 8.
pub fn encrypt(jobs: &mut [CipherJob<'_, Key>]) {
    crypt(Direction::Encrypt, jobs);
}

/// Decrypts every job. IVs are not used.
///
/// # Panics
/// If the length of a job's data is not a multiple of 8.
pub fn decrypt(jobs: &mut [CipherJob<'_, Key>]) {
    crypt(Direction::Decrypt, jobs);
}

fn crypt(dir: Direction, jobs: &mut [CipherJob<'_, Key>]) {
    for job in jobs.iter() {
        assert!(job.data.len().is_multiple_of(8), "ECB takes whole blocks");
    }
    by_engine!(ecb, run, jobs, dir);
}
