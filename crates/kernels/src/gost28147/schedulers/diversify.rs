//! CryptoPro key diversification.

use arrayvec::ArrayVec;

use super::packed::RegisterKeys;
use crate::gost28147::engine::{Block, Engine, MAX_BLOCKS, Rounds};
use crate::gost28147::key::{Key, Words};
use crate::gost28147::sbox::Tables;
use crate::gost28147::scalar::one;
use crate::wipe::wipe_slice;

/// A key to be derived from another.
pub struct Diversify<'a> {
    /// The key to start from.
    pub key: &'a Key,
    /// The diversification data D.
    pub d: [u8; 8],
    /// Out: the derived key, in place of any other, with the same S-box.
    pub derived: &'a mut Key,
}

#[inline(always)]
pub(crate) fn run<E: Engine>(engine: E, sbox: &Tables, jobs: &mut [Diversify<'_>]) {
    let mut queue = jobs.iter_mut().filter(|job| job.key.has(sbox));
    loop {
        let mut lanes: ArrayVec<_, MAX_BLOCKS> = ArrayVec::new();
        lanes.extend(queue.by_ref().take(E::BLOCKS));
        if lanes.is_empty() {
            return;
        }
        let mut keys: ArrayVec<Words, MAX_BLOCKS> = ArrayVec::new();
        keys.extend(lanes.iter().map(|job| job.key.words));
        let mut blocks = [[0; 8]; MAX_BLOCKS];
        for i in 0..8 {
            for (block, job) in blocks.iter_mut().zip(&lanes) {
                let u = job.d[i];
                *block = [0, 0, 0, u, 0xff, 0xff, 0xff, 0xff ^ u];
            }
            cfb(
                engine,
                sbox,
                Rounds::First,
                &mut keys,
                &mut blocks,
                |_, text| text,
            );
        }
        for (block, job) in blocks.iter_mut().zip(&lanes) {
            *block = job.d;
        }
        cfb(
            engine,
            sbox,
            Rounds::Encrypt,
            &mut keys,
            &mut blocks,
            |lane, _| lanes[lane].d,
        );
        for (job, key) in lanes.iter_mut().zip(&keys) {
            job.derived.words = *key;
            job.derived.sbox.clone_from(&job.key.sbox);
        }
        wipe_slice(&mut keys);
        wipe_slice(&mut blocks);
    }
}

/// Replaces each key by a text of four blocks, encrypted under it with the IV in
/// `blocks`. `text` makes the blocks of the text of a lane from those of its key.
#[inline(always)]
fn cfb<E: Engine>(
    engine: E,
    sbox: &Tables,
    rounds: Rounds,
    keys: &mut [Words],
    blocks: &mut [Block; MAX_BLOCKS],
    text: impl Fn(usize, Block) -> Block,
) {
    let mut old = RegisterKeys::<E>::new();
    let mut alone = [keys[0]];
    let registers = match keys.len() {
        1 => 0,
        _ => old.set_each(engine, keys),
    };
    for i in [0, 2, 4, 6] {
        match registers {
            0 => blocks[0] = one(sbox, rounds, &alone[0], blocks[0]),
            _ => {
                let blocks = &mut blocks[..registers * E::LANES];
                engine.crypt(sbox, rounds, blocks, old.first(registers));
            }
        }
        for (lane, (key, block)) in keys.iter_mut().zip(&mut *blocks).enumerate() {
            let old = u64::from(key[i]) | u64::from(key[i + 1]) << 32;
            let text = u64::from_le_bytes(text(lane, old.to_le_bytes()));
            let cipher = u64::from_le_bytes(*block) ^ text;
            *block = cipher.to_le_bytes();
            [key[i], key[i + 1]] = [cipher as u32, (cipher >> 32) as u32];
        }
    }
    old.wipe();
    wipe_slice(&mut alone);
}
