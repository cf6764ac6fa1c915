//! AES on whole blocks, over the `aes` crate: constant time by bit slicing, or by
//! the instructions that it finds itself.

use aes::cipher::{BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};
use aes::{Aes128, Aes192, Aes256};
use inout::InOutBuf;

use crate::aes::Block;
use crate::job::Direction;

/// Blocks that a mode hands to the cipher at a time; enough to fill it.
pub(crate) const BATCH: usize = 16;

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

    /// Every block of `blocks` through the cipher, in place.
    pub(crate) fn crypt(&self, dir: Direction, blocks: &mut [Block]) {
        self.crypt_in_out(dir, aes::Block::cast_slice_from_core_mut(blocks).into());
    }

    /// Every block of `blocks` through the cipher.
    pub(crate) fn crypt_in_out(&self, dir: Direction, blocks: InOutBuf<'_, '_, aes::Block>) {
        match (self, dir) {
            (Schedule::Aes128(key), Direction::Encrypt) => key.encrypt_blocks_inout(blocks),
            (Schedule::Aes128(key), Direction::Decrypt) => key.decrypt_blocks_inout(blocks),
            (Schedule::Aes192(key), Direction::Encrypt) => key.encrypt_blocks_inout(blocks),
            (Schedule::Aes192(key), Direction::Decrypt) => key.decrypt_blocks_inout(blocks),
            (Schedule::Aes256(key), Direction::Encrypt) => key.encrypt_blocks_inout(blocks),
            (Schedule::Aes256(key), Direction::Decrypt) => key.decrypt_blocks_inout(blocks),
        }
    }
}
