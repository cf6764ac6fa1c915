//! GOST 28147-89 for every machine, in constant time: a word stands as eight bytes of
//! a nibble each, and all eight substitutions are chosen together out of sixteen
//! columns, by masks made of the bits of the nibbles. Four blocks side by side give
//! the compiler vectors to use.

use crate::gost28147::engine::{CHUNK, Engine, Rounds};
use crate::gost28147::{Block, Tables, Words, wipe};

const LANES: usize = 4;

/// Rounds of four blocks.
#[derive(Clone, Copy)]
pub(crate) struct Scalar;

impl Engine for Scalar {
    const LANES: usize = LANES;
    const REGISTERS: usize = 4;
    /// By subkey, then lane.
    type Keys = [[u32; LANES]; 8];

    #[inline(always)]
    fn within<R>(self, run: impl FnOnce() -> R) -> R {
        run()
    }

    #[inline(always)]
    fn splat(self, key: &Words, keys: &mut Self::Keys) {
        *keys = key.map(|word| [word; LANES]);
    }

    #[inline(always)]
    fn gather(self, lanes: &[&Words], keys: &mut Self::Keys) {
        for (i, row) in keys.iter_mut().enumerate() {
            for (word, lane) in row.iter_mut().zip(lanes) {
                *word = lane[i];
            }
        }
    }

    fn crypt(self, sbox: &Tables, rounds: Rounds, blocks: &mut [Block], keys: &[Self::Keys]) {
        for (blocks, keys) in blocks.as_chunks_mut::<LANES>().0.iter_mut().zip(keys) {
            crypt(&sbox.columns, rounds, blocks, keys);
        }
    }

    fn mac(
        self,
        sbox: &Tables,
        states: &mut [Block],
        data: &[&[u8; CHUNK]],
        blocks: &[u8],
        keys: &[Self::Keys],
    ) {
        let (states, _) = states.as_chunks_mut::<LANES>();
        for (i, (states, keys)) in states.iter_mut().zip(keys).enumerate() {
            for step in 0..CHUNK / 8 {
                let before = *states;
                for (state, data) in states.iter_mut().zip(&data[LANES * i..]) {
                    *state = sum(*state, &data.as_chunks().0[step]);
                }
                crypt(&sbox.columns, Rounds::Mac, states, keys);
                for lane in 0..LANES {
                    if usize::from(blocks[LANES * i + lane]) <= step {
                        states[lane] = before[lane];
                    }
                }
            }
        }
    }

    fn one(self, sbox: &Tables, rounds: Rounds, key: &Words, block: Block) -> Block {
        let mut block = [block];
        crypt(&sbox.columns, rounds, &mut block, &key.map(|word| [word]));
        block[0]
    }

    fn mac_one(self, sbox: &Tables, key: &Words, state: &mut Block, data: &[Block]) {
        let mut keys = key.map(|word| [word]);
        for block in data {
            let mut next = [sum(*state, block)];
            crypt(&sbox.columns, Rounds::Mac, &mut next, &keys);
            *state = next[0];
        }
        wipe(&mut keys);
    }
}

fn sum(state: Block, block: &Block) -> Block {
    (u64::from_le_bytes(state) ^ u64::from_le_bytes(*block)).to_le_bytes()
}

#[inline(always)]
fn crypt<const N: usize>(
    columns: &[u64; 16],
    rounds: Rounds,
    blocks: &mut [Block; N],
    keys: &[[u32; N]; 8],
) {
    let halves = blocks.map(u64::from_le_bytes);
    let mut changed = halves.map(|block| block as u32);
    let mut other = halves.map(|block| (block >> 32) as u32);
    for &forward in rounds.passes() {
        for i in 0..8 {
            let key = &keys[if forward { i } else { 7 - i }];
            for lane in 0..N {
                let sum = changed[lane].wrapping_add(key[lane]);
                other[lane] ^= substitute(columns, sum).rotate_left(11);
            }
            core::mem::swap(&mut changed, &mut other);
        }
    }
    if rounds.exchanged() {
        core::mem::swap(&mut changed, &mut other);
    }
    for lane in 0..N {
        let block = u64::from(changed[lane]) | u64::from(other[lane]) << 32;
        blocks[lane] = block.to_le_bytes();
    }
}

#[inline(always)]
fn substitute(columns: &[u64; 16], word: u32) -> u32 {
    const LOW: u64 = 0x0101_0101_0101_0101;
    let spread = u64::from(word & 0x0f0f_0f0f) | u64::from(word >> 4 & 0x0f0f_0f0f) << 32;
    // Bytes of ones where bit `i` is set.
    let mask = |i: u32| {
        let bits = spread >> i & LOW;
        (bits << 8).wrapping_sub(bits)
    };
    let choose = |mask: u64, zero: u64, one: u64| zero ^ (mask & (zero ^ one));
    let first = mask(0);
    let mut chosen: [u64; 8] =
        core::array::from_fn(|i| choose(first, columns[2 * i], columns[2 * i + 1]));
    for (bit, left) in [(1, 4), (2, 2), (3, 1)] {
        let mask = mask(bit);
        for i in 0..left {
            chosen[i] = choose(mask, chosen[2 * i], chosen[2 * i + 1]);
        }
    }
    (chosen[0] | chosen[0] >> 32) as u32
}
