//! The key.

use zeroize::{Zeroize, ZeroizeOnDrop};

/// A key of ChaCha20-Poly1305. Wiped on drop.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct ChaChaKey(pub(crate) [u8; 32]);

impl ChaChaKey {
    /// Takes a key of 32 bytes; `None` for any other length.
    pub fn new(key: &[u8]) -> Option<ChaChaKey> {
        key.try_into().ok().map(ChaChaKey)
    }
}
