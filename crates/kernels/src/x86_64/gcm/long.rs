//! Messages and pieces of any length.
//!
//! A message is a row of chunks of eight vectors. While one chunk goes through the
//! rounds of AES, another is hashed: on encryption the chunk before it, on
//! decryption the same one, so the ports for AES and for carry-less multiplication
//! work together. What is left behind the last whole chunk, the encrypted J0 that
//! masks the tag, and the block of lengths share one last group: J0 takes the lane
//! behind the last block of data when it is encrypted, the lengths take the same
//! lane when it is hashed.
//!
//! What limits a chunk on a Zen 5 is how many instructions begin per cycle, up to eight: beside
//! the others a carry-less product keeps them from that for about a cycle and a half. With AVX-512
//! a chunk has 26 of these and some 200 others, which is 64 of the 70 cycles that it takes.

use core::arch::x86_64::*;

use super::hash::{Hash, start};
use super::lane::Lane;
use super::rounds::*;
use super::{Kernels, store_tag};
use crate::cpu::is_intel;
use crate::gcm::key::GcmKey;
use crate::gcm::rest::Begun;
use crate::job::AeadJob;
use crate::x86_64::ghash::{Powers, Product};

/// Chunks that are reduced together where the message has as many: the table has
/// powers for.
#[inline(always)]
const fn together<V: Lane>() -> usize {
    if V::BLOCKS < 4 { 2 } else { 1 }
}

/// For [`chunk`].
const LANES: usize = 3;

/// The first nine rounds.
#[inline(always)]
unsafe fn rounds<V: Lane, const M: usize>(state: &mut [V; M], keys: &mut RoundKeys<'_>) {
    for i in 1..10 {
        // SAFETY: the caller enables the instructions of `V`.
        unsafe { round(state, keys, i) }
    }
}

/// The same, and a chunk of eight vectors through GHASH, whose first block meets the power
/// at `powers`. The sum is not reduced. With `LANES` all blocks of a vector meet the power for
/// its first one, by whole products.
// One after the other as they stand here: how far a processor looks ahead is less than a
// chunk of either, so the compiler may not do all of one first.
#[inline(always)]
unsafe fn rounds_beside<V: Lane, const SEAL: bool, const LANES: bool, const M: usize>(
    state: &mut [V; M],
    keys: &mut RoundKeys<'_>,
    hashed: *const u8,
    mut powers: Powers<'_>,
    hash: &mut Hash<V>,
) {
    // The parts of a product that the next round waits for. All of them keep it in registers, of
    // which there are 16 without AVX-512: there sealing takes less time with one, opening with all.
    let waited_for = match (SEAL && V::BLOCKS < 4, LANES) {
        (true, _) => 1,
        (false, false) => 3,
        (false, true) => 4,
    };
    // A loop would not be unrolled.
    macro_rules! round_and_product {
        ($round:literal, $i:literal) => {{
            round(state, keys, $round);
            let mut blocks = V::load(hashed.add($i * V::BYTES)).reverse();
            if $i == 0 {
                blocks = blocks.xor(hash.y);
            }
            for block in &*state {
                powers = powers.after(*block);
            }
            let power = powers.lower($i * V::BLOCKS);
            let product = match LANES {
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

/// A chunk of eight vectors through counter mode, and a chunk of eight, which may be
/// the input of the same one, through GHASH. That one is the first or the second of
/// `HASH` chunks to the end of its group, where the sum is reduced; with 0 nothing is
/// hashed, and with [`LANES`] the lanes of the sum stay apart, as a group of as many vectors follows.
#[inline(always)]
unsafe fn chunk<V: Lane, const SEAL: bool, const HASH: usize>(
    key: &GcmKey,
    counters: &mut Counters<V>,
    from: *const u8,
    to: *mut u8,
    hashed: *const u8,
    mut hash: Hash<V>,
) -> Hash<V> {
    // SAFETY: the caller enables the instructions of `V` and gives eight vectors at
    // each pointer. All of `hashed` is read before anything is written.
    unsafe {
        let mut keys = RoundKeys::of(&key.aes);
        let mut state = counters.first_round(&mut keys);
        let (state_of, keys_of) = (&mut state, &mut keys);
        match HASH {
            0 => rounds(state_of, keys_of),
            LANES => {
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
            block.aesenclast(data).store(to.add(i * V::BYTES));
        }
        hash
    }
}

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
            let pending = to.sub(WIDTH * V::BYTES);
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
unsafe fn any_rest<V: Kernels, const SEAL: bool, const PENDING: bool>(
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

/// A whole message or a piece of it from the counter of its first block, in the form for
/// counting, which is `ahead` blocks ahead of where a chunk would begin.
#[inline(always)]
pub(super) unsafe fn crypt<V: Kernels, const SEAL: bool>(
    key: &GcmKey,
    first: __m128i,
    ahead: usize,
    data: (*const u8, *mut u8, usize),
    mut hash: Hash<V>,
    mut end: End<'_, V>,
) -> __m128i {
    let size = WIDTH * V::BYTES;
    let (mut from, mut to, mut len) = data;
    // SAFETY: the caller enables the instructions of `V` and gives `len` bytes to
    // read and to write; each step takes what is left of them.
    unsafe {
        let mut counter = V::splat(first);
        if ahead > 0 && len >= size {
            let blocks = chunk_blocks::<V>() - ahead;
            let head = 16 * blocks;
            let y = any_rest::<V, SEAL, false>(
                key,
                counter,
                (from, to, head),
                hash,
                &mut End::Piece(None),
            );
            hash = Hash::from(y);
            counter = counter.add32(count(blocks as u32));
            (from, to, len) = (from.add(head), to.add(head), len - head);
        }
        // Two instructions on 512 bits begin per cycle on processors of Intel, so what counts is how
        // many there are; whole products are four instructions less per chunk.
        let apart = V::BLOCKS == 4 && is_intel();
        let mut counters = Counters::from(counter, &key.aes);
        macro_rules! step {
            ($chunks:expr, $hashed:expr) => {
                hash = chunk::<V, SEAL, { $chunks }>(key, &mut counters, from, to, $hashed, hash);
                (from, to, len) = (from.add(size), to.add(size), len - size);
            };
        }
        if SEAL {
            if len >= size {
                step!(0, from);
                if apart && len >= size {
                    hash.sum = hash.sum.turned();
                    while len >= size {
                        step!(LANES, to.sub(size));
                    }
                }
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
                let data = (from, to, len);
                return any_rest::<V, SEAL, true>(key, counters.next(), data, hash, &mut end);
            }
        } else {
            if apart && len >= 2 * size {
                hash.sum = hash.sum.turned();
                while len >= 2 * size {
                    step!(LANES, from);
                }
            }
            while len >= size {
                if together::<V>() == 2 && len >= 2 * size {
                    step!(2, from);
                }
                step!(1, from);
            }
        }
        any_rest::<V, SEAL, false>(key, counters.next(), (from, to, len), hash, &mut end)
    }
}

/// Blocks of the first group that is hashed of a message of `len` bytes or a piece of it, behind which
/// `end` more blocks stand. The data begins where a chunk does.
#[inline(always)]
pub(super) fn first_group<V: Lane>(len: usize, end: usize) -> usize {
    match len / (WIDTH * V::BYTES) {
        0 => len.div_ceil(16) + end,
        chunks => chunks.min(together::<V>()) * chunk_blocks::<V>(),
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
        let j0 = _mm_insert_epi32::<3>(nonce(&job.iv), 1);
        let first = j0.add32(count(1));
        let lengths = _mm_set_epi64x(
            (8 * job.aad.len() as u64).cast_signed(),
            (8 * len as u64).cast_signed(),
        );
        let n = first_group::<V>(len, 1);
        let hash = start(&key.table, job.aad, n);
        let end = End::Message {
            j0: V::splat(j0),
            lengths,
        };
        let tag = crypt::<V, SEAL>(key, first, 0, (from, to, len), hash, end).reverse();
        store_tag(job.tag, tag);
    }
}
