//! AES-CBC in a pipeline. Each message is a chain of its own, so that encryption fills the lanes too.

use arrayvec::ArrayVec;
use cipherlane_kernels::aes::AesKey;
use cipherlane_kernels::cbc;
use cipherlane_kernels::job::{CipherJob, Direction};
use zeroize::{Zeroize, ZeroizeOnDrop};

use super::{MAX_PIPES, Pipes};
use crate::block::unpadded;
use crate::buffers::Buffers;
use crate::error::Reason;
use crate::ffi::Param;
use crate::keyed::BLOCK;
use crate::params::Name;
use crate::spec::Spec;

#[derive(Clone)]
pub(crate) struct CbcPipes {
    spec: &'static Spec,
    /// Apart, so that contexts without a pipeline are small.
    key: Option<Box<AesKey>>,
    direction: Direction,
    pad: bool,
    pipes: Vec<Pipe>,
}

#[derive(Clone, Default, Zeroize, ZeroizeOnDrop)]
struct Pipe {
    iv: [u8; BLOCK],
    /// Input that is not a whole block yet; when decrypting, also a block that may be the last.
    held: [u8; BLOCK],
    held_len: usize,
}

impl Pipe {
    fn hold(&mut self, bytes: &[u8]) {
        self.held[self.held_len..][..bytes.len()].copy_from_slice(bytes);
        self.held_len += bytes.len();
    }

    fn discard(&mut self) {
        self.held.zeroize();
        self.held_len = 0;
    }
}

/// Input that a pipe is to hold when a call is over.
#[derive(Clone, Copy, Default)]
struct Tail {
    bytes: [u8; BLOCK],
    len: usize,
}

type Jobs<'a> = ArrayVec<CipherJob<'a, AesKey>, MAX_PIPES>;

fn crypt(direction: Direction, jobs: &mut Jobs<'_>) {
    match direction {
        Direction::Encrypt => cbc::encrypt(jobs),
        Direction::Decrypt => cbc::decrypt(jobs),
    }
}

/// Encrypts or decrypts the held blocks of those pipes that `goes` names, where they are.
fn crypt_held(
    direction: Direction,
    key: &AesKey,
    pipes: &mut [Pipe],
    goes: impl Fn(usize) -> bool,
) {
    let mut jobs = Jobs::new();
    let mut ivs = ArrayVec::<_, MAX_PIPES>::new();
    for (_, pipe) in pipes.iter_mut().enumerate().filter(|&(i, _)| goes(i)) {
        jobs.push(CipherJob {
            key,
            iv: pipe.iv,
            data: (&mut pipe.held[..]).into(),
        });
        ivs.push(&mut pipe.iv);
    }
    crypt(direction, &mut jobs);
    for (job, iv) in jobs.iter().zip(&mut ivs) {
        **iv = job.iv;
    }
}

impl CbcPipes {
    /// The bytes that a pipe writes now, of those that it holds and of those that it is given.
    fn whole(&self, pipe: &Pipe, len: usize) -> usize {
        let whole = (pipe.held_len + len) / BLOCK * BLOCK;
        // Which block of a padded message is the last is known only at the end of the message.
        let may_be_last = self.direction == Direction::Decrypt && self.pad;
        match may_be_last && whole == pipe.held_len + len {
            true => whole.saturating_sub(BLOCK),
            false => whole,
        }
    }
}

impl Pipes for CbcPipes {
    fn new(spec: &'static Spec) -> Self {
        CbcPipes {
            spec,
            key: None,
            direction: Direction::Encrypt,
            pad: true,
            pipes: Vec::new(),
        }
    }

    fn len(&self) -> usize {
        self.pipes.len()
    }

    fn begin(
        &mut self,
        direction: Direction,
        key: Option<&[u8]>,
        ivs: &[&[u8]],
    ) -> Result<(), Reason> {
        // Messages that were begun before cannot go on, whether this succeeds or not.
        self.pipes.clear();
        if let Some(key) = key {
            self.spec.fits(key)?;
            self.key = AesKey::new(key).map(Box::new);
        }
        if self.key.is_none() {
            return Err(Reason::NoKeySet);
        }
        if ivs.iter().any(|iv| iv.len() != BLOCK) {
            return Err(Reason::InvalidIvLength);
        }
        self.direction = direction;
        self.pipes.extend(ivs.iter().map(|iv| {
            let mut pipe = Pipe::default();
            pipe.iv.copy_from_slice(iv);
            pipe
        }));
        Ok(())
    }

    fn update(&mut self, pieces: &mut [Buffers<'_>], written: &mut [usize]) -> Result<(), Reason> {
        for ((pipe, piece), written) in self.pipes.iter().zip(pieces.iter()).zip(&mut *written) {
            *written = self.whole(pipe, piece.len());
            piece.need_room(*written)?;
        }
        let (direction, key) = (self.direction, self.key.as_deref().ok_or(Reason::NoKeySet)?);
        // Input that will be held is read before anything is written: where a message is in place and
        // a part of its first block is held already, the output is ahead of the input.
        let mut tails = [Tail::default(); MAX_PIPES];
        for (i, (pipe, piece)) in self.pipes.iter_mut().zip(&mut *pieces).enumerate() {
            let rest = pipe.held_len + piece.len() - written[i];
            if written[i] == 0 {
                let all = piece.len();
                pipe.hold(piece.read(all));
                continue;
            }
            tails[i].len = rest;
            piece.take_last(rest, &mut tails[i].bytes);
            piece.settle()?;
        }
        // The blocks of which a part was held come first.
        let mut completed = [false; MAX_PIPES];
        for (i, (pipe, piece)) in self.pipes.iter_mut().zip(&mut *pieces).enumerate() {
            completed[i] = pipe.held_len > 0 && written[i] > 0;
            if completed[i] {
                pipe.hold(piece.read(BLOCK - pipe.held_len));
            }
        }
        if completed.contains(&true) {
            crypt_held(direction, key, &mut self.pipes, |i| completed[i]);
        }
        let mut jobs = Jobs::new();
        let mut ivs = ArrayVec::<_, MAX_PIPES>::new();
        for (i, (pipe, piece)) in self.pipes.iter_mut().zip(&mut *pieces).enumerate() {
            let mut whole = written[i];
            if completed[i] {
                piece.insert(&pipe.held)?;
                pipe.discard();
                whole -= BLOCK;
            }
            if whole > 0 {
                jobs.push(CipherJob {
                    key,
                    iv: pipe.iv,
                    data: piece.work(whole)?.into(),
                });
                ivs.push(&mut pipe.iv);
            }
        }
        crypt(direction, &mut jobs);
        for (job, iv) in jobs.iter().zip(&mut ivs) {
            **iv = job.iv;
        }
        drop(jobs);
        drop(ivs);
        for (pipe, tail) in self.pipes.iter_mut().zip(&tails) {
            pipe.hold(&tail.bytes[..tail.len]);
        }
        tails.iter_mut().for_each(|tail| tail.bytes.zeroize());
        Ok(())
    }

    fn finish(&mut self, pieces: &mut [Buffers<'_>], written: &mut [usize]) -> Result<(), Reason> {
        let (direction, key) = (self.direction, self.key.as_deref().ok_or(Reason::NoKeySet)?);
        let (encrypts, pad) = (direction == Direction::Encrypt, self.pad);
        let held = |pipe: &Pipe| pipe.held_len;
        // The output is a whole block or nothing; only encryption adds padding.
        let wrong = |held: usize| match (encrypts, pad) {
            (true, true) => false,
            (false, true) => held < BLOCK,
            (_, false) => !held.is_multiple_of(BLOCK),
        };
        if self.pipes.iter().map(held).any(wrong) {
            return Err(Reason::WrongFinalBlockLength);
        }
        let mut goes = [pad; MAX_PIPES];
        for (i, (pipe, piece)) in self.pipes.iter().zip(&*pieces).enumerate() {
            goes[i] |= pipe.held_len > 0;
            if goes[i] && encrypts {
                piece.need_room(BLOCK)?;
            }
        }
        if encrypts && pad {
            for pipe in &mut self.pipes {
                pipe.hold(&[(BLOCK - pipe.held_len) as u8; BLOCK][pipe.held_len..]);
            }
        }
        crypt_held(direction, key, &mut self.pipes, |i| goes[i]);
        // Where the padding of one message is wrong, no message writes anything.
        let mut lens = [0; MAX_PIPES];
        let mut right = true;
        for (i, pipe) in self.pipes.iter().enumerate().filter(|&(i, _)| goes[i]) {
            let len = match pad && !encrypts {
                true => unpadded(&pipe.held),
                false => Some(BLOCK),
            };
            lens[i] = len.unwrap_or(0);
            right &= len.is_some();
        }
        if !right {
            self.pipes.iter_mut().for_each(Pipe::discard);
            return Err(Reason::BadDecrypt);
        }
        for (i, (pipe, piece)) in self.pipes.iter_mut().zip(pieces).enumerate() {
            let done = piece.write(&pipe.held[..lens[i]]);
            pipe.discard();
            done?;
            written[i] = lens[i];
        }
        Ok(())
    }

    fn set(&mut self, name: Name, param: &Param) -> Result<(), Reason> {
        if name == Name::Padding {
            self.pad = param.as_u32()? != 0;
        }
        Ok(())
    }
}
