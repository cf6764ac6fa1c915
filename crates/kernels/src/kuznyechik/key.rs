//! The expanded key.

use zeroize::{Zeroize, ZeroizeOnDrop};

pub(crate) type Block = [u8; 16];

/// The iteration keys K_1 to K_10.
pub(crate) type RoundKeys = [Block; 10];

/// An expanded key of Kuznyechik. Wiped on drop.
#[repr(align(64))]
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct KuznyechikKey {
    pub(super) rounds: RoundKeys,
    /// In the bases that AVX2 computes in; without AVX2 not used.
    #[cfg(target_arch = "x86_64")]
    pub(super) tower: RoundKeys,
    #[cfg(target_arch = "x86_64")]
    pub(super) split: RoundKeys,
}

impl KuznyechikKey {
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
