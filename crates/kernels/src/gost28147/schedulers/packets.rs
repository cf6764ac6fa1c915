//! MACs and counter mode of the same packets, side by side.
//!
//! All packets of a window are at the same chunk of 64 bytes. A step takes one chunk of each: its
//! MACs in a lane each, and the eight blocks of its key stream in as many lanes as are left, two
//! or one for a packet; blocks without a lane go through the rounds after that, full registers of
//! them. The MAC over what counter mode writes over has to be ahead of it, the other one behind
//! it: heads are not encrypted, so a chunk of a MAC ends before the same chunk of the data does, and
//! with heads of a chunk at most it begins behind the chunk before.
//! When packets end, those that are left share the lanes anew.

mod stream;

use core::cmp::Reverse;

use arrayvec::ArrayVec;

use self::stream::{EACH, MOST, PARTS, Stream};
use super::mesh;
use super::packed::{RegisterKeys, crypt_each};
use crate::gost28147::engine::{Beside, Block, CHUNK, MAX_BLOCKS, Rounds, STREAMED};
use crate::gost28147::key::Words;
use crate::gost28147::packet_job::{INNER, MAC, MACS, OUTER, PacketJob};
use crate::gost28147::sbox::Tables;
use crate::wipe::wipe_slice;

/// Bytes of the longest head with which a MAC is ahead of counter mode.
pub(crate) const LONGEST_HEAD: usize = CHUNK;

/// The most lanes of a window: of each packet two MACs and two parts of the key stream.
const LANES: usize = 4 * MOST;

/// The place of the cipher's keys behind those of the MACs.
const CIPHER: usize = MACS;

/// A MAC that all packets get.
struct Chain {
    /// Its place among those of a packet.
    which: usize,
    /// Chunks that it is behind the key stream.
    lag: usize,
}

/// What is done with all packets of a call.
struct Plan {
    chains: ArrayVec<Chain, MACS>,
    /// Chunks by which the data is changed later than its key stream is there.
    lag: usize,
    meshed: bool,
}

impl Plan {
    fn new(opening: bool, meshed: bool) -> Self {
        let chain = |which, lag| Chain { which, lag };
        let mut chains = ArrayVec::new();
        match (opening, meshed) {
            (false, false) => chains.push(chain(INNER, 0)),
            (true, false) => chains.push(chain(INNER, 1)),
            (false, true) => chains.extend([chain(INNER, 0), chain(OUTER, 2)]),
            (true, true) => chains.extend([chain(OUTER, 0), chain(INNER, 2)]),
        }
        Plan {
            lag: usize::from(chains[0].lag == 0),
            chains,
            meshed,
        }
    }

    /// Steps until a packet is done.
    fn steps(&self, job: &PacketJob<'_>) -> usize {
        let data = (job.content.len() - job.head).div_ceil(CHUNK);
        let chains = self.chains.iter();
        let chains = chains.map(|chain| blocks(job, chain.which).div_ceil(EACH) + chain.lag);
        chains.fold(data + self.lag, usize::max)
    }
}

/// Blocks of the message of a MAC.
fn blocks(job: &PacketJob<'_>, which: usize) -> usize {
    let suffix = job.suffix.len() + if which == OUTER { MAC } else { 0 };
    match (job.content.len() + suffix).div_ceil(8) {
        1 => 2,
        blocks => blocks,
    }
}

#[inline(always)]
pub(crate) fn run<E: Beside>(
    engine: E,
    sbox: &Tables,
    jobs: &mut [PacketJob<'_>],
    opening: bool,
    meshed: bool,
) {
    let plan = Plan::new(opening, meshed);
    let mut queue = jobs.iter_mut().filter(|job| job.keys[INNER].has(sbox));
    loop {
        let mut window: ArrayVec<&mut PacketJob<'_>, MOST> = ArrayVec::new();
        window.extend(queue.by_ref().take(MOST));
        if window.is_empty() {
            return;
        }
        assert!(window.iter().all(|job| job.head <= LONGEST_HEAD));
        window.sort_unstable_by_key(|job| Reverse(job.content.len()));
        run_window(engine, sbox, &plan, &mut window);
    }
}

#[inline(always)]
fn run_window<E: Beside>(engine: E, sbox: &Tables, plan: &Plan, window: &mut [&mut PacketJob<'_>]) {
    let mut keys = [[[0; 8]; MOST]; MACS + 1];
    let mut counters = [[0; 8]; MOST];
    for (p, job) in window.iter().enumerate() {
        keys[INNER][p] = job.keys[INNER].words;
        keys[CIPHER][p] = job.keys[INNER].words;
        keys[OUTER][p] = job.keys[OUTER].words;
        counters[p] = job.iv;
    }
    let mut active = window.len();
    restart(engine, sbox, &mut counters[..active], &keys[CIPHER]);
    // Made where they stay.
    let mut banks = (
        RegisterKeys::new(),
        RegisterKeys::new(),
        RegisterKeys::new(),
    );
    let banks = [&mut banks.0, &mut banks.1, &mut banks.2];
    let mut lanes = Lanes::new(engine, sbox, plan.chains.len(), banks);
    let mut streams = [const { Stream::new() }; 2];
    let [mut fresh, mut kept] = streams.each_mut();
    for step in 0.. {
        while active > 0 && plan.steps(window[active - 1]) <= step {
            active -= 1;
        }
        if active == 0 {
            break;
        }
        let is_due = |chunk: usize| chunk > 0 && chunk.is_multiple_of(mesh::SPAN / CHUNK);
        let mut changed = lanes.share(active);
        if plan.meshed {
            for chain in &plan.chains {
                if is_due(step.saturating_sub(chain.lag)) {
                    mesh::next_keys(engine, sbox, &mut keys[chain.which][..active]);
                    changed = true;
                }
            }
            if is_due(step) {
                mesh::next_keys(engine, sbox, &mut keys[CIPHER][..active]);
                restart(engine, sbox, &mut counters[..active], &keys[CIPHER]);
                changed = true;
            }
        }
        if changed {
            lanes.set_keys(plan, &keys);
        }
        let window = &mut window[..active];
        let streams = (window.iter()).any(|job| job.content.len() - job.head > CHUNK * step);
        if streams {
            fresh.count(lanes.slots, &mut counters[..active]);
        }
        let streamed = lanes.chains(plan, window, step, streams.then_some(&mut *fresh));
        if streams {
            lanes.rest(fresh, streamed);
        }
        if plan.lag == 0 {
            fresh.xor(engine, window, step);
        } else {
            if step > 0 {
                kept.xor(engine, window, step - 1);
            }
            core::mem::swap(&mut fresh, &mut kept);
        }
    }
    lanes.wipe();
    wipe_slice(keys.as_flattened_mut());
    wipe_slice(&mut counters);
    for stream in &mut streams {
        wipe_slice(stream.parts.as_flattened_mut());
    }
}

/// Encrypts counters, as at the begin and after each change of the key.
fn restart<E: Beside>(engine: E, sbox: &Tables, counters: &mut [Block], keys: &[Words; MOST]) {
    crypt_each(engine, sbox, Rounds::Encrypt, counters, keys.iter());
}

/// The lanes and who has them: a slot of each packet for every MAC, then for one or two parts of
/// the key stream.
struct Lanes<'s, E: Beside> {
    engine: E,
    sbox: &'s Tables,
    chains: usize,
    /// A power of two, so that the keys of registers repeat.
    slots: usize,
    /// Slots of every packet for its key stream.
    parts: usize,
    states: [Block; LANES],
    /// What goes into a lane, where this does not stand together in the packet.
    staged: [[u8; CHUNK]; LANES],
    streams: [[Block; MAX_BLOCKS]; STREAMED],
    keys: &'s mut RegisterKeys<E>,
    /// Those of the last eight rounds.
    last: &'s mut RegisterKeys<E>,
    /// Those of blocks without a lane.
    others: &'s mut RegisterKeys<E>,
}

impl<'s, E: Beside> Lanes<'s, E> {
    #[inline(always)]
    fn new(
        engine: E,
        sbox: &'s Tables,
        chains: usize,
        [keys, last, others]: [&'s mut RegisterKeys<E>; 3],
    ) -> Self {
        Lanes {
            engine,
            sbox,
            chains,
            slots: 0,
            parts: 0,
            states: [[0; 8]; LANES],
            staged: [[0; CHUNK]; LANES],
            streams: [[[0; 8]; MAX_BLOCKS]; STREAMED],
            keys,
            last,
            others,
        }
    }

    fn registers(lanes: usize) -> usize {
        lanes.div_ceil(E::LANES)
    }

    /// Shares the lanes among so many packets. Tells whether they were shared otherwise before.
    #[inline(always)]
    fn share(&mut self, packets: usize) -> bool {
        let slots = packets.next_power_of_two();
        if slots == self.slots {
            return false;
        }
        for chain in 0..self.chains {
            for p in 0..packets {
                self.states[chain * slots + p] = self.states[chain * self.slots + p];
            }
        }
        // Rounds by registers: all lanes take eight times 16, blocks without a lane 32.
        let cost = |parts: &usize| {
            let lanes = Self::registers(slots * (self.chains + parts)).max(E::BUSY);
            let others = Self::registers(slots * (EACH - STREAMED * parts));
            let others = if others > 0 { others.max(E::BUSY) } else { 0 };
            E::COSTS[0] * 16 * EACH * lanes + E::COSTS[1] * 32 * others
        };
        let fit = |parts: &usize| slots * (self.chains + parts) <= E::BLOCKS.min(LANES);
        // Of two ways that cost the same, that with fewer blocks without a lane.
        let parts = (0..=PARTS).rev().filter(fit).min_by_key(cost);
        self.parts = parts.unwrap_or(0);
        self.slots = slots;
        true
    }

    #[inline(always)]
    fn set_keys(&mut self, plan: &Plan, keys: &[[Words; MOST]; MACS + 1]) {
        let slots = self.slots;
        let mut backward = keys[CIPHER];
        backward.iter_mut().for_each(|key| key.reverse());
        let all = Self::registers(slots * (self.chains + self.parts));
        for register in 0..all {
            let lanes = register * E::LANES..(register + 1) * E::LANES;
            let chain = |lane: usize| plan.chains.get(lane / slots);
            let key = |lane: usize| {
                let which = chain(lane).map_or(CIPHER, |chain| chain.which);
                &keys[which][lane % slots]
            };
            (self.keys).set(self.engine, register, false, lanes.clone().map(key));
            let last = |lane: usize| match chain(lane) {
                None => &backward[lane % slots],
                Some(_) => key(lane),
            };
            (self.last).set(self.engine, register, false, lanes.map(last));
        }
        for register in 0..Self::registers(self.at_once()) {
            let lanes = register * E::LANES..(register + 1) * E::LANES;
            let key = |lane: usize| &keys[CIPHER][lane / STREAMED % slots];
            (self.others).set(self.engine, register, false, lanes.map(key));
        }
        wipe_slice(&mut backward);
    }

    /// Goes on with the MACs by a chunk, with the key stream in the lanes beside them if its
    /// counters are given. Returns how many parts of the stream are done.
    #[inline(always)]
    fn chains(
        &mut self,
        plan: &Plan,
        window: &mut [&mut PacketJob<'_>],
        step: usize,
        stream: Option<&mut Stream>,
    ) -> usize {
        let slots = self.slots;
        // Blocks that a MAC has not taken in, of a packet whose turn it is.
        let left = |chain: &Chain, job: &PacketJob<'_>| {
            let chunk = step.checked_sub(chain.lag)?;
            let left = blocks(job, chain.which).saturating_sub(EACH * chunk);
            (left > 0).then_some((CHUNK * chunk, left))
        };
        // The bytes before the chunk of a MAC that has whole chunks of content in all packets, and
        // more behind them: packets are sorted by length.
        let shortest = window[window.len() - 1].content.len();
        let within = |chain: &Chain| {
            let done = CHUNK * step.checked_sub(chain.lag)?;
            (done + CHUNK < shortest).then_some(done)
        };
        let mut taken = [EACH as u8; LANES];
        let mut is_idle = true;
        for (c, chain) in plan.chains.iter().enumerate() {
            if let Some(done) = within(chain) {
                is_idle = false;
                if done == 0 {
                    self.states[c * slots..][..slots].fill([0; 8]);
                }
                continue;
            }
            for (p, job) in window.iter().enumerate() {
                let Some((done, left)) = left(chain, job) else {
                    continue;
                };
                let lane = c * slots + p;
                is_idle = false;
                taken[lane] = left.min(EACH) as u8;
                if done == 0 {
                    self.states[lane] = [0; 8];
                }
                if job.content.len() < done + CHUNK {
                    stage(&mut self.staged[lane], job, chain.which, done);
                }
            }
        }
        if is_idle {
            return 0;
        }
        let begin = slots * self.chains;
        let parts = if stream.is_some() { self.parts } else { 0 };
        let lanes = Self::registers(begin + slots * parts) * E::LANES;
        let mut counters = [0; LANES];
        counters[begin..lanes].fill(1);
        if let Some(stream) = &stream {
            // A block of zeros stands behind each of a counter.
            let places = self.staged[begin..].iter_mut();
            for (staged, stream) in places.zip(&stream.parts[..slots * parts]) {
                let apart = staged.as_chunks_mut().0.iter_mut();
                for (apart, block) in apart.zip(stream.as_chunks().0) {
                    *apart = u128::from(u64::from_le_bytes(*block)).to_le_bytes();
                }
            }
        }
        let mut data = self.staged.each_ref();
        for (c, chain) in plan.chains.iter().enumerate() {
            let Some(done) = step.checked_sub(chain.lag).map(|chunk| CHUNK * chunk) else {
                continue;
            };
            for (data, job) in data[c * slots..].iter_mut().zip(&*window) {
                if let Some(chunk) = job.content.get(done..).and_then(<[u8]>::first_chunk) {
                    *data = chunk;
                }
            }
        }
        self.engine.mac_beside_counters(
            self.sbox,
            &mut self.states[..lanes],
            &data[..lanes],
            &taken[..lanes],
            &counters[..lanes],
            self.keys.first(lanes / E::LANES),
            self.last.first(lanes / E::LANES),
            &mut self.streams,
        );
        for (c, chain) in plan.chains.iter().enumerate() {
            if within(chain).is_some() {
                continue;
            }
            for (p, job) in window.iter_mut().enumerate() {
                if left(chain, job).is_some_and(|(_, left)| left <= EACH) {
                    let [mac @ .., _, _, _, _] = self.states[c * slots + p];
                    job.macs[chain.which] = mac;
                }
            }
        }
        if let Some(stream) = stream {
            for (lane, part) in (begin..).zip(&mut stream.parts[..slots * parts]) {
                for (to, from) in part.as_chunks_mut().0.iter_mut().zip(&self.streams) {
                    *to = from[lane];
                }
            }
        }
        parts
    }

    /// Blocks without a lane that go through the rounds at once: whole parts of every slot, so
    /// that the keys of lanes stay the same.
    #[inline(always)]
    fn at_once(&self) -> usize {
        let part = self.slots * STREAMED;
        part * (E::BLOCKS / part).min(PARTS)
    }

    /// The key stream of each packet from the part `first` on, in place of the counters.
    #[inline(always)]
    fn rest(&mut self, stream: &mut Stream, first: usize) {
        let blocks: &mut [Block] = stream.parts.as_flattened_mut().as_chunks_mut().0;
        let part = self.slots * STREAMED;
        let at_once = self.at_once();
        for first in (first * part..PARTS * part).step_by(at_once) {
            let registers = Self::registers(at_once.min(PARTS * part - first));
            self.engine.crypt(
                self.sbox,
                Rounds::Encrypt,
                &mut blocks[first..][..registers * E::LANES],
                self.others.first(registers),
            );
        }
    }

    #[inline(always)]
    fn wipe(&mut self) {
        self.keys.wipe();
        self.last.wipe();
        self.others.wipe();
        wipe_slice(&mut self.states);
        wipe_slice(self.staged.as_flattened_mut());
        wipe_slice(self.streams.as_flattened_mut());
    }
}

/// The end of a message from byte `done` on, padded with zeros.
fn stage(staged: &mut [u8; CHUNK], job: &PacketJob<'_>, which: usize, done: usize) {
    let suffix = match which {
        OUTER => job.outer_suffix(),
        _ => job.suffix.iter().copied().collect(),
    };
    let content = job.content.get(done..).unwrap_or(&[]);
    let behind = &suffix[done.saturating_sub(job.content.len())..];
    staged.fill(0);
    for (to, from) in staged.iter_mut().zip(content.iter().chain(behind)) {
        *to = *from;
    }
}
