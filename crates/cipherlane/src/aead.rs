//! The traits of RustCrypto's crate `aead`, for code that is written over them.

use ::aead::consts::{U12, U16};
use ::aead::inout::InOutBuf;
use ::aead::{AeadCore, AeadInOut, Nonce, Tag, TagPosition};

use crate::{Error, Kind, Session};

/// A session of an AEAD with nonces of 96 bits and tags of 128, as
/// [`AeadInOut`](::aead::AeadInOut): `gcm(aes)` and `rfc7539(chacha20,poly1305)`.
///
/// ```
/// use aead::AeadInOut;
/// use cipherlane::{Aead96, Framework};
///
/// let session = Framework::new()?.session("gcm(aes)", &[7; 16])?.open()?;
/// let cipher = Aead96::try_from(session)?;
/// let mut message = *b"attack at dawn";
/// let nonce = [0; 12].into();
/// let tag = cipher.encrypt_inout_detached(&nonce, b"header", message.as_mut_slice().into()).unwrap();
/// cipher.decrypt_inout_detached(&nonce, b"header", message.as_mut_slice().into(), &tag).unwrap();
/// assert_eq!(&message, b"attack at dawn");
/// # Ok::<(), cipherlane::Error>(())
/// ```
///
/// The errors of those traits say nothing; [`Session::seal`] and [`Session::open`] do.
#[derive(Clone, Debug)]
pub struct Aead96(Session);

impl TryFrom<Session> for Aead96 {
    type Error = Error;

    /// Refuses a session of another algorithm, or with shorter tags.
    fn try_from(session: Session) -> Result<Self, Error> {
        let (algorithm, tag_len) = (session.algorithm(), session.tag_len());
        let name = algorithm.name;
        if algorithm.kind != Kind::Aead {
            return Err(Error::WrongCall {
                algorithm: name,
                call: "encrypt_inout_detached",
                instead: "those of Session",
            });
        }
        if algorithm.iv_len != 12 {
            return Err(Error::IvLength {
                algorithm: name,
                given: 12,
                expected: algorithm.iv_len,
            });
        }
        if tag_len != 16 {
            return Err(Error::TagLength {
                algorithm: name,
                given: 16,
                expected: format!("the session was opened with {tag_len}"),
            });
        }
        Ok(Aead96(session))
    }
}

impl From<Aead96> for Session {
    fn from(aead: Aead96) -> Session {
        aead.0
    }
}

impl AeadCore for Aead96 {
    type NonceSize = U12;
    type TagSize = U16;
    const TAG_POSITION: TagPosition = TagPosition::Postfix;
}

impl AeadInOut for Aead96 {
    fn encrypt_inout_detached(
        &self,
        nonce: &Nonce<Self>,
        aad: &[u8],
        buffer: InOutBuf<'_, '_, u8>,
    ) -> ::aead::Result<Tag<Self>> {
        let mut tag = Tag::<Self>::default();
        let data = buffer.into_out_with_copied_in();
        let sealed = self.0.seal(nonce, aad, data, &mut tag);
        sealed.map(|()| tag).map_err(|_| ::aead::Error)
    }

    fn decrypt_inout_detached(
        &self,
        nonce: &Nonce<Self>,
        aad: &[u8],
        buffer: InOutBuf<'_, '_, u8>,
        tag: &Tag<Self>,
    ) -> ::aead::Result<()> {
        let data = buffer.into_out_with_copied_in();
        let opened = self.0.open(nonce, aad, data, tag);
        opened.map_err(|_| ::aead::Error)
    }
}
