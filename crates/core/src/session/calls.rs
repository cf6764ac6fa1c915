//! One message per call: the short way for callers who have no batch.

use super::Session;
use crate::algorithm::Kind;
use crate::request::Request;
use crate::{Direction, Error};

/// Bytes of the longest tag: HMAC-SHA-512's.
const LONGEST_TAG: usize = 64;

impl Session {
    /// Encrypts `data` in place with an AEAD and writes the tag, of
    /// [`tag_len`](Self::tag_len) bytes. `aad` is authenticated, not encrypted. A nonce must
    /// never come twice under one key: [`NonceCounter`](crate::NonceCounter) sees to that.
    #[inline]
    pub fn seal(
        &self,
        nonce: &[u8],
        aad: &[u8],
        data: &mut [u8],
        tag: &mut [u8],
    ) -> Result<(), Error> {
        self.require(Kind::Aead, "seal")?;
        let request = Request::in_place(data).iv(nonce).aad(aad).tag(tag);
        self.process(Direction::Encrypt, &mut [request])
    }

    /// The reverse of [`seal`](Self::seal): checks the tag and decrypts `data` in place. Data
    /// that is not authentic is wiped, and the error is [`BadTag`](Error::BadTag).
    #[inline]
    pub fn open(&self, nonce: &[u8], aad: &[u8], data: &mut [u8], tag: &[u8]) -> Result<(), Error> {
        self.require(Kind::Aead, "open")?;
        let mut copy = [0; LONGEST_TAG];
        let tag = self.copied(tag, &mut copy)?;
        let request = Request::in_place(data).iv(nonce).aad(aad).tag(tag);
        self.process(Direction::Decrypt, &mut [request])
    }

    /// Applies a key stream (counter mode) to `data` in place: encrypts plaintext, and
    /// decrypts ciphertext. Other ciphers have [`encrypt`](Self::encrypt) and
    /// [`decrypt`](Self::decrypt).
    #[inline]
    pub fn apply(&self, iv: &[u8], data: &mut [u8]) -> Result<(), Error> {
        if !self.algorithm().is_key_stream() {
            return Err(self.wrong_call("apply"));
        }
        self.encrypt(iv, data)
    }

    /// Encrypts `data` in place with a cipher. Nothing shows whether it is changed later: an
    /// AEAD ([`seal`](Self::seal)) is the safer choice.
    #[inline]
    pub fn encrypt(&self, iv: &[u8], data: &mut [u8]) -> Result<(), Error> {
        self.require(Kind::Cipher, "encrypt")?;
        let request = Request::in_place(data).iv(iv);
        self.process(Direction::Encrypt, &mut [request])
    }

    /// The reverse of [`encrypt`](Self::encrypt).
    #[inline]
    pub fn decrypt(&self, iv: &[u8], data: &mut [u8]) -> Result<(), Error> {
        self.require(Kind::Cipher, "decrypt")?;
        let request = Request::in_place(data).iv(iv);
        self.process(Direction::Decrypt, &mut [request])
    }

    /// Computes the tag of a message with a MAC.
    #[inline]
    pub fn mac(&self, message: &[u8], tag: &mut [u8]) -> Result<(), Error> {
        self.require(Kind::Mac, "mac")?;
        let request = Request::mac(message).tag(tag);
        self.process(Direction::Encrypt, &mut [request])
    }

    /// Compares the tag of a message with a MAC's, in constant time. The error of a tag that
    /// does not match is [`BadTag`](Error::BadTag).
    #[inline]
    pub fn verify(&self, message: &[u8], tag: &[u8]) -> Result<(), Error> {
        self.require(Kind::Mac, "verify")?;
        let mut copy = [0; LONGEST_TAG];
        let tag = self.copied(tag, &mut copy)?;
        let request = Request::mac(message).tag(tag);
        self.process(Direction::Decrypt, &mut [request])
    }

    #[inline]
    fn require(&self, kind: Kind, call: &'static str) -> Result<(), Error> {
        match self.algorithm().kind == kind {
            true => Ok(()),
            false => Err(self.wrong_call(call)),
        }
    }

    #[cold]
    fn wrong_call(&self, call: &'static str) -> Error {
        Error::WrongCall {
            algorithm: self.algorithm().name,
            call,
            instead: match self.algorithm().kind {
                Kind::Aead => "seal and open",
                Kind::Cipher => "encrypt and decrypt",
                Kind::Mac => "mac and verify",
            },
        }
    }

    /// A request takes its tag exclusively, for it may be written; a tag to be compared is the
    /// caller's.
    fn copied<'c>(
        &self,
        tag: &[u8],
        copy: &'c mut [u8; LONGEST_TAG],
    ) -> Result<&'c mut [u8], Error> {
        let given = tag.len();
        let copy = copy.get_mut(..given).ok_or_else(|| Error::TagLength {
            algorithm: self.algorithm().name,
            given,
            expected: format!("the session was opened with {}", self.tag_len()),
        })?;
        copy.copy_from_slice(tag);
        Ok(copy)
    }
}
