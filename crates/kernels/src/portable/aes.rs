//! AES on whole blocks, over the `aes` crate: constant time by bit slicing, or by
//! the instructions that it finds itself.

use aes::cipher::{BlockCipherDecrypt, BlockCipherEncrypt};
use inout::InOutBuf;

use crate::aes::key::Block;
use crate::aes::schedule::Schedule;
use crate::job::Direction;

/// Blocks that a mode hands to the cipher at a time; enough to fill it.
pub(crate) const BATCH: usize = 16;

impl Schedule {
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
