//! GOST 28147-89 (RFC 5830), with CryptoPro key meshing and diversification (RFC 4357).
//!
//! | module | what stands there |
//! |---|---|
//! | [`ecb`], [`cfb`], [`cnt`] | the cipher modes |
//! | [`imit`] | the MAC |
//! | [`diversify`] | CryptoPro key diversification |
//! | `engine` | what an implementation of the rounds offers, many blocks side by side |
//! | `lanes` | the rounds for Magma |
//! | `packed` | independent blocks of many jobs in common registers |
//! | `mesh` | CryptoPro key meshing of many keys at once |
//!
//! Jobs of a batch may have keys with different S-boxes; those with copies of one set
//! share registers.

use crate::job::CipherJob;

pub mod cfb;
pub mod cnt;
pub mod diversify;
pub mod ecb;
pub mod imit;

pub(crate) mod engine;
mod key;
pub(crate) mod lanes;
mod mesh;
pub(crate) mod packed;
mod sbox;

pub use key::Key;
pub(crate) use key::Words;
pub(crate) use sbox::Tables;

#[cfg(test)]
mod tests;
pub use sbox::{Sbox, SboxError};

/// A block, the word N1 in its first four bytes, both little-endian.
pub(crate) type Block = [u8; 8];

/// Overwrites what was secret with zeros.
#[inline(always)]
pub(crate) fn wipe<T: Copy + Default>(secret: &mut [T]) {
    secret.fill(T::default());
    zeroize::optimization_barrier(secret);
}

/// Runs a scheduler for each S-box of the jobs, over the best engine of this
/// processor: by its entry among the x86-64 engines, else over the portable one.
macro_rules! by_engine {
    ($entry:ident, $run:path, $jobs:ident $(, $arg:expr)*) => {
        $crate::gost28147::each_sbox($jobs, |job| job.key, |jobs, sbox| {
            #[cfg(target_arch = "x86_64")]
            use $crate::x86_64::gost28147::{byte_planes, wide_words};
            use $crate::portable::gost28147::{Scalar, apart};
            $crate::choose::choose! {
                token: HaveAvx512Vbmi => wide_words::$entry(token, sbox, jobs $(, $arg)*),
                token: HaveAvx2 => byte_planes::$entry(token, sbox, jobs $(, $arg)*),
                _ => apart(|| $run(Scalar, sbox, jobs $(, $arg)*)),
            }
        })
    };
}
use by_engine;

/// Whether there is something to do with this S-box.
#[inline(always)]
fn serves(job: &CipherJob<'_, Key>, sbox: &Tables) -> bool {
    job.key.has(sbox) && !job.data.is_empty()
}

/// Calls `run` once for each S-box of the jobs.
#[inline(always)]
fn each_sbox<J>(jobs: &mut [J], key: fn(&J) -> &Key, mut run: impl FnMut(&mut [J], &Tables)) {
    for i in 0..jobs.len() {
        let sbox = key(&jobs[i]).sbox.clone();
        let same = |job: &J| key(job).has(sbox.tables());
        if !jobs[..i].iter().any(same) {
            run(jobs, sbox.tables());
        }
    }
}
