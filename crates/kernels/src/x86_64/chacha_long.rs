//! ChaCha20-Poly1305 over a message that has the vectors for itself: the MAC of one part goes
//! beside the key stream of another.

use core::mem::MaybeUninit;
use core::slice;

use inout::InOutBuf;
use zeroize::optimization_barrier;

use crate::chacha::key::ChaChaKey;
use crate::cpu::HaveAvx2;
use crate::job::{AeadJob, Direction};
use crate::x86_64::chacha::Tokens;
use crate::x86_64::chacha_lanes;
use crate::x86_64::chacha_stream::{self, KeyStream};
use crate::x86_64::poly1305::Poly1305;
use crate::x86_64::poly1305_words::Halves;

/// The bytes of the largest step.
const MAX_STEP: usize = 1024;

/// Encrypts or decrypts a message and computes its tag, by a MAC that others have used before.
#[inline(never)]
pub(super) fn crypt<S: KeyStream>(
    tokens: Tokens,
    token: S::Token,
    dir: Direction,
    mac: &mut Poly1305,
    job: &mut AeadJob<'_, ChaChaKey>,
) {
    let (nonce, _) = job.iv.split_first_chunk().expect("12 of 16 bytes");
    let mut stream = S::new(token, &job.key.0, nonce, 0);
    let mut pads = Pads::new();
    let pad = pads.fill(&mut stream, None);
    mac.start(pad.first_chunk().expect("half of a block"));
    mac.update_padded(tokens, job.aad);
    let len = job.data.len();
    let data = &mut job.data;
    let done = ahead(tokens, dir, mac, &pad[64..], data.reborrow(), len);
    side_by_side(tokens, dir, &mut stream, &mut pads, mac, data, done);
    let tag = mac.finish(tokens.0, job.aad.len(), len);
    job.write_tag(&tag);
}

/// The next part of a message, by what is left of a step of key stream, in whole blocks of the
/// MAC, and by the stream behind. The MAC takes in the whole blocks of the part.
#[inline(never)]
pub(super) fn part<S: KeyStream>(
    tokens: Tokens,
    dir: Direction,
    mut stream: S,
    mac: &mut Poly1305,
    left: &[u8],
    mut data: InOutBuf<'_, '_, u8>,
) {
    let hash = data.len() & !15;
    let done = ahead(tokens, dir, mac, left, data.reborrow(), hash);
    let mut pads = Pads::new();
    side_by_side(tokens, dir, &mut stream, &mut pads, mac, &mut data, done);
}

/// How much of the data went through the cipher, how much through the MAC, and how much is to.
struct Done {
    crypted: usize,
    hashed: usize,
    hash: usize,
}

/// The first of the data, by key stream that is there already. Of all data `hash` bytes are to
/// go through the MAC.
#[inline(always)]
fn ahead(
    tokens: Tokens,
    dir: Direction,
    mac: &mut Poly1305,
    pad: &[u8],
    data: InOutBuf<'_, '_, u8>,
    hash: usize,
) -> Done {
    let crypted = data.len().min(pad.len());
    let (first, _) = data.split_at(crypted);
    let mut hashed = 0;
    if dir == Direction::Decrypt {
        // In place the ciphertext is there only now.
        hashed = crypted.min(hash);
        mac.update_padded(tokens, &first.get_in()[..hashed]);
    }
    chacha_lanes::xor(tokens.0, first, pad);
    Done {
        crypted,
        hashed,
        hash,
    }
}

/// The rest of the data through cipher and MAC, side by side.
#[inline(always)]
fn side_by_side<S: KeyStream>(
    tokens: Tokens,
    dir: Direction,
    stream: &mut S,
    pads: &mut Pads,
    mac: &mut Poly1305,
    data: &mut InOutBuf<'_, '_, u8>,
    done: Done,
) {
    let (mut crypted, mut hashed, hash) = (done.crypted, done.hashed, done.hash);
    let len = data.len();
    while crypted < len {
        let step = S::STEP.min(len - crypted);
        // The ciphertext that is there and was not through the MAC.
        let ready = match dir {
            Direction::Encrypt => &data.get_out()[hashed..crypted.min(hash)],
            Direction::Decrypt => &data.get_in()[hashed..hash.min(crypted + step)],
        };
        let rounds = chacha_stream::rounds_beside::<S>(ready.len());
        let half = S::HALF * rounds;
        let ready = ready.as_ptr();
        let beside = (rounds > 0).then(|| (mac.halves(ready, half), rounds));
        let (_, rest) = data.reborrow().split_at(crypted);
        if step == S::STEP {
            let (now, _) = rest.split_at(step);
            let (from, to) = now.into_raw();
            // SAFETY: both have a step. The two parts are within what is ready.
            unsafe { stream.step(from, to, beside) };
            mac.join_after(rounds);
            hashed += 2 * 16 * half;
        } else {
            let pad = pads.fill(stream, beside);
            mac.join_after(rounds);
            hashed += 2 * 16 * half;
            if dir == Direction::Decrypt {
                mac.update_padded(tokens, &rest.get_in()[hashed - crypted..hash - crypted]);
                hashed = hash;
            }
            chacha_lanes::xor(tokens.0, rest, pad);
        }
        crypted += step;
    }
    if dir == Direction::Encrypt {
        mac.update_padded(tokens, &data.get_out()[hashed..hash]);
    }
}

/// Adds key stream to data.
#[inline(always)]
pub(super) fn apply<S: KeyStream>(avx2: HaveAvx2, mut stream: S, mut data: InOutBuf<'_, '_, u8>) {
    while data.len() >= S::STEP {
        let (now, rest) = data.split_at(S::STEP);
        let (from, to) = now.into_raw();
        // SAFETY: both have a step.
        unsafe { stream.step(from, to, None) };
        data = rest;
    }
    if !data.is_empty() {
        chacha_lanes::xor(avx2, data, Pads::new().fill(&mut stream, None));
    }
}

/// Key stream for less than a step of data. Wiped on drop.
#[repr(align(64))]
struct Pads(MaybeUninit<[u8; MAX_STEP]>);

impl Pads {
    #[inline(always)]
    fn new() -> Pads {
        Pads(MaybeUninit::uninit())
    }

    /// The next step of key stream itself.
    #[inline(always)]
    fn fill<S: KeyStream>(
        &mut self,
        stream: &mut S,
        beside: Option<(&mut Halves, usize)>,
    ) -> &[u8] {
        static ZEROS: [u8; MAX_STEP] = [0; MAX_STEP];
        const { assert!(S::STEP <= MAX_STEP) };
        let pads = self.0.as_mut_ptr().cast::<u8>();
        // SAFETY: there is room for a step, which the step fills.
        unsafe {
            stream.step(ZEROS.as_ptr(), pads, beside);
            slice::from_raw_parts(pads, S::STEP)
        }
    }
}

impl Drop for Pads {
    #[inline(always)]
    fn drop(&mut self) {
        self.0 = MaybeUninit::new([0; MAX_STEP]);
        optimization_barrier(&self.0);
    }
}
