//! Blocks each under a key of its own, in the order of bytes of Magma.

use core::iter::repeat_n;

use arrayvec::ArrayVec;

use super::packed::RegisterKeys;
use crate::gost28147::engine::{Block, Engine, MAX_BLOCKS, Rounds};
use crate::gost28147::key::Words;
use crate::gost28147::sbox::Tables;
use crate::wipe::wipe_slice;

#[inline(always)]
pub(crate) fn run<E: Engine>(
    engine: E,
    sbox: &Tables,
    bank: &mut RegisterKeys<E>,
    rounds: Rounds,
    keys: &[&Words],
    blocks: &mut [Block],
) {
    // Here and not above, where the engine's instructions are to be had.
    blocks.iter_mut().for_each(turn);
    for (keys, blocks) in keys.chunks(E::BLOCKS).zip(blocks.chunks_mut(E::BLOCKS)) {
        for (register, lanes) in keys.chunks(E::LANES).enumerate() {
            let one = lanes.iter().all(|key| core::ptr::eq(*key, lanes[0]));
            bank.set(engine, register, one, lanes.iter().copied());
        }
        let registers = keys.len().div_ceil(E::LANES);
        let keys = bank.first(registers);
        if blocks.len() == registers * E::LANES {
            engine.crypt(sbox, rounds, blocks, keys);
        } else {
            let mut padded: ArrayVec<Block, MAX_BLOCKS> = ArrayVec::new();
            padded.extend(blocks.iter().copied());
            padded.extend(repeat_n([0; 8], registers * E::LANES - blocks.len()));
            engine.crypt(sbox, rounds, &mut padded, keys);
            blocks.copy_from_slice(&padded[..blocks.len()]);
            wipe_slice(&mut padded);
        }
    }
    blocks.iter_mut().for_each(turn);
}

/// From the order of bytes of RFC 8891 to that of RFC 5830, or back.
#[inline(always)]
pub(crate) fn turn(block: &mut Block) {
    *block = u64::from_be_bytes(*block).to_le_bytes();
}
