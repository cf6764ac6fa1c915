//! EVP, safe to call: the library, fetched algorithms, and contexts with a key.

use std::ffi::{CStr, CString, c_int};
use std::path::PathBuf;
use std::ptr::{null, null_mut};
use std::sync::Arc;

use cipherlane_core::{Direction, Request, Status};
use inout::InOutBuf;

use super::WANTED;
use super::ffi::{
    AEAD_GET_TAG, AEAD_SET_TAG, EvpCipher, EvpCipherContext, EvpMac, EvpMacContext, Functions,
    INIT_NO_ATEXIT, LibContext, PARAM_UTF8_STRING, Param, VERSION,
};
use crate::foreign::{self, AeadContext, Context, MacContext, Refused, wipe};

/// EVP counts bytes in an int: longer data goes in several updates. A multiple of any block.
const MAX_UPDATE: usize = 1 << 30;

/// What a call returned: 1 is success.
fn success(returned: c_int) -> Result<(), Refused> {
    if returned == 1 { Ok(()) } else { Err(Refused) }
}

/// libcrypto with a library context of its own: neither `openssl.cnf` nor providers that the
/// program loads (Cipherlane's, for one) change what it fetches.
pub(super) struct LibCrypto {
    pub(super) functions: Functions,
    pub(super) context: *mut LibContext,
    pub(super) version: String,
}

// SAFETY: OpenSSL's library contexts may be used from any number of threads at once.
unsafe impl Send for LibCrypto {}
// SAFETY: as above.
unsafe impl Sync for LibCrypto {}

impl LibCrypto {
    pub(super) fn open(file: Option<&PathBuf>) -> Result<Self, String> {
        let library = WANTED.load(file)?;
        let functions = Functions::load(&library)?;
        // SAFETY: no preconditions. Without the handler at exit, threads that still encrypt
        // when the process ends do so with memory that is still there.
        let (ready, context) = unsafe {
            let ready = (functions.OPENSSL_init_crypto)(INIT_NO_ATEXIT, null());
            (ready, (functions.OSSL_LIB_CTX_new)())
        };
        if ready != 1 || context.is_null() {
            return Err("libcrypto cannot initialise itself: check its installation".to_owned());
        }
        // SAFETY: it returns a static string.
        let version = unsafe { CStr::from_ptr((functions.OpenSSL_version)(VERSION)) };
        Ok(LibCrypto {
            version: version.to_string_lossy().into_owned(),
            functions,
            context,
        })
    }

    /// Runs `f` and drops the errors that it leaves in the thread's queue, which belongs to
    /// the program around.
    pub(super) fn quietly<T>(&self, f: impl FnOnce(&Functions) -> T) -> T {
        // SAFETY: no preconditions.
        unsafe { (self.functions.ERR_set_mark)() };
        let result = f(&self.functions);
        // SAFETY: no preconditions.
        unsafe { (self.functions.ERR_pop_to_mark)() };
        result
    }

    /// A cipher by OpenSSL's name.
    pub(super) fn cipher(self: &Arc<Self>, name: &str) -> Result<Cipher, String> {
        self.cipher_of(name, None)
    }

    /// The same, with properties such as `provider=default`.
    pub(super) fn cipher_of(
        self: &Arc<Self>,
        name: &str,
        properties: Option<&CStr>,
    ) -> Result<Cipher, String> {
        let c_name = CString::new(name).expect("names hold no zero");
        let properties = properties.map_or(null(), CStr::as_ptr);
        // SAFETY: the context lives as long as `self`; the name is a C string, and so are the
        // properties, if there are any.
        let raw = self.quietly(|f| unsafe {
            (f.EVP_CIPHER_fetch)(self.context, c_name.as_ptr(), properties)
        });
        let Some(raw) = std::ptr::NonNull::new(raw) else {
            return Err(format!("{} has no {name}", self.version));
        };
        let raw = raw.as_ptr();
        let length = |n: c_int| usize::try_from(n).unwrap_or(0);
        // SAFETY: a cipher that was just fetched.
        let (key, iv, block) = unsafe {
            (
                (self.functions.EVP_CIPHER_get_key_length)(raw),
                (self.functions.EVP_CIPHER_get_iv_length)(raw),
                (self.functions.EVP_CIPHER_get_block_size)(raw),
            )
        };
        Ok(Cipher {
            library: self.clone(),
            raw,
            key_len: length(key),
            iv_len: length(iv),
            block: length(block).max(1),
        })
    }

    /// HMAC.
    pub(super) fn hmac(self: &Arc<Self>) -> Result<Hmac, String> {
        // SAFETY: the context lives as long as `self`; the name is a C string.
        let raw =
            self.quietly(|f| unsafe { (f.EVP_MAC_fetch)(self.context, c"HMAC".as_ptr(), null()) });
        match raw.is_null() {
            true => Err(format!("{} has no HMAC", self.version)),
            false => Ok(Hmac {
                library: self.clone(),
                raw,
            }),
        }
    }
}

impl Drop for LibCrypto {
    fn drop(&mut self) {
        // SAFETY: ciphers and MACs hold the library, so none of this context is left.
        unsafe { (self.functions.OSSL_LIB_CTX_free)(self.context) }
    }
}

/// A fetched cipher.
pub(super) struct Cipher {
    pub(super) library: Arc<LibCrypto>,
    pub(super) raw: *mut EvpCipher,
    pub(super) key_len: usize,
    iv_len: usize,
    pub(super) block: usize,
}

// SAFETY: a fetched EVP_CIPHER is immutable and counts its references atomically.
unsafe impl Send for Cipher {}
// SAFETY: as above.
unsafe impl Sync for Cipher {}

impl Drop for Cipher {
    fn drop(&mut self) {
        // SAFETY: fetched by us, freed once.
        unsafe { (self.library.functions.EVP_CIPHER_free)(self.raw) }
    }
}

/// A cipher context with a key and a direction. Freeing it wipes the key schedule.
pub(super) struct CipherContext {
    cipher: Arc<Cipher>,
    raw: *mut EvpCipherContext,
}

// SAFETY: a context may move between threads; it is not shared (no `Sync`).
unsafe impl Send for CipherContext {}

impl Context for CipherContext {
    type Algorithm = Arc<Cipher>;

    fn new(cipher: &Arc<Cipher>, direction: Direction, key: &[u8]) -> Result<Self, Refused> {
        if key.len() != cipher.key_len {
            return Err(Refused);
        }
        let functions = &cipher.library.functions;
        // SAFETY: no preconditions.
        let raw = unsafe { (functions.EVP_CIPHER_CTX_new)() };
        if raw.is_null() {
            return Err(Refused);
        }
        let context = CipherContext {
            cipher: cipher.clone(),
            raw,
        };
        let encrypt = c_int::from(direction == Direction::Encrypt);
        // SAFETY: a live context and cipher, a key of the cipher's length; no IV yet.
        cipher.library.quietly(|f| unsafe {
            success((f.EVP_CipherInit_ex2)(
                raw,
                cipher.raw,
                key.as_ptr(),
                null(),
                encrypt,
                null(),
            ))?;
            success((f.EVP_CIPHER_CTX_set_padding)(raw, 0))
        })?;
        Ok(context)
    }
}

impl CipherContext {
    fn functions(&self) -> &Functions {
        &self.cipher.library.functions
    }

    /// Ends the message of an AEAD that encrypts, and takes its tag of 16 bytes.
    #[inline]
    pub(super) fn tag(&mut self) -> Result<[u8; 16], Refused> {
        let mut tag = [0; 16];
        self.last()?;
        // SAFETY: a live context; the tag has room for the length given.
        success(unsafe {
            (self.functions().EVP_CIPHER_CTX_ctrl)(
                self.raw,
                AEAD_GET_TAG,
                tag.len() as c_int,
                tag.as_mut_ptr().cast(),
            )
        })?;
        Ok(tag)
    }

    /// Ends the message of an AEAD that decrypts: whether its tag is right.
    #[inline]
    pub(super) fn verify(&mut self, tag: &mut [u8]) -> Result<bool, Refused> {
        let len = c_int::try_from(tag.len()).map_err(|_| Refused)?;
        // SAFETY: a live context; the tag is of the length given, and only read.
        success(unsafe {
            (self.functions().EVP_CIPHER_CTX_ctrl)(
                self.raw,
                AEAD_SET_TAG,
                len,
                tag.as_mut_ptr().cast(),
            )
        })?;
        Ok(self.last().is_ok())
    }

    /// Ends a message that leaves no bytes over.
    #[inline]
    pub(super) fn last(&mut self) -> Result<(), Refused> {
        let (mut none, mut written) = ([0; 32], 0);
        // SAFETY: a live context; there is room for a block, though stream modes write none.
        success(unsafe {
            (self.functions().EVP_CipherFinal_ex)(self.raw, none.as_mut_ptr(), &mut written)
        })
    }
}

impl foreign::CipherContext for CipherContext {
    #[inline]
    fn start(&mut self, iv: &[u8; 16]) -> Result<(), Refused> {
        if self.cipher.iv_len == 0 {
            // ECB has no state between messages.
            return Ok(());
        }
        let iv = &iv[..self.cipher.iv_len];
        // SAFETY: a live context with a key; the IV has the cipher's length.
        success(unsafe {
            (self.functions().EVP_CipherInit_ex2)(self.raw, null(), null(), iv.as_ptr(), -1, null())
        })
    }

    #[inline]
    fn update(&mut self, mut data: InOutBuf<'_, '_, u8>) -> Result<(), Refused> {
        assert!(data.len().is_multiple_of(self.cipher.block), "whole blocks");
        while !data.is_empty() {
            let (part, rest) = {
                let at = data.len().min(MAX_UPDATE);
                data.split_at(at)
            };
            let len = part.len() as c_int;
            let (input, output) = part.into_raw();
            let mut written = 0;
            // SAFETY: a live context; input and output are the same or apart, and both of
            // `len` bytes. Only whole blocks go in and nothing is padded, so no more than
            // `len` bytes come out.
            success(unsafe {
                (self.functions().EVP_CipherUpdate)(self.raw, output, &mut written, input, len)
            })?;
            if written != len {
                return Err(Refused);
            }
            data = rest;
        }
        Ok(())
    }
}

impl AeadContext for CipherContext {
    #[inline]
    fn aad(&mut self, aad: &[u8]) -> Result<(), Refused> {
        for part in aad.chunks(MAX_UPDATE) {
            let mut written = 0;
            // SAFETY: a live context; without output, the input is additional data.
            success(unsafe {
                (self.functions().EVP_CipherUpdate)(
                    self.raw,
                    null_mut(),
                    &mut written,
                    part.as_ptr(),
                    part.len() as c_int,
                )
            })?;
        }
        Ok(())
    }

    #[inline]
    fn finish(&mut self, direction: Direction, request: &mut Request<'_>) -> Result<(), Refused> {
        match direction {
            Direction::Encrypt => request.finish_tag(direction, &self.tag()?),
            Direction::Decrypt if self.verify(request.tag_bytes())? => {
                request.set_status(Status::Done);
            }
            Direction::Decrypt => wipe(request, Status::BadTag),
        }
        Ok(())
    }
}

impl Drop for CipherContext {
    fn drop(&mut self) {
        // SAFETY: made by us, freed once.
        unsafe { (self.functions().EVP_CIPHER_CTX_free)(self.raw) }
    }
}

/// HMAC, fetched.
pub(super) struct Hmac {
    library: Arc<LibCrypto>,
    raw: *mut EvpMac,
}

/// HMAC with a hash, by OpenSSL's name.
pub(super) struct HmacOf {
    pub(super) hmac: Arc<Hmac>,
    pub(super) digest: &'static CStr,
}

// SAFETY: a fetched EVP_MAC is immutable and counts its references atomically.
unsafe impl Send for Hmac {}
// SAFETY: as above.
unsafe impl Sync for Hmac {}

impl Drop for Hmac {
    fn drop(&mut self) {
        // SAFETY: fetched by us, freed once.
        unsafe { (self.library.functions.EVP_MAC_free)(self.raw) }
    }
}

/// An HMAC context with a key and a hash. Freeing it wipes the key.
pub(super) struct HmacContext {
    hmac: Arc<Hmac>,
    raw: *mut EvpMacContext,
}

// SAFETY: a context may move between threads; it is not shared (no `Sync`).
unsafe impl Send for HmacContext {}

impl Context for HmacContext {
    type Algorithm = HmacOf;

    fn new(HmacOf { hmac, digest }: &HmacOf, _: Direction, key: &[u8]) -> Result<Self, Refused> {
        let functions = &hmac.library.functions;
        // SAFETY: a live MAC.
        let raw = unsafe { (functions.EVP_MAC_CTX_new)(hmac.raw) };
        if raw.is_null() {
            return Err(Refused);
        }
        let context = HmacContext {
            hmac: hmac.clone(),
            raw,
        };
        let param = |key: *const _, data_type, value: &CStr| Param {
            key,
            data_type,
            data: value.as_ptr().cast_mut().cast(),
            data_size: value.count_bytes(),
            return_size: usize::MAX,
        };
        let params = [
            param(c"digest".as_ptr(), PARAM_UTF8_STRING, digest),
            param(null(), 0, c""),
        ];
        // SAFETY: a live context, a key of the length given, a list of parameters with its end.
        hmac.library.quietly(|f| unsafe {
            success((f.EVP_MAC_init)(
                raw,
                key.as_ptr(),
                key.len(),
                params.as_ptr(),
            ))
        })?;
        Ok(context)
    }
}

impl MacContext for HmacContext {
    #[inline]
    fn mac(&mut self, parts: &[&[u8]]) -> Result<[u8; 64], Refused> {
        let functions = &self.hmac.library.functions;
        let (mut mac, mut written) = ([0; 64], 0);
        // SAFETY: a live context with a key (none given means: the same again); the parts
        // and the result are of the lengths given.
        unsafe {
            success((functions.EVP_MAC_init)(self.raw, null(), 0, null()))?;
            for part in parts {
                success((functions.EVP_MAC_update)(
                    self.raw,
                    part.as_ptr(),
                    part.len(),
                ))?;
            }
            success((functions.EVP_MAC_final)(
                self.raw,
                mac.as_mut_ptr(),
                &mut written,
                mac.len(),
            ))?;
        }
        Ok(mac)
    }
}

impl Drop for HmacContext {
    fn drop(&mut self) {
        // SAFETY: made by us, freed once.
        unsafe { (self.hmac.library.functions.EVP_MAC_CTX_free)(self.raw) }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::c_ulong;

    use crate::foreign::CipherContext as _;

    use super::*;

    /// The thread's error queue belongs to the program around: a TLS library would take what
    /// is left in it for its own failure.
    #[test]
    fn refusals_and_forged_tags_leave_no_error_behind() {
        let Ok(library) = LibCrypto::open(None) else {
            return;
        };
        // SAFETY: the type of ERR_peek_error(3).
        let peek: unsafe extern "C" fn() -> c_ulong =
            unsafe { WANTED.load(None).unwrap().function("ERR_peek_error") }.unwrap();
        let library = Arc::new(library);
        assert!(library.cipher("AES-192-XTS").is_err());
        for name in ["AES-128-GCM", "ChaCha20-Poly1305"] {
            let cipher = Arc::new(library.cipher(name).unwrap());
            let key = vec![1; cipher.key_len];
            assert!(CipherContext::new(&cipher, Direction::Encrypt, &key[1..]).is_err());
            let mut context = CipherContext::new(&cipher, Direction::Decrypt, &key).unwrap();
            context.start(&[2; 16]).unwrap();
            context.update(InOutBuf::from(&mut [3; 40][..])).unwrap();
            assert!(!context.verify(&mut [4; 16]).unwrap());
        }
        // SAFETY: no preconditions.
        assert_eq!(unsafe { peek() }, 0);
    }
}
