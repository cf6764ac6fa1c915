//! A message as a row of chunks: what is left of it.

use super::chunk::{Chunk, chunk};
use super::halves::halves;
use super::hash::Hash;
use super::lane::Lane;
use super::rounds::*;
use crate::gcm::key::GcmKey;

/// What is left of a message or of a piece, and what its chunks hand on.
#[derive(Clone, Copy)]
pub(super) struct Row<'k, V> {
    pub(super) key: &'k GcmKey,
    pub(super) from: *const u8,
    pub(super) to: *mut u8,
    pub(super) len: usize,
    pub(super) hash: Hash<V>,
}

impl<'k, V: Lane> Row<'k, V> {
    #[inline(always)]
    pub(super) fn new(
        key: &'k GcmKey,
        (from, to, len): (*const u8, *mut u8, usize),
        hash: Hash<V>,
    ) -> Self {
        Row {
            key,
            from,
            to,
            len,
            hash,
        }
    }

    /// The last vectors before what is left, which are hashed next if they were encrypted.
    #[inline(always)]
    pub(super) unsafe fn before<const M: usize>(&self) -> [V; M] {
        // SAFETY: the caller's contract, and as many vectors are done.
        unsafe {
            let mut text = [V::zero(); M];
            let start = self.to.sub(M * V::BYTES);
            for (i, text) in text.iter_mut().enumerate() {
                *text = V::load(start.add(i * V::BYTES));
            }
            text
        }
    }

    /// # Safety
    /// As for every method: the instructions of `V` are enabled, and there are `len` bytes to read and
    /// to write, as many as the method takes.
    #[inline(always)]
    unsafe fn advance(&mut self, by: usize) {
        // SAFETY: the caller's contract.
        (self.from, self.to) = unsafe { (self.from.add(by), self.to.add(by)) };
        self.len -= by;
    }

    /// [`chunk`].
    #[inline(always)]
    pub(super) unsafe fn chunk<C: Chunk<V>, const SEAL: bool, const HASH: usize>(
        &mut self,
        mut start: C,
        text: &mut [V; WIDTH],
    ) {
        let (key, from, to) = (self.key, self.from, self.to);
        // SAFETY: the caller's contract.
        unsafe {
            self.hash = chunk::<V, C, SEAL, HASH>(key, &mut start, from, to, text, self.hash);
            self.advance(WIDTH * V::BYTES);
        }
    }

    /// [`halves`].
    #[inline(always)]
    pub(super) unsafe fn halves<C: Chunk<V>, const FIRST: bool>(
        &mut self,
        mut start: C,
        text: &mut [V; HALF],
    ) {
        let (key, from, to) = (self.key, self.from, self.to);
        // SAFETY: the caller's contract.
        unsafe {
            self.hash = halves::<V, C, FIRST>(key, &mut start, from, to, text, self.hash);
            self.advance(WIDTH * V::BYTES);
        }
    }
}
