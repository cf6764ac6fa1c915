//! The end of a message, or of a piece of one.
//!
//! What is left behind the last whole chunk, the encrypted J0 that masks the tag, and the block of
//! lengths share one last group: J0 takes the lane behind the last block of data when it is encrypted,
//! the lengths take the same lane when it is hashed.

use core::arch::x86_64::*;

use super::Kernels;
use super::chunk::{Either, Hashed, rounds, rounds_beside, rounds_beside_half};
use super::halves::finish;
use super::hash::Hash;
use super::lane::Lane;
use super::rounds::*;
use super::row::Row;
use super::sums::Sums;
use crate::gcm::key::GcmKey;
use crate::gcm::rest::Begun;

/// What stands behind the data.
pub(super) enum End<'a, V> {
    /// Of a message.
    Message {
        /// J0, as far as the blocks that are left have gone through AES.
        j0: V,
        /// Bits of data and of additional data, bytes reversed.
        lengths: __m128i,
    },
    /// Of a piece, whose last block goes there if it is not whole; else GHASH takes that block too.
    Piece(Option<&'a mut Begun>),
}

/// The counters of what is left.
#[derive(Clone, Copy)]
pub(super) enum Counting<V> {
    /// From where a chunk begins.
    Chunk(Counters<V>),
    /// From any block, whose counter this is in the form for counting.
    Block(V),
    /// From where a chunk begins.
    Kept(Sums<V>),
}

impl<V: Lane> Counting<V> {
    /// Those of `M` vectors from vector `i` on, after the first round key, or after two rounds.
    #[inline(always)]
    unsafe fn states<const M: usize>(&self, keys: &mut RoundKeys<'_>, i: usize) -> [V; M] {
        // SAFETY: the caller enables the instructions of `V`.
        unsafe {
            match self {
                Counting::Chunk(counters) => counters.some(keys, i),
                Counting::Block(counter) => {
                    let mut counter = counters(counter.add32(count((i * V::BLOCKS) as u32)));
                    let mut state = [V::zero(); M];
                    for block in &mut state {
                        *block = counter.swap_counter();
                        counter = counter.add32(count(V::BLOCKS as u32));
                        keys.wait_for(*block);
                        *block = block.xor(keys.load(0));
                    }
                    state
                }
                Counting::Kept(sums) => sums.states(i),
            }
        }
    }

    /// What is done of these.
    #[inline(always)]
    fn start(&self) -> Either {
        Either {
            two_are_done: matches!(self, Counting::Kept(_)),
        }
    }
}

/// The rest of a message: less than eight vectors of data, the lengths and J0.
/// Gives the tag; of a piece, GHASH up to here.
///
/// `M` is one more than the number of vectors that the blocks fill, but for `BEFORE` of them, none or
/// half a chunk, which go through AES before the others. `PENDING` vectors before these bytes are still
/// to be hashed: none, half a chunk, or a chunk.
#[inline(always)]
pub(super) unsafe fn rest<
    V: Lane,
    const SEAL: bool,
    const PENDING: usize,
    const BEFORE: usize,
    const M: usize,
>(
    key: &GcmKey,
    from_counter: &Counting<V>,
    data: (*const u8, *mut u8, usize),
    hash: &Hash<V>,
    end: &mut End<'_, V>,
) -> __m128i {
    let mut hash = *hash;
    let mut start = from_counter.start();
    let (mut from, mut to, mut len) = data;
    debug_assert_eq!(M + BEFORE, len.div_ceil(16) / V::BLOCKS + 1);
    // SAFETY: the caller enables the instructions of `V`, and gives `len` bytes to
    // read and to write and, if it is pending, what is hashed before what is written.
    unsafe {
        let mut keys = RoundKeys::of(&key.aes);
        let mut text = [V::zero(); HALF];
        if BEFORE == HALF {
            let mut state = from_counter.states::<HALF>(&mut keys, 0);
            let pending = Hashed::At(to.wrapping_sub(HALF * V::BYTES));
            let powers = key.table.at_power(chunk_blocks::<V>() / 2);
            rounds_beside_half::<V, _, true, HALF>(
                &mut start, &mut state, &mut keys, pending, powers, &mut hash,
            );
            hash = hash.reduce_lanes::<true>();
            let last = late_rounds(&mut state, &mut keys);
            text = finish(state, last, from, to);
            keys.again(text[HALF - 1]);
            let size = HALF * V::BYTES;
            (from, to, len) = (from.add(size), to.add(size), len - size);
        }
        let blocks = len.div_ceil(16);
        // The blocks that are hashed.
        let hashed_blocks = match end {
            End::Message { .. } => blocks + 1,
            End::Piece(Some(_)) => len / 16,
            End::Piece(None) => blocks,
        };
        let mask = V::one_lane(blocks % V::BLOCKS);
        let mut state = from_counter.states::<M>(&mut keys, BEFORE);
        if let End::Message { j0, .. } = end {
            state[M - 1] = state[M - 1].select(*j0, mask);
        }
        let keys_of = &mut keys;
        match PENDING {
            0 => rounds(&mut start, &mut state, keys_of),
            HALF => {
                let pending = match BEFORE {
                    HALF => Hashed::Kept(&text),
                    _ => Hashed::At(to.wrapping_sub(HALF * V::BYTES)),
                };
                // One group with what follows.
                let powers = key.table.at_power(chunk_blocks::<V>() / 2 + hashed_blocks);
                rounds_beside_half::<V, _, false, M>(
                    &mut start, &mut state, keys_of, pending, powers, &mut hash,
                );
                hash.y = V::zero();
            }
            _ => {
                let pending = Hashed::At(to.wrapping_sub(WIDTH * V::BYTES));
                let powers = key.table.at_power(chunk_blocks::<V>());
                rounds_beside::<V, _, SEAL, false, M>(
                    &mut start, &mut state, keys_of, pending, powers, &mut hash,
                );
                hash = hash.reduce();
            }
        }
        let last = late_rounds(&mut state, &mut keys);
        let mut hashed = last_rounds::<V, SEAL, M>(&mut state, last, from, to, len);
        match end {
            End::Message { lengths, .. } => {
                hashed[M - 1] = hashed[M - 1].xor(V::splat(*lengths).and(mask));
                for (i, blocks) in hashed.into_iter().enumerate() {
                    hash.add(blocks, i, &key.table, hashed_blocks);
                }
                let pad = state[M - 1].and(mask).reverse();
                hash.sum.reduce().xor(pad).sum_lanes()
            }
            End::Piece(begun) => {
                if let Some(begun) = begun
                    && !len.is_multiple_of(16)
                {
                    let last = hashed_blocks / V::BLOCKS;
                    let (state, hashed) = match last + 1 == M {
                        true => (state[M - 1], hashed[M - 1]),
                        false => (state[M.saturating_sub(2)], hashed[M.saturating_sub(2)]),
                    };
                    let mask = V::one_lane(hashed_blocks % V::BLOCKS);
                    let block = hashed.and(mask).sum_lanes().reverse();
                    block.store(begun.block.as_mut_ptr());
                    // Where there is no data it is the keystream.
                    let stream = state.and(mask).sum_lanes();
                    stream.store(begun.stream.as_mut_ptr());
                }
                if hashed_blocks == 0 && PENDING != HALF {
                    return hash.y.low();
                }
                // The lane of the block begun meets no power.
                for (i, blocks) in hashed.into_iter().enumerate() {
                    if i * V::BLOCKS < hashed_blocks {
                        hash.add(blocks, i, &key.table, hashed_blocks);
                    }
                }
                hash.reduce().y.low()
            }
        }
    }
}

/// [`rest`] for any number of blocks.
#[inline(always)]
pub(super) unsafe fn any_rest<V: Kernels, const SEAL: bool, const PENDING: usize>(
    row: &Row<'_, V>,
    from: Counting<V>,
    end: &mut End<'_, V>,
) -> __m128i {
    // A copy, since what a function has the address of stays in memory before too.
    let hash = row.hash;
    macro_rules! rest {
        ($before:expr, $m:literal) => {{
            let data = (row.from, row.to, row.len);
            V::rest::<SEAL, PENDING, { $before }, $m>(row.key, &from, data, &hash, end)
        }};
    }
    // SAFETY: as for `rest`.
    unsafe {
        let vectors = row.len.div_ceil(16) / V::BLOCKS;
        if PENDING == HALF {
            // Only where more than a half is left its vectors are surely whole.
            return match vectors {
                0 => rest!(0, 1),
                1 => rest!(0, 2),
                2 => rest!(0, 3),
                3 => rest!(0, 4),
                4 => rest!(0, 5),
                5 => rest!(HALF, 2),
                6 => rest!(HALF, 3),
                7 => rest!(HALF, 4),
                _ => rest!(HALF, 5),
            };
        }
        match vectors {
            0 => rest!(0, 1),
            1 => rest!(0, 2),
            2 => rest!(0, 3),
            3 => rest!(0, 4),
            4 => rest!(0, 5),
            5 => rest!(0, 6),
            6 => rest!(0, 7),
            7 => rest!(0, 8),
            _ => rest!(0, 9),
        }
    }
}
