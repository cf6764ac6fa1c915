//! Independent blocks of many jobs in common registers.
//!
//! Blocks stand in slots, one after the other, whichever job they are of. When all
//! slots are filled, they go through the rounds together, and each run of a job's
//! blocks to its output. A register whose slots all have one key gets it splatted,
//! otherwise the keys are gathered.

use core::iter::repeat_n;

use arrayvec::ArrayVec;
use inout::InOutBuf;

use crate::gost28147::engine::{Block, Engine, MAX_BLOCKS, MAX_REGISTERS, Rounds};
use crate::gost28147::key::Words;
use crate::gost28147::sbox::Tables;
use crate::gost28147::scalar::one;
use crate::wipe::wipe_slice;

/// A run of slots with the blocks of one job.
struct Run<'j> {
    key: &'j Words,
    /// The slot behind it.
    end: usize,
    /// As many bytes as the blocks have, or fewer than a block less.
    data: InOutBuf<'j, 'j, u8>,
}

/// Slots on their way through `ROUNDS`.
pub(super) struct Packed<'s, 'j, E: Engine> {
    engine: E,
    sbox: &'s Tables,
    rounds: Rounds,
    /// Whether what comes out is added to the input, instead of being the output.
    xor: bool,
    blocks: [Block; MAX_BLOCKS],
    filled: usize,
    runs: ArrayVec<Run<'j>, MAX_BLOCKS>,
    keys: RegisterKeys<E>,
}

impl<'s, 'j, E: Engine> Packed<'s, 'j, E> {
    #[inline(always)]
    pub(super) fn new(engine: E, sbox: &'s Tables, rounds: Rounds, xor: bool) -> Self {
        Packed {
            engine,
            sbox,
            rounds,
            xor,
            blocks: [[0; 8]; MAX_BLOCKS],
            filled: 0,
            runs: ArrayVec::new(),
            keys: RegisterKeys::new(),
        }
    }

    /// Takes in the blocks of a job. `make` gives those of the data it is given, at
    /// most [`MAX_BLOCKS`]; it is called for one part of the data after the other.
    #[inline(always)]
    pub(super) fn push(
        &mut self,
        key: &'j Words,
        mut data: InOutBuf<'j, 'j, u8>,
        mut make: impl FnMut(&mut [Block], &InOutBuf<'j, 'j, u8>),
    ) {
        while !data.is_empty() {
            if self.filled == E::BLOCKS {
                self.flush();
            }
            let bytes = data.len().min(8 * (E::BLOCKS - self.filled));
            let part = take_front(&mut data, bytes);
            let end = self.filled + bytes.div_ceil(8);
            make(&mut self.blocks[self.filled..end], &part);
            self.runs.push(Run {
                key,
                end,
                data: part,
            });
            self.filled = end;
        }
    }

    /// Runs what is left, and wipes what stood here.
    #[inline(always)]
    pub(super) fn finish(&mut self) {
        self.flush();
        self.keys.wipe();
        wipe_slice(&mut self.blocks);
    }

    #[inline(always)]
    fn flush(&mut self) {
        if self.filled == 0 {
            return;
        }
        let mut first = 0;
        for start in (0..self.filled).step_by(E::LANES) {
            let end = (start + E::LANES).min(self.filled);
            while self.runs[first].end <= start {
                first += 1;
            }
            let runs = &self.runs[first..];
            let mut run = runs;
            let lanes = (start..end).map(|slot| {
                if run[0].end <= slot {
                    run = &run[1..];
                }
                run[0].key
            });
            // Those of the register are the runs up to the one that reaches its end.
            let mut others = runs.iter().take_while(|run| run.end < end);
            let last = &runs[others.clone().count()];
            let one = others.all(|run| core::ptr::eq(run.key, last.key));
            self.keys.set(self.engine, start / E::LANES, one, lanes);
        }
        let registers = self.filled.div_ceil(E::LANES);
        self.engine.crypt(
            self.sbox,
            self.rounds,
            &mut self.blocks[..registers * E::LANES],
            self.keys.first(registers),
        );
        let mut start = 0;
        for mut run in self.runs.drain(..) {
            let bytes = self.blocks[start..run.end].as_flattened();
            if self.xor {
                self.engine.xor(run.data, bytes);
            } else {
                run.data.get_out().copy_from_slice(bytes);
            }
            start = run.end;
        }
        self.filled = 0;
    }
}

/// The keys of registers, kept while they stay the same.
pub(crate) struct RegisterKeys<E: Engine> {
    keys: E::Bank,
    /// The address of the key that a register has in every lane, or null.
    splat: [*const Words; MAX_REGISTERS],
}

impl<E: Engine> RegisterKeys<E> {
    #[inline(always)]
    pub(crate) fn new() -> Self {
        const { assert!(E::BLOCKS <= MAX_BLOCKS && E::REGISTERS <= MAX_REGISTERS) }
        RegisterKeys {
            keys: E::Bank::default(),
            splat: [core::ptr::null(); MAX_REGISTERS],
        }
    }

    /// Sets the keys of a register, at most one behind those that have keys: the first
    /// of `lanes` in every lane with `one`, otherwise each its own, the last one
    /// repeated. A key given with `one` must not change between calls.
    #[inline(always)]
    pub(super) fn set<'k>(
        &mut self,
        engine: E,
        register: usize,
        one: bool,
        mut lanes: impl Iterator<Item = &'k Words>,
    ) {
        if register == self.keys.len() {
            // Made where it stays.
            self.keys.extend(core::iter::once_with(E::Keys::default));
        }
        let keys = &mut self.keys[register];
        let Some(key) = lanes.next() else {
            return;
        };
        if one {
            if !core::ptr::eq(self.splat[register], key) {
                engine.splat(key, keys);
                self.splat[register] = key;
            }
            return;
        }
        let mut all: ArrayVec<&Words, MAX_BLOCKS> = ArrayVec::new();
        all.push(key);
        all.extend(lanes.take(E::LANES - 1));
        let last = all[all.len() - 1];
        all.extend(repeat_n(last, E::LANES - all.len()));
        engine.gather(&all, keys);
        self.splat[register] = core::ptr::null();
    }

    /// Sets the keys of as many registers as hold those of `lanes`; gives their number.
    #[inline(always)]
    pub(super) fn set_each(&mut self, engine: E, lanes: &[Words]) -> usize {
        for (register, lanes) in lanes.chunks(E::LANES).enumerate() {
            self.set(engine, register, false, lanes.iter());
        }
        lanes.len().div_ceil(E::LANES)
    }

    /// The keys of the first registers.
    #[inline(always)]
    pub(super) fn first(&self, registers: usize) -> &[E::Keys] {
        &self.keys[..registers]
    }

    #[inline(always)]
    pub(crate) fn wipe(&mut self) {
        wipe_slice(&mut self.keys);
    }
}

/// Takes up to `bytes` from the front of `data`.
#[inline(always)]
fn take_front<'j>(data: &mut InOutBuf<'j, 'j, u8>, bytes: usize) -> InOutBuf<'j, 'j, u8> {
    let all = core::mem::replace(data, InOutBuf::from(&mut [][..]));
    let bytes = bytes.min(all.len());
    let (front, rest) = all.split_at(bytes);
    *data = rest;
    front
}

/// Removes item `i`, in whose place the last one comes, and wipes it.
#[inline(always)]
pub(super) fn remove<T: Copy + Default>(secrets: &mut ArrayVec<T, MAX_BLOCKS>, i: usize) {
    let last = secrets.len() - 1;
    secrets.swap(i, last);
    wipe_slice(&mut secrets[last..]);
    secrets.truncate(last);
}

/// Runs blocks through the rounds in place, each with its own key: fewer than would
/// be worth packing.
// In a frame of its own: the frames of its callers are large.
#[inline(never)]
pub(super) fn crypt_each<'k, E: Engine>(
    engine: E,
    sbox: &Tables,
    rounds: Rounds,
    blocks: &mut [Block],
    keys: impl Iterator<Item = &'k Words>,
) {
    if let [block] = blocks {
        for key in keys.take(1) {
            *block = one(sbox, rounds, key, *block);
        }
        return;
    }
    let mut keys = keys;
    let mut bank = RegisterKeys::<E>::new();
    let mut padded = [[0; 8]; MAX_BLOCKS];
    for blocks in blocks.chunks_mut(E::BLOCKS) {
        let registers = blocks.len().div_ceil(E::LANES);
        for (register, lanes) in blocks.chunks(E::LANES).enumerate() {
            bank.set(engine, register, false, keys.by_ref().take(lanes.len()));
        }
        let padded = &mut padded[..registers * E::LANES];
        padded[..blocks.len()].copy_from_slice(blocks);
        engine.crypt(sbox, rounds, padded, bank.first(registers));
        blocks.copy_from_slice(&padded[..blocks.len()]);
    }
    bank.wipe();
    wipe_slice(&mut padded);
}
