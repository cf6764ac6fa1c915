//! CryptoPro key meshing (RFC 4357 section 2.3.2).

use super::packed::crypt_each;
use crate::gost28147::engine::{Block, Engine, MAX_BLOCKS, Rounds};
use crate::gost28147::key::{Words, words};
use crate::gost28147::sbox::Tables;
use crate::wipe::wipe_slice;

/// A key serves for this many bytes.
pub(super) const SPAN: usize = 1024;

/// The constant C that the next key is decrypted from.
const C: [Block; 4] = [
    0x6900722264c90423_u64.to_be_bytes(),
    0x8d3adb9646e92ac4_u64.to_be_bytes(),
    0x18feac9400ed0712_u64.to_be_bytes(),
    0xc086dcc2ef4ca92b_u64.to_be_bytes(),
];

/// Replaces every key by the one that follows it.
// In a frame of its own: the frames of its callers are large.
#[inline(never)]
pub(super) fn next_keys<E: Engine>(engine: E, sbox: &Tables, keys: &mut [Words]) {
    let mut blocks = [[0; 8]; MAX_BLOCKS];
    for keys in keys.chunks_mut(MAX_BLOCKS / 4) {
        let blocks = &mut blocks[..4 * keys.len()];
        for block in blocks.chunks_mut(4) {
            block.copy_from_slice(&C);
        }
        let each = keys.iter().flat_map(|key| [key; 4]);
        crypt_each(engine, sbox, Rounds::Decrypt, blocks, each);
        for (key, blocks) in keys.iter_mut().zip(blocks.as_flattened().as_chunks().0) {
            *key = words(blocks);
        }
    }
    wipe_slice(&mut blocks);
}
