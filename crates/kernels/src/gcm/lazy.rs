//! Keys for those who may have one short message for each.

use super::key::{GcmKey, Implementation};
use crate::aes::key::rounds;

/// Bytes of the longest piece of a message for which the first powers of H do: for all of its blocks,
/// one before and one behind them.
pub(super) const LITTLE: usize = 96;
#[cfg(target_arch = "x86_64")]
const _: () = assert!(LITTLE / 16 + 2 <= super::powers::FIRST_POWERS);

/// A key whose powers of H are computed when a message needs them: for those who may have one short
/// message for it. Wiped on drop.
#[derive(Clone)]
pub struct LazyGcmKey {
    pub(super) key: GcmKey,
    is_complete: bool,
}

impl LazyGcmKey {
    /// As [`GcmKey::none`].
    #[inline(always)]
    pub const fn none() -> LazyGcmKey {
        LazyGcmKey {
            key: GcmKey::none(),
            is_complete: false,
        }
    }

    /// As [`GcmKey::rekey`].
    pub fn rekey(&mut self, key: &[u8]) -> Option<()> {
        self.rekey_on(Implementation::best(), key)
    }

    pub(super) fn rekey_on(&mut self, implementation: Implementation, key: &[u8]) -> Option<()> {
        rounds(key.len())?;
        // They would stay for as long as the messages of this key are short.
        if core::mem::take(&mut self.is_complete) {
            self.key.wipe_powers();
        }
        self.key.rekey_for_little(implementation, key)
    }

    /// The key for whatever is to be done.
    #[inline]
    pub fn complete(&mut self) -> &GcmKey {
        if !self.is_complete {
            self.key.complete();
            self.is_complete = true;
        }
        &self.key
    }

    /// The key for a [`GcmState`](super::GcmState) alone: to begin or to end a message whose IV has at
    /// most `bytes` bytes, or for a piece that has at most as many.
    #[inline(always)]
    pub fn for_piece(&mut self, bytes: usize) -> &GcmKey {
        match bytes {
            ..=LITTLE => &self.key,
            _ => self.complete(),
        }
    }
}
