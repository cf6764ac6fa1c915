//! CBC (NIST SP 800-38A section 6.2). Padding is the caller's.

use crate::aes::AesKey;
use crate::choose;
use crate::job::CipherJob;

/// Encrypts every job, with the IV left at its last ciphertext block.
///
/// # Panics
/// If the length of a job's data is not a multiple of 16.
pub fn encrypt(jobs: &mut [CipherJob<'_, AesKey>]) {
    check(jobs);
    choose!(cbc_encrypt(jobs), cbc::encrypt(jobs))
}

/// Decrypts every job, with the IV left at its last ciphertext block.
///
/// # Panics
/// If the length of a job's data is not a multiple of 16.
pub fn decrypt(jobs: &mut [CipherJob<'_, AesKey>]) {
    check(jobs);
    choose!(cbc_decrypt(jobs), cbc::decrypt(jobs))
}

fn check(jobs: &[CipherJob<'_, AesKey>]) {
    for job in jobs {
        assert!(job.data.len().is_multiple_of(16), "CBC takes whole blocks");
    }
}
