//! What the packets of [`super::packets`] are given and give back.

use arrayvec::ArrayVec;

use super::key::Key;

/// The MACs of a packet, the number of their places.
pub const MACS: usize = 2;

/// The place of the MAC over the plaintext.
pub const INNER: usize = 0;

/// The place of the MAC over the ciphertext.
pub const OUTER: usize = 1;

/// Bytes of a MAC.
pub const MAC: usize = 4;

/// The most bytes of [`PacketJob::suffix`].
pub const SUFFIX: usize = 4;

/// A packet. Jobs of a batch may have keys with different S-boxes.
pub struct PacketJob<'a> {
    /// The key of the cipher and of the inner MAC, and that of the outer one, which has to have
    /// the same S-box. Without key meshing there is no outer MAC.
    pub keys: [&'a Key; MACS],
    /// The IV of counter mode.
    pub iv: [u8; 8],
    /// What both MACs are over.
    pub content: &'a mut [u8],
    /// Bytes of `content` in front that are not encrypted.
    pub head: usize,
    /// What both MACs are over as well, behind `content`; at most [`SUFFIX`] bytes. The outer MAC
    /// goes on with the inner one.
    pub suffix: &'a [u8],
    /// Sealing: out. Opening: on call the inner MAC received in place [`INNER`], on return the MACs
    /// that are right; comparing them in constant time with the received ones, and wiping the
    /// content if they differ, is the caller's duty.
    pub macs: &'a mut [[u8; MAC]; MACS],
}

impl PacketJob<'_> {
    /// The suffix and the inner MAC, which the outer MAC ends with.
    #[inline(always)]
    pub(crate) fn outer_suffix(&self) -> ArrayVec<u8, { SUFFIX + MAC }> {
        let both = self.suffix.iter().chain(&self.macs[INNER]);
        both.copied().collect()
    }
}
