//! GOST 28147-89 (RFC 5830), with CryptoPro key meshing and diversification (RFC 4357).
//!
//! | module | what stands there |
//! |---|---|
//! | [`ecb`], [`cfb`], [`cnt`] | the cipher modes |
//! | [`imit`] | the MAC |
//! | [`diversify`] | CryptoPro key diversification |
//! | [`packets`] | the modes and MACs of ESP's packets together |
//! | `lanes` | the rounds for Magma |
//! | `schedulers` | what the modes do, over any engine |
//! | `engine` | what an implementation of the rounds offers, many blocks side by side |
//! | `scalar` | the rounds in general registers: the engine for every machine, and a lone block's |
//! | `packet_job` | what packets are given |
//! | `key`, `sbox` | the subkeys, and the tables of an S-box |
//!
//! The modes choose an engine; what stands below them in the table does not.
//!
//! Jobs of a batch may have keys with different S-boxes; those with copies of one set
//! share registers.

pub mod cfb;
pub mod cnt;
pub mod diversify;
pub mod ecb;
pub mod imit;
pub mod packets;

pub(crate) mod engine;
pub(crate) mod key;
pub(crate) mod lanes;
pub(crate) mod packet_job;
pub(crate) mod sbox;
mod scalar;
pub(crate) mod schedulers;

pub use self::key::Key;
use self::sbox::Tables;
pub use self::sbox::{Sbox, SboxError};

/// Runs a scheduler for each S-box of the jobs, over the best engine of this
/// processor: by its entry among the x86-64 engines, else over the portable one.
macro_rules! by_engine {
    ($entry:ident, $run:path, $jobs:ident $(, $arg:expr)*) => {
        $crate::gost28147::each_sbox($jobs, |job| job.key, |jobs, sbox| {
            #[cfg(target_arch = "x86_64")]
            use $crate::x86_64::gost28147::{byte_planes, wide_words};
            use $crate::gost28147::scalar::{Scalar, apart};
            $crate::choose::choose! {
                token: HaveAvx512Vbmi => wide_words::$entry(token, sbox, jobs $(, $arg)*),
                token: HaveAvx2 => byte_planes::$entry(token, sbox, jobs $(, $arg)*),
                _ => apart(|| $run(Scalar, sbox, jobs $(, $arg)*)),
            }
        })
    };
}
use by_engine;

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

#[cfg(test)]
mod tests;
