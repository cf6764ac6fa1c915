//! Messages and pieces of any length.
//!
//! A message is a row of chunks of eight vectors. While one chunk goes through the
//! rounds of AES, another is hashed: on encryption the chunk before it, on
//! decryption the same one, so the ports for AES and for carry-less multiplication
//! work together. What is left behind the last whole chunk, the encrypted J0 that
//! masks the tag, and the block of lengths share one last group: J0 takes the lane
//! behind the last block of data when it is encrypted, the lengths take the same
//! lane when it is hashed.

use core::arch::x86_64::*;

use super::hash::{Hash, start};
use super::lane::Lane;
use super::rounds::*;
use super::{Kernels, store_tag};
use crate::gcm::key::GcmKey;
use crate::job::AeadJob;

/// Chunks that are reduced together where the message has as many: the table has
/// powers for.
#[inline(always)]
const fn together<V: Lane>() -> usize {
    if V::BLOCKS < 4 { 2 } else { 1 }
}

/// A chunk of eight vectors through counter mode, and a chunk of eight, which may be
/// the input of the same one, through GHASH. That one is the first or the second of
/// `HASH` chunks to the end of its group, where the sum is reduced; with 0 nothing is
/// hashed.
#[inline(always)]
unsafe fn chunk<V: Lane, const HASH: usize>(
    key: &GcmKey,
    counter: &mut V,
    from: *const u8,
    to: *mut u8,
    hashed: *const u8,
    mut hash: Hash<V>,
) -> Hash<V> {
    // SAFETY: the caller enables the instructions of `V` and gives eight vectors at
    // each pointer. All of `hashed` is read before anything is written.
    unsafe {
        let aes = &key.aes;
        let mut state: [V; WIDTH] = first_round(counter, aes);
        for i in 0..WIDTH {
            round(&mut state, aes, i + 1);
            if HASH > 0 {
                let blocks = V::load(hashed.add(i * V::BYTES));
                hash.add(blocks.reverse(), i, &key.table, HASH * WIDTH * V::BLOCKS);
            }
        }
        round(&mut state, aes, WIDTH + 1);
        if HASH == 1 {
            hash = hash.reduce();
        } else if HASH == 2 {
            hash.y = _mm_setzero_si128();
        }
        let last = late_rounds(&mut state, aes);
        for (i, block) in state.into_iter().enumerate() {
            let data = V::load(from.add(i * V::BYTES)).xor(last);
            block.aesenclast(data).store(to.add(i * V::BYTES));
        }
        hash
    }
}

/// What stands behind the data of a message.
pub(super) struct End<V> {
    /// J0 in the form for counting.
    j0: V,
    /// Bits of data and of additional data, bytes reversed.
    lengths: __m128i,
}

/// The rest of a message: less than eight vectors of data, the lengths and J0.
/// Gives the tag; without an end, GHASH up to here.
///
/// `M` is one more than the number of vectors that the blocks fill.
#[inline(always)]
pub(super) unsafe fn rest<V: Lane, const SEAL: bool, const M: usize>(
    key: &GcmKey,
    counter: &V,
    data: (*const u8, *mut u8, usize),
    pending: Option<*const u8>,
    hash: &Hash<V>,
    end: &Option<End<V>>,
) -> __m128i {
    let (mut counter, mut hash) = (*counter, *hash);
    let (from, to, len) = data;
    let blocks = len.div_ceil(16);
    debug_assert_eq!(M, blocks / V::BLOCKS + 1);
    let behind = blocks % V::BLOCKS;
    // SAFETY: the caller enables the instructions of `V`, and gives `len` bytes to
    // read and to write and a chunk at `pending`. `bytes(i)` keeps inside `len`.
    unsafe {
        let aes = &key.aes;
        let mask = V::one_lane(behind);
        let mut state = [V::zero(); M];
        let step = count(V::BLOCKS as u32);
        for block in &mut state {
            *block = counter;
            counter = counter.add32(step);
        }
        if let Some(end) = end {
            state[M - 1] = state[M - 1].select(end.j0, mask);
        }
        for block in &mut state {
            *block = block.swap_counter();
            *block = block.xor(round_key_after(aes, 0, *block));
        }
        for i in 1..10 {
            round(&mut state, aes, i);
        }
        if let Some(pending) = pending {
            for i in 0..WIDTH {
                let blocks = V::load(pending.add(i * V::BYTES));
                hash.add(blocks.reverse(), i, &key.table, WIDTH * V::BLOCKS);
            }
            hash = hash.reduce();
        }
        let last = late_rounds(&mut state, aes);
        let mut hashed = last_rounds::<V, SEAL, M>(&mut state, last, from, to, len);
        match end {
            Some(end) => {
                hashed[M - 1] = hashed[M - 1].xor(V::splat(end.lengths).and(mask));
                for (i, blocks_i) in hashed.into_iter().enumerate() {
                    hash.add(blocks_i, i, &key.table, blocks + 1);
                }
                let pad = state[M - 1].and(mask).reverse();
                hash.sum.reduce().xor(pad).sum_lanes()
            }
            None => {
                if blocks == 0 {
                    return hash.y;
                }
                for (i, blocks_i) in hashed.into_iter().enumerate() {
                    if i * V::BLOCKS < blocks {
                        hash.add(blocks_i, i, &key.table, blocks);
                    }
                }
                hash.reduce().y
            }
        }
    }
}

/// A whole message or a piece of it, from the vector of counters of its first blocks.
#[inline(always)]
pub(super) unsafe fn crypt<V: Kernels, const SEAL: bool>(
    key: &GcmKey,
    mut counter: V,
    data: (*const u8, *mut u8, usize),
    mut hash: Hash<V>,
    end: Option<End<V>>,
) -> __m128i {
    let size = WIDTH * V::BYTES;
    let (mut from, mut to, mut len) = data;
    // SAFETY: the caller enables the instructions of `V` and gives `len` bytes to
    // read and to write; each step takes what is left of them.
    unsafe {
        let mut pending = None;
        macro_rules! step {
            ($chunks:literal, $hashed:expr) => {
                hash = chunk::<V, $chunks>(key, &mut counter, from, to, $hashed, hash);
                (from, to, len) = (from.add(size), to.add(size), len - size);
            };
        }
        if SEAL {
            if len >= size {
                step!(0, from);
                while len >= size {
                    // The chunk that ends the group is hashed next, here or at the end.
                    if together::<V>() == 2 {
                        step!(2, to.sub(size));
                        if len < size {
                            break;
                        }
                    }
                    step!(1, to.sub(size));
                }
                pending = Some(to.sub(size).cast_const());
            }
        } else {
            while len >= size {
                if together::<V>() == 2 && len >= 2 * size {
                    step!(2, from);
                }
                step!(1, from);
            }
        }
        let data = (from, to, len);
        match len.div_ceil(16) / V::BLOCKS {
            0 => V::rest::<SEAL, 1>(key, &counter, data, pending, &hash, &end),
            1 => V::rest::<SEAL, 2>(key, &counter, data, pending, &hash, &end),
            2 => V::rest::<SEAL, 3>(key, &counter, data, pending, &hash, &end),
            3 => V::rest::<SEAL, 4>(key, &counter, data, pending, &hash, &end),
            4 => V::rest::<SEAL, 5>(key, &counter, data, pending, &hash, &end),
            5 => V::rest::<SEAL, 6>(key, &counter, data, pending, &hash, &end),
            6 => V::rest::<SEAL, 7>(key, &counter, data, pending, &hash, &end),
            7 => V::rest::<SEAL, 8>(key, &counter, data, pending, &hash, &end),
            _ => V::rest::<SEAL, 9>(key, &counter, data, pending, &hash, &end),
        }
    }
}

/// One message of any length, with additional data of any length.
#[inline(always)]
pub(super) unsafe fn long<V: Kernels, const SEAL: bool>(job: &mut AeadJob<'_, GcmKey>) {
    let key = job.key;
    let len = job.data.len();
    let (from, to) = job.data.reborrow().into_raw();
    // SAFETY: the caller enables the instructions of `V`; the buffer is good for
    // `len` bytes, its input and output being the same or apart.
    unsafe {
        let j0 = V::splat(_mm_insert_epi32::<3>(nonce(&job.iv), 1));
        let counter = counters(j0).add32(count(1));
        let lengths = _mm_set_epi64x(
            (8 * job.aad.len() as u64).cast_signed(),
            (8 * len as u64).cast_signed(),
        );
        let n = match len / (WIDTH * V::BYTES) {
            0 => len.div_ceil(16) + 1,
            chunks => chunks.min(together::<V>()) * WIDTH * V::BLOCKS,
        };
        let hash = start(&key.table, job.aad, n);
        let end = Some(End { j0, lengths });
        let tag = crypt::<V, SEAL>(key, counter, (from, to, len), hash, end).reverse();
        store_tag(job.tag, tag);
    }
}
