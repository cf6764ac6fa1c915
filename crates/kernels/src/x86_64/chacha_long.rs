//! ChaCha20-Poly1305 over a message that has the vectors for itself: the MAC of one part goes
//! beside the key stream of another.

use core::mem::MaybeUninit;
use core::slice;

use inout::InOutBuf;
use zeroize::optimization_barrier;

use crate::chacha::ChaChaKey;
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
    // What went through the cipher, and through the MAC.
    let (mut crypted, mut hashed) = (len.min(S::STEP - 64), 0);
    let (first, _) = job.data.reborrow().split_at(crypted);
    if dir == Direction::Decrypt {
        // In place the ciphertext is there only now.
        mac.update_padded(tokens, first.get_in());
        hashed = crypted;
    }
    chacha_lanes::xor(tokens.0, first, &pad[64..]);
    while crypted < len {
        let step = S::STEP.min(len - crypted);
        // The ciphertext that is there and was not through the MAC.
        let ready = match dir {
            Direction::Encrypt => &job.data.get_out()[hashed..crypted],
            Direction::Decrypt => &job.data.get_in()[hashed..crypted + step],
        };
        let rounds = chacha_stream::rounds_beside::<S>(ready.len());
        let half = S::HALF * rounds;
        let ready = ready.as_ptr();
        let beside = (rounds > 0).then(|| (mac.halves(ready, half), rounds));
        let (_, rest) = job.data.reborrow().split_at(crypted);
        if step == S::STEP {
            let (now, _) = rest.split_at(step);
            let (from, to) = now.into_raw();
            // SAFETY: both have a step. The two parts are within what is ready.
            unsafe { stream.step(from, to, beside) };
            mac.join_after(rounds);
            hashed += 2 * 16 * half;
        } else {
            let pad = pads.fill(&mut stream, beside);
            mac.join_after(rounds);
            hashed += 2 * 16 * half;
            if dir == Direction::Decrypt {
                mac.update_padded(tokens, &rest.get_in()[hashed - crypted..]);
                hashed = len;
            }
            chacha_lanes::xor(tokens.0, rest, pad);
        }
        crypted += step;
    }
    if dir == Direction::Encrypt {
        mac.update_padded(tokens, &job.data.get_out()[hashed..]);
    }
    let tag = mac.finish(tokens.0, job.aad.len(), len);
    job.write_tag(&tag);
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
