//! ChaCha20-Poly1305 over a batch: the blocks of key stream of all jobs, one
//! after the other, fill the lanes, so a short job does not pay for a whole set.

use inout::InOutBuf;
use zeroize::optimization_barrier;

use crate::chacha::ChaChaKey;
use crate::cpu::{HaveAvx2, HaveAvx512};
use crate::job::{AeadJob, Direction};
use crate::x86_64::chacha_lanes::{self, Input, Pad};
use crate::x86_64::poly1305::Poly1305;
use crate::x86_64::wipe;

/// Bytes that the MAC takes at once: cipher and MAC find them in the first-level cache.
const PIECE: usize = 8192;

/// Encrypts or decrypts all jobs and computes their tags.
#[inline(never)]
pub(crate) fn crypt(
    avx2: HaveAvx2,
    avx512: Option<HaveAvx512>,
    dir: Direction,
    jobs: &mut [AeadJob<'_, ChaChaKey>],
) {
    let tokens = (avx2, avx512);
    match avx512 {
        Some(avx512) if few(jobs) => run(tokens, dir, jobs, |_, inputs, pads| {
            chacha_lanes::avx512_few(avx512, inputs, pads);
        }),
        Some(avx512) => run(tokens, dir, jobs, |count, inputs, pads| {
            chacha_lanes::avx512(avx512, count, inputs, pads);
        }),
        None => run(tokens, dir, jobs, |_, inputs, pads| {
            chacha_lanes::avx2(avx2, inputs, pads);
        }),
    }
}

/// Adds the key stream from block `first` on to data of one message.
pub(crate) fn apply(
    avx2: HaveAvx2,
    avx512: Option<HaveAvx512>,
    key: &[u8; 32],
    nonce: &[u8; 12],
    first: u32,
    data: InOutBuf<'_, '_, u8>,
) {
    let mut tail = [0; 16];
    tail[4..].copy_from_slice(nonce);
    let start = Input { key, tail };
    match avx512 {
        Some(avx512) if data.len() <= 8 * 64 => add(avx2, start, first, data, |_, inputs, pads| {
            chacha_lanes::avx512_few(avx512, inputs, pads);
        }),
        Some(avx512) => add(avx2, start, first, data, |count, inputs, pads| {
            chacha_lanes::avx512(avx512, count, inputs, pads);
        }),
        None => add(avx2, start, first, data, |_, inputs, pads| {
            chacha_lanes::avx2(avx2, inputs, pads);
        }),
    }
    wipe::vectors(avx2, avx512);
}

#[inline(always)]
fn add<const SETS: usize, const LANES: usize>(
    avx2: HaveAvx2,
    start: Input<'_>,
    mut counter: u32,
    mut data: InOutBuf<'_, '_, u8>,
    blocks: impl Fn(usize, &[[Input<'_>; LANES]; SETS], &mut [[Pad; LANES]; SETS]),
) {
    let mut inputs = [[start; LANES]; SETS];
    let mut pads = [[[0; 64]; LANES]; SETS];
    while !data.is_empty() {
        let count = (SETS * LANES).min(data.len().div_ceil(64));
        for input in &mut inputs.as_flattened_mut()[..count] {
            input.tail[..4].copy_from_slice(&counter.to_le_bytes());
            counter = counter.wrapping_add(1);
        }
        blocks(count, &inputs, &mut pads);
        let len = data.len().min(64 * count);
        let (now, rest) = data.split_at(len);
        chacha_lanes::xor(avx2, now, pads.as_flattened().as_flattened());
        data = rest;
    }
    pads = [[[0; 64]; LANES]; SETS];
    optimization_barrier(&pads);
}

/// Whether all blocks of all jobs fit eight lanes.
fn few(jobs: &[AeadJob<'_, ChaChaKey>]) -> bool {
    let blocks = jobs.iter().map(|job| 1 + job.data.len().div_ceil(64));
    jobs.len() <= 4 && blocks.sum::<usize>() <= 8
}

/// A place in the row of all blocks of all jobs. Block 0 of a job keys its MAC,
/// the others are for its data.
#[derive(Clone, Copy, Default)]
struct Cursor {
    job: usize,
    block: usize,
}

impl Cursor {
    /// Moves over at most `most` blocks of the present job and says how many.
    #[inline(always)]
    fn step(&mut self, most: usize, data_len: usize) -> usize {
        let blocks = 1 + data_len.div_ceil(64);
        let step = most.min(blocks - self.block);
        self.block += step;
        if self.block == blocks {
            *self = Cursor {
                job: self.job + 1,
                block: 0,
            };
        }
        step
    }
}

#[inline(always)]
fn run<const SETS: usize, const LANES: usize>(
    tokens: (HaveAvx2, Option<HaveAvx512>),
    dir: Direction,
    jobs: &mut [AeadJob<'_, ChaChaKey>],
    blocks: impl Fn(usize, &[[Input<'_>; LANES]; SETS], &mut [[Pad; LANES]; SETS]),
) {
    let Some(first) = jobs.first() else {
        return;
    };
    let idle = Input {
        key: &first.key.0,
        tail: [0; 16],
    };
    let mut inputs = [[idle; LANES]; SETS];
    let mut pads = [[[0; 64]; LANES]; SETS];
    let (mut filled, mut drained) = (Cursor::default(), Cursor::default());
    let mut message = Message::new(tokens);
    while filled.job < jobs.len() {
        let mut count = 0;
        while count < SETS * LANES && filled.job < jobs.len() {
            let (job, block) = (&jobs[filled.job], filled.block);
            let step = filled.step(SETS * LANES - count, job.data.len());
            for (input, counter) in inputs.as_flattened_mut()[count..][..step]
                .iter_mut()
                .zip(block as u32..)
            {
                input.key = &job.key.0;
                input.tail[..4].copy_from_slice(&counter.to_le_bytes());
                input.tail[4..].copy_from_slice(&job.iv[..12]);
            }
            count += step;
        }
        blocks(count, &inputs, &mut pads);
        let mut pads = &pads.as_flattened()[..count];
        while let Some(first) = pads.first() {
            let (job, block) = (&mut jobs[drained.job], drained.block);
            let step = drained.step(pads.len(), job.data.len());
            let (mut own, others) = pads.split_at(step);
            pads = others;
            if block == 0 {
                message.start(first, job.aad);
                own = &own[1..];
            }
            message.crypt(dir, &mut job.data, own);
            if drained.block == 0 {
                let tag = message.mac.finish(job.aad.len(), job.data.len());
                job.write_tag(&tag);
            }
        }
    }
    pads = [[[0; 64]; LANES]; SETS];
    optimization_barrier(&pads);
    wipe::vectors(tokens.0, tokens.1);
}

/// The job that is under way.
struct Message {
    tokens: (HaveAvx2, Option<HaveAvx512>),
    mac: Poly1305,
    /// Bytes that went through the cipher, and through the MAC.
    crypted: usize,
    hashed: usize,
}

impl Message {
    #[inline(always)]
    fn new(tokens: (HaveAvx2, Option<HaveAvx512>)) -> Self {
        Message {
            tokens,
            mac: Poly1305::new(),
            crypted: 0,
            hashed: 0,
        }
    }

    #[inline(always)]
    fn start(&mut self, first_pad: &Pad, aad: &[u8]) {
        let (key, _) = first_pad.split_first_chunk().expect("half of a block");
        self.mac.start(key);
        self.mac.update_padded(self.tokens, aad);
        (self.crypted, self.hashed) = (0, 0);
    }

    /// Encrypts or decrypts what `pads` are for.
    #[inline(always)]
    fn crypt(&mut self, dir: Direction, data: &mut InOutBuf<'_, '_, u8>, pads: &[Pad]) {
        let end = data.len().min(self.crypted + pads.as_flattened().len());
        if dir == Direction::Decrypt {
            // In place the ciphertext is there only now.
            while self.hashed < end {
                let piece = &data.get_in()[self.hashed..];
                let piece = &piece[..PIECE.min(piece.len())];
                self.mac.update_padded(self.tokens, piece);
                self.hashed += piece.len();
            }
        }
        let (_, mut rest) = data.reborrow().split_at(self.crypted);
        let (now, _) = rest.reborrow().split_at(end - self.crypted);
        chacha_lanes::xor(self.tokens.0, now, pads.as_flattened());
        self.crypted = end;
        if dir == Direction::Encrypt && (end - self.hashed >= PIECE || end == data.len()) {
            let piece = &data.get_out()[self.hashed..end];
            self.mac.update_padded(self.tokens, piece);
            self.hashed = end;
        }
    }
}
