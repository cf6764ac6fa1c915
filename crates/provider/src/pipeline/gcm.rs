//! AES-GCM in a pipeline. The first data of a message is done as if it were all of it,
//! with its additional data, in one batch with the other messages; mostly it is. A message
//! that goes on does so by itself, from where [`GcmState::behind`] finds that it stood.

use arrayvec::ArrayVec;
use cipherlane_kernels::gcm::{self, Done, GcmKey, GcmState, InverseHashKey};
use cipherlane_kernels::job::{AeadJob, Direction};
use inout::InOutBuf;
use subtle::ConstantTimeEq;
use zeroize::Zeroize;

use super::{MOST, Pipes};
use crate::aead::TAG;
use crate::buffers::Buffers;
use crate::error::Reason;
use crate::ffi::Param;
use crate::gcm::{LONGEST, LONGEST_IV};
use crate::params::Name;
use crate::spec::Spec;

const NONCE: usize = 12;
/// Additional data is kept until the data comes, unless it is longer than this.
const MOST_AAD: usize = 4096;

#[derive(Clone)]
pub(crate) struct GcmPipes {
    spec: &'static Spec,
    key: Option<Box<GcmKey>>,
    direction: Direction,
    pipes: Vec<Pipe>,
}

#[derive(Clone)]
struct Pipe {
    stage: Stage,
    nonce: [u8; NONCE],
    aad: Vec<u8>,
    /// How much data the message has had.
    data: u64,
    /// Encrypting: the tag of the message. Decrypting: the one it should have.
    tag: [u8; TAG],
    tag_len: usize,
}

/// Where a message is.
#[derive(Clone)]
// It lives in a vector that is allocated once, and both ends are common.
#[allow(clippy::large_enum_variant)]
enum Stage {
    /// Before its data.
    Open,
    /// All data so far was done as if it were the whole message, with this tag; `last` is
    /// the ciphertext that fills no block.
    Whole { tag: [u8; TAG], last: [u8; 16] },
    /// It came in pieces.
    Stream(GcmState),
    /// Ended: its IV must not be used again.
    Ended,
}

impl Pipe {
    fn new() -> Pipe {
        Pipe {
            stage: Stage::Ended,
            nonce: [0; NONCE],
            aad: Vec::new(),
            data: 0,
            tag: [0; TAG],
            tag_len: 0,
        }
    }

    fn begin(&mut self, direction: Direction, key: &GcmKey, iv: &[u8]) {
        self.stage = match iv.try_into() {
            Ok(nonce) => {
                self.nonce = nonce;
                Stage::Open
            }
            Err(_) => Stage::Stream(GcmState::new(direction, key, iv)),
        };
        self.aad.clear();
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
            (_, true) if len as u64 > LONGEST - self.data => Err(Reason::CipherOperationFailed),
            (_, true) => piece.need_room(len),
        }
    }

    fn add_aad(&mut self, direction: Direction, key: &GcmKey, aad: &[u8]) {
        if let Stage::Stream(state) = &mut self.stage {
            return state.aad(key, aad);
        }
        self.aad.extend_from_slice(aad);
        if self.aad.len() > MOST_AAD {
            let mut state = GcmState::new(direction, key, &self.nonce);
            state.aad(key, &self.aad);
            self.stage = Stage::Stream(state);
        }
    }

    /// Goes on by itself.
    fn stream(
        &mut self,
        direction: Direction,
        key: &GcmKey,
        inverse: &mut Option<InverseHashKey>,
        data: InOutBuf<'_, '_, u8>,
    ) {
        if let Stage::Whole { tag, last } = &mut self.stage {
            let inverse = inverse.get_or_insert_with(|| InverseHashKey::new(key));
            let done = Done {
                aad_len: self.aad.len() as u64,
                data_len: self.data,
                last: &last[..(self.data % 16) as usize],
                tag,
            };
            let state = GcmState::new(direction, key, &self.nonce).behind(key, inverse, &done);
            tag.zeroize();
            self.stage = Stage::Stream(state);
        }
        if let Stage::Stream(state) = &mut self.stage {
            self.data += data.len() as u64;
            state.update(key, data);
        }
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        // States wipe themselves; a computed tag of a refused message is a secret.
        self.tag.zeroize();
        if let Stage::Whole { tag, .. } = &mut self.stage {
            tag.zeroize();
        }
    }
}

/// The end of the data, as far as it fills no block.
fn last(data: &[u8]) -> [u8; 16] {
    let mut last = [0; 16];
    let rest = &data[data.len() / 16 * 16..];
    last[..rest.len()].copy_from_slice(rest);
    last
}

fn crypt(direction: Direction, jobs: &mut [AeadJob<'_, GcmKey>]) {
    match direction {
        Direction::Encrypt => gcm::seal(jobs),
        Direction::Decrypt => gcm::open(jobs),
    }
}

fn tag(job: &AeadJob<'_, GcmKey>) -> [u8; TAG] {
    let mut tag = [0; TAG];
    tag.copy_from_slice(&job.tag[..TAG]);
    tag
}

impl Pipes for GcmPipes {
    fn new(spec: &'static Spec) -> Self {
        GcmPipes {
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
        // What was begun cannot go on, whether this succeeds or not.
        self.pipes
            .iter_mut()
            .for_each(|pipe| pipe.stage = Stage::Ended);
        if ivs.iter().any(|iv| iv.is_empty() || iv.len() > LONGEST_IV) {
            return Err(Reason::InvalidIvLength);
        }
        if let Some(key) = key {
            self.spec.fits(key)?;
            match &mut self.key {
                Some(old) => old.rekey(key).ok_or(Reason::InvalidKeyLength)?,
                None => self.key = GcmKey::new(key).map(Box::new),
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
        let mut jobs = ArrayVec::<_, MOST>::new();
        let mut lasts = ArrayVec::<_, MOST>::new();
        let mut batched = ArrayVec::<_, MOST>::new();
        let mut inverse = None;
        let each = self.pipes.iter_mut().zip(pieces).zip(written);
        for ((pipe, piece), written) in each {
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
            if !matches!(pipe.stage, Stage::Open) {
                pipe.stream(direction, key, &mut inverse, data);
                continue;
            }
            // Decrypting in place overwrites it.
            lasts.push(last(data.get_in()));
            let mut iv = [0; 16];
            iv[..NONCE].copy_from_slice(&pipe.nonce);
            let Pipe {
                aad,
                stage,
                data: so_far,
                ..
            } = pipe;
            *so_far = len as u64;
            batched.push(stage);
            jobs.push(AeadJob {
                key,
                iv,
                aad,
                data,
                tag: [0; 32],
            });
        }
        crypt(direction, &mut jobs);
        for ((mut job, mut ciphertext), stage) in jobs.into_iter().zip(lasts).zip(batched) {
            if direction == Direction::Encrypt {
                ciphertext = last(job.data.get_out());
            }
            *stage = Stage::Whole {
                tag: tag(&job),
                last: ciphertext,
            };
        }
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
        // Those that never had data.
        let mut jobs: ArrayVec<_, MOST> = self
            .pipes
            .iter()
            .filter(|pipe| matches!(pipe.stage, Stage::Open))
            .map(|pipe| {
                let mut iv = [0; 16];
                iv[..NONCE].copy_from_slice(&pipe.nonce);
                AeadJob {
                    key,
                    iv,
                    aad: &pipe.aad,
                    data: InOutBuf::from(&mut [][..]),
                    tag: [0; 32],
                }
            })
            .collect();
        crypt(self.direction, &mut jobs);
        let tags: ArrayVec<_, MOST> = jobs.iter().map(tag).collect();
        drop(jobs);
        let mut tags = tags.into_iter();
        let mut right = subtle::Choice::from(1);
        for pipe in &mut self.pipes {
            let mut found = match std::mem::replace(&mut pipe.stage, Stage::Ended) {
                Stage::Open => tags.next().unwrap_or_default(),
                Stage::Whole { tag, .. } => tag,
                Stage::Stream(state) => state.finish(key),
                Stage::Ended => [0; TAG],
            };
            match self.direction {
                Direction::Encrypt => (pipe.tag, pipe.tag_len) = (found, TAG),
                Direction::Decrypt => {
                    // A tag serves one message.
                    let len = std::mem::take(&mut pipe.tag_len);
                    right &= found[..len].ct_eq(&pipe.tag[..len]);
                    found.zeroize();
                }
            }
        }
        written.fill(0);
        bool::from(right).then_some(()).ok_or(Reason::BadDecrypt)
    }

    fn get(&self, name: Name, param: &mut Param) -> Result<(), Reason> {
        let len = param.data_size;
        let known = |pipe: &Pipe| pipe.tag_len > 0 && matches!(pipe.stage, Stage::Ended);
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
