//! A key and the S-box that it is used with.

use zeroize::{Zeroize, ZeroizeOnDrop};

use super::sbox::{Sbox, Tables};

/// The eight subkeys.
pub(crate) type Words = [u32; 8];

/// A key of 256 bits, with the S-box it is used with. Wiped on drop.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct Key {
    pub(super) words: Words,
    #[zeroize(skip)]
    pub(super) sbox: Sbox,
}

impl Key {
    /// Takes a key of 32 bytes, little-endian subkeys first to last; `None` for any
    /// other length.
    pub fn new(key: &[u8], sbox: &Sbox) -> Option<Key> {
        let key: &[u8; 32] = key.try_into().ok()?;
        Some(Key {
            words: words(key),
            sbox: sbox.clone(),
        })
    }

    /// The bytes of the key, as [`new`](Self::new) takes them. A secret: wipe the copy.
    pub fn bytes(&self) -> [u8; 32] {
        core::array::from_fn(|i| self.words[i / 4].to_le_bytes()[i % 4])
    }

    /// The S-box.
    pub fn sbox(&self) -> &Sbox {
        &self.sbox
    }

    /// Whether the key is for this S-box.
    #[inline(always)]
    pub(super) fn has(&self, sbox: &Tables) -> bool {
        core::ptr::eq(self.tables(), sbox)
    }

    #[inline(always)]
    pub(super) fn tables(&self) -> &Tables {
        self.sbox.tables()
    }
}

/// The subkeys in 32 bytes.
#[inline(always)]
pub(super) fn words(key: &[u8; 32]) -> Words {
    core::array::from_fn(|i| {
        let [a, b, c, d] = [0, 1, 2, 3].map(|j| key[4 * i + j]);
        u32::from_le_bytes([a, b, c, d])
    })
}
