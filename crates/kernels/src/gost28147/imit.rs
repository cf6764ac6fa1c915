//! The MAC of GOST 28147-89 (RFC 5830 section 8), called imitovstavka there.
//!
//! A message is serial in itself, so each has a lane, and all lanes take their steps
//! together. When a message ends, the next one takes over its lane; when none is left,
//! the lanes close ranks, and the last one goes on alone at the least latency.

use super::engine::{CHUNK, Engine, MOST};
use super::packed::{RegisterKeys, remove};
use super::{Block, Key, Tables, Words, choose, mesh, wipe};
use crate::job::MacJob;
use arrayvec::ArrayVec;

/// The MAC of every job: four bytes. A message is padded with zeros to whole blocks, and a
/// message of one block with a block of zeros. That of an empty one is zero.
pub fn mac(jobs: &mut [MacJob<'_, Key>]) {
    choose!(imit, run, jobs, false);
}

/// As [`mac`], with CryptoPro key meshing (RFC 4357 section 2.3.2) after every 1024
/// bytes, of all pieces together.
pub fn mac_meshed(jobs: &mut [MacJob<'_, Key>]) {
    choose!(imit, run, jobs, true);
}

/// What is left of a message in a lane.
struct Lane<'j> {
    pieces: [&'j [u8]; 3],
    /// Blocks left, those of padding too.
    blocks: usize,
    /// Bytes until the key is meshed.
    span: usize,
    mac: &'j mut [u8; 64],
}

impl<'j> Lane<'j> {
    #[inline(always)]
    fn new<'b: 'j>(job: &'j mut MacJob<'b, Key>) -> Self {
        let pieces = [job.head, job.data, job.suffix];
        let blocks = pieces.iter().map(|piece| piece.len()).sum::<usize>();
        let blocks = match blocks.div_ceil(8) {
            1 => 2,
            blocks => blocks,
        };
        Lane {
            pieces,
            blocks,
            span: mesh::SPAN,
            mac: &mut job.mac,
        }
    }

    /// The first piece of which something is left, if any is.
    #[inline(always)]
    fn first(&mut self) -> &mut &'j [u8] {
        let [first, second, third] = &mut self.pieces;
        while first.is_empty() && !(second.is_empty() && third.is_empty()) {
            (*first, *second, *third) = (*second, *third, &[]);
        }
        first
    }

    /// The next bytes, padded: where they stand, if they stand together, otherwise
    /// copied to `padded`.
    #[inline(always)]
    fn next(&mut self, padded: &mut [u8; CHUNK]) -> Option<&'j [u8; CHUNK]> {
        let first = self.first();
        if let Some((chunk, rest)) = first.split_first_chunk() {
            *first = rest;
            return Some(chunk);
        }
        let mut filled = 0;
        for piece in &mut self.pieces {
            let (part, rest) = piece.split_at(piece.len().min(CHUNK - filled));
            padded[filled..][..part.len()].copy_from_slice(part);
            filled += part.len();
            *piece = rest;
        }
        padded[filled..].fill(0);
        None
    }

    /// Goes on to the end of the message, at the least latency.
    #[inline(always)]
    fn finish<E: Engine>(
        mut self,
        engine: E,
        sbox: &Tables,
        key: &mut Words,
        state: &mut Block,
        meshed: bool,
    ) {
        let mut padded = [0; CHUNK];
        while self.blocks > 0 {
            if meshed && self.span == 0 {
                mesh::next_keys(engine, sbox, core::slice::from_mut(key));
                self.span = mesh::SPAN;
            }
            let most = if meshed { self.span } else { usize::MAX };
            let piece = self.first();
            let bytes = (piece.len() / CHUNK * CHUNK).min(most);
            let (direct, rest) = piece.split_at(bytes);
            *piece = rest;
            let (blocks, _) = match bytes {
                0 => {
                    self.next(&mut padded);
                    padded.as_chunks()
                }
                _ => direct.as_chunks(),
            };
            let blocks = &blocks[..blocks.len().min(self.blocks)];
            engine.mac_one(sbox, key, state, blocks);
            self.blocks -= blocks.len();
            self.span = self.span.wrapping_sub(8 * blocks.len());
        }
        finish(self.mac, state);
        wipe(&mut padded);
    }
}

/// The MAC is the first word of the state.
#[inline(always)]
fn finish(mac: &mut [u8; 64], state: &Block) {
    *mac = [0; 64];
    mac[..4].copy_from_slice(&state[..4]);
}

#[inline(always)]
pub(crate) fn run<E: Engine>(engine: E, sbox: &Tables, jobs: &mut [MacJob<'_, Key>], meshed: bool) {
    let mut queue = jobs.iter_mut().filter(|job| job.key.has(sbox));
    let mut lanes: ArrayVec<Lane<'_>, MOST> = ArrayVec::new();
    let mut keys: ArrayVec<Words, MOST> = ArrayVec::new();
    for job in queue.by_ref().take(E::BLOCKS) {
        keys.push(job.key.words);
        lanes.push(Lane::new(job));
    }
    let used = lanes.len();
    if used > 1 {
        let lanes = Lanes { lanes, keys };
        return lanes.run(engine, sbox, queue, meshed);
    }
    if let Some(lane) = lanes.pop() {
        lane.finish(engine, sbox, &mut keys[0], &mut [0; 8], meshed);
        wipe(&mut keys);
    }
}

/// Lanes that take their steps together.
struct Lanes<'j> {
    lanes: ArrayVec<Lane<'j>, MOST>,
    keys: ArrayVec<Words, MOST>,
}

impl<'j> Lanes<'j> {
    #[inline(always)]
    fn run<'b: 'j, E: Engine>(
        mut self,
        engine: E,
        sbox: &Tables,
        mut queue: impl Iterator<Item = &'j mut MacJob<'b, Key>>,
        meshed: bool,
    ) {
        let Lanes { lanes, keys } = &mut self;
        let used = lanes.len();
        let mut states = [[0; 8]; MOST];
        let mut padded = [[0; CHUNK]; MOST];
        let mut bank = RegisterKeys::<E>::new();
        bank.set_each(engine, keys);
        while lanes.len() > 1 {
            let mut data: [&[u8; CHUNK]; MOST] = [&[0; CHUNK]; MOST];
            let mut blocks = [0; MOST];
            for (i, (lane, padded)) in lanes.iter_mut().zip(&mut padded).enumerate() {
                blocks[i] = lane.blocks.min(CHUNK / 8) as u8;
                data[i] = match lane.next(padded) {
                    Some(chunk) => chunk,
                    None => padded,
                };
            }
            let registers = lanes.len().div_ceil(E::LANES);
            let places = registers * E::LANES;
            engine.mac(
                sbox,
                &mut states[..places],
                &data[..places],
                &blocks[..places],
                bank.first(registers),
            );
            // Registers with other keys than before, a bit each.
            let mut changed = 0_u32;
            // Lanes whose keys are to be meshed.
            let mut due: ArrayVec<usize, MOST> = ArrayVec::new();
            for i in (0..lanes.len()).rev() {
                let lane = &mut lanes[i];
                lane.blocks -= usize::from(blocks[i]);
                lane.span -= CHUNK;
                if lane.blocks > 0 {
                    if lane.span == 0 {
                        lane.span = mesh::SPAN;
                        due.push(i);
                    }
                    continue;
                }
                finish(lane.mac, &states[i]);
                changed |= 1 << (i / E::LANES);
                if let Some(job) = queue.next() {
                    keys[i] = job.key.words;
                    *lane = Lane::new(job);
                    states[i] = [0; 8];
                    continue;
                }
                lanes.swap_remove(i);
                remove(keys, i);
                states[i] = states[lanes.len()];
                // The lane that has moved here was dealt with before.
                if let Some(due) = due.iter_mut().find(|due| **due == lanes.len()) {
                    *due = i;
                }
            }
            if meshed && !due.is_empty() {
                let mut next: ArrayVec<Words, MOST> = due.iter().map(|&i| keys[i]).collect();
                mesh::next_keys(engine, sbox, &mut next);
                for (&i, next) in due.iter().zip(&next) {
                    keys[i] = *next;
                    changed |= 1 << (i / E::LANES);
                }
                wipe(&mut next);
            }
            for (register, keys) in keys.chunks(E::LANES).enumerate() {
                if changed & 1 << register != 0 {
                    bank.set(engine, register, false, keys.iter());
                }
            }
        }
        bank.wipe();
        if let Some(lane) = lanes.pop() {
            lane.finish(engine, sbox, &mut keys[0], &mut states[0], meshed);
        }
        wipe(keys);
        wipe(&mut states);
        wipe(padded[..used].as_flattened_mut());
    }
}
