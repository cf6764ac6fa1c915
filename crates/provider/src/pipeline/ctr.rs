//! AES in counter mode in a pipeline.

use arrayvec::ArrayVec;
use cipherlane_kernels::aes::AesKey;
use cipherlane_kernels::ctr;
use cipherlane_kernels::job::{CipherJob, Direction};
use inout::InOutBuf;
use zeroize::Zeroize;

use super::{MAX_PIPES, Pipes};
use crate::buffers::Buffers;
use crate::error::Reason;
use crate::keyed::BLOCK;
use crate::spec::Spec;

#[derive(Clone)]
pub(crate) struct CtrPipes {
    spec: &'static Spec,
    /// Apart, so that contexts without a pipeline are small.
    key: Option<Box<AesKey>>,
    pipes: Vec<Pipe>,
}

/// A message: the counter of its next block, and the bytes of that block's keystream that are used.
#[derive(Clone, Copy)]
struct Pipe {
    counter: [u8; BLOCK],
    used: usize,
}

type Jobs<'a> = ArrayVec<CipherJob<'a, AesKey>, MAX_PIPES>;

/// Does the rest of a block that earlier pieces have begun.
fn complete(key: &AesKey, pipes: &mut [Pipe], pieces: &mut [Buffers<'_>]) -> Result<(), Reason> {
    let mut keystreams = [[0; BLOCK]; MAX_PIPES];
    let mut jobs = Jobs::new();
    let mut begun = ArrayVec::<_, MAX_PIPES>::new();
    for ((pipe, piece), keystream) in pipes.iter_mut().zip(pieces).zip(&mut keystreams) {
        if pipe.used > 0 && !piece.is_empty() {
            jobs.push(CipherJob {
                key,
                iv: pipe.counter,
                data: (&mut keystream[..]).into(),
            });
            begun.push((pipe, piece));
        }
    }
    ctr::apply(&mut jobs);
    for (job, (pipe, piece)) in jobs.iter_mut().zip(&mut begun) {
        let taken = piece.len().min(BLOCK - pipe.used);
        let keystream = &job.data.get_out()[pipe.used..][..taken];
        InOutBuf::from(piece.work(taken)?).xor_in2out(keystream);
        pipe.used = (pipe.used + taken) % BLOCK;
        if pipe.used == 0 {
            pipe.counter = job.iv;
        }
    }
    drop(jobs);
    keystreams.zeroize();
    Ok(())
}

impl Pipes for CtrPipes {
    fn new(spec: &'static Spec) -> Self {
        CtrPipes {
            spec,
            key: None,
            pipes: Vec::new(),
        }
    }

    fn len(&self) -> usize {
        self.pipes.len()
    }

    fn begin(&mut self, _: Direction, key: Option<&[u8]>, ivs: &[&[u8]]) -> Result<(), Reason> {
        // Messages that were begun before cannot go on, whether this succeeds or not.
        self.pipes.clear();
        if let Some(key) = key {
            self.spec.fits(key)?;
            self.key = AesKey::new(key).map(Box::new);
        }
        if self.key.is_none() {
            return Err(Reason::NoKeySet);
        }
        for iv in ivs {
            let Ok(counter) = <[u8; BLOCK]>::try_from(*iv) else {
                self.pipes.clear();
                return Err(Reason::InvalidIvLength);
            };
            self.pipes.push(Pipe { counter, used: 0 });
        }
        Ok(())
    }

    fn update(&mut self, pieces: &mut [Buffers<'_>], written: &mut [usize]) -> Result<(), Reason> {
        let key = self.key.as_deref().ok_or(Reason::NoKeySet)?;
        for (piece, written) in pieces.iter().zip(written) {
            piece.need_room(piece.len())?;
            *written = piece.len();
        }
        pieces.iter_mut().try_for_each(Buffers::settle)?;
        if self.pipes.iter().any(|pipe| pipe.used > 0) {
            complete(key, &mut self.pipes, pieces)?;
        }
        let mut jobs = Jobs::new();
        let mut begun = ArrayVec::<_, MAX_PIPES>::new();
        for (pipe, piece) in self.pipes.iter_mut().zip(pieces) {
            let len = piece.len();
            if len > 0 {
                jobs.push(CipherJob {
                    key,
                    iv: pipe.counter,
                    data: piece.work(len)?.into(),
                });
                pipe.used = len % BLOCK;
                begun.push(pipe);
            }
        }
        ctr::apply(&mut jobs);
        for (job, pipe) in jobs.iter().zip(&mut begun) {
            // A part of a block uses up its counter; the rest of its keystream is for the next piece.
            pipe.counter = match pipe.used {
                0 => job.iv,
                _ => ctr::counter_add(&job.iv, u128::MAX),
            };
        }
        Ok(())
    }

    fn finish(&mut self, _: &mut [Buffers<'_>], written: &mut [usize]) -> Result<(), Reason> {
        written.fill(0);
        Ok(())
    }
}
