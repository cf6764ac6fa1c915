//! What the modes do, each written once over any engine and compiled for each engine's
//! instructions: which blocks of which jobs go through the rounds together.

use super::key::Key;
use super::sbox::Tables;
use crate::job::CipherJob;

pub(crate) mod cfb;
pub(crate) mod cnt;
pub(crate) mod diversify;
pub(crate) mod ecb;
pub(crate) mod imit;
pub(crate) mod lanes;
mod mesh;
pub(crate) mod packed;
pub(crate) mod packets;

/// Whether there is something to do with this S-box.
#[inline(always)]
fn serves(job: &CipherJob<'_, Key>, sbox: &Tables) -> bool {
    job.key.has(sbox) && !job.data.is_empty()
}
