//! Kuznyechik (GOST R 34.12-2015, RFC 7801), with ECB and CTR of GOST R 34.13-2015.
//!
//! Blocks of many jobs, each under its own key, stand side by side in the lanes of
//! byte planes: register `i` holds byte `i` of every block.

mod expand;
pub(crate) mod field;
pub(crate) mod key;
pub(crate) mod schedule;

use self::key::Block;
pub use self::key::KuznyechikKey;
use crate::choose::choose;
use crate::job::{CipherJob, Direction};
use crate::lane_modes::{self, LaneCipher};
use crate::portable;
use crate::wipe::and_stack;
#[cfg(target_arch = "x86_64")]
use crate::{wipe::dead_stack, x86_64};

impl LaneCipher<16> for KuznyechikKey {
    #[cfg(target_arch = "x86_64")]
    type KeyCache = crate::x86_64::kuznyechik::KeyPlanes;
    #[cfg(not(target_arch = "x86_64"))]
    type KeyCache = ();

    fn crypt(cache: &mut Self::KeyCache, dir: Direction, keys: &[&Self], blocks: &mut [Block]) {
        choose! {
            token: HaveGfni512 => {
                x86_64::kuznyechik::avx512::crypt(token, cache, dir, keys, blocks);
                dead_stack::<{ 6 << 10 }>();
            },
            token: HaveAvx2 => {
                x86_64::kuznyechik::avx2::crypt(token, cache, dir, keys, blocks);
                dead_stack::<{ 4 << 10 }>();
            },
            _ => {
                // Other processors than x86-64 have no use for it.
                let _ = cache;
                and_stack::<{ 8 << 10 }, _>(|| portable::kuznyechik::crypt(dir, keys, blocks));
            },
        }
    }
}

/// ECB over every job; lengths are multiples of 16 bytes, else it panics.
pub fn ecb(dir: Direction, jobs: &mut [CipherJob<'_, KuznyechikKey>]) {
    lane_modes::ecb(dir, jobs);
}

/// CTR (GOST R 34.13-2015 section 5.2) over every job, of any length. `iv` is the whole
/// counter block: an IV of 8 bytes on the left, over zeros. It is left at the first
/// counter not used, as [`crate::ctr`] does.
pub fn ctr(jobs: &mut [CipherJob<'_, KuznyechikKey>]) {
    lane_modes::ctr(jobs);
}

#[cfg(test)]
mod tests;
