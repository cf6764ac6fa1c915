//! Blocks of many short requests packed into common registers.
//!
//! Modes without a chain reduce to `output = AES(input) ^ post` on single blocks.
//! Each pending block stands in a slot; full slots go through the cipher together,
//! whichever requests they came from. When they all have one key, its round keys
//! are broadcast; otherwise each place of a register loads its own.

use core::arch::x86_64::__m128i;
use core::mem::MaybeUninit;

use super::cursor::Cursor;
use super::order::after;
use super::rounds::{Keys, Schedule, middle};
use super::tier::Tier;
use super::wide::Wide;
use super::wipe;
use crate::aes::key::Block;

/// The most slots of any tier: eight registers of four blocks.
const MAX_SLOTS: usize = 32;

/// Memory of the slots. Not initialised until filled, since a request alone shall
/// not pay for clearing it.
#[repr(C, align(64))]
pub(crate) struct Store {
    input: [Block; MAX_SLOTS],
    post: [Block; MAX_SLOTS],
    output: [*mut u8; MAX_SLOTS],
    key: [*const Block; MAX_SLOTS],
    tails: [Tail; MAX_SLOTS],
}

/// A slot that holds less than a block.
#[derive(Clone, Copy)]
struct Tail {
    slot: usize,
    len: usize,
    output: *mut u8,
}

/// What a mode makes of its data, for some blocks at a time.
pub(crate) trait Feed<V: Wide> {
    /// `input` and `post` of the next `BLOCKS` blocks, which stand at `from`.
    ///
    /// # Safety
    /// The instructions of `V` are there and the data is valid.
    unsafe fn wide(&mut self, from: *const u8) -> (V, V);

    /// The same of one block.
    ///
    /// # Safety
    /// As for [`Feed::wide`].
    unsafe fn single(&mut self, from: *const u8) -> (__m128i, __m128i);
}

/// What is pending in a [`Store`].
#[derive(Clone, Copy)]
pub(crate) struct Pending {
    /// Slots filled, from the first on.
    filled: usize,
    /// How many of them hold less than a block.
    tails: usize,
    /// The key of all, or with `mixed` the last one.
    key: Schedule,
    /// Whether each slot has its own key, of the same number of rounds.
    mixed: bool,
    /// Whether a register was filled in more than one store. Loading it whole would
    /// wait until these have left the store buffer.
    pieces: bool,
}

/// The slots of a batch.
pub(crate) struct Slots {
    store: *mut Store,
    pending: Pending,
    /// The most slots filled at a time, to be wiped.
    used: usize,
}

impl Slots {
    /// Over memory that outlives the slots and is used through them alone.
    #[inline(always)]
    pub(crate) fn new(store: &mut MaybeUninit<Store>) -> Slots {
        Slots {
            store: store.as_mut_ptr(),
            pending: Pending {
                filled: 0,
                tails: 0,
                key: Schedule::none(),
                mixed: false,
                pieces: false,
            },
            used: 0,
        }
    }

    /// Blocks staged from now on have this key.
    ///
    /// # Safety
    /// The instructions of `T` are there; the key lives until the next flush, and
    /// what was staged before is still valid.
    #[inline(always)]
    pub(crate) unsafe fn begin<T: Tier, const DECRYPT: bool>(&mut self, key: Schedule) {
        let Pending { filled, .. } = self.pending;
        if filled > 0 && !key.same(&self.pending.key) {
            // SAFETY: as for this function; `filled` is at most `MAX_SLOTS`.
            unsafe {
                if key.rounds() != self.pending.key.rounds() {
                    self.flush::<T, DECRYPT>();
                } else if !self.pending.mixed {
                    let first = (&raw mut (*self.store).key).cast::<*const Block>();
                    for slot in 0..filled {
                        first.add(slot).write(self.pending.key.key(0));
                    }
                    self.pending.mixed = true;
                }
            }
        }
        self.pending.key = key;
    }

    /// Stages all whole blocks of `at`, as `feed` makes them, and steps over them.
    ///
    /// # Safety
    /// The instructions of `T` are there; the data behind `at` is valid, its output
    /// until the next flush.
    #[inline(always)]
    pub(crate) unsafe fn stage<T: Tier, const DECRYPT: bool>(
        &mut self,
        at: &mut Cursor,
        feed: &mut impl Feed<T::V>,
    ) {
        let step = T::V::BLOCKS;
        // SAFETY: as for this function; a turn takes no more blocks than there are
        // slots left or data.
        unsafe {
            while at.len >= 16 {
                if self.pending.filled == T::SLOTS {
                    self.flush::<T, DECRYPT>();
                }
                let mut blocks = at.blocks().min(T::SLOTS - self.pending.filled);
                while step > 1 && blocks >= step {
                    let (input, post) = feed.wide(at.from);
                    self.push(input, post, at.to);
                    at.advance(16 * step);
                    blocks -= step;
                }
                while blocks > 0 {
                    let (input, post) = feed.single(at.from);
                    self.push(input, post, at.to);
                    self.pending.pieces = step > 1;
                    at.advance(16);
                    blocks -= 1;
                }
            }
        }
    }

    /// Stages what `at` has left, at least one byte and less than a block.
    ///
    /// # Safety
    /// As for [`Slots::stage`].
    #[inline(always)]
    pub(crate) unsafe fn stage_tail<T: Tier, const DECRYPT: bool>(
        &mut self,
        at: &Cursor,
        feed: &mut impl Feed<T::V>,
    ) {
        // SAFETY: as for this function; after the flush, if any, a slot is free, and
        // there are no more tails than slots. The part of a block takes the place
        // of `post`, which `Slots::run` reads block by block.
        unsafe {
            if self.pending.filled == T::SLOTS {
                self.flush::<T, DECRYPT>();
            }
            let slot = self.pending.filled;
            let post = (&raw mut (*self.store).post).cast::<Block>().add(slot);
            __m128i::zero().store(post.cast());
            copy_short(at.from, post.cast(), at.len);
            let (input, padded) = feed.single(post.cast());
            self.push(input, padded, post.cast());
            let tails = (&raw mut (*self.store).tails).cast::<Tail>();
            tails.add(self.pending.tails).write(Tail {
                slot,
                len: at.len,
                output: at.to,
            });
        }
        self.pending.tails += 1;
        self.pending.pieces = true;
    }

    /// Fills as many slots as `V` has blocks, for consecutive blocks of output.
    ///
    /// # Safety
    /// The instructions of `V` are there, and as many slots are free.
    #[inline(always)]
    unsafe fn push<V: Wide>(&mut self, input: V, post: V, output: *mut u8) {
        let slot = self.pending.filled;
        // SAFETY: as for this function.
        unsafe {
            let store = &raw mut (*self.store);
            input.store((&raw mut (*store).input).cast::<u8>().add(16 * slot));
            post.store((&raw mut (*store).post).cast::<u8>().add(16 * slot));
            let outputs = (&raw mut (*store).output).cast::<*mut u8>().add(slot);
            let keys = (&raw mut (*store).key).cast::<*const Block>().add(slot);
            for b in 0..V::BLOCKS {
                outputs.add(b).write(output.wrapping_add(16 * b));
            }
            if self.pending.mixed {
                for b in 0..V::BLOCKS {
                    keys.add(b).write(self.pending.key.key(0));
                }
            }
        }
        self.pending.filled = slot + V::BLOCKS;
    }

    /// Runs all pending blocks and writes them where they belong.
    ///
    /// # Safety
    /// The instructions of `T` are there, and keys and outputs are still valid.
    #[inline(always)]
    pub(crate) unsafe fn flush<T: Tier, const DECRYPT: bool>(&mut self) {
        if self.pending.filled > 0 {
            self.used = self.used.max(self.pending.filled);
            // SAFETY: as for this function.
            unsafe { T::flush::<DECRYPT>(self.store, self.pending) };
            self.pending.filled = 0;
            self.pending.tails = 0;
            self.pending.mixed = false;
            self.pending.pieces = false;
        }
    }

    /// Wipes what was pending here.
    ///
    /// # Safety
    /// The instructions of `T` are there.
    #[inline(always)]
    pub(crate) unsafe fn wipe<T: Tier>(&mut self) {
        // SAFETY: `used` is at most `T::SLOTS`, which is a multiple of `BLOCKS`.
        unsafe {
            wipe::blocks::<T::V>((&raw mut (*self.store).input).cast(), self.used);
            wipe::blocks::<T::V>((&raw mut (*self.store).post).cast(), self.used);
        }
    }
}

/// What [`Slots::flush`] does, in registers as few as hold what is pending.
///
/// # Safety
/// As there; at least one slot is filled.
#[inline(always)]
pub(super) unsafe fn run<T: Tier, const DECRYPT: bool>(store: *mut Store, pending: Pending) {
    // SAFETY: as for this function.
    unsafe {
        if pending.filled == 1 && !pending.mixed {
            return run_registers::<__m128i, _, 1, DECRYPT, false>(store, pending, pending.key);
        }
        match pending.filled.div_ceil(T::V::BLOCKS) {
            0 | 1 => choose_keys::<T, 1, DECRYPT>(store, pending),
            2 => choose_keys::<T, 2, DECRYPT>(store, pending),
            3 | 4 => choose_keys::<T, 4, DECRYPT>(store, pending),
            5 | 6 => choose_keys::<T, 6, DECRYPT>(store, pending),
            _ => choose_keys::<T, 8, DECRYPT>(store, pending),
        }
    }
}

/// # Safety
/// As for [`run`], and `W` registers hold what is pending.
#[inline(always)]
unsafe fn choose_keys<T: Tier, const W: usize, const DECRYPT: bool>(
    store: *mut Store,
    pending: Pending,
) {
    // SAFETY: as for this function. Slots up to `W * BLOCKS` get a key.
    unsafe {
        let rounds = pending.key.rounds();
        let first = (&raw mut (*store).key).cast::<*const Block>();
        if pending.mixed {
            for slot in pending.filled..W * T::V::BLOCKS {
                first.add(slot).write(pending.key.key(0));
            }
        }
        if pending.mixed && !pending.pieces {
            let keys = EachRegister { first, rounds };
            run_registers::<T::V, _, W, DECRYPT, false>(store, pending, keys);
        } else if pending.mixed {
            run_registers::<T::V, _, W, DECRYPT, true>(store, pending, Each { first, rounds });
        } else if pending.pieces {
            run_registers::<T::V, _, W, DECRYPT, true>(store, pending, pending.key);
        } else {
            run_registers::<T::V, _, W, DECRYPT, false>(store, pending, pending.key);
        }
    }
}

/// # Safety
/// As for [`choose_keys`].
#[inline(always)]
unsafe fn run_registers<
    V: Wide,
    K: Keys<V>,
    const W: usize,
    const DECRYPT: bool,
    const PIECES: bool,
>(
    store: *mut Store,
    pending: Pending,
    keys: K,
) {
    let places = V::BLOCKS;
    let mut sink: Block = [0; 16];
    // SAFETY: slots below `filled` are staged, the others up to `W * BLOCKS` filled
    // here, and outputs are valid. A short block goes to its own slot of `post`,
    // which has been read by then, and from there what there is of it to its output.
    unsafe {
        let input = (&raw mut (*store).input).cast::<Block>();
        let post = (&raw mut (*store).post).cast::<Block>();
        let output = (&raw mut (*store).output).cast::<*mut u8>();
        for slot in pending.filled..W * places {
            __m128i::zero().store(input.add(slot).cast());
            __m128i::zero().store(post.add(slot).cast());
            output.add(slot).write((&raw mut sink).cast());
        }
        let load = |from: *const Block| match PIECES {
            true => V::load_pieces(from),
            false => V::load(from.cast()),
        };
        let mut state = [V::zero(); W];
        for (i, state) in state.iter_mut().enumerate() {
            *state = load(input.add(i * places)).xor(keys.at(i, 0));
        }
        let keys = middle::<V, K, W, DECRYPT>(&mut state, keys);
        for (i, state) in state.iter_mut().enumerate() {
            let post = load(post.add(i * places));
            *state = state.last_round::<DECRYPT>(keys.at(i, keys.rounds()).xor(post));
        }
        for (i, state) in state.iter().enumerate() {
            state.scatter(|b| *output.add(i * places + b));
        }
        let tails = (&raw const (*store).tails).cast::<Tail>();
        for i in 0..pending.tails {
            let tail = *tails.add(i);
            copy_short(post.add(tail.slot).cast(), tail.output, tail.len);
        }
    }
}

/// A key for each block of each register, all of the same number of rounds.
#[derive(Clone, Copy)]
struct Each {
    first: *const *const Block,
    rounds: usize,
}

impl<V: Wide> Keys<V> for Each {
    #[inline(always)]
    fn rounds(&self) -> usize {
        self.rounds
    }

    #[inline(always)]
    unsafe fn at(&self, register: usize, round: usize) -> V {
        // SAFETY: as the trait says, there is a key for each place.
        unsafe {
            V::gather(|b| {
                (*self.first.add(register * V::BLOCKS + b))
                    .add(round)
                    .cast()
            })
        }
    }

    #[inline(always)]
    unsafe fn after(self, state: V) -> Self {
        // SAFETY: as the trait says.
        let first = after(self.first, unsafe { state.first() });
        Each { first, ..self }
    }
}

/// A key for each register: that of its first block, since all have the same.
#[derive(Clone, Copy)]
struct EachRegister {
    first: *const *const Block,
    rounds: usize,
}

impl<V: Wide> Keys<V> for EachRegister {
    #[inline(always)]
    fn rounds(&self) -> usize {
        self.rounds
    }

    #[inline(always)]
    unsafe fn at(&self, register: usize, round: usize) -> V {
        // SAFETY: as the trait says, there is a key for each register.
        unsafe { V::splat((*self.first.add(register * V::BLOCKS)).add(round)) }
    }

    #[inline(always)]
    unsafe fn after(self, state: V) -> Self {
        // SAFETY: as the trait says.
        let first = after(self.first, unsafe { state.first() });
        EachRegister { first, ..self }
    }
}

/// Copies fewer than 16 bytes, without a call.
///
/// # Safety
/// Both places are valid for `len` bytes and do not overlap.
#[inline(always)]
pub(crate) unsafe fn copy_short(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: every access lies within `len` bytes, by the comparisons.
    unsafe {
        if len >= 8 {
            copy_ends::<u64>(from, to, len);
        } else if len >= 4 {
            copy_ends::<u32>(from, to, len);
        } else if len >= 2 {
            copy_ends::<u16>(from, to, len);
        } else if len == 1 {
            to.write(*from);
        }
    }
}

/// The first and the last `T` of `len` bytes, which may overlap.
///
/// # Safety
/// As for [`copy_short`], with `len` at least the size of `T` and at most twice it.
#[inline(always)]
unsafe fn copy_ends<T>(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: as for this function.
    unsafe {
        let behind = len - size_of::<T>();
        let first = from.cast::<T>().read_unaligned();
        let last = from.add(behind).cast::<T>().read_unaligned();
        to.cast::<T>().write_unaligned(first);
        to.add(behind).cast::<T>().write_unaligned(last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aes::key::AesKey;
    use crate::cpu::HaveClmul;
    use crate::x86_64::ecb::Plain;
    use crate::x86_64::tier::AesNi;

    #[test]
    fn wiping_leaves_zeros() {
        if HaveClmul::new().is_none() {
            return;
        }
        let key = AesKey::new(&[1; 16]).unwrap();
        let mut data = [0x77; 16 * 20];
        let mut store = MaybeUninit::<Store>::uninit();
        // SAFETY: the token proves the instructions of the tier, the data outlives the flush, and the store is
        // initialised as plain bytes before and read as such after it.
        let (input, post) = unsafe {
            let mut slots = Slots::new(&mut store);
            // Not zero to start with, so that slots never used show which were.
            slots
                .store
                .cast::<u8>()
                .write_bytes(0xee, size_of::<Store>());
            let schedule = Schedule::new::<false>(&key);
            let mut at = Cursor {
                from: data.as_ptr(),
                to: data.as_mut_ptr(),
                len: data.len(),
            };
            slots.begin::<AesNi, false>(schedule);
            slots.stage::<AesNi, false>(&mut at, &mut Plain);
            slots.flush::<AesNi, false>();
            assert_eq!(
                (*slots.store).input[0],
                [0x77; 16],
                "staged there before the wipe"
            );
            slots.wipe::<AesNi>();
            ((*slots.store).input, (*slots.store).post)
        };
        assert_ne!(data, [0x77; 16 * 20]);
        assert_eq!(
            (&input[..8], &post[..8]),
            (&[[0; 16]; 8][..], &[[0; 16]; 8][..])
        );
        assert_eq!((input[8], post[8]), ([0xee; 16], [0xee; 16]));
    }
}
