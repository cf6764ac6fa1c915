//! The expansion of the keys.

use super::key::XtsKey;
use crate::aes::AesKey;

impl XtsKey {
    /// Expands a key of 32, 48 or 64 bytes, the data key and then the tweak key;
    /// `None` for any other length. Equal halves, which FIPS 140 forbids, are the
    /// caller's to refuse.
    pub fn new(key: &[u8]) -> Option<XtsKey> {
        let (data, tweak) = key.split_at(key.len() / 2);
        if data.len() != tweak.len() {
            return None;
        }
        let mut new = XtsKey {
            data: AesKey::new(data)?,
            tweak: AesKey::unset(tweak.len())?,
        };
        // Tweaks are encrypted whichever way the data goes.
        new.tweak.expand(tweak);
        Some(new)
    }
}
