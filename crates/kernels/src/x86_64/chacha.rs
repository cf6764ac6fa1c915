//! ChaCha20-Poly1305 over a batch. A long message has the vectors for itself; of short ones the
//! blocks of key stream of all jobs, one after the other, fill the lanes, so that a short job
//! does not pay for a whole set.

use inout::InOutBuf;
use zeroize::optimization_barrier;

use crate::chacha::key::ChaChaKey;
use crate::cpu::{HaveAvx2, HaveAvx512};
use crate::job::{AeadJob, Direction};
use crate::x86_64::chacha_lanes::{self, Input, Pad};
use crate::x86_64::chacha_long;
use crate::x86_64::chacha_rows;
use crate::x86_64::chacha_stream::{KeyStream, Narrow, Wide};
use crate::x86_64::poly1305::Poly1305;
use crate::x86_64::wipe;

/// Bytes that the MAC takes at once: cipher and MAC find them in the first-level cache.
const PIECE: usize = 8192;

/// What the processor has.
pub(crate) type Tokens = (HaveAvx2, Option<HaveAvx512>);

/// Encrypts or decrypts all jobs and computes their tags.
#[inline(never)]
pub(crate) fn crypt(
    avx2: HaveAvx2,
    avx512: Option<HaveAvx512>,
    dir: Direction,
    jobs: &mut [AeadJob<'_, ChaChaKey>],
) {
    let tokens = (avx2, avx512);
    match jobs {
        [job] if job.data.len() <= 64 * (chacha_rows::MAX_BLOCKS - 1) => short(tokens, dir, job),
        _ => match avx512 {
            Some(avx512) => batch::<Wide>(tokens, avx512, dir, jobs),
            None => batch::<Narrow>(tokens, avx2, dir, jobs),
        },
    }
    wipe::vectors(avx2, avx512);
}

/// Encrypts or decrypts a message of a few blocks.
fn short(tokens: Tokens, dir: Direction, job: &mut AeadJob<'_, ChaChaKey>) {
    let (nonce, _) = job.iv.split_first_chunk().expect("12 of 16 bytes");
    let mut pads = chacha_rows::Pads::new();
    let count = 1 + job.data.len().div_ceil(64);
    let own = chacha_rows::blocks(tokens, count, (&job.key.0, nonce, 0), &mut pads);
    let mut message = Message::new(tokens);
    message.start(&own[0], job.aad);
    message.crypt(dir, &mut job.data, &own[1..]);
    let tag = message.mac.finish(tokens.0, job.aad.len(), job.data.len());
    job.write_tag(&tag);
    chacha_rows::wipe(own);
}

/// Encrypts or decrypts long messages one by one, and what is between them together.
fn batch<S: KeyStream>(
    tokens: Tokens,
    token: S::Token,
    dir: Direction,
    jobs: &mut [AeadJob<'_, ChaChaKey>],
) {
    let is_long = |job: &AeadJob<'_, ChaChaKey>| job.data.len() >= S::LONG;
    for jobs in jobs.chunk_by_mut(|a, b| is_long(a) == is_long(b)) {
        if jobs.len() > 1 && !is_long(&jobs[0]) {
            together(tokens, dir, jobs);
        } else if jobs.len() > 1 && S::TURNS {
            let mut macs = [Poly1305::new(), Poly1305::new()];
            chacha_long::crypt::<S>(tokens, token, dir, &mut macs, jobs);
        } else {
            chacha_long::crypt::<S>(tokens, token, dir, &mut [Poly1305::new()], jobs);
        }
    }
}

/// Encrypts or decrypts jobs whose blocks share the lanes.
fn together(tokens: Tokens, dir: Direction, jobs: &mut [AeadJob<'_, ChaChaKey>]) {
    match tokens.1 {
        Some(avx512) if few(jobs) => run(tokens, dir, jobs, |_, inputs, pads| {
            chacha_lanes::avx512_few(avx512, inputs, pads);
        }),
        Some(avx512) => run(tokens, dir, jobs, |count, inputs, pads| {
            chacha_lanes::avx512(avx512, count, inputs, pads);
        }),
        None => run(tokens, dir, jobs, |_, inputs, pads| {
            chacha_lanes::avx2(tokens.0, inputs, pads);
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
    if data.len() <= 64 * chacha_rows::MAX_BLOCKS {
        let mut pads = chacha_rows::Pads::new();
        let count = data.len().div_ceil(64);
        let own = chacha_rows::blocks((avx2, avx512), count, (key, nonce, first), &mut pads);
        chacha_lanes::xor(avx2, data, own.as_flattened());
        chacha_rows::wipe(own);
    } else {
        match avx512 {
            Some(avx512) => chacha_long::apply(avx2, Wide::new(avx512, key, nonce, first), data),
            None => chacha_long::apply(avx2, Narrow::new(avx2, key, nonce, first), data),
        }
    }
    wipe::vectors(avx2, avx512);
}

/// The next part of a message through cipher and MAC: by the key stream that is left, in whole
/// blocks of the MAC, and by the one from block `first` on. The MAC takes in whole blocks alone.
pub(crate) fn part(
    (avx2, avx512): Tokens,
    dir: Direction,
    mac: &mut Poly1305,
    left: &[u8],
    (key, nonce, first): (&[u8; 32], &[u8; 12], u32),
    data: InOutBuf<'_, '_, u8>,
) {
    let tokens = (avx2, avx512);
    match avx512 {
        Some(avx512) => {
            let stream = Wide::new(avx512, key, nonce, first);
            chacha_long::part(tokens, dir, stream, mac, left, data);
        }
        None => {
            let stream = Narrow::new(avx2, key, nonce, first);
            chacha_long::part(tokens, dir, stream, mac, left, data);
        }
    }
    wipe::vectors(avx2, avx512);
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
    tokens: Tokens,
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
                let tag = message.mac.finish(tokens.0, job.aad.len(), job.data.len());
                job.write_tag(&tag);
            }
        }
    }
    pads.as_flattened_mut().fill([0; 64]);
    optimization_barrier(&pads);
}

/// The job that is under way.
struct Message {
    tokens: Tokens,
    mac: Poly1305,
    /// Bytes that went through the cipher, and through the MAC.
    crypted: usize,
    hashed: usize,
}

impl Message {
    #[inline(always)]
    fn new(tokens: Tokens) -> Self {
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
        chacha_lanes::xor_for_mac(self.tokens, now, pads.as_flattened());
        self.crypted = end;
        if dir == Direction::Encrypt && (end - self.hashed >= PIECE || end == data.len()) {
            let piece = &data.get_out()[self.hashed..end];
            self.mac.update_padded(self.tokens, piece);
            self.hashed = end;
        }
    }
}
