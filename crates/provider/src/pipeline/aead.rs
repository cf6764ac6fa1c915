//! AEADs in a pipeline. The first piece of data of a message mostly is all of its data. So the first
//! piece is done as a whole message with its additional data, in one batch with the other messages.
//! A message that has more pieces goes on by itself, from the state after the first piece.

use arrayvec::ArrayVec;
use cipherlane_kernels::is_same;
use cipherlane_kernels::job::{AeadJob, Direction};
use inout::InOutBuf;
use zeroize::Zeroize;

use super::{MAX_PIPES, Pipes};
use crate::aead::TAG;
use crate::buffers::{Buffers, exactly};
use crate::error::Reason;
use crate::ffi::Param;
use crate::params::Name;
use crate::spec::Spec;

/// Bytes of the nonce of a message that is done as a whole.
pub(super) const NONCE: usize = 12;
/// The most bytes of additional data that are kept until the data comes.
const MAX_AAD: usize = 4096;

/// An AEAD: its kernels for whole messages and for pieces, and the way from one to the other.
pub(crate) trait Aead: Clone + 'static {
    type Key: Clone;
    type State: Clone;
    /// What is kept of a first piece, in case that the message goes on.
    type KeptInput: Clone + Default;
    /// What all messages that go on in one call share. It is made once per call.
    type Help: Default;

    /// The most data under one IV.
    const LONGEST: u64;
    /// The most bytes of a first piece that is done as a whole message.
    const LONGEST_WHOLE: usize;

    fn takes_iv(len: usize) -> bool;
    fn key(bytes: &[u8]) -> Option<Self::Key>;
    fn rekey(key: &mut Self::Key, bytes: &[u8]) -> Option<()>;

    /// Does whole messages, and computes their tags in both directions.
    fn crypt(direction: Direction, jobs: &mut [AeadJob<'_, Self::Key>]);
    /// Keeps what a message that goes on needs of the input of its first piece, before the input is
    /// overwritten.
    fn keep(kept: &mut Self::KeptInput, input: &[u8]);
    /// Lets go of what was kept.
    fn discard(kept: &mut Self::KeptInput);

    fn begin(direction: Direction, key: &Self::Key, iv: &[u8]) -> Self::State;
    fn aad(state: &mut Self::State, key: &Self::Key, aad: &[u8]);
    fn update(state: &mut Self::State, key: &Self::Key, data: InOutBuf<'_, '_, u8>);
    fn finish(state: Self::State, key: &Self::Key) -> [u8; TAG];
    /// The state after a first piece that was done as a whole message.
    fn continue_message(
        direction: Direction,
        key: &Self::Key,
        help: &mut Self::Help,
        done: Whole<'_, Self::KeptInput>,
    ) -> Self::State;
}

/// A message whose first piece was done as a whole message.
pub(crate) struct Whole<'a, K> {
    pub(super) nonce: &'a [u8; NONCE],
    pub(super) aad: &'a [u8],
    pub(super) data_len: u64,
    pub(super) kept: &'a K,
    pub(super) tag: &'a [u8; TAG],
}

#[derive(Clone)]
pub(crate) struct AeadPipes<A: Aead> {
    spec: &'static Spec,
    key: Option<Box<A::Key>>,
    direction: Direction,
    pipes: Vec<Pipe<A>>,
}

#[derive(Clone)]
struct Pipe<A: Aead> {
    stage: Stage<A::State>,
    nonce: [u8; NONCE],
    aad: Vec<u8>,
    kept: A::KeptInput,
    /// Bytes of data that the message has had.
    data: u64,
    /// When encrypting, the tag of the message; when decrypting, the tag that it should have.
    tag: [u8; TAG],
    tag_len: usize,
}

/// Where a message is.
#[derive(Clone)]
// It lives in a vector that is allocated once, and both ends are common.
#[allow(clippy::large_enum_variant)]
enum Stage<S> {
    /// No data has come yet.
    Open,
    /// The first piece was done as a whole message, which has this tag.
    Whole([u8; TAG]),
    /// Several pieces have come.
    Stream(S),
    /// The message has ended: its IV must not be used again.
    Ended,
}

impl<A: Aead> Pipe<A> {
    fn new() -> Self {
        Pipe {
            stage: Stage::Ended,
            nonce: [0; NONCE],
            aad: Vec::new(),
            kept: A::KeptInput::default(),
            data: 0,
            tag: [0; TAG],
            tag_len: 0,
        }
    }

    fn begin(&mut self, direction: Direction, key: &A::Key, iv: &[u8]) {
        self.stage = match exactly(iv) {
            Some(nonce) => {
                self.nonce = *nonce;
                Stage::Open
            }
            None => Stage::Stream(A::begin(direction, key, iv)),
        };
        self.aad.clear();
        A::discard(&mut self.kept);
        self.data = 0;
        self.tag_len = 0;
    }

    /// Refuses a piece that cannot be next.
    fn check(&self, piece: &Buffers<'_>) -> Result<(), Reason> {
        let len = piece.len();
        match (&self.stage, piece.has_output()) {
            (Stage::Ended, _) => Err(Reason::NoIvSet),
            (_, false) if len > 0 && self.data > 0 => Err(Reason::CipherOperationFailed),
            (_, false) => Ok(()),
            (_, true) if len as u64 > A::LONGEST - self.data => Err(Reason::CipherOperationFailed),
            (_, true) => piece.need_room(len),
        }
    }

    fn add_aad(&mut self, direction: Direction, key: &A::Key, aad: &[u8]) {
        if let Stage::Stream(state) = &mut self.stage {
            return A::aad(state, key, aad);
        }
        self.aad.extend_from_slice(aad);
        if self.aad.len() > MAX_AAD {
            self.stage = Stage::Stream(self.opened(direction, key));
        }
    }

    /// The state after the additional data.
    fn opened(&self, direction: Direction, key: &A::Key) -> A::State {
        let mut state = A::begin(direction, key, &self.nonce);
        A::aad(&mut state, key, &self.aad);
        state
    }

    /// Does the next piece of a message that goes on by itself.
    fn stream(
        &mut self,
        direction: Direction,
        key: &A::Key,
        help: &mut A::Help,
        data: InOutBuf<'_, '_, u8>,
    ) {
        match &mut self.stage {
            Stage::Open => self.stage = Stage::Stream(self.opened(direction, key)),
            Stage::Whole(tag) => {
                let done = Whole {
                    nonce: &self.nonce,
                    aad: &self.aad,
                    data_len: self.data,
                    kept: &self.kept,
                    tag,
                };
                let state = A::continue_message(direction, key, help, done);
                tag.zeroize();
                A::discard(&mut self.kept);
                self.stage = Stage::Stream(state);
            }
            Stage::Stream(_) | Stage::Ended => {}
        }
        if let Stage::Stream(state) = &mut self.stage {
            self.data += data.len() as u64;
            A::update(state, key, data);
        }
    }
}

impl<A: Aead> Drop for Pipe<A> {
    fn drop(&mut self) {
        // States wipe themselves. The right tag of a refused message is a secret too.
        self.tag.zeroize();
        A::discard(&mut self.kept);
        if let Stage::Whole(tag) = &mut self.stage {
            tag.zeroize();
        }
    }
}

impl<A: Aead> Pipes for AeadPipes<A> {
    fn new(spec: &'static Spec) -> Self {
        AeadPipes {
            spec,
            key: None,
            direction: Direction::Encrypt,
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
        self.pipes
            .iter_mut()
            .for_each(|pipe| pipe.stage = Stage::Ended);
        if !ivs.iter().all(|iv| A::takes_iv(iv.len())) {
            return Err(Reason::InvalidIvLength);
        }
        if let Some(key) = key {
            self.spec.fits(key)?;
            match &mut self.key {
                Some(old) => A::rekey(old, key).ok_or(Reason::InvalidKeyLength)?,
                None => self.key = A::key(key).map(Box::new),
            }
        }
        let key = self.key.as_deref().ok_or(Reason::NoKeySet)?;
        self.direction = direction;
        self.pipes.resize_with(ivs.len(), Pipe::new);
        for (pipe, iv) in self.pipes.iter_mut().zip(ivs) {
            pipe.begin(direction, key, iv);
        }
        Ok(())
    }

    fn update(&mut self, pieces: &mut [Buffers<'_>], written: &mut [usize]) -> Result<(), Reason> {
        let key = self.key.as_deref().ok_or(Reason::NoKeySet)?;
        let direction = self.direction;
        for (pipe, piece) in self.pipes.iter().zip(pieces.iter()) {
            pipe.check(piece)?;
        }
        let mut tags = [[0; TAG]; MAX_PIPES];
        let mut jobs = ArrayVec::<_, MAX_PIPES>::new();
        let mut batched = ArrayVec::<_, MAX_PIPES>::new();
        let mut help = A::Help::default();
        let each = self.pipes.iter_mut().zip(pieces).zip(written);
        for (((pipe, piece), written), tag) in each.zip(&mut tags) {
            let len = piece.len();
            *written = len;
            if len == 0 {
                continue;
            }
            if !piece.has_output() {
                pipe.add_aad(direction, key, piece.read(len));
                continue;
            }
            let data: InOutBuf<'_, '_, u8> = piece.work(len)?.into();
            if !matches!(pipe.stage, Stage::Open) || len > A::LONGEST_WHOLE {
                pipe.stream(direction, key, &mut help, data);
                continue;
            }
            let mut iv = [0; 16];
            iv[..NONCE].copy_from_slice(&pipe.nonce);
            let Pipe {
                aad,
                stage,
                kept,
                data: so_far,
                ..
            } = pipe;
            A::keep(kept, data.get_in());
            *so_far = len as u64;
            batched.push(stage);
            jobs.push(AeadJob {
                key,
                iv,
                aad,
                data,
                tag,
            });
        }
        A::crypt(direction, &mut jobs);
        for (job, stage) in jobs.iter().zip(&mut batched) {
            let tag = job.tag.first_chunk().expect("a whole tag");
            **stage = Stage::Whole(*tag);
        }
        drop(jobs);
        drop(batched);
        tags[..self.pipes.len()].as_flattened_mut().zeroize();
        Ok(())
    }

    fn finish(&mut self, _: &mut [Buffers<'_>], written: &mut [usize]) -> Result<(), Reason> {
        let key = self.key.as_deref().ok_or(Reason::NoKeySet)?;
        for pipe in &self.pipes {
            if matches!(pipe.stage, Stage::Ended) {
                return Err(Reason::NoIvSet);
            }
            if self.direction == Direction::Decrypt && pipe.tag_len == 0 {
                return Err(Reason::InvalidTag);
            }
        }
        // Messages that never had data.
        let mut tags = [[0; TAG]; MAX_PIPES];
        let mut jobs = ArrayVec::<_, MAX_PIPES>::new();
        let open = |pipe: &&Pipe<A>| matches!(pipe.stage, Stage::Open);
        for (pipe, tag) in self.pipes.iter().filter(open).zip(&mut tags) {
            let mut iv = [0; 16];
            iv[..NONCE].copy_from_slice(&pipe.nonce);
            jobs.push(AeadJob {
                key,
                iv,
                aad: &pipe.aad,
                data: InOutBuf::from(&mut [][..]),
                tag,
            });
        }
        A::crypt(self.direction, &mut jobs);
        drop(jobs);
        let mut computed = tags.iter().copied();
        let mut right = true;
        for pipe in &mut self.pipes {
            let mut found = match std::mem::replace(&mut pipe.stage, Stage::Ended) {
                Stage::Open => computed.next().unwrap_or_default(),
                Stage::Whole(tag) => tag,
                Stage::Stream(state) => A::finish(state, key),
                Stage::Ended => [0; TAG],
            };
            A::discard(&mut pipe.kept);
            match self.direction {
                Direction::Encrypt => (pipe.tag, pipe.tag_len) = (found, TAG),
                Direction::Decrypt => {
                    // A tag that was set is for one message.
                    let len = std::mem::take(&mut pipe.tag_len);
                    right &= is_same(&found[..len], &pipe.tag[..len]);
                    found.zeroize();
                }
            }
        }
        tags[..self.pipes.len()].as_flattened_mut().zeroize();
        written.fill(0);
        right.then_some(()).ok_or(Reason::BadDecrypt)
    }

    fn get(&self, name: Name, param: &mut Param) -> Result<(), Reason> {
        let len = param.data_size;
        let known = |pipe: &Pipe<A>| pipe.tag_len > 0 && matches!(pipe.stage, Stage::Ended);
        let all = !self.pipes.is_empty() && self.pipes.iter().all(known);
        if name != Name::PipelineTag {
            return Ok(());
        }
        if self.direction != Direction::Encrypt || !(1..=TAG).contains(&len) || !all {
            return Err(Reason::InvalidTag);
        }
        let tags = param.array().ok_or(Reason::FailedToSetParameter)?;
        for (i, pipe) in self.pipes.iter().enumerate() {
            // SAFETY: OpenSSL's promise: the array has a pointer for each pipe, and a tag
            // has room for as much as is asked for.
            unsafe {
                let tag: *mut u8 = tags.add(i).read();
                if tag.is_null() {
                    return Err(Reason::FailedToSetParameter);
                }
                pipe.tag.as_ptr().copy_to_nonoverlapping(tag, len);
            }
        }
        Ok(())
    }

    fn set(&mut self, name: Name, param: &Param) -> Result<(), Reason> {
        if name != Name::PipelineTag {
            return Ok(());
        }
        let len = param.data_size;
        let decrypts = self.direction == Direction::Decrypt && !self.pipes.is_empty();
        if !decrypts || !(1..=TAG).contains(&len) {
            return Err(Reason::InvalidTag);
        }
        let tags = param.array().ok_or(Reason::FailedToGetParameter)?;
        for (i, pipe) in self.pipes.iter_mut().enumerate() {
            // SAFETY: OpenSSL's promise: the array has a pointer for each pipe, and a tag is
            // as long as said.
            unsafe {
                let tag: *const u8 = tags.add(i).read();
                if tag.is_null() {
                    return Err(Reason::FailedToGetParameter);
                }
                tag.copy_to_nonoverlapping(pipe.tag.as_mut_ptr(), len);
            }
            pipe.tag_len = len;
        }
        Ok(())
    }
}
