//! What drivers over foreign libraries share.
//!
//! | module | what it holds |
//! |---|---|
//! | `combination` | what `authenc(..)` and `authencesn(..)` are made of |
//! | `library` | a shared library, loaded where it is present, and its functions |
//! | `per_thread` | a context for each thread that uses a session |
//! | `sessions` | transforms over any library's contexts |
//!
//! A library's driver brings contexts: a cipher, an AEAD or a MAC with a key, for one thread.

mod combination;
pub(crate) mod library;
mod per_thread;
mod sessions;

use cipherlane_core::{Direction, Request};
use inout::InOutBuf;
use zeroize::Zeroizing;

pub(crate) use combination::{Combination, Framing, Half, Hash};
pub(crate) use library::{SharedLibrary, Wanted, functions};
pub(crate) use per_thread::PerThread;
pub(crate) use sessions::{Authenc, Authenticating, Hashing, Plain, Sealing, give_back, wipe};

/// The library refused a call that it should take.
#[derive(Debug)]
pub(crate) struct Refused;

/// A library's context with a key, for one thread at a time. Dropping it wipes the key.
pub(crate) trait Context: Send + Sized {
    /// The algorithm in the library.
    type Algorithm: Send + Sync;

    fn new(algorithm: &Self::Algorithm, direction: Direction, key: &[u8]) -> Result<Self, Refused>;
}

/// A cipher.
pub(crate) trait CipherContext: Context {
    /// Begins a message. A shorter IV stands at the front.
    fn start(&mut self, iv: &[u8; 16]) -> Result<(), Refused>;

    /// Payload: whole blocks, in as many calls as wanted.
    fn update(&mut self, data: InOutBuf<'_, '_, u8>) -> Result<(), Refused>;
}

/// A cipher that authenticates.
pub(crate) trait AeadContext: CipherContext {
    /// Additional data, after `start` and before `update`.
    fn aad(&mut self, aad: &[u8]) -> Result<(), Refused>;

    /// After `update`: ends the request, or wipes its output if the tag is wrong.
    fn finish(&mut self, direction: Direction, request: &mut Request<'_>) -> Result<(), Refused>;
}

/// A MAC. Which direction its context was made for does not matter.
pub(crate) trait MacContext: Context {
    /// The MAC over the parts, one after another; it fills the front of the result.
    fn mac(&mut self, parts: &[&[u8]]) -> Result<[u8; 64], Refused>;
}

/// An algorithm and a key: a context for each thread and direction.
pub(crate) struct Keyed<C: Context> {
    algorithm: C::Algorithm,
    key: Zeroizing<Vec<u8>>,
    encrypt: PerThread<C>,
    decrypt: PerThread<C>,
}

impl<C: Context> Keyed<C> {
    /// `Err`: the library does not take the key.
    pub(crate) fn new(algorithm: C::Algorithm, key: &[u8]) -> Result<Self, Refused> {
        let keyed = Keyed {
            algorithm,
            key: Zeroizing::new(key.to_vec()),
            encrypt: PerThread::new(),
            decrypt: PerThread::new(),
        };
        keyed.with(Direction::Encrypt, |_| ())?;
        Ok(keyed)
    }

    /// Runs `run` with this thread's context.
    #[inline]
    pub(crate) fn with<R>(
        &self,
        direction: Direction,
        run: impl FnOnce(&mut C) -> R,
    ) -> Result<R, Refused> {
        let contexts = match direction {
            Direction::Encrypt => &self.encrypt,
            Direction::Decrypt => &self.decrypt,
        };
        contexts.with(|| C::new(&self.algorithm, direction, &self.key), run)
    }
}
