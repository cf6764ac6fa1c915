//! The expanded keys.

use crate::aes::key::AesKey;

/// The two expanded keys of XTS-AES.
#[derive(Clone)]
pub struct XtsKey {
    pub(super) data: AesKey,
    pub(super) tweak: AesKey,
}

impl XtsKey {
    #[inline(always)]
    pub(crate) fn data(&self) -> &AesKey {
        &self.data
    }

    #[inline(always)]
    pub(crate) fn tweak(&self) -> &AesKey {
        &self.tweak
    }
}
