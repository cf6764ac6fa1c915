//! The SHA-2 compression functions of the `sha2` crate.

use zeroize::Zeroize;

use crate::hash_lanes::lanes::Compress;
#[cfg(not(target_arch = "x86_64"))]
use crate::hash_lanes::{
    lanes::run,
    message::{Lengths, Message},
};
use crate::sha2::hash::{SHA256_PLACES, Sha256, Sha512};

/// A message after the other.
#[derive(Clone, Copy)]
pub(crate) struct OneByOne;

impl Compress<Sha256> for OneByOne {
    fn compress(self, states: &mut [[u32; 8]], blocks: &[&[u8]]) {
        for (state, blocks) in states.iter_mut().zip(blocks) {
            let mut ordered = SHA256_PLACES.map(|place| state[place]);
            sha2::block_api::compress256(&mut ordered, blocks.as_chunks().0);
            for (place, word) in SHA256_PLACES.into_iter().zip(ordered) {
                state[place] = word;
            }
            ordered.zeroize();
        }
    }
}

impl Compress<Sha512> for OneByOne {
    fn compress(self, states: &mut [[u64; 8]], blocks: &[&[u8]]) {
        for (state, blocks) in states.iter_mut().zip(blocks) {
            sha2::block_api::compress512(state, blocks.as_chunks().0);
        }
    }
}

/// Hashes all messages with SHA-256.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn sha256<'j>(
    _: Option<Lengths>,
    messages: impl ExactSizeIterator<Item = Message<'j, Sha256>>,
) {
    run::<Sha256, _, 1>(OneByOne, messages);
}

/// Hashes all messages with SHA-512.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn sha512<'j>(messages: impl ExactSizeIterator<Item = Message<'j, Sha512>>) {
    run::<Sha512, _, 1>(OneByOne, messages);
}
