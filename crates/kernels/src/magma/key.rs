//! The key.

use zeroize::{Zeroize, ZeroizeOnDrop};

/// A key of Magma. Wiped on drop.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct MagmaKey {
    pub(super) words: [u32; 8],
}

impl MagmaKey {
    /// Takes a key of 32 bytes; `None` for any other length.
    pub fn new(key: &[u8]) -> Option<MagmaKey> {
        let key: &[u8; 32] = key.try_into().ok()?;
        let mut new = MagmaKey { words: [0; 8] };
        for (word, bytes) in new.words.iter_mut().zip(key.as_chunks().0) {
            *word = u32::from_be_bytes(*bytes);
        }
        Some(new)
    }
}
