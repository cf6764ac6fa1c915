//! Chunks of eight vectors, of which one goes through the rounds of AES while another is hashed, so
//! that the ports for AES and for carry-less multiplication work together.
//!
//! What limits a chunk on a Zen 5 is how many instructions begin per cycle, up to eight: beside
//! the others a carry-less product keeps them from that for about a cycle and a half. With AVX-512
//! a chunk has 26 of these and some 200 others, which is 64 of the 70 cycles that it takes. On a
//! processor of Intel two operations on 512 bits begin per cycle, AES on one port alone, so there whole
//! products are taken, which are more carry-less ones and fewer operations in all, and lanes are added
//! up once per message: a chunk has 163 operations rather than 182.

use super::hash::Hash;
use super::lane::Lane;
use super::rounds::*;
use crate::gcm::key::GcmKey;
use crate::x86_64::ghash::{Powers, Product};

/// Chunks that are reduced together where the message has as many: the table has
/// powers for.
#[inline(always)]
pub(super) const fn together<V: Lane>() -> usize {
    if V::BLOCKS < 4 { 2 } else { 1 }
}

/// For [`chunk`]: its lanes are not added up.
pub(super) const APART: usize = 3;

/// The first nine rounds.
#[inline(always)]
pub(super) unsafe fn rounds<V: Lane, const M: usize>(state: &mut [V; M], keys: &mut RoundKeys<'_>) {
    for i in 1..10 {
        // SAFETY: the caller enables the instructions of `V`.
        unsafe { round(state, keys, i) }
    }
}

/// The chunk that is hashed.
#[derive(Clone, Copy)]
pub(super) enum Hashed<'a, V> {
    At(*const u8),
    /// In registers, of which there are enough with AVX-512.
    Kept(&'a [V; WIDTH]),
}

impl<V: Lane> Hashed<'_, V> {
    #[inline(always)]
    unsafe fn vector(self, i: usize) -> V {
        match self {
            // SAFETY: the caller enables the instructions of `V`, and gives eight vectors there.
            Hashed::At(chunk) => unsafe { V::load(chunk.add(i * V::BYTES)) },
            Hashed::Kept(chunk) => chunk[i],
        }
    }
}

/// The same, and a chunk of eight vectors through GHASH, whose first block meets the power
/// at `powers`. The sum is not reduced. With `WHOLE` all blocks of a vector meet the power for
/// its first one, by whole products.
// One after the other as they stand here: how far a processor looks ahead is less than a
// chunk of either, so the compiler may not do all of one first.
#[inline(always)]
pub(super) unsafe fn rounds_beside<V: Lane, const SEAL: bool, const WHOLE: bool, const M: usize>(
    state: &mut [V; M],
    keys: &mut RoundKeys<'_>,
    hashed: Hashed<'_, V>,
    mut powers: Powers<'_>,
    hash: &mut Hash<V>,
) {
    // The parts of a product that the next round waits for. All of them keep it in registers, of
    // which there are 16 without AVX-512: there sealing takes less time with one, opening with all.
    let waited_for = match (SEAL && V::BLOCKS < 4, WHOLE) {
        (true, _) => 1,
        (false, false) => 3,
        (false, true) => 4,
    };
    // A loop would not be unrolled.
    macro_rules! round_and_product {
        ($round:literal, $i:literal) => {{
            round(state, keys, $round);
            let mut blocks = hashed.vector($i).reverse();
            if $i == 0 {
                blocks = blocks.xor(hash.y);
            }
            for block in &*state {
                powers = powers.after(*block);
            }
            let power = powers.lower($i * V::BLOCKS);
            let product = match WHOLE {
                true => Product::whole(blocks, power),
                false => Product::of_sums(blocks, power),
            };
            for part in &product.parts()[..waited_for] {
                keys.wait_for(*part);
            }
            product
        }};
    }
    macro_rules! two {
        ($round:literal, $i:literal; $next_round:literal, $j:literal) => {
            let one = round_and_product!($round, $i);
            if V::BLOCKS == 4 {
                let two = round_and_product!($next_round, $j);
                hash.sum.add_products(one, two);
            } else {
                // There are not enough registers for three more vectors.
                hash.sum.add_product(one);
                let two = round_and_product!($next_round, $j);
                hash.sum.add_product(two);
            }
        };
    }
    // SAFETY: the caller enables the instructions of `V` and gives eight vectors to read and
    // the place of a power not below that of their blocks.
    unsafe {
        // The first vector is the last to be hashed: it waits for the chunk before.
        two!(1, 1; 2, 2);
        two!(3, 3; 4, 4);
        two!(5, 5; 6, 6);
        two!(7, 7; 8, 0);
        round(state, keys, 9);
    }
}

/// A chunk of eight vectors through counter mode, and one through GHASH: when encrypting the chunk
/// before, which is `text` and is replaced by this one, else the input. That one is the first or the
/// second of `HASH` chunks to the end of its group, where the sum is reduced; with 0 nothing is
/// hashed, and with [`APART`] the lanes of the sum stay apart, as a group of as many vectors follows.
#[inline(always)]
pub(super) unsafe fn chunk<V: Lane, const SEAL: bool, const HASH: usize>(
    key: &GcmKey,
    counters: &mut Counters<V>,
    from: *const u8,
    to: *mut u8,
    text: &mut [V; WIDTH],
    mut hash: Hash<V>,
) -> Hash<V> {
    // SAFETY: the caller enables the instructions of `V` and gives eight vectors at
    // each pointer. All that is hashed is read before anything is written.
    unsafe {
        let mut keys = RoundKeys::of(&key.aes);
        let mut state = counters.first_round(&mut keys);
        let before = *text;
        let hashed = match (SEAL, V::BLOCKS) {
            (false, _) => Hashed::At(from),
            (true, 4) => Hashed::Kept(&before),
            (true, _) => Hashed::At(to.wrapping_sub(WIDTH * V::BYTES)),
        };
        let (state_of, keys_of) = (&mut state, &mut keys);
        match HASH {
            0 => rounds(state_of, keys_of),
            APART => {
                let powers = key.table.at_power(chunk_blocks::<V>());
                rounds_beside::<V, SEAL, true, _>(state_of, keys_of, hashed, powers, &mut hash);
                hash = hash.reduce_lanes();
            }
            _ => {
                let powers = key.table.at_power(HASH * chunk_blocks::<V>());
                rounds_beside::<V, SEAL, false, _>(state_of, keys_of, hashed, powers, &mut hash);
                match HASH {
                    1 => hash = hash.reduce(),
                    _ => hash.y = V::zero(),
                }
            }
        }
        let last = late_rounds(&mut state, &mut keys);
        for (i, block) in state.into_iter().enumerate() {
            let data = V::load(from.add(i * V::BYTES)).xor(last);
            text[i] = block.aesenclast(data);
            text[i].store(to.add(i * V::BYTES));
        }
        hash
    }
}
