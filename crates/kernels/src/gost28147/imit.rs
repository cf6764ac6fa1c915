//! The MAC of GOST 28147-89 (RFC 5830 section 8), called imitovstavka there.

use super::by_engine;
use super::key::Key;
use super::schedulers::imit::{Lane, alone, run};
use crate::job::MacJob;
use crate::wipe::wipe_slice;

/// The MAC of every job: four bytes or fewer. A message is padded with zeros to whole blocks, and a
/// message of one block with a block of zeros. That of an empty one is zero.
pub fn mac(jobs: &mut [MacJob<'_, Key>]) {
    mac_by(jobs, false);
}

/// As [`mac`], with CryptoPro key meshing (RFC 4357 section 2.3.2) after every 1024
/// bytes, of all pieces together.
pub fn mac_meshed(jobs: &mut [MacJob<'_, Key>]) {
    mac_by(jobs, true);
}

#[inline(always)]
fn mac_by(jobs: &mut [MacJob<'_, Key>], meshed: bool) {
    let [job] = jobs else {
        return by_engine!(imit, run, jobs, meshed);
    };
    let (sbox, mut key) = (job.key.sbox.clone(), job.key.words);
    alone(Lane::new(job), sbox.tables(), &mut key, &mut [0; 8], meshed);
    wipe_slice(&mut key);
    #[cfg(target_arch = "x86_64")]
    crate::wipe::dead_stack::<{ 6 << 10 }>();
}
