//! Kuznyechik (GOST R 34.12-2015, RFC 7801), with ECB and CTR of GOST R 34.13-2015.
//!
//! Blocks of many jobs, each under its own key, stand side by side in the lanes of
//! byte planes: register `i` holds byte `i` of every block.

pub(crate) mod field;

use zeroize::Zeroize;

use crate::job::{CipherJob, Direction};
use crate::lane_modes::{self, LaneCipher};
use crate::portable;

pub(crate) type Block = [u8; 16];

/// The iteration keys K_1 to K_10.
pub(crate) type RoundKeys = [Block; 10];

/// An expanded key of Kuznyechik. Wiped on drop.
#[repr(align(64))]
pub struct KuznyechikKey {
    rounds: RoundKeys,
}

impl KuznyechikKey {
    /// Expands a key of 32 bytes; `None` for any other length.
    pub fn new(key: &[u8]) -> Option<KuznyechikKey> {
        let mut new = KuznyechikKey {
            rounds: [[0; 16]; 10],
        };
        expand(key.try_into().ok()?, &mut new.rounds);
        Some(new)
    }

    #[inline(always)]
    pub(crate) fn rounds(&self) -> &RoundKeys {
        &self.rounds
    }
}

impl Drop for KuznyechikKey {
    fn drop(&mut self) {
        self.rounds.zeroize();
    }
}

fn expand(key: &[u8; 32], rounds: &mut RoundKeys) {
    portable::kuznyechik::expand(key, rounds);
}

/// The constants C_1 to C_32 of the key schedule.
const CONSTANTS: [Block; 32] = {
    let (mut constants, mut i) = ([[0; 16]; 32], 0);
    while i < 32 {
        constants[i][15] = i as u8 + 1;
        let mut step = 0;
        while step < 16 {
            constants[i] = field::step(&constants[i]);
            step += 1;
        }
        i += 1;
    }
    constants
};

/// The key schedule (RFC 7801 section 4.4) over any way to do L and S to a block.
#[inline(always)]
pub(crate) fn schedule(
    key: &[u8; 32],
    rounds: &mut RoundKeys,
    mut substitute_and_mix: impl FnMut(&mut Block),
) {
    let xor = |x: &mut Block, y: &Block| x.iter_mut().zip(y).for_each(|(x, y)| *x ^= y);
    let (mut a1, mut a0, mut next) = ([0; 16], [0; 16], [0; 16]);
    a1.copy_from_slice(&key[..16]);
    a0.copy_from_slice(&key[16..]);
    (rounds[0], rounds[1]) = (a1, a0);
    for (i, constant) in CONSTANTS.iter().enumerate() {
        next = a1;
        xor(&mut next, constant);
        substitute_and_mix(&mut next);
        xor(&mut next, &a0);
        (a1, a0) = (next, a1);
        if i % 8 == 7 {
            (rounds[i / 4 + 1], rounds[i / 4 + 2]) = (a1, a0);
        }
    }
    for secret in [&mut a1, &mut a0, &mut next] {
        secret.zeroize();
    }
}

impl LaneCipher<16> for KuznyechikKey {
    fn crypt(dir: Direction, keys: &[&Self], blocks: &mut [Block]) {
        portable::kuznyechik::crypt(dir, keys, blocks);
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
