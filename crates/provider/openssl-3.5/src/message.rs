//! One message at a time.

use std::ffi::c_int;
use std::ptr::{null, null_mut};

use crate::{Cipher, LIBCRYPTO, Raw, Refused, call};

const SET_IV_LENGTH: c_int = 0x9;
const GET_TAG: c_int = 0x10;
const SET_TAG: c_int = 0x11;

/// A context for messages one after another.
pub struct Message {
    raw: Raw,
}

impl Message {
    /// A context with the cipher and a key.
    pub fn new(cipher: &Cipher, encrypt: bool, key: &[u8]) -> Result<Message, Refused> {
        assert_eq!(key.len(), cipher.key_len());
        let raw = Raw::new();
        // SAFETY: a key as long as the cipher's, and no IV.
        call(|| unsafe {
            let init = LIBCRYPTO.EVP_CipherInit_ex2;
            init(
                raw.0,
                cipher.raw,
                key.as_ptr(),
                null(),
                encrypt.into(),
                null(),
            )
        })?;
        Ok(Message { raw })
    }

    /// Bytes of the IV, for AEADs.
    pub fn set_iv_len(&mut self, len: usize) -> Result<(), Refused> {
        self.control(SET_IV_LENGTH, len, null_mut())
    }

    /// Begins a message; the IV is as long as the cipher's, or as was set.
    pub fn begin(&mut self, iv: &[u8]) -> Result<(), Refused> {
        // SAFETY: no key, and an IV as long as the context expects.
        call(|| unsafe {
            let init = LIBCRYPTO.EVP_CipherInit_ex2;
            init(self.raw.0, null(), null(), iv.as_ptr(), -1, null())
        })
    }

    /// Whether blocks are padded.
    pub fn set_padding(&mut self, on: bool) {
        self.raw.set_padding(on);
    }

    /// Additional data.
    pub fn aad(&mut self, aad: &[u8]) -> Result<(), Refused> {
        let mut len = 0;
        // SAFETY: no output is what tells additional data.
        call(|| unsafe {
            let update = LIBCRYPTO.EVP_CipherUpdate;
            update(
                self.raw.0,
                null_mut(),
                &mut len,
                aad.as_ptr(),
                aad.len() as c_int,
            )
        })
    }

    /// The next piece; gives the bytes of output, which has room for a block more.
    pub fn update(&mut self, input: &[u8], output: &mut [u8]) -> Result<usize, Refused> {
        assert!(output.len() >= input.len() + 16);
        let mut len = 0;
        // SAFETY: there is room for the input and a block.
        call(|| unsafe {
            let (to, from) = (output.as_mut_ptr(), input.as_ptr());
            (LIBCRYPTO.EVP_CipherUpdate)(self.raw.0, to, &mut len, from, input.len() as c_int)
        })?;
        Ok(len as usize)
    }

    /// Ends the message.
    pub fn finish(&mut self) -> Result<Vec<u8>, Refused> {
        let mut output = vec![0; 32];
        let mut len = 0;
        // SAFETY: there is room for a block.
        call(|| unsafe {
            (LIBCRYPTO.EVP_CipherFinal_ex)(self.raw.0, output.as_mut_ptr(), &mut len)
        })?;
        output.truncate(len as usize);
        Ok(output)
    }

    /// The tag of what was encrypted.
    pub fn tag(&mut self, tag: &mut [u8]) -> Result<(), Refused> {
        self.control(GET_TAG, tag.len(), tag.as_mut_ptr())
    }

    /// The tag that what is decrypted should have.
    pub fn set_tag(&mut self, tag: &[u8]) -> Result<(), Refused> {
        self.control(SET_TAG, tag.len(), tag.as_ptr().cast_mut())
    }

    fn control(&mut self, what: c_int, len: usize, at: *mut u8) -> Result<(), Refused> {
        // SAFETY: callers give memory as long as they say; a tag that is set is only read.
        call(|| unsafe {
            (LIBCRYPTO.EVP_CIPHER_CTX_ctrl)(self.raw.0, what, len as c_int, at.cast())
        })
    }
}
