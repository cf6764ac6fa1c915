//! Counter mode (RFC 5830 section 6), called gamma mode there.

use super::by_engine;
use super::key::Key;
use super::schedulers::cnt::{run, run_meshed};
use crate::job::CipherJob;

/// Encrypts or decrypts every job, data of any length. The IV is the first eight
/// bytes of the job's, and stays as it is.
pub fn apply(jobs: &mut [CipherJob<'_, Key>]) {
    by_engine!(cnt, run, jobs);
}

/// As [`apply`], with CryptoPro key meshing (RFC 4357 section 2.3.2) after every
/// 1024 bytes.
pub fn apply_meshed(jobs: &mut [CipherJob<'_, Key>]) {
    by_engine!(cnt_meshed, run_meshed, jobs);
}
