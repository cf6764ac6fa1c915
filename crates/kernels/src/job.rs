//! What a kernel is given: jobs, each with a key, an IV and data of its own.
//!
//! Every kernel takes `&mut [Job]`. One job is a batch of one. Jobs of a batch
//! are independent: they may have different keys and lengths, and a kernel is
//! free to run them in any order or side by side in vector lanes.
//!
//! Jobs borrow all that is large, also what comes out: a batch of them is made where it
//! stays, and nothing is copied out of it.
//!
//! Kernels check nothing that the caller can check once for many jobs: lengths
//! and limits are the framework's to enforce. A kernel is memory safe for every
//! input all the same, and panics where a documented length rule is broken.

use inout::InOutBuf;

/// Which way data goes through a cipher; for a MAC, computing or checking.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Direction {
    /// Encrypt and, where there is a tag, compute it.
    Encrypt = 0,
    /// Decrypt and, where there is a tag, check it.
    Decrypt = 1,
}

/// A job of an unauthenticated cipher: ECB, CBC, CTR or XTS.
pub struct CipherJob<'a, K> {
    /// The expanded key.
    pub key: &'a K,
    /// CBC: the IV, on return the last ciphertext block. CTR: the initial
    /// 128-bit big-endian counter block, on return the next unused one.
    /// XTS: the tweak, not yet encrypted; unchanged on return. ECB: unused.
    pub iv: [u8; 16],
    /// In place, or from an input to an output of the same length that do not overlap.
    pub data: InOutBuf<'a, 'a, u8>,
}

/// A job of an AEAD.
pub struct AeadJob<'a, K> {
    /// The expanded key.
    pub key: &'a K,
    /// The nonce in the first 12 bytes.
    pub iv: [u8; 16],
    /// Authenticated, not encrypted.
    pub aad: &'a [u8],
    /// In place, or from an input to an output of the same length that do not overlap.
    pub data: InOutBuf<'a, 'a, u8>,
    /// Out: as much of the computed tag, from the left, as it is long; at most what the
    /// AEAD has. On decryption too: comparing it in constant time with the received one,
    /// and wiping the output if they differ, is the caller's duty.
    pub tag: &'a mut [u8],
}

impl<K> AeadJob<'_, K> {
    /// Writes the tag, as much of it as is asked for.
    #[inline(always)]
    pub(crate) fn write_tag(&mut self, computed: &[u8; 16]) {
        match <&mut [u8; 16]>::try_from(&mut *self.tag) {
            // The usual length without a call.
            Ok(tag) => *tag = *computed,
            Err(_) => self.tag.copy_from_slice(&computed[..self.tag.len()]),
        }
    }
}

/// A job of a cipher with a MAC, encrypt then MAC: [`crate::authenc`].
pub struct AuthencJob<'a, K> {
    /// The keys of both.
    pub key: &'a K,
    /// As the cipher has it in [`CipherJob`].
    pub iv: [u8; 16],
    /// Authenticated before the ciphertext, not encrypted.
    pub aad: &'a [u8],
    /// In place, or from an input to an output of the same length that do not overlap.
    pub data: InOutBuf<'a, 'a, u8>,
    /// Authenticated behind the ciphertext, not encrypted; at most [`SUFFIX`] bytes.
    pub suffix: &'a [u8],
    /// Sealing: gets as much of the MAC, from the left, as it is long. Opening: the
    /// MAC received, to be compared with as much of the right one. At most what the
    /// MAC has.
    pub tag: &'a mut [u8],
    /// Out, opening: whether the tag is right. Where it is not, nothing was decrypted
    /// and the output is as it was.
    pub right: &'a mut bool,
}

/// The longest suffix of a message, in bytes.
pub const SUFFIX: usize = 16;

/// A job of a MAC over up to three pieces, as if they were one message.
pub struct MacJob<'a, K> {
    /// The expanded key.
    pub key: &'a K,
    /// The first piece; may be empty.
    pub head: &'a [u8],
    /// The second piece; may be empty.
    pub data: &'a [u8],
    /// The end of the message, at most [`SUFFIX`] bytes; may be empty.
    pub suffix: &'a [u8],
    /// Out: as much of the computed MAC, from the left, as it is long; at most what the
    /// MAC has.
    pub mac: &'a mut [u8],
}
