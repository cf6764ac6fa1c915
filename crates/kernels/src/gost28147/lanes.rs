//! Blocks each under a key of its own, for the modes of Magma, which is this cipher with
//! the S-box `param_z` and all bytes the other way round.

use super::engine::{Engine, MOST, Rounds};
use super::packed::RegisterKeys;
use super::{Block, Tables, Words, wipe};

/// Runs every block in place through the rounds, under the key of the same place.
pub(crate) fn crypt(sbox: &Tables, rounds: Rounds, keys: &[&Words], blocks: &mut [Block]) {
    #[cfg(target_arch = "x86_64")]
    {
        use crate::cpu;
        use crate::x86_64::gost28147::{byte_planes, wide_words};
        if let Some(token) = cpu::HaveAvx512Vbmi::new() {
            return wide_words::lanes(token, sbox, rounds, keys, blocks);
        }
        if let Some(token) = cpu::HaveAvx2::new() {
            return byte_planes::lanes(token, sbox, rounds, keys, blocks);
        }
    }
    run(
        crate::portable::gost28147::Scalar,
        sbox,
        rounds,
        keys,
        blocks,
    );
}

#[inline(always)]
pub(crate) fn run<E: Engine>(
    engine: E,
    sbox: &Tables,
    rounds: Rounds,
    keys: &[&Words],
    blocks: &mut [Block],
) {
    if let ([key], [block]) = (keys, &mut *blocks) {
        *block = engine.one(sbox, rounds, key, *block);
        return;
    }
    let mut bank = RegisterKeys::<E>::new();
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
            let mut padded = [[0; 8]; MOST];
            padded[..blocks.len()].copy_from_slice(blocks);
            let whole = &mut padded[..registers * E::LANES];
            engine.crypt(sbox, rounds, whole, keys);
            blocks.copy_from_slice(&whole[..blocks.len()]);
            wipe(&mut padded);
        }
    }
    bank.wipe();
}
