//! The end of a message.

use crate::aes::key::Block;

/// What GHASH is still to be told of a message.
pub(crate) struct Rest<'a> {
    /// The block begun, with zeros behind it.
    pub(crate) block: Option<&'a Block>,
    /// Bytes of additional data, and of data.
    pub(crate) aad_len: u64,
    pub(crate) data_len: u64,
}

/// The last block of GHASH: both lengths, given in bytes, in bits.
#[inline]
pub(crate) fn lengths(aad: u64, data: u64) -> Block {
    (u128::from(aad) << 67 | u128::from(data) << 3).to_be_bytes()
}
