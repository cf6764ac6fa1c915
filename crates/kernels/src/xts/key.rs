//! The expanded keys.

use crate::aes::key::{AesKey, EncryptionKey};

/// The two expanded keys of XTS-AES.
#[derive(Clone)]
pub struct XtsKey {
    pub(super) data: AesKey,
    pub(super) tweak: EncryptionKey,
}

impl XtsKey {
    #[inline(always)]
    pub(crate) fn data(&self) -> &AesKey {
        &self.data
    }

    #[inline(always)]
    pub(crate) fn tweak(&self) -> &EncryptionKey {
        &self.tweak
    }
}
