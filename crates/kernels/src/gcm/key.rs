//! The expanded key, and the implementation that it was expanded for.

use crate::aes::key::{Block, EncryptionKey};
use crate::wipe::wipe;

#[cfg(target_arch = "x86_64")]
use super::powers::Table;
#[cfg(target_arch = "x86_64")]
use crate::cpu::{HaveAesNi, HaveClmul, HaveVaes, HaveVaes512};

/// An expanded key of AES-GCM: the round keys of AES and the powers of H. Wiped on drop.
#[derive(Clone)]
#[repr(C, align(64))]
pub struct GcmKey {
    pub(crate) aes: EncryptionKey,
    #[cfg(target_arch = "x86_64")]
    pub(crate) table: Table,
    pub(super) hash_key: Block,
    pub(super) implementation: Implementation,
}

impl GcmKey {
    /// By which it was expanded, and by which alone it can be used.
    #[inline(always)]
    pub(super) fn implementation(&self) -> Implementation {
        self.implementation
    }

    /// Overwrites the powers of H.
    #[inline(always)]
    pub(super) fn wipe_powers(&mut self) {
        #[cfg(target_arch = "x86_64")]
        wipe(&mut self.table, Table::new());
    }

    /// H, the encrypted block of zeros.
    pub(crate) fn hash_key(&self) -> &Block {
        &self.hash_key
    }
}

impl Drop for GcmKey {
    fn drop(&mut self) {
        // EncryptionKey wipes itself.
        self.wipe_powers();
        wipe(&mut self.hash_key, [0; 16]);
    }
}

/// The implementations, the instructions of each proved by its token.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Implementation {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Bare(HaveAesNi),
    #[cfg(target_arch = "x86_64")]
    AesNi(HaveClmul),
    #[cfg(target_arch = "x86_64")]
    Vaes(HaveVaes),
    #[cfg(target_arch = "x86_64")]
    Vaes512(HaveVaes512),
}
