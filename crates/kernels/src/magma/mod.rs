//! Magma (GOST R 34.12-2015, RFC 8891), with ECB and CTR of GOST R 34.13-2015. It is
//! [GOST 28147-89](crate::gost28147) with one S-box and all bytes the other way round,
//! and runs in the same lanes.

pub(crate) mod key;

use arrayvec::ArrayVec;

pub use self::key::MagmaKey;
use crate::gost28147::engine::Rounds;
use crate::gost28147::lanes;
use crate::gost28147::sbox::Sbox;
use crate::job::{CipherJob, Direction};
use crate::lane_modes::{self, LANES, LaneCipher};

pub(crate) type Block = [u8; 8];

impl LaneCipher<8> for MagmaKey {
    type KeyCache = lanes::RegisterKeyCache;

    fn crypt(
        cache: &mut lanes::RegisterKeyCache,
        dir: Direction,
        keys: &[&Self],
        blocks: &mut [Block],
    ) {
        let rounds = match dir {
            Direction::Encrypt => Rounds::Encrypt,
            Direction::Decrypt => Rounds::Decrypt,
        };
        let sbox = Sbox::param_z();
        for (keys, blocks) in keys.chunks(LANES).zip(blocks.chunks_mut(LANES)) {
            let mut words: ArrayVec<_, LANES> = ArrayVec::new();
            words.extend(keys.iter().map(|key| &key.words));
            lanes::crypt(cache, sbox.tables(), rounds, &words, blocks);
        }
    }
}

/// ECB over every job; lengths are multiples of 8 bytes, else it panics.
pub fn ecb(dir: Direction, jobs: &mut [CipherJob<'_, MagmaKey>]) {
    lane_modes::ecb(dir, jobs);
}

/// CTR (GOST R 34.13-2015 section 5.2) over every job, of any length. The first 8 bytes
/// of `iv` are the whole counter block: an IV of 4 bytes on the left, over zeros. They
/// are left at the first counter not used.
pub fn ctr(jobs: &mut [CipherJob<'_, MagmaKey>]) {
    lane_modes::ctr(jobs);
}

#[cfg(test)]
mod tests;
