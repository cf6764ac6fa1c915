//! AES-GCM (NIST SP 800-38D), counter mode and GHASH in one pass.
//!
//! A message is a row of chunks of eight vectors. While one chunk goes through the
//! rounds of AES, another is hashed: on encryption the chunk before it, on
//! decryption the same one, so the ports for AES and for carry-less multiplication
//! work together. What is left behind the last whole chunk, the encrypted J0 that
//! masks the tag, and the block of lengths share one last group: J0 takes the lane
//! behind the last block of data when it is encrypted, the lengths take the same
//! lane when it is hashed.
//!
//! All is written once over [`Lane`] and compiled three times at the end.

use core::arch::x86_64::*;

use inout::InOutBuf;

use super::gcm_lane::Lane;
use super::ghash::{Sum, Table, fill, product};
use crate::aes::{AesKey, Block};
use crate::cpu::{HaveAesNi, HaveVaes, HaveVaes512};
use crate::gcm::GcmKey;
use crate::job::{AeadJob, Direction};

/// Vectors in a chunk: with a latency of four cycles and two units, AES needs eight.
const WIDTH: usize = 8;

/// The place of a lane in its vector, where [`Lane::add32`] counts.
#[repr(align(64))]
struct LaneNumbers([u32; 16]);
static LANE_NUMBERS: LaneNumbers = LaneNumbers([0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3]);

/// `n` for the counter of each lane.
#[inline(always)]
unsafe fn count<V: Lane>(n: u32) -> V {
    // SAFETY: the caller enables the instructions of `V`.
    unsafe { V::splat(_mm_set_epi32(n.cast_signed(), 0, 0, 0)) }
}

/// The counters of a vector whose first lane has `base`, in the form for counting.
#[inline(always)]
unsafe fn counters<V: Lane>(base: V) -> V {
    // SAFETY: the caller enables the instructions of `V`; the table is 64 bytes.
    unsafe { base.add32(V::load(LANE_NUMBERS.0.as_ptr().cast())) }
}

#[inline(always)]
unsafe fn round_key<V: Lane>(key: &AesKey, round: usize) -> V {
    // SAFETY: the caller enables the instructions of `V`; a round key is 16 bytes.
    unsafe { V::splat_load(key.enc()[round].as_ptr()) }
}

#[inline(always)]
unsafe fn round<V: Lane, const M: usize>(state: &mut [V; M], key: &AesKey, round: usize) {
    // SAFETY: the caller enables the instructions of `V`.
    unsafe {
        let key = round_key(key, round);
        for block in state {
            *block = block.aesenc(key);
        }
    }
}

/// Rounds that only longer keys have, and the key of the last round.
#[inline(always)]
unsafe fn late_rounds<V: Lane, const M: usize>(state: &mut [V; M], key: &AesKey) -> V {
    // SAFETY: the caller enables the instructions of `V`.
    unsafe {
        if key.rounds() > 10 {
            round(state, key, 10);
            round(state, key, 11);
            if key.rounds() > 12 {
                round(state, key, 12);
                round(state, key, 13);
                return round_key(key, 14);
            }
            return round_key(key, 12);
        }
        round_key(key, 10)
    }
}

/// `M` vectors of counters after the first round key; `counter` moves behind them.
#[inline(always)]
unsafe fn first_round<V: Lane, const M: usize>(counter: &mut V, key: &AesKey) -> [V; M] {
    // SAFETY: the caller enables the instructions of `V`.
    unsafe {
        let step = count(V::BLOCKS as u32);
        let key = round_key::<V>(key, 0);
        let mut state = [V::zero(); M];
        for block in &mut state {
            *block = counter.swap_counter().xor(key);
            *counter = counter.add32(step);
        }
        state
    }
}

/// What is known of GHASH before a group: the value to be added to its first block,
/// and products that are to be reduced with it.
#[derive(Clone, Copy)]
struct Hash<V> {
    y: __m128i,
    sum: Sum<V>,
}

impl<V: Lane> Hash<V> {
    #[inline(always)]
    unsafe fn from(y: __m128i) -> Self {
        // SAFETY: the caller enables the instructions of `V`.
        unsafe {
            Hash {
                y,
                sum: Sum::zero(),
            }
        }
    }

    /// Adds vector `i` of a group of `n` blocks, their bytes reversed.
    #[inline(always)]
    unsafe fn add(&mut self, mut blocks: V, i: usize, table: &Table, n: usize) {
        // SAFETY: the caller enables the instructions of `V`, and n <= 8 * BLOCKS + 1.
        unsafe {
            if i == 0 {
                blocks = blocks.xor(V::first(self.y));
            }
            self.sum.add(blocks, table, n - i * V::BLOCKS);
        }
    }

    /// Ends a group.
    #[inline(always)]
    unsafe fn reduce(self) -> Self {
        // SAFETY: the caller enables the instructions of `V`.
        unsafe { Hash::from(self.sum.reduce().sum_lanes()) }
    }
}

/// Hash of `len` bytes and zeros up to a whole block.
#[inline(always)]
unsafe fn hash<V: Lane>(table: &Table, y: __m128i, mut from: *const u8, mut len: usize) -> __m128i {
    // SAFETY: the caller enables the instructions of `V` and gives `len` readable
    // bytes; every load is of bytes inside them.
    unsafe {
        let mut hash = Hash::<V>::from(y);
        while len > 0 {
            let group = len.min(WIDTH * V::BYTES);
            let n = group.div_ceil(16);
            let mut i = 0;
            while (i + 1) * V::BYTES <= group {
                hash.add(V::load(from.add(i * V::BYTES)).reverse(), i, table, n);
                i += 1;
            }
            if i * V::BYTES < group {
                let rest = V::load_part(from.add(i * V::BYTES), group - i * V::BYTES);
                hash.add(rest.reverse(), i, table, n);
            }
            hash = hash.reduce();
            from = from.add(group);
            len -= group;
        }
        hash.y
    }
}

/// GHASH after the additional data, before a first group of `n` blocks.
///
/// One block of additional data, as in most protocols, joins the group.
#[inline(always)]
unsafe fn start<V: Lane>(table: &Table, aad: &[u8], n: usize) -> Hash<V> {
    // SAFETY: the caller enables the instructions of `V`, and n <= 8 * BLOCKS + 1.
    unsafe {
        let zero = _mm_setzero_si128();
        if aad.len() > 16 {
            return Hash::from(self::hash::<V>(table, zero, aad.as_ptr(), aad.len()));
        }
        let mut hash = Hash::from(zero);
        if !aad.is_empty() {
            let block = load_block(aad).reverse();
            hash.sum.add(V::first(block), table, n + 1);
        }
        hash
    }
}

/// A chunk of eight vectors through counter mode, and if `HASH` a chunk of eight
/// through GHASH, which may be the input of the same one.
#[inline(always)]
unsafe fn chunk<V: Lane, const HASH: bool>(
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
            if HASH {
                let blocks = V::load(hashed.add(i * V::BYTES));
                hash.add(blocks.reverse(), i, &key.table, WIDTH * V::BLOCKS);
            }
        }
        round(&mut state, aes, WIDTH + 1);
        if HASH {
            hash = hash.reduce();
        }
        let last = late_rounds(&mut state, aes);
        for (i, block) in state.into_iter().enumerate() {
            let data = V::load(from.add(i * V::BYTES)).xor(last);
            block.aesenclast(data).store(to.add(i * V::BYTES));
        }
        hash
    }
}

/// Bytes in vector `i` of `M` when `len` bytes are left: the vectors up to M - 3 are
/// whole, which needs no test.
#[inline(always)]
fn bytes<V: Lane, const M: usize>(len: usize, i: usize) -> usize {
    if i + 2 < M {
        V::BYTES
    } else {
        len.saturating_sub(i * V::BYTES).min(V::BYTES)
    }
}

/// `n <= BYTES` bytes of vector `i`, zeros behind them.
#[inline(always)]
unsafe fn load_some<V: Lane>(from: *const u8, i: usize, n: usize) -> V {
    // SAFETY: the caller enables the instructions of `V` and gives these bytes.
    unsafe {
        match n {
            0 => V::zero(),
            _ if n == V::BYTES => V::load(from.add(i * V::BYTES)),
            _ => V::load_part(from.add(i * V::BYTES), n),
        }
    }
}

/// The first `n <= BYTES` bytes of `text` as vector `i`.
#[inline(always)]
unsafe fn store_some<V: Lane>(text: V, to: *mut u8, i: usize, n: usize) {
    // SAFETY: the caller enables the instructions of `V` and gives these bytes.
    unsafe {
        match n {
            0 => {}
            _ if n == V::BYTES => text.store(to.add(i * V::BYTES)),
            _ => text.store_part(to.add(i * V::BYTES), n),
        }
    }
}

/// At most 16 bytes, zeros behind them.
#[inline(always)]
unsafe fn load_block(bytes: &[u8]) -> __m128i {
    // SAFETY: the caller enables the instructions of `__m128i`; the slice is good
    // for its length.
    unsafe { load_some(bytes.as_ptr(), 0, bytes.len().min(16)) }
}

/// What stands behind the data of a message.
struct End<V> {
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
unsafe fn rest<V: Lane, const M: usize>(
    dir: Direction,
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
        let whitening = round_key::<V>(aes, 0);
        for block in &mut state {
            *block = block.swap_counter().xor(whitening);
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
        let mut hashed = [V::zero(); M];
        for (i, (block, hashed)) in state.iter_mut().zip(&mut hashed).enumerate() {
            let n = bytes::<V, M>(len, i);
            let data = load_some::<V>(from, i, n);
            *block = block.aesenclast(data.xor(last));
            *hashed = match dir {
                Direction::Decrypt => data,
                Direction::Encrypt if i + 2 < M => *block,
                Direction::Encrypt => block.and(V::keep(n)),
            }
            .reverse();
        }
        for (i, block) in state.iter().enumerate() {
            store_some(*block, to, i, bytes::<V, M>(len, i));
        }
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

/// The large functions, compiled once for each vector with its instructions enabled.
/// What [`Lane`] does is inlined into them.
trait Kernels: Lane {
    /// [`short`](self::short).
    unsafe fn short<const SEAL: bool, const M: usize>(job: &mut AeadJob<'_, GcmKey>);
    /// [`long`](self::long).
    unsafe fn long(dir: Direction, job: &mut AeadJob<'_, GcmKey>);
    /// [`rest`](self::rest).
    unsafe fn rest<const M: usize>(
        dir: Direction,
        key: &GcmKey,
        counter: &Self,
        data: (*const u8, *mut u8, usize),
        pending: Option<*const u8>,
        hash: &Hash<Self>,
        end: &Option<End<Self>>,
    ) -> __m128i;
}

#[inline(always)]
const fn dir<const SEAL: bool>() -> Direction {
    if SEAL {
        Direction::Encrypt
    } else {
        Direction::Decrypt
    }
}

/// A whole message or a piece of it, from the vector of counters of its first blocks.
#[inline(always)]
unsafe fn crypt<V: Kernels>(
    dir: Direction,
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
        if dir == Direction::Encrypt {
            if len >= size {
                hash = chunk::<V, false>(key, &mut counter, from, to, from, hash);
                (from, to, len) = (from.add(size), to.add(size), len - size);
                while len >= size {
                    hash = chunk::<V, true>(key, &mut counter, from, to, to.sub(size), hash);
                    (from, to, len) = (from.add(size), to.add(size), len - size);
                }
                pending = Some(to.sub(size).cast_const());
            }
        } else {
            while len >= size {
                hash = chunk::<V, true>(key, &mut counter, from, to, from, hash);
                (from, to, len) = (from.add(size), to.add(size), len - size);
            }
        }
        let data = (from, to, len);
        match len.div_ceil(16) / V::BLOCKS {
            0 => V::rest::<1>(dir, key, &counter, data, pending, &hash, &end),
            1 => V::rest::<2>(dir, key, &counter, data, pending, &hash, &end),
            2 => V::rest::<3>(dir, key, &counter, data, pending, &hash, &end),
            3 => V::rest::<4>(dir, key, &counter, data, pending, &hash, &end),
            4 => V::rest::<5>(dir, key, &counter, data, pending, &hash, &end),
            5 => V::rest::<6>(dir, key, &counter, data, pending, &hash, &end),
            6 => V::rest::<7>(dir, key, &counter, data, pending, &hash, &end),
            7 => V::rest::<8>(dir, key, &counter, data, pending, &hash, &end),
            _ => V::rest::<9>(dir, key, &counter, data, pending, &hash, &end),
        }
    }
}

/// The last byte of the counter blocks of a message from its second block on, the
/// first of the data. All else of the counter is zero there.
#[repr(align(64))]
struct FirstCounters([Block; (WIDTH + 1) * 4]);
static FIRST_COUNTERS: FirstCounters = FirstCounters({
    let mut table = [[0; 16]; (WIDTH + 1) * 4];
    let mut i = 0;
    while i < table.len() {
        table[i][15] = i as u8 + 2;
        i += 1;
    }
    table
});

/// A word that may stand anywhere.
#[derive(Clone, Copy)]
#[repr(C, packed)]
struct Word(i32);

/// A nonce of 12 bytes behind which stands a counter of zero.
// Volatile, so that the loads stay three: whatever the sizes of the stores that
// wrote the nonce a moment ago (8 and 4 bytes, or salt and IV of 4 and 8), they are
// then forwarded, while a load over two stores would wait until both are done.
#[inline(always)]
fn nonce(iv: &[u8; 16]) -> __m128i {
    let words = iv.as_ptr().cast::<Word>();
    // SAFETY: three words are inside the array; SSE2 is part of x86-64.
    unsafe {
        let [a, b, c] = [0, 1, 2].map(|i| words.add(i).read_volatile().0);
        _mm_set_epi32(0, c, b, a)
    }
}

/// A message of a chunk at most, with one block of additional data at most. `M` is
/// one more than the number of vectors that its blocks fill.
#[inline(always)]
unsafe fn short<V: Lane, const SEAL: bool, const M: usize>(job: &mut AeadJob<'_, GcmKey>) {
    let key = job.key;
    let len = job.data.len();
    let blocks = len.div_ceil(16);
    let behind = blocks % V::BLOCKS;
    debug_assert_eq!(M, blocks / V::BLOCKS + 1);
    let (from, to) = job.data.reborrow().into_raw();
    // SAFETY: the caller enables the instructions of `V`. The data is good for `len`
    // bytes, and what `bytes` gives keeps inside them. The table of counters has as
    // many vectors as M may be.
    unsafe {
        let mask = V::one_lane(behind);
        let base = V::splat(nonce(&job.iv)).xor(round_key(&key.aes, 0));
        let mut state = [V::zero(); M];
        for (i, block) in state.iter_mut().enumerate() {
            let mut counters = V::load(FIRST_COUNTERS.0.as_ptr().add(i * V::BLOCKS).cast());
            if i + 1 == M {
                let one = V::splat(_mm_set_epi32(1 << 24, 0, 0, 0));
                counters = counters.select(one, mask);
            }
            *block = base.xor(counters);
        }
        for i in 1..10 {
            round(&mut state, &key.aes, i);
        }
        let last = late_rounds(&mut state, &key.aes);
        let mut hashed = [V::zero(); M];
        for (i, (block, hashed)) in state.iter_mut().zip(&mut hashed).enumerate() {
            let n = bytes::<V, M>(len, i);
            let data = load_some::<V>(from, i, n);
            *block = block.aesenclast(data.xor(last));
            *hashed = if !SEAL {
                data
            } else if i + 2 < M {
                *block
            } else {
                block.and(V::keep(n))
            }
            .reverse();
        }
        for (i, block) in state.iter().enumerate() {
            store_some(*block, to, i, bytes::<V, M>(len, i));
        }
        let lengths = _mm_set_epi64x(
            (8 * job.aad.len() as u64).cast_signed(),
            (8 * len as u64).cast_signed(),
        );
        hashed[M - 1] = hashed[M - 1].xor(V::splat(lengths).and(mask));
        let mut sum = Sum::<V>::zero();
        for (i, hashed) in hashed.iter().take(M - 1).enumerate() {
            sum.add(*hashed, &key.table, blocks + 1 - i * V::BLOCKS);
        }
        let (hashed, n) = (hashed[M - 1], behind + 1);
        if job.aad.is_empty() {
            sum.add(hashed, &key.table, n);
        } else {
            let aad = load_block(job.aad).reverse();
            if n < V::BLOCKS {
                sum.add_with(hashed, &key.table, n, aad, blocks + 2);
            } else {
                sum.add(hashed, &key.table, n);
                sum.add(V::first(aad), &key.table, blocks + 2);
            }
        }
        let pad = state[M - 1].and(mask).reverse();
        let tag = sum.reduce().xor(pad).sum_lanes().reverse();
        tag.store(job.tag.as_mut_ptr());
        job.tag[16..].fill(0);
    }
}

/// The jobs of a batch one behind the other: the processor overlaps them by itself,
/// better than when they are interleaved here, for it is the number of instructions
/// that limits short messages.
#[inline(always)]
unsafe fn crypt_batch<V: Kernels, const SEAL: bool>(jobs: &mut [AeadJob<'_, GcmKey>]) {
    for job in jobs {
        // SAFETY: the caller enables the instructions of `V`.
        unsafe { crypt_job::<V, SEAL>(job) }
    }
}

/// One message.
#[inline(always)]
unsafe fn crypt_job<V: Kernels, const SEAL: bool>(job: &mut AeadJob<'_, GcmKey>) {
    let len = job.data.len();
    // SAFETY: the caller enables the instructions of `V`.
    unsafe {
        if len > WIDTH * V::BYTES || job.aad.len() > 16 {
            return V::long(dir::<SEAL>(), job);
        }
        match len.div_ceil(16) / V::BLOCKS {
            0 => V::short::<SEAL, 1>(job),
            1 => V::short::<SEAL, 2>(job),
            2 => V::short::<SEAL, 3>(job),
            3 => V::short::<SEAL, 4>(job),
            4 => V::short::<SEAL, 5>(job),
            5 => V::short::<SEAL, 6>(job),
            6 => V::short::<SEAL, 7>(job),
            7 => V::short::<SEAL, 8>(job),
            _ => V::short::<SEAL, 9>(job),
        }
    }
}

/// One message of any length, with additional data of any length.
#[inline(always)]
unsafe fn long<V: Kernels>(dir: Direction, job: &mut AeadJob<'_, GcmKey>) {
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
        let n = if len >= WIDTH * V::BYTES {
            WIDTH * V::BLOCKS
        } else {
            len.div_ceil(16) + 1
        };
        let hash = start(&key.table, job.aad, n);
        let end = Some(End { j0, lengths });
        let tag = crypt(dir, key, counter, (from, to, len), hash, end).reverse();
        tag.store(job.tag.as_mut_ptr());
        job.tag[16..].fill(0);
    }
}

#[inline(always)]
unsafe fn crypt_piece<V: Kernels>(
    dir: Direction,
    key: &GcmKey,
    counter: &Block,
    y: &mut Block,
    data: InOutBuf<'_, '_, u8>,
) {
    let len = data.len();
    let (from, to) = data.into_raw();
    // SAFETY: the caller enables the instructions of `V`; the buffer is good for
    // `len` bytes, its input and output being the same or apart.
    unsafe {
        let counter = counters(V::splat_load(counter.as_ptr()).swap_counter());
        let hash = Hash::from(__m128i::load(y.as_ptr()).reverse());
        let hash = crypt::<V>(dir, key, counter, (from, to, len), hash, None).reverse();
        hash.store(y.as_mut_ptr());
    }
}

#[inline(always)]
unsafe fn hash_bytes<V: Lane>(key: &GcmKey, y: &mut Block, bytes: &[u8]) {
    // SAFETY: the caller enables the instructions of `V`.
    unsafe {
        let before = __m128i::load(y.as_ptr()).reverse();
        let after = hash::<V>(&key.table, before, bytes.as_ptr(), bytes.len());
        after.reverse().store(y.as_mut_ptr());
    }
}

#[inline(always)]
unsafe fn encrypt_block(key: &AesKey, block: &Block) -> Block {
    // SAFETY: the caller enables the instructions of `__m128i`.
    unsafe {
        let mut state = [__m128i::load(block.as_ptr()).xor(round_key(key, 0))];
        for i in 1..10 {
            round(&mut state, key, i);
        }
        let last = late_rounds(&mut state, key);
        let mut out = [0; 16];
        state[0].aesenclast(last).store(out.as_mut_ptr());
        out
    }
}

/// The kernels for one vector, under the token of its instructions.
macro_rules! kernels {
    ($(#[$doc:meta])* $name:ident, $token:ty, $vector:ty, $features:literal) => {
        $(#[$doc])*
        pub(crate) mod $name {
            use super::*;

            impl Kernels for $vector {
                #[inline(always)]
                unsafe fn short<const SEAL: bool, const M: usize>(job: &mut AeadJob<'_, GcmKey>) {
                    #[target_feature(enable = $features)]
                    unsafe fn inner<const SEAL: bool, const M: usize>(job: &mut AeadJob<'_, GcmKey>) {
                        // SAFETY: the instructions are enabled here; else as for the caller.
                        unsafe { super::short::<$vector, SEAL, M>(job) }
                    }
                    // SAFETY: the caller enables the instructions.
                    unsafe { inner::<SEAL, M>(job) }
                }

                #[inline(always)]
                unsafe fn long(dir: Direction, job: &mut AeadJob<'_, GcmKey>) {
                    #[target_feature(enable = $features)]
                    unsafe fn inner(dir: Direction, job: &mut AeadJob<'_, GcmKey>) {
                        // SAFETY: the instructions are enabled here.
                        unsafe {
                            match dir {
                                Direction::Encrypt => {
                                    super::long::<$vector>(Direction::Encrypt, job);
                                }
                                Direction::Decrypt => {
                                    super::long::<$vector>(Direction::Decrypt, job);
                                }
                            }
                        }
                    }
                    // SAFETY: the caller enables the instructions.
                    unsafe { inner(dir, job) }
                }

                #[inline(always)]
                unsafe fn rest<const M: usize>(
                    dir: Direction,
                    key: &GcmKey,
                    counter: &Self,
                    data: (*const u8, *mut u8, usize),
                    pending: Option<*const u8>,
                    hash: &Hash<Self>,
                    end: &Option<End<Self>>,
                ) -> __m128i {
                    #[target_feature(enable = $features)]
                    #[inline(never)]
                    unsafe fn inner<const M: usize>(
                        dir: Direction,
                        key: &GcmKey,
                        counter: &$vector,
                        data: (*const u8, *mut u8, usize),
                        pending: Option<*const u8>,
                        hash: &Hash<$vector>,
                        end: &Option<End<$vector>>,
                    ) -> __m128i {
                        // SAFETY: the instructions are enabled here; else as for the caller.
                        unsafe {
                            super::rest::<$vector, M>(dir, key, counter, data, pending, hash, end)
                        }
                    }
                    // SAFETY: the caller enables the instructions.
                    unsafe { inner::<M>(dir, key, counter, data, pending, hash, end) }
                }
            }

            /// E(0), and the powers of it that the kernels here need.
            #[inline]
            pub(crate) fn fill_table(_: $token, aes: &AesKey, table: &mut Table) -> Block {
                #[target_feature(enable = $features)]
                fn inner(aes: &AesKey, table: &mut Table) -> Block {
                    // SAFETY: the instructions are enabled here.
                    unsafe {
                        let h = encrypt_block(aes, &[0; 16]);
                        fill::<$vector>(table, &h);
                        h
                    }
                }
                // SAFETY: the token proves the instructions.
                unsafe { inner(aes, table) }
            }

            /// Encrypts every job and gives it its tag.
            #[inline]
            pub(crate) fn seal(_: $token, jobs: &mut [AeadJob<'_, GcmKey>]) {
                #[target_feature(enable = $features)]
                fn inner(jobs: &mut [AeadJob<'_, GcmKey>]) {
                    // SAFETY: the instructions are enabled here.
                    unsafe { crypt_batch::<$vector, true>(jobs) }
                }
                // SAFETY: the token proves the instructions.
                unsafe { inner(jobs) }
            }

            /// Decrypts every job and gives it the tag of its input.
            #[inline]
            pub(crate) fn open(_: $token, jobs: &mut [AeadJob<'_, GcmKey>]) {
                #[target_feature(enable = $features)]
                fn inner(jobs: &mut [AeadJob<'_, GcmKey>]) {
                    // SAFETY: the instructions are enabled here.
                    unsafe { crypt_batch::<$vector, false>(jobs) }
                }
                // SAFETY: the token proves the instructions.
                unsafe { inner(jobs) }
            }

            /// Counter mode from `counter`, and GHASH on from `y`, over a piece of data
            /// that is followed by zeros up to a whole block.
            #[inline]
            pub(crate) fn crypt(
                _: $token,
                dir: Direction,
                key: &GcmKey,
                counter: &Block,
                y: &mut Block,
                data: InOutBuf<'_, '_, u8>,
            ) {
                #[target_feature(enable = $features)]
                fn inner(
                    dir: Direction,
                    key: &GcmKey,
                    counter: &Block,
                    y: &mut Block,
                    data: InOutBuf<'_, '_, u8>,
                ) {
                    // SAFETY: the instructions are enabled here.
                    unsafe {
                        match dir {
                            Direction::Encrypt => {
                                crypt_piece::<$vector>(Direction::Encrypt, key, counter, y, data);
                            }
                            Direction::Decrypt => {
                                crypt_piece::<$vector>(Direction::Decrypt, key, counter, y, data);
                            }
                        }
                    }
                }
                // SAFETY: the token proves the instructions.
                unsafe { inner(dir, key, counter, y, data) }
            }

            /// GHASH on from `y` over bytes and zeros up to a whole block.
            #[inline]
            pub(crate) fn hash(_: $token, key: &GcmKey, y: &mut Block, bytes: &[u8]) {
                #[target_feature(enable = $features)]
                fn inner(key: &GcmKey, y: &mut Block, bytes: &[u8]) {
                    // SAFETY: the instructions are enabled here.
                    unsafe { hash_bytes::<$vector>(key, y, bytes) }
                }
                // SAFETY: the token proves the instructions.
                unsafe { inner(key, y, bytes) }
            }

            /// The block cipher alone.
            #[inline]
            pub(crate) fn encrypt(_: $token, key: &AesKey, block: &Block) -> Block {
                #[target_feature(enable = $features)]
                fn inner(key: &AesKey, block: &Block) -> Block {
                    // SAFETY: the instructions are enabled here.
                    unsafe { encrypt_block(key, block) }
                }
                // SAFETY: the token proves the instructions.
                unsafe { inner(key, block) }
            }

            /// The product of two blocks in the field of GHASH.
            #[inline]
            pub(crate) fn multiply(_: $token, a: &Block, b: &Block) -> Block {
                #[target_feature(enable = $features)]
                fn inner(a: &Block, b: &Block) -> Block {
                    // SAFETY: the instructions are enabled here.
                    unsafe { product(a, b) }
                }
                // SAFETY: the token proves the instructions.
                unsafe { inner(a, b) }
            }
        }
    };
}

kernels!(
    /// One block a vector.
    x128, HaveAesNi, __m128i, "aes,pclmulqdq,ssse3,sse4.1"
);
kernels!(
    /// Two blocks a vector.
    x256, HaveVaes, __m256i, "aes,pclmulqdq,avx2,vaes,vpclmulqdq"
);
kernels!(
    /// Four blocks a vector.
    x512, HaveVaes512, __m512i,
    "aes,pclmulqdq,avx2,vaes,vpclmulqdq,avx512f,avx512bw,avx512dq,avx512vl"
);
