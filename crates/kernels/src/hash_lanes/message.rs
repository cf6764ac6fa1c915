//! What is hashed.

use crate::sha2::hash::Hash;

/// A message to hash, in three pieces.
pub(crate) struct Message<'j, H: Hash> {
    /// HMAC: the states after the inner and the outer padded key.
    pub(crate) states: Option<(&'j H::State, &'j H::State)>,
    /// Bytes that the first of them has seen.
    pub(crate) before: usize,
    pub(crate) head: &'j [u8],
    pub(crate) data: &'j [u8],
    /// At most [`SUFFIX`](crate::job::SUFFIX) bytes.
    pub(crate) suffix: &'j [u8],
    /// Gets as much of the digest, from the left, as it is long.
    pub(crate) digest: &'j mut [u8],
}

/// What is known of the lengths of messages that come together.
#[derive(Clone, Copy)]
pub(crate) struct Lengths {
    /// Bytes of the first.
    pub(crate) first: usize,
    /// Whether each piece of all is as long as that of the first.
    pub(crate) are_alike: bool,
}

impl<H: Hash> Message<'_, H> {
    /// Bytes of the three pieces.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.head.len() + self.data.len() + self.suffix.len()
    }
}
