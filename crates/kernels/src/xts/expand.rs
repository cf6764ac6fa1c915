//! The expansion of the keys.

use super::key::XtsKey;
use crate::aes::AesKey;
use crate::aes::key::{EncryptionKey, rounds};

impl XtsKey {
    /// Expands a key of 32, 48 or 64 bytes, the data key and then the tweak key;
    /// `None` for any other length. Equal halves, which FIPS 140 forbids, are the
    /// caller's to refuse.
    pub fn new(key: &[u8]) -> Option<XtsKey> {
        let mut new = XtsKey::none();
        new.rekey(key)?;
        Some(new)
    }

    /// No key yet: round keys of zeros. For those who have a place for a key before there is one.
    #[inline(always)]
    pub const fn none() -> XtsKey {
        XtsKey {
            data: AesKey::none(),
            tweak: EncryptionKey::none(),
        }
    }

    /// Takes another key in place of this one, as [`new`](Self::new); `None` for a length that no
    /// key has, and then the old one stays.
    pub fn rekey(&mut self, key: &[u8]) -> Option<()> {
        let rounds = match key.len().is_multiple_of(2) {
            true => rounds(key.len() / 2)?,
            false => return None,
        };
        let (data, tweak) = key.split_at(key.len() / 2);
        self.data.fill(rounds, data);
        // Tweaks are encrypted whichever way the data goes.
        self.tweak.reset(rounds);
        self.tweak.expand(tweak);
        Some(())
    }
}
