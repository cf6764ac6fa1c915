//! The end of a message, or of a piece of one.
//!
//! What is left behind the last whole chunk, the encrypted J0 that masks the tag, and the block of
//! lengths share one last group: J0 takes the lane behind the last block of data when it is encrypted,
//! the lengths take the same lane when it is hashed.

use core::arch::x86_64::*;

use super::Kernels;
use super::chunk::{Hashed, rounds, rounds_beside};
use super::hash::Hash;
use super::lane::Lane;
use super::rounds::*;
use crate::gcm::key::GcmKey;
use crate::gcm::rest::Begun;

/// What stands behind the data.
pub(super) enum End<'a, V> {
    /// Of a message.
    Message {
        /// J0 in the form for counting.
        j0: V,
        /// Bits of data and of additional data, bytes reversed.
        lengths: __m128i,
    },
    /// Of a piece, whose last block goes there if it is not whole; else GHASH takes that block too.
    Piece(Option<&'a mut Begun>),
}

/// The rest of a message: less than eight vectors of data, the lengths and J0.
/// Gives the tag; of a piece, GHASH up to here.
///
/// `M` is one more than the number of vectors that the blocks fill. With `PENDING` the chunk
/// before these bytes is still to be hashed.
#[inline(always)]
pub(super) unsafe fn rest<V: Lane, const SEAL: bool, const PENDING: bool, const M: usize>(
    key: &GcmKey,
    counter: &V,
    data: (*const u8, *mut u8, usize),
    hash: &Hash<V>,
    end: &mut End<'_, V>,
) -> __m128i {
    let (mut counter, mut hash) = (*counter, *hash);
    let (from, to, len) = data;
    let blocks = len.div_ceil(16);
    debug_assert_eq!(M, blocks / V::BLOCKS + 1);
    let behind = blocks % V::BLOCKS;
    // SAFETY: the caller enables the instructions of `V`, and gives `len` bytes to
    // read and to write and, if it is pending, a chunk before what is written.
    unsafe {
        let mask = V::one_lane(behind);
        let mut state = [V::zero(); M];
        let step = count(V::BLOCKS as u32);
        for block in &mut state {
            *block = counter;
            counter = counter.add32(step);
        }
        if let End::Message { j0, .. } = end {
            state[M - 1] = state[M - 1].select(*j0, mask);
        }
        let mut keys = RoundKeys::of(&key.aes);
        for block in &mut state {
            *block = block.swap_counter();
            keys.wait_for(*block);
            *block = block.xor(keys.load(0));
        }
        if PENDING {
            let pending = Hashed::At(to.sub(WIDTH * V::BYTES));
            let powers = key.table.at_power(chunk_blocks::<V>());
            rounds_beside::<V, SEAL, false, M>(&mut state, &mut keys, pending, powers, &mut hash);
            hash = hash.reduce();
        } else {
            rounds(&mut state, &mut keys);
        }
        let last = late_rounds(&mut state, &mut keys);
        let mut hashed = last_rounds::<V, SEAL, M>(&mut state, last, from, to, len);
        match end {
            End::Message { lengths, .. } => {
                hashed[M - 1] = hashed[M - 1].xor(V::splat(*lengths).and(mask));
                for (i, blocks_i) in hashed.into_iter().enumerate() {
                    hash.add(blocks_i, i, &key.table, blocks + 1);
                }
                let pad = state[M - 1].and(mask).reverse();
                hash.sum.reduce().xor(pad).sum_lanes()
            }
            End::Piece(begun) => {
                let mut whole = blocks;
                if let Some(begun) = begun
                    && !len.is_multiple_of(16)
                {
                    whole -= 1;
                    let last = whole / V::BLOCKS;
                    let (state, hashed) = match last + 1 == M {
                        true => (state[M - 1], hashed[M - 1]),
                        false => (state[M.saturating_sub(2)], hashed[M.saturating_sub(2)]),
                    };
                    let mask = V::one_lane(whole % V::BLOCKS);
                    let block = hashed.and(mask).sum_lanes().reverse();
                    block.store(begun.block.as_mut_ptr());
                    // Where there is no data it is the keystream.
                    let stream = state.and(mask).sum_lanes();
                    stream.store(begun.stream.as_mut_ptr());
                }
                if whole == 0 {
                    return hash.y.low();
                }
                // The lane of the block begun meets no power.
                for (i, blocks_i) in hashed.into_iter().enumerate() {
                    if i * V::BLOCKS < whole {
                        hash.add(blocks_i, i, &key.table, whole);
                    }
                }
                hash.reduce().y.low()
            }
        }
    }
}

/// [`rest`] for any number of blocks, from the counter of the first.
#[inline(always)]
pub(super) unsafe fn any_rest<V: Kernels, const SEAL: bool, const PENDING: bool>(
    key: &GcmKey,
    counter: V,
    data: (*const u8, *mut u8, usize),
    hash: Hash<V>,
    end: &mut End<'_, V>,
) -> __m128i {
    macro_rules! rest {
        ($m:literal, $counter:expr) => {
            V::rest::<SEAL, PENDING, $m>(key, $counter, data, &hash, end)
        };
    }
    // SAFETY: as for `rest`.
    unsafe {
        let counter = &counters(counter);
        match data.2.div_ceil(16) / V::BLOCKS {
            0 => rest!(1, counter),
            1 => rest!(2, counter),
            2 => rest!(3, counter),
            3 => rest!(4, counter),
            4 => rest!(5, counter),
            5 => rest!(6, counter),
            6 => rest!(7, counter),
            7 => rest!(8, counter),
            _ => rest!(9, counter),
        }
    }
}
