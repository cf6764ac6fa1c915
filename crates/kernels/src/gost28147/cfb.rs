//! Cipher feedback over whole blocks (RFC 5830 section 7), called gamma mode with
//! feedback there.

use super::by_engine;
use super::key::Key;
use super::schedulers::cfb::{run_decrypt, run_decrypt_meshed, run_encrypt};
use crate::job::CipherJob;

/// Encrypts every job, data of any length. The IV is the first eight bytes of the
/// job's, and stays as it is.
///
/// A job is serial in itself, so lanes are filled by the jobs of a batch only.
pub fn encrypt(jobs: &mut [CipherJob<'_, Key>]) {
    by_engine!(cfb_encrypt, run_encrypt, jobs, false);
}

/// As [`encrypt`], with CryptoPro key meshing (RFC 4357 section 2.3.2) after every
/// 1024 bytes.
pub fn encrypt_meshed(jobs: &mut [CipherJob<'_, Key>]) {
    by_engine!(cfb_encrypt, run_encrypt, jobs, true);
}

/// Decrypts every job, data of any length. The IV is the first eight bytes of the
/// job's, and stays as it is.
pub fn decrypt(jobs: &mut [CipherJob<'_, Key>]) {
    by_engine!(cfb_decrypt, run_decrypt, jobs);
}

/// As [`decrypt`], with CryptoPro key meshing (RFC 4357 section 2.3.2) after every
/// 1024 bytes.
pub fn decrypt_meshed(jobs: &mut [CipherJob<'_, Key>]) {
    by_engine!(cfb_decrypt_meshed, run_decrypt_meshed, jobs);
}
