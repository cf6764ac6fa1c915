//! ChaCha20-Poly1305 over a message that has the vectors for itself: the MAC of one part goes
//! beside the key stream of another.

use core::mem::MaybeUninit;
use core::slice;

use inout::InOutBuf;

use crate::chacha::key::ChaChaKey;
use crate::cpu::{HaveAvx2, HaveAvx512Ifma};
use crate::job::{AeadJob, Direction};
use crate::x86_64::chacha::Tokens;
use crate::x86_64::chacha_lanes::{self, Pad};
use crate::x86_64::chacha_rows;
use crate::x86_64::chacha_stream::{KeyStream, MAX_STEP};
use crate::x86_64::poly1305::Poly1305;

/// Encrypts or decrypts messages and computes their tags, by one MAC or by two that take turns. With
/// two what is left of a message for its MAC goes beside the first step of the next one.
#[inline(never)]
pub(super) fn crypt<S: KeyStream>(
    tokens: Tokens,
    token: S::Token,
    dir: Direction,
    macs: &mut [Poly1305],
    jobs: &mut [AeadJob<'_, ChaChaKey>],
) {
    let mut room = Room(MaybeUninit::uninit());
    let mut pads = Pads::new(&mut room);
    let mut before: Option<(&mut AeadJob<'_, ChaChaKey>, usize)> = None;
    let mut jobs = jobs.iter_mut().enumerate().peekable();
    while let Some((i, job)) = jobs.next() {
        let (mac, mut other) = match (&mut *macs, i % 2) {
            ([even, odd], 0) => (even, Some(odd)),
            ([even, odd], _) => (odd, Some(even)),
            (macs, _) => (&mut macs[0], None),
        };
        let (nonce, _) = job.iv.split_first_chunk().expect("12 of 16 bytes");
        let mut stream = S::new(token, &job.key.0, nonce, 0);
        let beside = before.as_mut().zip(other.as_deref_mut());
        let beside = beside.map(|((job, hashed), mac)| (mac, &job.data.get_out()[*hashed..]));
        let (pad, taken) = pads.first(&mut stream, (dir, job.data.len()), beside);
        if let (Some((job, hashed)), Some(mac)) = (before.take(), other.as_deref_mut()) {
            end(tokens, mac, job, hashed + taken);
        }
        mac.start(pad.first_chunk().expect("half of a block"));
        mac.prepare(tokens, job.data.len());
        mac.update_padded(tokens, job.aad);
        let len = job.data.len();
        let data = &mut job.data;
        let done = ahead(tokens, dir, mac, &pad[64..], data.reborrow(), len);
        let hashed = side_by_side(tokens, dir, &mut stream, &mut pads, mac, data, done);
        if hashed < len && other.is_some() && jobs.peek().is_some() {
            before = Some((job, hashed));
        } else {
            end(tokens, mac, job, hashed);
        }
    }
}

/// The MAC of the rest of a message that is encrypted, and the tag.
#[inline(always)]
fn end(tokens: Tokens, mac: &mut Poly1305, job: &mut AeadJob<'_, ChaChaKey>, hashed: usize) {
    mac.update_padded(tokens, &job.data.get_out()[hashed..]);
    let tag = mac.finish(tokens.0, job.aad.len(), job.data.len());
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
    let mut room = Room(MaybeUninit::uninit());
    let mut pads = Pads::new(&mut room);
    let hashed = side_by_side(tokens, dir, &mut stream, &mut pads, mac, &mut data, done);
    mac.update_padded(tokens, &data.get_out()[hashed..hash]);
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
    let mut hashed = 0;
    if dir == Direction::Decrypt {
        // In place the ciphertext is there only now. Vectors of the MAC that go beside nothing take
        // less time for all of a short message at once.
        let alone = tokens.1.is_some() && HaveAvx512Ifma::new().is_some();
        hashed = match alone && data.len() <= MAX_STEP {
            true => hash,
            false => crypted.min(hash),
        };
        mac.update_padded(tokens, &data.get_in()[..hashed]);
    }
    let (first, _) = data.split_at(crypted);
    chacha_lanes::xor_for_mac(tokens, first, pad);
    Done {
        crypted,
        hashed,
        hash,
    }
}

/// The rest of the data through cipher and MAC, side by side. Gives how much went through the MAC:
/// not all, if it is encrypted.
#[inline(always)]
fn side_by_side<S: KeyStream>(
    tokens: Tokens,
    dir: Direction,
    stream: &mut S,
    pads: &mut Pads<'_>,
    mac: &mut Poly1305,
    data: &mut InOutBuf<'_, '_, u8>,
    done: Done,
) -> usize {
    let (mut crypted, mut hashed, hash) = (done.crypted, done.hashed, done.hash);
    let len = data.len();
    while crypted < len {
        let step = S::STEP.min(len - crypted);
        // The ciphertext that is there and was not through the MAC.
        let ready = match dir {
            Direction::Encrypt => &data.get_out()[hashed..crypted.min(hash)],
            Direction::Decrypt => &data.get_in()[hashed..hash.min(crypted + step)],
        };
        let ready = (ready.as_ptr(), ready.len());
        let (_, rest) = data.reborrow().split_at(crypted);
        if step == S::STEP {
            let (now, _) = rest.split_at(step);
            let (from, to) = now.into_raw();
            // SAFETY: both have a step; what is ready is a part of the data.
            hashed += unsafe { stream.step_beside(from, to, mac, ready) };
        } else {
            // SAFETY: as above.
            let (pad, taken) = unsafe { pads.last_beside(stream, step, mac, ready) };
            hashed += taken;
            if dir == Direction::Decrypt {
                mac.update_padded(tokens, &rest.get_in()[hashed - crypted..hash - crypted]);
                hashed = hash;
            }
            chacha_lanes::xor_for_mac(tokens, rest, pad);
        }
        crypted += step;
    }
    hashed
}

/// Adds key stream to data.
#[inline(always)]
pub(super) fn apply<S: KeyStream>(avx2: HaveAvx2, mut stream: S, mut data: InOutBuf<'_, '_, u8>) {
    while data.len() >= S::STEP {
        let (now, rest) = data.split_at(S::STEP);
        let (from, to) = now.into_raw();
        // SAFETY: both have a step.
        unsafe { stream.step(from, to) };
        data = rest;
    }
    let mut room = Room(MaybeUninit::uninit());
    let mut pads = Pads::new(&mut room);
    while !data.is_empty() {
        let len = data.len();
        let pad = pads.fill(&mut stream, len);
        let (now, rest) = data.split_at(pad.len().min(len));
        chacha_lanes::xor(avx2, now, pad);
        data = rest;
    }
}

/// Where [`Pads`] are.
#[repr(align(64))]
struct Room(MaybeUninit<[u8; MAX_STEP]>);

/// Key stream for less than a step of data. Wiped on drop, as far as it was filled.
// The compiler would fill the room with zeros if it were made together with the number.
struct Pads<'r> {
    room: &'r mut Room,
    filled: usize,
}

impl Pads<'_> {
    #[inline(always)]
    fn new(room: &mut Room) -> Pads<'_> {
        Pads { room, filled: 0 }
    }

    /// The next of the key stream itself, where `len` bytes are wanted, less than a step: these or a part
    /// of them, or more.
    #[inline(always)]
    fn fill<S: KeyStream>(&mut self, stream: &mut S, len: usize) -> &[u8] {
        // As long as this is the first of a message with the block that keys its MAC.
        let message = (Direction::Encrypt, len.saturating_sub(64));
        self.first(stream, message, None).0
    }

    /// The first of the key stream, and how much another MAC took in beside.
    #[inline(always)]
    fn first<S: KeyStream>(
        &mut self,
        stream: &mut S,
        message: (Direction, usize),
        beside: Option<(&mut Poly1305, &[u8])>,
    ) -> (&[u8], usize) {
        let beside = beside.map(|(mac, ready)| (mac, (ready.as_ptr(), ready.len())));
        // SAFETY: there is room for a step; what is ready is a slice.
        unsafe {
            let (len, taken) = stream.first(message, self.start::<S>(), beside);
            self.filled = self.filled.max(len);
            (slice::from_raw_parts(self.start::<S>(), len), taken)
        }
    }

    /// The last `len` bytes of key stream, less than a step, and how much the MAC took in beside.
    ///
    /// # Safety
    /// What is ready is valid for reads.
    #[inline(always)]
    unsafe fn last_beside<S: KeyStream>(
        &mut self,
        stream: &mut S,
        len: usize,
        mac: &mut Poly1305,
        ready: (*const u8, usize),
    ) -> (&[u8], usize) {
        // SAFETY: there is room for a step, of which `len` bytes or more are filled.
        unsafe {
            let (filled, taken) = stream.last_beside(len, self.start::<S>(), mac, ready);
            self.filled = self.filled.max(filled);
            (slice::from_raw_parts(self.start::<S>(), len), taken)
        }
    }

    #[inline(always)]
    fn start<S: KeyStream>(&mut self) -> *mut u8 {
        const { assert!(S::STEP <= MAX_STEP) };
        self.room.0.as_mut_ptr().cast()
    }
}

impl Drop for Pads<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        let blocks = self.room.0.as_mut_ptr().cast::<Pad>();
        // SAFETY: as many bytes were written, which are whole blocks.
        chacha_rows::wipe(unsafe { slice::from_raw_parts_mut(blocks, self.filled / 64) });
    }
}
