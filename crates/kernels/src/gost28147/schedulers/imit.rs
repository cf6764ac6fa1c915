//! The MAC.
//!
//! A message is serial in itself, so each has a lane, and all lanes take their steps
//! together. When a message ends, the next one takes over its lane; when none is left,
//! the lanes close ranks, and the last one goes on alone at the least latency.

use arrayvec::ArrayVec;

use super::mesh;
use super::packed::{RegisterKeys, remove};
use crate::gost28147::engine::{Block, CHUNK, Engine, MAX_BLOCKS};
use crate::gost28147::key::{Key, Words};
use crate::gost28147::sbox::Tables;
use crate::gost28147::scalar::{Scalar, mac_one};
use crate::job::MacJob;
use crate::wipe::wipe_slice;

/// A message in a lane.
pub(crate) struct Lane<'j, 'b> {
    job: &'j mut MacJob<'b, Key>,
    /// Bytes that have gone through.
    done: usize,
    /// Blocks left, those of padding too.
    blocks: usize,
    /// Bytes until the key is meshed.
    span: usize,
}

impl<'j, 'b> Lane<'j, 'b> {
    #[inline(always)]
    pub(crate) fn new(job: &'j mut MacJob<'b, Key>) -> Self {
        let bytes = job.head.len() + job.data.len() + job.suffix.len();
        let blocks = match bytes.div_ceil(8) {
            1 => 2,
            blocks => blocks,
        };
        Lane {
            job,
            done: 0,
            blocks,
            span: mesh::SPAN,
        }
    }

    /// What is left of the piece that has the next byte, and of the pieces behind it.
    #[inline(always)]
    fn rest(&self) -> [&'b [u8]; 3] {
        let mut pieces = [self.job.head, self.job.data, self.job.suffix];
        let mut done = self.done;
        for _ in 0..2 {
            if done < pieces[0].len() {
                break;
            }
            done -= pieces[0].len();
            pieces = [pieces[1], pieces[2], &[]];
        }
        pieces[0] = pieces[0].get(done..).unwrap_or(&[]);
        pieces
    }

    /// The next bytes, padded: where they stand, if they stand together, otherwise
    /// copied to `padded`.
    #[inline(always)]
    fn next<'p>(&self, padded: &'p mut [u8; CHUNK]) -> &'p [u8; CHUNK]
    where
        'b: 'p,
    {
        let pieces = self.rest();
        if let Some(chunk) = pieces[0].first_chunk() {
            return chunk;
        }
        let mut filled = 0;
        for piece in pieces {
            let part = &piece[..piece.len().min(CHUNK - filled)];
            padded[filled..][..part.len()].copy_from_slice(part);
            filled += part.len();
        }
        padded[filled..].fill(0);
        padded
    }

    /// Goes over blocks, not past a change of key where keys are meshed.
    #[inline(always)]
    fn step(&mut self, blocks: usize) {
        self.done += 8 * blocks;
        self.blocks -= blocks;
        self.span = self.span.wrapping_sub(8 * blocks);
    }

    /// The MAC is the first word of the state.
    #[inline(always)]
    fn finish(self, state: &Block) {
        self.job
            .mac
            .copy_from_slice(&state[..4][..self.job.mac.len()]);
    }
}

/// Goes on to the end of a message, at the least latency.
// In a frame of its own, which is small.
#[inline(never)]
pub(crate) fn alone(
    mut lane: Lane<'_, '_>,
    sbox: &Tables,
    key: &mut Words,
    state: &mut Block,
    meshed: bool,
) {
    let mut padded = [0; CHUNK];
    while lane.blocks > 0 {
        if meshed && lane.span == 0 {
            mesh::next_keys(Scalar, sbox, core::slice::from_mut(key));
            lane.span = mesh::SPAN;
        }
        let span = if meshed { lane.span } else { usize::MAX };
        let [piece, ..] = lane.rest();
        let blocks = match piece.len().min(span) / CHUNK {
            0 => lane.next(&mut padded).as_chunks().0,
            chunks => piece[..chunks * CHUNK].as_chunks().0,
        };
        let blocks = &blocks[..blocks.len().min(lane.blocks)];
        mac_one(sbox, key, state, blocks);
        lane.step(blocks.len());
    }
    lane.finish(state);
    wipe_slice(&mut padded);
}

#[inline(always)]
pub(crate) fn run<E: Engine>(engine: E, sbox: &Tables, jobs: &mut [MacJob<'_, Key>], meshed: bool) {
    let mut queue = jobs.iter_mut().filter(|job| job.key.has(sbox));
    let mut lanes: ArrayVec<Lane<'_, '_>, MAX_BLOCKS> = ArrayVec::new();
    let mut keys: ArrayVec<Words, MAX_BLOCKS> = ArrayVec::new();
    for job in queue.by_ref().take(E::BLOCKS) {
        keys.push(job.key.words);
        lanes.push(Lane::new(job));
    }
    let mut states = [[0; 8]; MAX_BLOCKS];
    let mut padded: ArrayVec<[u8; CHUNK], MAX_BLOCKS> = ArrayVec::new();
    padded.extend(lanes.iter().map(|_| [0; CHUNK]));
    let mut bank = RegisterKeys::<E>::new();
    if lanes.len() > 1 {
        bank.set_each(engine, &keys);
    }
    while lanes.len() > 1 {
        let registers = lanes.len().div_ceil(E::LANES);
        let places = registers * E::LANES;
        let mut data: ArrayVec<&[u8; CHUNK], MAX_BLOCKS> = ArrayVec::new();
        let mut blocks: ArrayVec<u8, MAX_BLOCKS> = ArrayVec::new();
        for (lane, padded) in lanes.iter().zip(&mut padded) {
            blocks.push(lane.blocks.min(CHUNK / 8) as u8);
            data.push(lane.next(padded));
        }
        // Places without a lane have no blocks.
        blocks.extend((lanes.len()..places).map(|_| 0));
        data.extend((lanes.len()..places).map(|_| &[0; CHUNK]));
        engine.mac(
            sbox,
            &mut states[..places],
            &data,
            &blocks,
            bank.first(registers),
        );
        // Registers with other keys than before, a bit each.
        let mut changed = 0_u32;
        // Lanes whose keys are to be meshed.
        let mut due: ArrayVec<usize, MAX_BLOCKS> = ArrayVec::new();
        for i in (0..lanes.len()).rev() {
            let lane = &mut lanes[i];
            lane.step(blocks[i].into());
            if lane.blocks > 0 {
                if lane.span == 0 {
                    lane.span = mesh::SPAN;
                    due.push(i);
                }
                continue;
            }
            changed |= 1 << (i / E::LANES);
            if let Some(job) = queue.next() {
                keys[i] = job.key.words;
                core::mem::replace(lane, Lane::new(job)).finish(&states[i]);
                states[i] = [0; 8];
                continue;
            }
            lanes.swap_remove(i).finish(&states[i]);
            remove(&mut keys, i);
            states[i] = states[lanes.len()];
            // The lane that has moved here was dealt with before.
            if let Some(due) = due.iter_mut().find(|due| **due == lanes.len()) {
                *due = i;
            }
        }
        if meshed && !due.is_empty() {
            let mut next: ArrayVec<Words, MAX_BLOCKS> = ArrayVec::new();
            next.extend(due.iter().map(|&i| keys[i]));
            mesh::next_keys(engine, sbox, &mut next);
            for (&i, next) in due.iter().zip(&next) {
                keys[i] = *next;
                changed |= 1 << (i / E::LANES);
            }
            wipe_slice(&mut next);
        }
        for (register, keys) in keys.chunks(E::LANES).enumerate() {
            if changed & 1 << register != 0 {
                bank.set(engine, register, false, keys.iter());
            }
        }
    }
    bank.wipe();
    if let Some(lane) = lanes.pop() {
        alone(lane, sbox, &mut keys[0], &mut states[0], meshed);
    }
    wipe_slice(&mut keys);
    wipe_slice(&mut states);
    wipe_slice(padded.as_flattened_mut());
}
