//! What is left of a piece of a message, and of the message.

use crate::aes::key::Block;

/// What GHASH is still to be told of a message.
pub(crate) struct Rest<'a> {
    /// The block begun, with zeros behind it.
    pub(crate) block: Option<&'a Block>,
    /// Bytes of additional data, and of data.
    pub(crate) aad_len: u64,
    pub(crate) data_len: u64,
}

/// A block that a piece of a message has begun.
#[derive(Clone)]
pub(crate) struct Begun {
    /// What GHASH is to be told of it, zeros behind that.
    pub(crate) block: Block,
    /// Its keystream, from the bytes on that no data has met yet.
    pub(crate) stream: Block,
    /// It is the end of the additional data, which GHASH takes before the next piece of data.
    pub(crate) is_aad: bool,
}

impl Begun {
    pub(crate) const fn none() -> Begun {
        Begun {
            block: [0; 16],
            stream: [0; 16],
            is_aad: false,
        }
    }
}

/// The last block of GHASH: both lengths, given in bytes, in bits.
#[inline]
pub(crate) fn lengths(aad: u64, data: u64) -> Block {
    (u128::from(aad) << 67 | u128::from(data) << 3).to_be_bytes()
}
