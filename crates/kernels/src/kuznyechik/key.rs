//! The expanded key, and its schedule.

use zeroize::{Zeroize, ZeroizeOnDrop};

use super::{Block, field};
use crate::choose::choose;
use crate::portable;
#[cfg(target_arch = "x86_64")]
use crate::x86_64;

/// The iteration keys K_1 to K_10.
pub(crate) type RoundKeys = [Block; 10];

/// An expanded key of Kuznyechik. Wiped on drop.
#[repr(align(64))]
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct KuznyechikKey {
    rounds: RoundKeys,
    /// In the bases that AVX2 computes in; without AVX2 not used.
    #[cfg(target_arch = "x86_64")]
    tower: RoundKeys,
    #[cfg(target_arch = "x86_64")]
    split: RoundKeys,
}

impl KuznyechikKey {
    /// Expands a key of 32 bytes; `None` for any other length.
    pub fn new(key: &[u8]) -> Option<KuznyechikKey> {
        let key = key.try_into().ok()?;
        let mut new = KuznyechikKey {
            rounds: [[0; 16]; 10],
            #[cfg(target_arch = "x86_64")]
            tower: [[0; 16]; 10],
            #[cfg(target_arch = "x86_64")]
            split: [[0; 16]; 10],
        };
        new.expand(key);
        Some(new)
    }

    fn expand(&mut self, key: &[u8; 32]) {
        choose! {
            token: HaveAvx2 => {
                let forms = [&mut self.rounds, &mut self.tower, &mut self.split];
                x86_64::kuznyechik::avx2::expand(token, key, forms);
            },
            _ => portable::kuznyechik::expand(key, &mut self.rounds),
        }
    }

    #[inline(always)]
    pub(crate) fn rounds(&self) -> &RoundKeys {
        &self.rounds
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(crate) fn tower(&self) -> &RoundKeys {
        &self.tower
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(crate) fn split(&self) -> &RoundKeys {
        &self.split
    }
}

/// The constants C_1 to C_32 of the key schedule.
const CONSTANTS: [Block; 32] = {
    let (mut constants, mut i) = ([[0; 16]; 32], 0);
    while i < 32 {
        constants[i][15] = i as u8 + 1;
        constants[i] = field::mix(&constants[i]);
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
