//! Blocks of many short requests packed into common registers.
//!
//! Modes without a chain reduce to `output = AES(input) ^ post` on single blocks.
//! Each pending block stands in a slot; full slots go through the cipher together,
//! whichever requests they came from. When they all have one key, its round keys
//! are broadcast; otherwise each place of a register loads its own.

use core::arch::x86_64::__m128i;
use core::mem::MaybeUninit;

use super::rounds::{Keys, Schedule, middle};
use super::tier::Tier;
use super::wide::Wide;
use super::wipe;
use crate::aes::Block;

/// The most slots of any tier: eight registers of four blocks.
const MOST: usize = 32;

/// Pending blocks. Uninitialised until filled, since a request alone shall not
/// pay for clearing them.
pub(crate) struct Slots {
    input: [MaybeUninit<Block>; MOST],
    post: [MaybeUninit<Block>; MOST],
    output: [MaybeUninit<*mut u8>; MOST],
    key: [MaybeUninit<*const Block>; MOST],
    tails: [MaybeUninit<Tail>; MOST],
    filled: usize,
    tail_count: usize,
    /// Of every key here.
    rounds: usize,
    /// Whether there is more than one key.
    mixed: bool,
    /// The most slots filled at a time, to be wiped.
    used: usize,
}

/// A slot that holds less than a block.
#[derive(Clone, Copy)]
struct Tail {
    slot: usize,
    len: usize,
    output: *mut u8,
}

impl Slots {
    #[inline(always)]
    pub(crate) fn new() -> Slots {
        Slots {
            input: [MaybeUninit::uninit(); MOST],
            post: [MaybeUninit::uninit(); MOST],
            output: [MaybeUninit::uninit(); MOST],
            key: [MaybeUninit::uninit(); MOST],
            tails: [MaybeUninit::uninit(); MOST],
            filled: 0,
            tail_count: 0,
            rounds: 0,
            mixed: false,
            used: 0,
        }
    }

    /// Blocks pushed from now on have this key.
    ///
    /// # Safety
    /// As for [`Slots::push`].
    #[inline(always)]
    pub(crate) unsafe fn begin<T: Tier, const DECRYPT: bool>(&mut self, key: Schedule) {
        if self.filled > 0 {
            if self.rounds != key.rounds() {
                // SAFETY: the blocks pushed so far are still valid.
                unsafe { T::flush::<DECRYPT>(self) };
            } else {
                // SAFETY: slots below `filled` were written by `push`.
                let last = unsafe { self.key[self.filled - 1].assume_init() };
                self.mixed |= !core::ptr::eq(last, key.key(0));
            }
        }
        self.rounds = key.rounds();
    }

    /// Adds the block `AES(input) ^ post`, to be written to `output` by a flush.
    ///
    /// # Safety
    /// The instructions of `T` are there. `output` is valid for 16 bytes until the
    /// flush, and `key` is the one given to [`Slots::begin`] and lives as long.
    #[inline(always)]
    pub(crate) unsafe fn push<T: Tier, const DECRYPT: bool>(
        &mut self,
        key: Schedule,
        input: __m128i,
        post: __m128i,
        output: *mut u8,
    ) {
        if self.filled == T::SLOTS {
            // SAFETY: as for this function.
            unsafe { T::flush::<DECRYPT>(self) };
        }
        let slot = self.filled;
        // SAFETY: `slot < T::SLOTS <= MOST`.
        unsafe {
            let to = self.input.get_unchecked_mut(slot);
            input.store(to.as_mut_ptr().cast());
            let to = self.post.get_unchecked_mut(slot);
            post.store(to.as_mut_ptr().cast());
            self.output.get_unchecked_mut(slot).write(output);
            self.key.get_unchecked_mut(slot).write(key.key(0));
        }
        self.filled = slot + 1;
    }

    /// Adds `AES(input) ^ from`, cut to the `len` bytes at `from`, for `output`.
    ///
    /// # Safety
    /// As for [`Slots::push`], with `len` below 16 and valid bytes at both places.
    #[inline(always)]
    pub(crate) unsafe fn push_tail<T: Tier, const DECRYPT: bool>(
        &mut self,
        key: Schedule,
        input: __m128i,
        from: *const u8,
        output: *mut u8,
        len: usize,
    ) {
        let mut post: Block = [0; 16];
        // SAFETY: as for this function; each block has at most one tail record.
        unsafe {
            copy_short(from, post.as_mut_ptr(), len);
            let post_value = __m128i::load(post.as_ptr());
            self.push::<T, DECRYPT>(key, input, post_value, output);
            self.tails.get_unchecked_mut(self.tail_count).write(Tail {
                slot: self.filled - 1,
                len,
                output,
            });
            wipe::memory(&raw mut post, size_of::<Block>());
        }
        self.tail_count += 1;
    }

    /// Runs all pending blocks and writes them where they belong.
    ///
    /// # Safety
    /// As for [`Slots::push`].
    #[inline(always)]
    pub(crate) unsafe fn run<T: Tier, const DECRYPT: bool>(&mut self) {
        self.used = self.used.max(self.filled);
        // SAFETY: as for this function.
        unsafe {
            match self.filled.div_ceil(T::V::BLOCKS) {
                0 => {}
                1 => self.choose_keys::<T, 1, DECRYPT>(),
                2 => self.choose_keys::<T, 2, DECRYPT>(),
                3 | 4 => self.choose_keys::<T, 4, DECRYPT>(),
                5 | 6 => self.choose_keys::<T, 6, DECRYPT>(),
                _ => self.choose_keys::<T, 8, DECRYPT>(),
            }
        }
        self.filled = 0;
        self.mixed = false;
    }

    #[inline(always)]
    unsafe fn choose_keys<T: Tier, const W: usize, const DECRYPT: bool>(&mut self) {
        // SAFETY: as for `run`; there is at least one block, and all keys have the
        // same number of rounds.
        unsafe {
            if self.mixed {
                let first = self.key[0];
                self.key[self.filled..W * T::V::BLOCKS].fill(first);
                let keys = Each {
                    first: self.key.as_ptr().cast(),
                    rounds: self.rounds,
                };
                self.run_registers::<T, _, W, DECRYPT>(keys);
            } else {
                let key = Schedule::from_raw(self.key[0].assume_init(), self.rounds);
                self.run_registers::<T, _, W, DECRYPT>(key);
            }
        }
    }

    #[inline(always)]
    unsafe fn run_registers<T: Tier, K: Keys<T::V>, const W: usize, const DECRYPT: bool>(
        &mut self,
        keys: K,
    ) {
        let places = T::V::BLOCKS;
        let mut sink: Block = [0; 16];
        for slot in self.filled..W * places {
            self.input[slot].write([0; 16]);
            self.post[slot].write([0; 16]);
            self.output[slot].write(&raw mut sink as *mut u8);
        }
        let (input, post) = (self.input.as_ptr(), self.post.as_mut_ptr());
        // SAFETY: slots below `W * BLOCKS` are initialised, and outputs are valid
        // as `push` demands. A short block goes to its own slot of `post`, which
        // has been read by then, and from there what there is of it to its output.
        unsafe {
            for i in 0..self.tail_count {
                let slot = self.tails[i].assume_init().slot;
                self.output[slot].write(post.add(slot).cast());
            }
            let mut state = [T::V::zero(); W];
            for i in 0..W {
                let input = T::V::gather(|b| input.add(i * places + b).cast());
                state[i] = input.xor(keys.at(i, 0));
            }
            middle::<T::V, K, W, DECRYPT>(&mut state, &keys);
            for i in 0..W {
                let post = T::V::gather(|b| post.add(i * places + b).cast());
                let last = keys.at(i, keys.rounds()).xor(post);
                state[i] = state[i].last_round::<DECRYPT>(last);
            }
            for i in 0..W {
                let output = &self.output;
                state[i].scatter(|b| output[i * places + b].assume_init());
            }
            for i in 0..self.tail_count {
                let tail = self.tails[i].assume_init();
                copy_short(post.add(tail.slot).cast(), tail.output, tail.len);
            }
        }
        self.tail_count = 0;
    }

    /// Wipes what was pending here.
    #[inline(always)]
    pub(crate) fn wipe(&mut self) {
        let len = self.used * size_of::<Block>();
        // SAFETY: both arrays are at least that long.
        unsafe {
            wipe::memory(self.input.as_mut_ptr(), len);
            wipe::memory(self.post.as_mut_ptr(), len);
        }
    }
}

/// A key for each block of each register, all of the same number of rounds.
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
            let (first, last) = (read::<u64>(from), read::<u64>(from.add(len - 8)));
            to.cast::<u64>().write_unaligned(first);
            to.add(len - 8).cast::<u64>().write_unaligned(last);
        } else if len >= 4 {
            let (first, last) = (read::<u32>(from), read::<u32>(from.add(len - 4)));
            to.cast::<u32>().write_unaligned(first);
            to.add(len - 4).cast::<u32>().write_unaligned(last);
        } else {
            for i in 0..len {
                to.add(i).write(*from.add(i));
            }
        }
    }

    unsafe fn read<T>(from: *const u8) -> T {
        // SAFETY: as for the function around.
        unsafe { from.cast::<T>().read_unaligned() }
    }
}
