//! A message as a row of chunks: what is left of it.

use super::chunk::{Chunk, chunk};
use super::halves::halves;
use super::hash::Hash;
use super::lane::Lane;
use super::rounds::*;
use crate::gcm::key::GcmKey;

/// What is left of a message or of a piece, and what its chunks hand on.
pub(super) struct Row<'k, V> {
    pub(super) key: &'k GcmKey,
    pub(super) from: *const u8,
    pub(super) to: *mut u8,
    pub(super) len: usize,
    pub(super) hash: Hash<V>,
    /// The chunk before, which is hashed next if it was encrypted. Without AVX-512 there are no
    /// registers for it, and it is read again.
    text: [V; WIDTH],
}

impl<'k, V: Lane> Row<'k, V> {
    /// # Safety
    /// As for every method: the instructions of `V` are enabled, and there are `len` bytes to read and
    /// to write, as many as the method takes.
    #[inline(always)]
    pub(super) unsafe fn new(
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
            // SAFETY: the caller's contract.
            text: [unsafe { V::zero() }; WIDTH],
        }
    }

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
    ) {
        let (key, from, to) = (self.key, self.from, self.to);
        // SAFETY: the caller's contract.
        unsafe {
            let mut not_kept = [V::zero(); WIDTH];
            let text = match SEAL && V::BLOCKS == 4 {
                true => &mut self.text,
                false => &mut not_kept,
            };
            self.hash = chunk::<V, C, SEAL, HASH>(key, &mut start, from, to, text, self.hash);
            self.advance(WIDTH * V::BYTES);
        }
    }

    /// [`halves`].
    #[inline(always)]
    pub(super) unsafe fn halves<C: Chunk<V>, const FIRST: bool>(&mut self, mut start: C) {
        let (key, from, to) = (self.key, self.from, self.to);
        // SAFETY: the caller's contract.
        unsafe {
            self.hash = halves::<V, C, FIRST>(key, &mut start, from, to, &mut self.text, self.hash);
            self.advance(WIDTH * V::BYTES);
        }
    }
}
