//! Counter mode a group of vectors at a time: counters, the rounds of AES, and the
//! data that the last round meets.

use core::arch::x86_64::*;

use super::lane::Lane;
use crate::aes::key::{Block, EncryptionKey};
use crate::x86_64::states::forget;

/// Vectors in a chunk: with a latency of four cycles and two units, AES needs eight.
pub(super) const WIDTH: usize = 8;

/// Half of them, which is enough for one unit with a latency of three cycles.
pub(super) const HALF: usize = WIDTH / 2;

/// The place of a lane in its vector, where [`Lane::add32`] counts.
#[repr(align(64))]
struct LaneNumbers([u32; 16]);
static LANE_NUMBERS: LaneNumbers = LaneNumbers([0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3]);

/// `n` for the counter of each lane.
#[inline(always)]
pub(super) unsafe fn count<V: Lane>(n: u32) -> V {
    // SAFETY: the caller enables the instructions of `V`.
    unsafe { V::splat(_mm_set_epi32(n.cast_signed(), 0, 0, 0)) }
}

/// The counters of a vector whose first lane has `base`, in the form for counting.
#[inline(always)]
pub(super) unsafe fn counters<V: Lane>(base: V) -> V {
    // SAFETY: the caller enables the instructions of `V`; the table is 64 bytes.
    unsafe { base.add32(V::load(LANE_NUMBERS.0.as_ptr().cast())) }
}

/// The round keys of one pass through AES. The compiler loads none before its turn has
/// come: what a load waits for is named by [`wait_for`](Self::wait_for).
pub(super) struct RoundKeys<'k> {
    key: &'k EncryptionKey,
    start: *const Block,
    /// Whether each stands there once for every lane.
    are_wide: bool,
    /// Whether zeros are left where they are loaded from.
    are_taken: bool,
}

impl<'k> RoundKeys<'k> {
    #[inline(always)]
    pub(super) fn of(key: &'k EncryptionKey) -> Self {
        RoundKeys {
            key,
            start: key.enc().as_ptr(),
            are_wide: false,
            are_taken: false,
        }
    }

    /// From a place where they stand once for every lane of `V`, and where zeros are left if they are
    /// `taken`.
    ///
    /// # Safety
    /// Loads are of this `V`, and the place is valid for writes if they are taken.
    #[inline(always)]
    pub(super) unsafe fn wide<V: Lane>(
        key: &'k EncryptionKey,
        start: *const V,
        taken: bool,
    ) -> Self {
        RoundKeys {
            key,
            start: start.cast(),
            are_wide: true,
            are_taken: taken,
        }
    }

    /// Loads that follow wait for `value`.
    #[inline(always)]
    pub(super) unsafe fn wait_for<V: Lane>(&mut self, value: V) {
        // SAFETY: the caller enables the instructions of `V`.
        self.start = unsafe { V::after(self.start, value) };
    }

    /// All of them again, for another pass, of which loads wait for `value`.
    #[inline(always)]
    pub(super) unsafe fn again<V: Lane>(&mut self, value: V) {
        self.start = self.key.enc().as_ptr();
        // SAFETY: the caller enables the instructions of `V`.
        unsafe { self.wait_for(value) }
    }

    #[inline(always)]
    pub(super) unsafe fn load<V: Lane>(&self, round: usize) -> V {
        debug_assert!(round <= self.key.rounds());
        // SAFETY: the caller enables the instructions of `V`; a round key is 16 bytes.
        unsafe {
            if !self.are_wide {
                return V::splat_load(self.start.add(round).cast());
            }
            let place = self.start.add(round * V::BLOCKS);
            let key = V::load(place.cast());
            if self.are_taken {
                forget::<V, 1>(V::zero(), place.cast_mut().cast());
            }
            key
        }
    }
}

#[inline(always)]
pub(super) unsafe fn round<V: Lane, const M: usize>(
    state: &mut [V; M],
    keys: &mut RoundKeys<'_>,
    round: usize,
) {
    // SAFETY: the caller enables the instructions of `V`.
    unsafe {
        keys.wait_for(state[M - 1]);
        let key = keys.load(round);
        for block in state {
            *block = block.aesenc(key);
        }
    }
}

/// Rounds that only longer keys have, and the key of the last round.
#[inline(always)]
pub(super) unsafe fn late_rounds<V: Lane, const M: usize>(
    state: &mut [V; M],
    keys: &mut RoundKeys<'_>,
) -> V {
    // SAFETY: the caller enables the instructions of `V`.
    unsafe {
        let rounds = keys.key.rounds();
        if rounds > 10 {
            round(state, keys, 10);
            round(state, keys, 11);
            if rounds > 12 {
                round(state, keys, 12);
                round(state, keys, 13);
            }
        }
        keys.wait_for(state[M - 1]);
        keys.load(rounds)
    }
}

/// Blocks of a chunk.
pub(super) const fn chunk_blocks<V: Lane>() -> usize {
    WIDTH * V::BLOCKS
}

/// The counter of the first block of data, which chunks of whole messages begin with, and
/// with it plus a multiple of their blocks.
pub(super) const FIRST: usize = 2;

/// The last byte of each counter of a chunk and of the vector behind it, where the counter of its
/// first block is [`FIRST`] and a multiple of its blocks: what is added to the multiple changes no
/// other bit.
struct Places<V>(core::marker::PhantomData<V>);

impl<V: Lane> Places<V> {
    const TABLE: PlaceTable = PlaceTable({
        let mut table = [[0; 16]; (WIDTH + 1) * 4];
        let mut i = 0;
        while i < table.len() {
            table[i][15] = ((FIRST + i) % chunk_blocks::<V>()) as u8;
            i += 1;
        }
        table
    });
}

#[repr(align(64))]
struct PlaceTable([Block; (WIDTH + 1) * 4]);

/// The counter of a whole message that is J0.
const J0: Block = {
    let mut counter = [0; 16];
    counter[15] = 1;
    counter
};

/// The counters of the chunks that follow.
#[derive(Clone, Copy)]
pub(super) struct Counters<V> {
    /// The multiple of a chunk's blocks behind which the next chunk begins, in the form for counting.
    base: V,
    /// The same after the first round key.
    here: V,
}

impl<V: Lane> Counters<V> {
    /// From the counter of the first block, in the form for counting.
    #[inline(always)]
    pub(super) unsafe fn from(first: V, key: &EncryptionKey) -> Self {
        // SAFETY: the caller enables the instructions of `V`.
        unsafe { Self::at(first.add32(count((FIRST as u32).wrapping_neg())), key) }
    }

    /// Of a message, from its nonce behind which stands a counter of zero.
    #[inline(always)]
    pub(super) unsafe fn of(nonce: V, key: &EncryptionKey) -> Self {
        // SAFETY: the caller enables the instructions of `V`.
        let here = unsafe { nonce.xor(RoundKeys::of(key).load(0)) };
        Counters { base: nonce, here }
    }

    /// From the multiple behind which the next chunk begins, in the form for counting.
    #[inline(always)]
    pub(super) unsafe fn at(base: V, key: &EncryptionKey) -> Self {
        // SAFETY: the caller enables the instructions of `V`.
        unsafe {
            let here = base.swap_counter().xor(RoundKeys::of(key).load(0));
            Counters { base, here }
        }
    }

    #[inline(always)]
    pub(super) fn base(self) -> V {
        self.base
    }

    /// J0 of a message, of which these are the first, after the first round key.
    #[inline(always)]
    pub(super) unsafe fn j0(self) -> V {
        // SAFETY: the caller enables the instructions of `V`.
        unsafe { self.here.xor(V::splat_load(J0.as_ptr())) }
    }

    /// The same as a number.
    #[inline(always)]
    pub(super) unsafe fn number(self) -> usize {
        // SAFETY: the caller enables the instructions of `V`.
        unsafe { _mm_extract_epi32::<3>(self.base.low()).cast_unsigned() as usize }
    }

    /// The counters of a chunk after the first round key.
    // Reversing one counter and adding bits to it is less work than reversing each.
    #[inline(always)]
    pub(super) unsafe fn first_round(&mut self, keys: &mut RoundKeys<'_>) -> [V; WIDTH] {
        // SAFETY: the caller enables the instructions of `V`.
        unsafe {
            keys.wait_for(self.base);
            self.base = self.base.add32(count(chunk_blocks::<V>() as u32));
            let next = self.base.swap_counter().xor(keys.load(0));
            let here = core::mem::replace(&mut self.here, next);
            Self::states(here, next, 0)
        }
    }

    /// Those of `M` vectors from vector `i` of the next chunk on.
    #[inline(always)]
    pub(super) unsafe fn some<const M: usize>(&self, keys: &RoundKeys<'_>, i: usize) -> [V; M] {
        // SAFETY: as above.
        unsafe {
            let next = self.base.add32(count(chunk_blocks::<V>() as u32));
            Self::states(self.here, next.swap_counter().xor(keys.load(0)), i)
        }
    }

    #[inline(always)]
    unsafe fn states<const M: usize>(here: V, next: V, first: usize) -> [V; M] {
        debug_assert!(first + M <= WIDTH + 1);
        // SAFETY: the caller enables the instructions of `V`; the table has the places of a chunk and
        // of a vector more.
        unsafe {
            let mut state = [V::zero(); M];
            for (i, block) in state.iter_mut().enumerate() {
                let i = first + i;
                let places = Places::<V>::TABLE.0.as_ptr().add(i * V::BLOCKS);
                *block = of_place(here, next, i).xor(V::load(places.cast()));
            }
            state
        }
    }
}

/// `here` for those blocks of vector `i` of a chunk that stand before the next multiple of a chunk's
/// blocks, `next` for the others.
#[inline(always)]
pub(super) unsafe fn of_place<V: Lane>(here: V, next: V, i: usize) -> V {
    match chunk_blocks::<V>().saturating_sub(FIRST + i * V::BLOCKS) {
        0 => next,
        // SAFETY: the caller enables the instructions of `V`.
        n if n < V::BLOCKS => unsafe { next.select(here, V::keep(16 * n)) },
        _ => here,
    }
}

/// `n <= BYTES` bytes of vector `i`, zeros behind them.
#[inline(always)]
pub(super) unsafe fn load_some<V: Lane>(from: *const u8, i: usize, n: usize) -> V {
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
pub(super) unsafe fn load_block(bytes: &[u8]) -> __m128i {
    // SAFETY: the caller enables the instructions of `__m128i`; the slice is good
    // for its length.
    unsafe {
        if bytes.len() == 16 {
            __m128i::load(bytes.as_ptr())
        } else {
            __m128i::load_part(bytes.as_ptr(), bytes.len())
        }
    }
}

/// The last round of vector `i` of the data, of which `n` bytes are left. Gives what
/// is to be hashed, bytes reversed.
#[inline(always)]
unsafe fn last_round<V: Lane, const SEAL: bool>(
    state: &mut V,
    key: V,
    from: *const u8,
    to: *mut u8,
    i: usize,
    n: usize,
) -> V {
    // SAFETY: the caller enables the instructions of `V` and gives these bytes.
    unsafe {
        let data = load_some::<V>(from, i, n);
        *state = state.aesenclast(data.xor(key));
        store_some(*state, to, i, n);
        let hashed = match SEAL {
            false => data,
            true if n == V::BYTES => *state,
            true => state.and(V::keep(n)),
        };
        hashed.reverse()
    }
}

/// The last round of a group of `len` bytes, whose blocks fill M - 1 vectors and a part
/// of one more or nothing of it. Gives what is to be hashed, bytes reversed.
#[inline(always)]
pub(super) unsafe fn last_rounds<V: Lane, const SEAL: bool, const M: usize>(
    state: &mut [V; M],
    key: V,
    from: *const u8,
    to: *mut u8,
    len: usize,
) -> [V; M] {
    // SAFETY: the caller enables the instructions of `V` and gives `len` bytes to read
    // and to write; what is said of them leaves each vector here inside them.
    unsafe {
        let mut hashed = [V::zero(); M];
        for i in 0..M.saturating_sub(2) {
            hashed[i] = last_round::<V, SEAL>(&mut state[i], key, from, to, i, V::BYTES);
        }
        // What is behind M - 1 vectors or, below zero, what the last of them lacks.
        let tail = len.cast_signed() - ((M - 1) * V::BYTES).cast_signed();
        if tail < 0 {
            let (i, n) = (M.saturating_sub(2), V::BYTES.wrapping_add_signed(tail));
            hashed[i] = last_round::<V, SEAL>(&mut state[i], key, from, to, i, n);
            state[M - 1] = state[M - 1].aesenclast(key);
            return hashed;
        }
        if M > 1 {
            let i = M - 2;
            hashed[i] = last_round::<V, SEAL>(&mut state[i], key, from, to, i, V::BYTES);
        }
        if tail == 0 {
            state[M - 1] = state[M - 1].aesenclast(key);
        } else {
            let (i, n) = (M - 1, tail.cast_unsigned());
            hashed[i] = last_round::<V, SEAL>(&mut state[i], key, from, to, i, n);
        }
        hashed
    }
}

/// A block that may have been written in words of 64 bits a moment ago, as numbers of 128 bits are: a
/// load over both stores would wait until they are done. Volatile, so that the loads stay two.
#[inline(always)]
pub(super) fn words(block: &Block) -> __m128i {
    #[repr(C, packed)]
    struct Word(i64);
    let words = block.as_ptr().cast::<Word>();
    // SAFETY: both words are inside the block; SSE2 is part of x86-64.
    unsafe {
        let [low, high] = [0, 1].map(|i| words.add(i).read_volatile().0);
        _mm_set_epi64x(high, low)
    }
}

/// A block through AES.
#[inline(always)]
pub(super) unsafe fn encrypt_vector(key: &EncryptionKey, block: __m128i) -> __m128i {
    // SAFETY: the caller enables the instructions of `__m128i`.
    unsafe {
        let mut keys = RoundKeys::of(key);
        let mut state = [block.xor(keys.load(0))];
        for i in 1..10 {
            round(&mut state, &mut keys, i);
        }
        let last = late_rounds(&mut state, &mut keys);
        state[0].aesenclast(last)
    }
}

#[inline(always)]
pub(super) unsafe fn encrypt_block(key: &EncryptionKey, block: &Block) -> Block {
    // SAFETY: the caller enables the instructions of `__m128i`.
    unsafe {
        let mut out = [0; 16];
        encrypt_vector(key, words(block)).store(out.as_mut_ptr());
        out
    }
}
