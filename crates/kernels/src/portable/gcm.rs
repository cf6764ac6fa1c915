//! AES-GCM over the crates `aes` and `ghash`: constant time on every machine.

use ghash::GHash;
use ghash::universal_hash::UniversalHash;
use inout::InOutBuf;

use crate::aes::key::{Block, EncryptionKey};
use crate::gcm::counter::counter_from;
use crate::gcm::key::GcmKey;
use crate::gcm::two_passes::TwoPasses;
use crate::job::Direction;

/// Blocks of keystream made at once: enough for the widest bit slicing.
const STREAM: usize = 16;

/// E(0), the key of GHASH.
pub(crate) fn hash_key(aes: &EncryptionKey) -> Block {
    Crates.encrypt(aes, &[0; 16])
}

/// The product of two blocks in the field of GHASH.
pub(crate) fn multiply(a: &Block, b: &Block) -> Block {
    let mut hash = GHash::new(&(*a).into());
    hash.update(&[(*b).into()]);
    hash.finalize().into()
}

/// Both crates.
#[derive(Clone, Copy)]
pub(crate) struct Crates;

impl TwoPasses for Crates {
    fn encrypt(self, key: &EncryptionKey, block: &Block) -> Block {
        let mut block = *block;
        key.portable()
            .crypt(Direction::Encrypt, std::slice::from_mut(&mut block));
        block
    }

    fn apply(self, key: &EncryptionKey, counter: &Block, mut data: InOutBuf<'_, '_, u8>) {
        let mut done = 0u32;
        while !data.is_empty() {
            let len = data.len().min(16 * STREAM);
            let (mut head, tail) = data.split_at(len);
            let mut stream: [Block; STREAM] =
                core::array::from_fn(|i| counter_from(counter, done.wrapping_add(i as u32)));
            let blocks = &mut stream[..len.div_ceil(16)];
            key.portable().crypt(Direction::Encrypt, blocks);
            head.xor_in2out(&blocks.as_flattened()[..len]);
            done = done.wrapping_add(STREAM as u32);
            data = tail;
        }
    }

    fn hash(self, key: &GcmKey, y: &mut Block, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let (first, rest) = bytes.split_at(16.min(bytes.len()));
        // The crate has no way to set its state, but it adds a block to it first.
        for (sum, byte) in y.iter_mut().zip(first) {
            *sum ^= byte;
        }
        let mut hash = GHash::new(&(*key.hash_key()).into());
        hash.update(&[(*y).into()]);
        hash.update_padded(rest);
        *y = hash.finalize().into();
    }
}
