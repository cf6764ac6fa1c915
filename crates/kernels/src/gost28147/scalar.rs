//! GOST 28147-89 for every machine, in constant time: the sixteen substitutes of a
//! nibble are a 64-bit word, and rotating that word by four times the nibble brings the
//! one that is wanted to its place. No memory is indexed by a secret, and a rotation
//! takes the same time whatever its count on every processor with a barrel shifter.
//!
//! The latency of a round is less than that of any vector form, so that all engines
//! use it for single blocks. On a Zen 5 a round takes 14.6 cycles; a byte permutation of
//! 64 entries takes 15.8, and the look-ups of 32 bits in memory that libgcrypt does, by
//! secret indices, 11.0. Ten dependent instructions are the floor; what keeps a round from
//! it are sixteen shifts and rotations, of which three start in a cycle. None of several
//! ways to need fewer (counts by bytes, nibbles apart in 64 bits, bit-field extraction) was
//! faster than 13.6, so a lone MAC, and CFB of a lone message, stay a fifth slower than
//! libgcrypt's.

use arrayvec::ArrayVec;
use inout::InOutBuf;

use super::engine::{Block, CHUNK, Engine, Rounds};
use super::key::Words;
use super::sbox::Tables;

/// Blocks side by side, so that processors find something to do meanwhile.
const LANES: usize = 2;
const REGISTERS: usize = 8;

/// Rounds in general registers.
#[derive(Clone, Copy)]
pub(crate) struct Scalar;

impl Engine for Scalar {
    const LANES: usize = LANES;
    const REGISTERS: usize = REGISTERS;
    /// By lane.
    type Keys = [Words; LANES];
    type Bank = ArrayVec<[Words; LANES], REGISTERS>;

    #[inline(always)]
    fn splat(self, key: &Words, keys: &mut Self::Keys) {
        *keys = [*key; LANES];
    }

    #[inline(always)]
    fn gather(self, lanes: &[&Words], keys: &mut Self::Keys) {
        for (key, lane) in keys.iter_mut().zip(lanes) {
            *key = **lane;
        }
    }

    fn crypt(self, sbox: &Tables, rounds: Rounds, blocks: &mut [Block], keys: &[Self::Keys]) {
        for (blocks, keys) in blocks.as_chunks_mut::<LANES>().0.iter_mut().zip(keys) {
            crypt(sbox, rounds, blocks, keys.each_ref());
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
        let lanes = states.iter_mut().zip(data).zip(blocks);
        for (((state, data), &blocks), key) in lanes.zip(keys.as_flattened()) {
            mac_one(sbox, key, state, &data.as_chunks().0[..blocks.into()]);
        }
    }

    #[inline(always)]
    fn xor(self, mut data: InOutBuf<'_, '_, u8>, stream: &[u8]) {
        let len = data.len();
        data.xor_in2out(&stream[..len]);
    }
}

/// One block, at the least latency.
// Not inlined where wide vectors are to be had: the compiler would use them.
#[inline(never)]
pub(crate) fn one(sbox: &Tables, rounds: Rounds, key: &Words, block: Block) -> Block {
    let mut block = [block];
    crypt(sbox, rounds, &mut block, [key]);
    block[0]
}

/// Goes on with the MAC of one message by whole blocks, at the least latency.
#[inline(never)]
pub(crate) fn mac_one(sbox: &Tables, key: &Words, state: &mut Block, data: &[Block]) {
    let mut next = [*state];
    for block in data {
        let sum = u64::from_le_bytes(next[0]) ^ u64::from_le_bytes(*block);
        next = [sum.to_le_bytes()];
        crypt(sbox, Rounds::Mac, &mut next, [key]);
    }
    *state = next[0];
}

/// Runs a scheduler in a frame of its own, so that those who have a better engine do not
/// pay for it.
#[cold]
pub(crate) fn apart(run: impl FnOnce()) {
    #[inline(never)]
    fn deeper(run: impl FnOnce()) {
        run();
    }
    deeper(run);
    #[cfg(target_arch = "x86_64")]
    crate::wipe::dead_stack::<{ 32 << 10 }>();
}

#[inline(always)]
fn crypt<const N: usize>(
    sbox: &Tables,
    rounds: Rounds,
    blocks: &mut [Block; N],
    keys: [&Words; N],
) {
    let halves = blocks.map(u64::from_le_bytes);
    let mut a = halves.map(|block| block as u32);
    let mut b = halves.map(|block| (block >> 32) as u32);
    let mut two_rounds = |i: usize, j: usize| {
        for lane in 0..N {
            let sum = a[lane].wrapping_add(keys[lane][i]);
            b[lane] ^= substitutes(&sbox.turned, sum);
        }
        for lane in 0..N {
            let sum = b[lane].wrapping_add(keys[lane][j]);
            a[lane] ^= substitutes(&sbox.turned, sum);
        }
    };
    for &forward in rounds.passes() {
        if forward {
            two_rounds(0, 1);
            two_rounds(2, 3);
            two_rounds(4, 5);
            two_rounds(6, 7);
        } else {
            two_rounds(7, 6);
            two_rounds(5, 4);
            two_rounds(3, 2);
            two_rounds(1, 0);
        }
    }
    if rounds.exchanged() {
        core::mem::swap(&mut a, &mut b);
    }
    for lane in 0..N {
        let block = u64::from(a[lane]) | u64::from(b[lane]) << 32;
        blocks[lane] = block.to_le_bytes();
    }
}

/// The substitutes of a sum, rotated by 11 bits.
#[inline(always)]
fn substitutes(turned: &[u64; 8], sum: u32) -> u32 {
    // Every other nibble is masked out, so that the last six bits of a count are those
    // of one nibble and two zeros. Bits above do not count.
    let (even, odd) = (sum & 0x0f0f_0f0f, sum & 0xf0f0_f0f0);
    let pick = |i: usize| {
        let nibbles = if i.is_multiple_of(2) { even } else { odd };
        let count = match i {
            0 => nibbles << 2,
            _ => nibbles >> (4 * i - 2),
        };
        turned[i].rotate_right(count) & 15 << ((4 * i + 11) % 32)
    };
    // That of nibble 5 goes across the end of the word.
    let across = pick(5);
    let across = across ^ across >> 32;
    let early = (across ^ pick(0)) ^ (pick(1) ^ pick(2));
    (early ^ ((pick(3) ^ pick(4)) ^ (pick(6) ^ pick(7)))) as u32
}
