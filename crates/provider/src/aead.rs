//! What all ciphers with a tag have in common: the tag, and the header of a record of TLS 1.2.

use cipherlane_kernels::is_same;
use cipherlane_kernels::job::Direction;
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::block::wipe;
use crate::buffers::{copy_unusual, exactly};
use crate::error::Reason;
use crate::ffi::Param;

/// Bytes of the longest tag.
pub(crate) const TAG: usize = 16;

/// Bytes of sequence number, type, version and length of a record of TLS 1.2.
pub(crate) const TLS_AAD: usize = 13;

/// The tag of a message: when encrypting, the computed tag of the last message; when decrypting, the
/// tag that the message should have. The right tag of a refused message is a secret, so that tags
/// are wiped on drop.
#[derive(Clone, Default, Zeroize, ZeroizeOnDrop)]
pub(crate) struct Tag {
    bytes: [u8; TAG],
    /// Bytes of the tag; 0 while there is none.
    len: usize,
}

impl Tag {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Keeps the computed tag of an encrypted message.
    pub(crate) fn computed(&mut self, tag: [u8; TAG]) {
        self.bytes = tag;
        self.len = TAG;
    }

    /// Keeps the tag that a message to be decrypted should have.
    pub(crate) fn expect(&mut self, direction: Direction, param: &Param) -> Result<(), Reason> {
        let tag = param.octets(TAG)?;
        if direction == Direction::Encrypt || !(1..=TAG).contains(&tag.len()) {
            return Err(Reason::InvalidTag);
        }
        match exactly(tag) {
            Some(tag) => self.bytes = *tag,
            None => copy_unusual(tag, &mut self.bytes),
        }
        self.len = tag.len();
        Ok(())
    }

    /// Answers with the computed tag, cut to the length that the program asks for.
    pub(crate) fn get(&self, direction: Direction, param: &mut Param) -> Result<(), Reason> {
        let wanted = param.data_size;
        let known = direction == Direction::Encrypt && self.len > 0;
        match known && (1..=TAG).contains(&wanted) {
            true => param.give_octets(&self.bytes[..wanted]),
            false => Err(Reason::InvalidTag),
        }
    }

    /// Refuses a message whose computed tag is another one. The comparison takes constant time.
    pub(crate) fn judge(&self, mut found: [u8; TAG]) -> Result<(), Reason> {
        let right = match self.len {
            TAG => is_same(&found, &self.bytes),
            len => is_same(&found[..len], &self.bytes[..len]),
        };
        wipe(&mut found);
        match (self.len, right) {
            (0, _) => Err(Reason::InvalidTag),
            (_, true) => Ok(()),
            (_, false) => Err(Reason::Unsaid),
        }
    }
}

/// A record's header as it is authenticated: its length is that of the data alone, without the
/// `around` bytes of explicit IV and tag that the record's own length counts.
pub(crate) fn tls_header(header: &[u8], around: usize) -> Result<[u8; TLS_AAD], Reason> {
    let mut aad: [u8; TLS_AAD] = header.try_into().map_err(|_| Reason::InvalidData)?;
    let len = usize::from(u16::from_be_bytes([aad[11], aad[12]]));
    let len = len.checked_sub(around).ok_or(Reason::InvalidData)?;
    aad[11..].copy_from_slice(&(len as u16).to_be_bytes());
    Ok(aad)
}
