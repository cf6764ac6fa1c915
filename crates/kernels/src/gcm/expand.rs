//! The expansion of a key, by the best implementation here.

use super::by_key::by_key;
use super::key::{GcmKey, Implementation};
#[cfg(target_arch = "x86_64")]
use super::powers::Table;
use crate::aes::key::{EncryptionKey, rounds};
use crate::choose::choose;
use crate::portable;

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

    /// The same, but the powers of H behind the first are left as they are until the key is
    /// [complete](Self::complete).
    pub(super) fn rekey_for_little(
        &mut self,
        implementation: Implementation,
        key: &[u8],
    ) -> Option<()> {
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
    pub(super) fn complete(&mut self) {
        #[cfg(target_arch = "x86_64")]
        match self.implementation {
            Implementation::Portable => {}
            by => by_key!(by, further_powers(&mut self.table), _ => ()),
        }
    }
}

impl Implementation {
    /// The fastest one here.
    #[inline]
    pub(super) fn best() -> Implementation {
        choose! {
            token: HaveVaes512 => Implementation::Vaes512(token),
            token: HaveVaes => Implementation::Vaes(token),
            token: HaveClmul => Implementation::AesNi(token),
            token: HaveAesNi => Implementation::Bare(token),
            _ => Implementation::Portable,
        }
    }
}
