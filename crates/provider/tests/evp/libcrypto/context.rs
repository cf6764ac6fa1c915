//! A cipher's context, with calls as programs make them.

use std::ffi::{CStr, CString, c_int, c_uint, c_void};
use std::ptr::{null, null_mut};

use super::{LIBCRYPTO, params};

const SET_IV_LENGTH: c_int = 0x9;
const GET_TAG: c_int = 0x10;
const SET_TAG: c_int = 0x11;
const SET_FIXED_IV: c_int = 0x12;
const GENERATE_IV: c_int = 0x13;
const SET_TLS_HEADER: c_int = 0x16;

const NUMBER: c_uint = 2;
const TEXT: c_uint = 4;

/// What was refused, in the words of OpenSSL's error queue, with those beside it; empty if it has none.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refused(pub(crate) String);

pub(crate) type Done = Result<Vec<u8>, Refused>;

/// `EVP_CIPHER_CTX`.
pub(crate) struct Context {
    pub(super) raw: *mut c_void,
}

impl Context {
    /// Runs a call, with the error queue empty before it.
    pub(super) fn call(&mut self, work: impl FnOnce(*mut c_void) -> c_int) -> Result<(), Refused> {
        // SAFETY: no preconditions.
        unsafe { (LIBCRYPTO.ERR_clear_error)() };
        match work(self.raw) {
            1.. => Ok(()),
            _ => {
                let mut text = [0u8; 256];
                // SAFETY: there is room for the text, which ends with a zero, as do the words beside it,
                // which stay until the queue is emptied.
                let words = unsafe {
                    let (mut words, mut flags) = (null(), 0);
                    let error = (LIBCRYPTO.ERR_peek_last_error_data)(&mut words, &mut flags);
                    if error == 0 {
                        return Err(Refused(String::new()));
                    }
                    (LIBCRYPTO.ERR_error_string_n)(error, text.as_mut_ptr().cast(), text.len());
                    CStr::from_ptr(words).to_str().unwrap()
                };
                let text = CStr::from_bytes_until_nul(&text).unwrap();
                Err(Refused(format!("{}:{words}", text.to_str().unwrap())))
            }
        }
    }

    /// Key and IV must be as long as the context says.
    pub(crate) fn init(
        &mut self,
        encrypt: bool,
        key: Option<&[u8]>,
        iv: Option<&[u8]>,
    ) -> Result<(), Refused> {
        let pointer = |bytes: Option<&[u8]>| bytes.map_or(null(), <[u8]>::as_ptr);
        // SAFETY: as promised.
        self.call(|raw| unsafe {
            let (key, iv) = (pointer(key), pointer(iv));
            (LIBCRYPTO.EVP_CipherInit_ex2)(raw, null(), key, iv, encrypt.into(), null())
        })
    }

    pub(crate) fn update(&mut self, input: &[u8]) -> Done {
        self.update_as(input, |raw, to, len, from, input| {
            // SAFETY: there is room for the input and, where there are blocks, for one.
            unsafe { (LIBCRYPTO.EVP_CipherUpdate)(raw, to, len, from, input) }
        })
    }

    /// `EVP_Cipher`, which says how much there was, or -1.
    pub(crate) fn once(&mut self, input: Option<&[u8]>) -> Done {
        self.update_as(input.unwrap_or_default(), |raw, to, len, from, size| {
            let from = if input.is_some() { from } else { null() };
            // SAFETY: there is room for the input and, where there are blocks, for one.
            *len = unsafe { (LIBCRYPTO.EVP_Cipher)(raw, to, from, size as c_uint) };
            c_int::from(*len >= 0)
        })
    }

    /// What EVP allows an output to have beyond its input, and no byte more.
    pub(super) fn block(&self) -> usize {
        // SAFETY: the context has a cipher.
        match unsafe { (LIBCRYPTO.EVP_CIPHER_CTX_get_block_size)(self.raw) } {
            ..=1 => 0,
            block => block as usize,
        }
    }

    fn update_as(
        &mut self,
        input: &[u8],
        work: impl FnOnce(*mut c_void, *mut u8, &mut c_int, *const u8, c_int) -> c_int,
    ) -> Done {
        let mut output = vec![0; input.len() + self.block()];
        let mut len = 0;
        self.call(|raw| {
            let (to, from) = (output.as_mut_ptr(), input.as_ptr());
            work(raw, to, &mut len, from, input.len() as c_int)
        })?;
        output.truncate(len as usize);
        Ok(output)
    }

    /// An update without input, and with output or not.
    pub(crate) fn update_with_nothing(&mut self, output: bool) -> Done {
        let mut room = vec![0; 32];
        let to = if output {
            room.as_mut_ptr()
        } else {
            null_mut()
        };
        let mut len = 0;
        // SAFETY: there is room for a block where there is an output.
        self.call(|raw| unsafe { (LIBCRYPTO.EVP_CipherUpdate)(raw, to, &mut len, null(), 0) })?;
        room.truncate(len as usize);
        Ok(room)
    }

    pub(crate) fn update_in_place(&mut self, data: &[u8]) -> Done {
        let mut data = data.to_vec();
        let input = data.len() as c_int;
        data.resize(data.len() + self.block(), 0);
        let mut len = 0;
        // SAFETY: there is room for the input and, where there are blocks, for one.
        self.call(|raw| unsafe {
            let at = data.as_mut_ptr();
            (LIBCRYPTO.EVP_CipherUpdate)(raw, at, &mut len, at, input)
        })?;
        data.truncate(len as usize);
        Ok(data)
    }

    pub(crate) fn aad(&mut self, aad: &[u8]) -> Result<(), Refused> {
        let mut len = 0;
        // SAFETY: no output is what tells additional data.
        self.call(|raw| unsafe {
            let from = aad.as_ptr();
            (LIBCRYPTO.EVP_CipherUpdate)(raw, null_mut(), &mut len, from, aad.len() as c_int)
        })
    }

    pub(crate) fn finish(&mut self) -> Done {
        let mut output = vec![0; self.block()];
        let mut len = 0;
        // SAFETY: there is room for a block.
        self.call(|raw| unsafe {
            (LIBCRYPTO.EVP_CipherFinal_ex)(raw, output.as_mut_ptr(), &mut len)
        })?;
        output.truncate(len as usize);
        Ok(output)
    }

    pub(crate) fn set_key_length(&mut self, len: usize) -> Result<(), Refused> {
        // SAFETY: the context has a cipher.
        self.call(|raw| unsafe { (LIBCRYPTO.EVP_CIPHER_CTX_set_key_length)(raw, len as c_int) })
    }

    fn control(&mut self, what: c_int, len: usize, at: *mut u8) -> Result<(), Refused> {
        self.control_with(what, len as c_int, at)
    }

    fn control_with(&mut self, what: c_int, len: c_int, at: *mut u8) -> Result<(), Refused> {
        // SAFETY: callers give memory as long as they say, or as the cipher's IV.
        self.call(|raw| unsafe { (LIBCRYPTO.EVP_CIPHER_CTX_ctrl)(raw, what, len, at.cast()) })
    }

    /// `EVP_Cipher` without output: additional data, or with nothing the end.
    pub(crate) fn once_aside(&mut self, aad: Option<&[u8]>) -> Result<(), Refused> {
        let from = aad.map_or(null(), <[u8]>::as_ptr);
        let len = aad.map_or(0, <[u8]>::len) as c_uint;
        // SAFETY: no output is what tells additional data.
        self.call(|raw| unsafe { 1 + (LIBCRYPTO.EVP_Cipher)(raw, null_mut(), from, len) })
    }

    pub(crate) fn set_iv_length(&mut self, len: usize) -> Result<(), Refused> {
        self.control(SET_IV_LENGTH, len, null_mut())
    }

    pub(crate) fn set_tag(&mut self, tag: &[u8]) -> Result<(), Refused> {
        self.control(SET_TAG, tag.len(), tag.to_vec().as_mut_ptr())
    }

    pub(crate) fn tag(&mut self, len: usize) -> Done {
        let mut tag = vec![0; len];
        self.control(GET_TAG, len, tag.as_mut_ptr())?;
        Ok(tag)
    }

    /// The part of an IV that all records of a connection have.
    pub(crate) fn set_fixed_iv(&mut self, iv: &[u8]) -> Result<(), Refused> {
        self.control(SET_FIXED_IV, iv.len(), iv.to_vec().as_mut_ptr())
    }

    /// The IV that the next message counts on from: a length of -1 says that it is all of it.
    pub(crate) fn restore_iv(&mut self, iv: &[u8]) -> Result<(), Refused> {
        self.control_with(SET_FIXED_IV, -1, iv.to_vec().as_mut_ptr())
    }

    /// A length of -1 for a header, with memory for a whole one.
    pub(crate) fn announce_without_length(&mut self) -> Result<(), Refused> {
        self.control_with(SET_TLS_HEADER, -1, [0; 13].as_mut_ptr())
    }

    /// The end of the IV of a message that begins, or with a length of -1 all of it.
    pub(crate) fn generate_iv(&mut self, len: c_int) -> Done {
        let mut iv = vec![0; 128];
        self.control_with(GENERATE_IV, len, iv.as_mut_ptr())?;
        Ok(iv)
    }

    /// The header of the record of TLS that comes next.
    pub(crate) fn announce(&mut self, header: &[u8]) -> Result<(), Refused> {
        self.control(SET_TLS_HEADER, header.len(), header.to_vec().as_mut_ptr())
    }

    pub(crate) fn updated_iv(&mut self, len: usize) -> Done {
        let mut iv = vec![0; len];
        // SAFETY: the buffer has room for that.
        self.call(|raw| unsafe {
            (LIBCRYPTO.EVP_CIPHER_CTX_get_updated_iv)(raw, iv.as_mut_ptr(), len)
        })?;
        Ok(iv)
    }

    pub(crate) fn set_text(&mut self, key: &CStr, text: &str) -> Result<(), Refused> {
        // The default provider looks for the zero.
        let mut text = CString::new(text).unwrap().into_bytes_with_nul();
        let mut params = params(key, TEXT, &mut text);
        params[0].data_size -= 1;
        // SAFETY: an array with its end marked.
        self.call(|raw| unsafe { (LIBCRYPTO.EVP_CIPHER_CTX_set_params)(raw, params.as_ptr()) })
    }

    pub(crate) fn text(&mut self, key: &CStr) -> Result<String, Refused> {
        let mut text = [0; 40];
        let mut params = params(key, TEXT, &mut text);
        // SAFETY: an array with its end marked, and room for the text.
        self.call(|raw| unsafe {
            (LIBCRYPTO.EVP_CIPHER_CTX_get_params)(raw, params.as_mut_ptr())
        })?;
        let text = CStr::from_bytes_until_nul(&text).unwrap();
        Ok(text.to_str().unwrap().to_owned())
    }

    pub(crate) fn set_number(&mut self, key: &CStr, number: usize) -> Result<(), Refused> {
        let mut number = number.to_ne_bytes();
        let params = params(key, NUMBER, &mut number);
        // SAFETY: an array with its end marked.
        self.call(|raw| unsafe { (LIBCRYPTO.EVP_CIPHER_CTX_set_params)(raw, params.as_ptr()) })
    }

    pub(crate) fn set_padding(&mut self, on: bool) {
        // SAFETY: the context is ours.
        let set = unsafe { (LIBCRYPTO.EVP_CIPHER_CTX_set_padding)(self.raw, on.into()) };
        assert_eq!(set, 1);
    }

    pub(crate) fn duplicate(&self) -> Context {
        // SAFETY: both contexts live.
        unsafe {
            let raw = (LIBCRYPTO.EVP_CIPHER_CTX_new)();
            assert_eq!((LIBCRYPTO.EVP_CIPHER_CTX_copy)(raw, self.raw), 1);
            Context { raw }
        }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: ours, and freed once.
        unsafe { (LIBCRYPTO.EVP_CIPHER_CTX_free)(self.raw) };
    }
}
