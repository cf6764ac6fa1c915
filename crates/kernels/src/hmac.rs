//! HMAC-SHA-256 and HMAC-SHA-512 (RFC 2104, FIPS 198-1).
//!
//! A key is kept as the two states that the hash has after the padded key, so a
//! message costs its own blocks and one more.

use zeroize::Zeroize;

use crate::hash_lanes::{self, Message};
use crate::job::MacJob;
use crate::sha2::{Hash, Sha256, Sha512};

/// A key of HMAC-SHA-256. Wiped on drop.
pub struct HmacSha256Key(States<Sha256>);

/// A key of HMAC-SHA-512. Wiped on drop.
pub struct HmacSha512Key(States<Sha512>);

impl HmacSha256Key {
    /// Prepares a key of any length; one of more than 64 bytes is hashed first.
    pub fn new(key: &[u8]) -> Self {
        HmacSha256Key(States::new(key))
    }

    /// `head` and `data` as one message, its MAC to the front of `mac`.
    #[inline(always)]
    pub(crate) fn message<'j>(
        &'j self,
        head: &'j [u8],
        data: &'j [u8],
        mac: &'j mut [u8],
    ) -> Message<'j, Sha256> {
        self.0.message(head, data, mac)
    }
}

impl HmacSha512Key {
    /// Prepares a key of any length; one of more than 128 bytes is hashed first.
    pub fn new(key: &[u8]) -> Self {
        HmacSha512Key(States::new(key))
    }
}

/// HMAC-SHA-256 of every job: 32 bytes.
#[inline]
pub fn sha256(jobs: &mut [MacJob<'_, HmacSha256Key>]) {
    hash_lanes::sha256(
        jobs.iter_mut()
            .map(|job| job.key.0.message(job.head, job.data, &mut job.mac)),
    );
}

/// HMAC-SHA-512 of every job: 64 bytes.
#[inline]
pub fn sha512(jobs: &mut [MacJob<'_, HmacSha512Key>]) {
    hash_lanes::sha512(
        jobs.iter_mut()
            .map(|job| job.key.0.message(job.head, job.data, &mut job.mac)),
    );
}

/// The states of a hash after the inner and the outer padded key.
#[repr(align(32))]
struct States<H: Hash> {
    inner: H::State,
    outer: H::State,
}

impl<H: Hash> States<H> {
    fn new(key: &[u8]) -> Self {
        let mut block = [0; 128];
        if key.len() > H::BLOCK {
            let message = Message {
                states: None,
                head: &[],
                data: key,
                digest: &mut block,
            };
            hash_lanes::run::<H, _, 1>(hash_lanes::OneByOne, core::iter::once(message));
        } else {
            block[..key.len()].copy_from_slice(key);
        }
        let mut states = States {
            inner: H::INITIAL,
            outer: H::INITIAL,
        };
        block.iter_mut().for_each(|byte| *byte ^= 0x36);
        H::compress(&mut states.inner, &block[..H::BLOCK]);
        block.iter_mut().for_each(|byte| *byte ^= 0x36 ^ 0x5c);
        H::compress(&mut states.outer, &block[..H::BLOCK]);
        block.zeroize();
        states
    }

    #[inline(always)]
    fn message<'j>(
        &'j self,
        head: &'j [u8],
        data: &'j [u8],
        digest: &'j mut [u8],
    ) -> Message<'j, H> {
        Message {
            states: Some((&self.inner, &self.outer)),
            head,
            data,
            digest,
        }
    }
}

impl<H: Hash> Drop for States<H> {
    fn drop(&mut self) {
        self.inner.zeroize();
        self.outer.zeroize();
    }
}
