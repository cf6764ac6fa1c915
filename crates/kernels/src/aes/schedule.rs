//! A key in the form of the `aes` crate, which the portable implementation wants.

use aes::cipher::KeyInit;
use aes::{Aes128, Aes192, Aes256};

/// A key in the form of the `aes` crate, which wipes it on drop.
pub(crate) enum Schedule {
    Aes128(Aes128),
    Aes192(Aes192),
    Aes256(Aes256),
}

impl Schedule {
    /// Of a key of 16, 24 or 32 bytes.
    pub(crate) fn new(key: &[u8]) -> Schedule {
        const LENGTH: &str = "an AES key has 16, 24 or 32 bytes";
        match key.len() {
            16 => Schedule::Aes128(Aes128::new_from_slice(key).expect(LENGTH)),
            24 => Schedule::Aes192(Aes192::new_from_slice(key).expect(LENGTH)),
            _ => Schedule::Aes256(Aes256::new_from_slice(key).expect(LENGTH)),
        }
    }
}
