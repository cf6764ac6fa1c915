//! Blocks each under a key of its own, for the modes of Magma, which is this cipher with
//! the S-box `param_z` and all bytes the other way round.

use core::iter::repeat_n;

use arrayvec::ArrayVec;

use super::engine::{Engine, MAX_BLOCKS, Rounds};
use super::packed::RegisterKeys;
use super::{Block, Tables, Words, wipe};
use crate::choose::choose;
use crate::portable::gost28147::{Scalar, apart, one};
#[cfg(target_arch = "x86_64")]
use crate::x86_64::gost28147::{Planes, WideWords, byte_planes, wide_words};

/// The keys of an engine's registers, kept from one call to the next, as long as the keys
/// that they are of live where they do. When dropped they are wiped, and so is the stack
/// below.
// A field for each engine: one value of several would be copied to its place when made. Only
// those keys are initialised that were set.
pub(crate) struct RegisterKeyCache {
    scalar: RegisterKeys<Scalar>,
    #[cfg(target_arch = "x86_64")]
    planes: RegisterKeys<Planes>,
    #[cfg(target_arch = "x86_64")]
    words: RegisterKeys<WideWords>,
    used: bool,
}

impl Default for RegisterKeyCache {
    #[inline(always)]
    fn default() -> Self {
        RegisterKeyCache {
            scalar: RegisterKeys::new(),
            #[cfg(target_arch = "x86_64")]
            planes: RegisterKeys::new(),
            #[cfg(target_arch = "x86_64")]
            words: RegisterKeys::new(),
            used: false,
        }
    }
}

impl Drop for RegisterKeyCache {
    fn drop(&mut self) {
        if !self.used {
            return;
        }
        self.scalar.wipe();
        #[cfg(target_arch = "x86_64")]
        {
            self.planes.wipe();
            self.words.wipe();
            crate::wipe::dead_stack::<{ 12 << 10 }>();
        }
    }
}

/// Runs every block of Magma in place through the rounds, under the key of the same place.
pub(crate) fn crypt(
    cache: &mut RegisterKeyCache,
    sbox: &Tables,
    rounds: Rounds,
    keys: &[&Words],
    blocks: &mut [Block],
) {
    cache.used = true;
    if let ([key], [block]) = (keys, &mut *blocks) {
        turn(block);
        *block = one(sbox, rounds, key, *block);
        turn(block);
        return;
    }
    choose! {
        token: HaveAvx512Vbmi =>
            wide_words::lanes(token, sbox, &mut cache.words, rounds, keys, blocks),
        token: HaveAvx2 => byte_planes::lanes(token, sbox, &mut cache.planes, rounds, keys, blocks),
        _ => apart(|| run(Scalar, sbox, &mut cache.scalar, rounds, keys, blocks)),
    }
}

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
            wipe(&mut padded);
        }
    }
    blocks.iter_mut().for_each(turn);
}

/// From the order of bytes of RFC 8891 to that of RFC 5830, or back.
#[inline(always)]
fn turn(block: &mut Block) {
    *block = u64::from_be_bytes(*block).to_le_bytes();
}
