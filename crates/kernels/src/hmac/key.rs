//! A key as the two states that the hash has after the padded key.

use crate::hash_lanes::message::Message;
use crate::sha2::hash::{Hash, Sha256, Sha512};
use crate::wipe::wipe;

/// A key of HMAC-SHA-256. Wiped on drop.
pub struct HmacSha256Key(pub(super) States<Sha256>);

/// A key of HMAC-SHA-512. Wiped on drop.
pub struct HmacSha512Key(pub(super) States<Sha512>);

impl HmacSha256Key {
    /// `head`, `data` and `suffix` as one message, as much of its MAC to `mac` as that is long.
    #[inline(always)]
    pub(crate) fn message<'j>(
        &'j self,
        head: &'j [u8],
        data: &'j [u8],
        suffix: &'j [u8],
        mac: &'j mut [u8],
    ) -> Message<'j, Sha256> {
        self.0.message(head, data, suffix, mac)
    }

    /// The state after the inner padded key.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(crate) fn inner(&self) -> &[u32; 8] {
        &self.0.inner
    }

    /// The rest of a message of which `state` has seen `seen` bytes.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(crate) fn rest<'j>(
        &'j self,
        state: &'j [u32; 8],
        seen: usize,
        [rest, suffix]: [&'j [u8]; 2],
        mac: &'j mut [u8],
    ) -> Message<'j, Sha256> {
        Message {
            states: Some((state, &self.0.outer)),
            before: Sha256::BLOCK + seen,
            head: &[],
            data: rest,
            suffix,
            digest: mac,
        }
    }
}

impl HmacSha512Key {
    /// `head`, `data` and `suffix` as one message, as much of its MAC to `mac` as that is long.
    #[inline(always)]
    pub(crate) fn message<'j>(
        &'j self,
        head: &'j [u8],
        data: &'j [u8],
        suffix: &'j [u8],
        mac: &'j mut [u8],
    ) -> Message<'j, Sha512> {
        self.0.message(head, data, suffix, mac)
    }
}

/// The states of a hash after the inner and the outer padded key.
#[repr(align(32))]
pub(super) struct States<H: Hash> {
    pub(super) inner: H::State,
    pub(super) outer: H::State,
}

impl<H: Hash> States<H> {
    #[inline(always)]
    fn message<'j>(
        &'j self,
        head: &'j [u8],
        data: &'j [u8],
        suffix: &'j [u8],
        digest: &'j mut [u8],
    ) -> Message<'j, H> {
        Message {
            states: Some((&self.inner, &self.outer)),
            before: H::BLOCK,
            head,
            data,
            suffix,
            digest,
        }
    }
}

impl<H: Hash> Drop for States<H> {
    fn drop(&mut self) {
        wipe(&mut self.inner, H::ZERO);
        wipe(&mut self.outer, H::ZERO);
    }
}
