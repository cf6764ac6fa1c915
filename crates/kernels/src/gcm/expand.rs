//! The expansion of a key, by the best implementation here.

use super::by_key::by_key;
use super::key::{GcmKey, Implementation};
#[cfg(target_arch = "x86_64")]
use super::powers::{FIRST_BYTES, Table};
use crate::aes::key::{EncryptionKey, rounds};
use crate::choose::choose;
use crate::portable;

/// Bytes of a piece that needs the first powers of H alone.
#[cfg(target_arch = "x86_64")]
pub(super) const LITTLE: usize = FIRST_BYTES;
#[cfg(not(target_arch = "x86_64"))]
pub(super) const LITTLE: usize = 96;

impl GcmKey {
    /// Expands a key of 16, 24 or 32 bytes; `None` for any other length.
    pub fn new(key: &[u8]) -> Option<GcmKey> {
        GcmKey::on(Implementation::best(), key)
    }

    pub(super) fn on(implementation: Implementation, key: &[u8]) -> Option<GcmKey> {
        let mut new = GcmKey::none();
        new.rekey_on(implementation, key)?;
        Some(new)
    }

    /// No key yet: round keys of zeros. For those who have a place for a key before there is one.
    // A constant, which the compiler makes where it stays; any other value is made on the stack and moved.
    #[inline(always)]
    pub const fn none() -> GcmKey {
        GcmKey {
            aes: EncryptionKey::none(),
            #[cfg(target_arch = "x86_64")]
            table: Table::new(),
            hash_key: [0; 16],
            implementation: Implementation::Portable,
        }
    }

    /// Takes another key in place of this one, of 16, 24 or 32 bytes; `None` for any
    /// other length, and then the old one stays. It costs half of a new one, for which
    /// memory is cleared, moved and wiped: for those who change keys with every message.
    pub fn rekey(&mut self, key: &[u8]) -> Option<()> {
        self.rekey_on(Implementation::best(), key)
    }

    pub(super) fn rekey_on(&mut self, implementation: Implementation, key: &[u8]) -> Option<()> {
        self.rekey_for_little(implementation, key)?;
        self.complete();
        Some(())
    }

    /// The same, but the powers of H that pieces of more than [`LITTLE`] bytes need are those of the
    /// key before until it is [complete](Self::complete).
    fn rekey_for_little(&mut self, implementation: Implementation, key: &[u8]) -> Option<()> {
        // Counter mode has no use for decryption.
        self.aes.reset(rounds(key.len())?);
        self.aes.expand(key);
        self.implementation = implementation;
        self.hash_key = by_key!(
            implementation,
            first_powers(&self.aes, &mut self.table),
            _ => portable::gcm::hash_key(&self.aes)
        );
        Some(())
    }

    /// Computes the other powers of H.
    fn complete(&mut self) {
        #[cfg(target_arch = "x86_64")]
        match self.implementation {
            Implementation::Portable => {}
            by => by_key!(by, further_powers(&mut self.table), _ => ()),
        }
    }
}

/// A key whose powers of H are computed when a message needs them: for those who may have one short
/// message for it. Wiped on drop.
#[derive(Clone)]
pub struct LazyGcmKey {
    key: GcmKey,
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
        self.key.rekey_for_little(implementation, key)?;
        self.is_complete = false;
        Some(())
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

impl Implementation {
    /// The fastest one here.
    #[inline]
    fn best() -> Implementation {
        choose! {
            token: HaveVaes512 => Implementation::Vaes512(token),
            token: HaveVaes => Implementation::Vaes(token),
            token: HaveAesNi => Implementation::AesNi(token),
            _ => Implementation::Portable,
        }
    }
}
