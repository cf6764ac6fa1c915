//! libgcrypt's handles, safe to call.

use std::ffi::{CStr, c_int, c_uint};
use std::path::PathBuf;
use std::ptr::{null, null_mut};
use std::sync::Arc;

use cipherlane_core::{Direction, Request};
use inout::InOutBuf;

use super::WANTED;
use super::ffi::{
    CIPHER_AES, CIPHER_CHACHA20, CipherHandle, Functions, INITIALIZATION_FINISHED,
    INITIALIZATION_FINISHED_P, MODE_CBC, MODE_CTR, MODE_ECB, MODE_GCM, MODE_POLY1305, MODE_XTS,
    MacHandle, RESET,
};
use crate::foreign::{self, AeadContext, Context, MacContext, Refused};

/// The oldest version that has all modes that the driver uses, XTS being the last.
const OLDEST: &CStr = c"1.8.0";

/// What a call returned: 0 is success.
#[inline]
fn success(error: c_uint) -> Result<(), Refused> {
    if error == 0 { Ok(()) } else { Err(Refused) }
}

/// libgcrypt, initialised.
pub(super) struct LibGcrypt {
    functions: Functions,
    pub(super) version: String,
}

impl LibGcrypt {
    pub(super) fn open(file: Option<&PathBuf>) -> Result<Self, String> {
        let functions = Functions::load(&WANTED.load(file)?)?;
        // SAFETY: this must be, and is, the first call; it may be made any number of times.
        let enough = unsafe { (functions.gcry_check_version)(OLDEST.as_ptr()) };
        // SAFETY: without a version to check it returns a static string.
        let version = unsafe { CStr::from_ptr((functions.gcry_check_version)(null())) };
        let version = format!("libgcrypt {}", version.to_string_lossy());
        if enough.is_null() {
            return Err(format!(
                "{version} is too old: install {} or newer",
                OLDEST.to_string_lossy()
            ));
        }
        // A program that uses libgcrypt itself has finished initialisation its own way.
        // SAFETY: the commands take one argument that is not used.
        unsafe {
            if (functions.gcry_control)(INITIALIZATION_FINISHED_P, 0 as c_int) == 0 {
                (functions.gcry_control)(INITIALIZATION_FINISHED, 0 as c_int);
            }
        }
        Ok(LibGcrypt { functions, version })
    }
}

/// The modes of operation that the driver uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Ecb,
    Cbc,
    Ctr,
    Xts,
    Gcm,
    ChaCha20Poly1305,
}

impl Mode {
    /// libgcrypt's numbers of the cipher and the mode, for a key of `len` bytes.
    fn numbers(self, key_len: usize) -> Option<(c_int, c_int)> {
        let aes = |key_len| match key_len {
            16 => Some(CIPHER_AES),
            24 => Some(CIPHER_AES + 1),
            32 => Some(CIPHER_AES + 2),
            _ => None,
        };
        Some(match self {
            Mode::Ecb => (aes(key_len)?, MODE_ECB),
            Mode::Cbc => (aes(key_len)?, MODE_CBC),
            Mode::Ctr => (aes(key_len)?, MODE_CTR),
            Mode::Xts => (aes(key_len / 2)?, MODE_XTS),
            Mode::Gcm => (aes(key_len)?, MODE_GCM),
            Mode::ChaCha20Poly1305 => (CIPHER_CHACHA20, MODE_POLY1305),
        })
    }

    /// Bytes of the IV.
    fn iv_len(self) -> usize {
        match self {
            Mode::Ecb => 0,
            Mode::Cbc | Mode::Ctr | Mode::Xts => 16,
            Mode::Gcm | Mode::ChaCha20Poly1305 => 12,
        }
    }
}

/// A cipher handle with a key. Closing it wipes the key schedule.
pub(super) struct Cipher {
    library: Arc<LibGcrypt>,
    mode: Mode,
    direction: Direction,
    raw: *mut CipherHandle,
}

// SAFETY: a handle may move between threads; it is not shared (no `Sync`).
unsafe impl Send for Cipher {}

impl Context for Cipher {
    type Algorithm = (Arc<LibGcrypt>, Mode);

    fn new(
        (library, mode): &Self::Algorithm,
        direction: Direction,
        key: &[u8],
    ) -> Result<Self, Refused> {
        let (cipher, number) = mode.numbers(key.len()).ok_or(Refused)?;
        let functions = &library.functions;
        let mut raw = null_mut();
        // SAFETY: the library is initialised; `raw` receives the handle.
        success(unsafe { (functions.gcry_cipher_open)(&mut raw, cipher, number, 0) })?;
        let handle = Cipher {
            library: library.clone(),
            mode: *mode,
            direction,
            raw,
        };
        // SAFETY: a live handle and a key of the length given.
        success(unsafe { (functions.gcry_cipher_setkey)(raw, key.as_ptr().cast(), key.len()) })?;
        Ok(handle)
    }
}

impl foreign::CipherContext for Cipher {
    #[inline]
    fn start(&mut self, iv: &[u8; 16]) -> Result<(), Refused> {
        let functions = &self.library.functions;
        let set = match self.mode {
            // ECB has no state between messages.
            Mode::Ecb => return Ok(()),
            Mode::Ctr => functions.gcry_cipher_setctr,
            _ => functions.gcry_cipher_setiv,
        };
        // SAFETY: a live handle; the IV has 16 bytes, of which no more are read.
        success(unsafe { set(self.raw, iv.as_ptr().cast(), self.mode.iv_len()) })
    }

    #[inline]
    fn update(&mut self, data: InOutBuf<'_, '_, u8>) -> Result<(), Refused> {
        if data.is_empty() {
            return Ok(());
        }
        let functions = &self.library.functions;
        let run = match self.direction {
            Direction::Encrypt => functions.gcry_cipher_encrypt,
            Direction::Decrypt => functions.gcry_cipher_decrypt,
        };
        let len = data.len();
        let (input, output) = data.into_raw();
        // SAFETY: a live handle; input and output are the same or apart, both of `len` bytes.
        success(unsafe { run(self.raw, output.cast(), len, input.cast(), len) })
    }
}

impl AeadContext for Cipher {
    #[inline]
    fn aad(&mut self, aad: &[u8]) -> Result<(), Refused> {
        if aad.is_empty() {
            return Ok(());
        }
        let functions = &self.library.functions;
        // SAFETY: a live handle and data of the length given.
        success(unsafe {
            (functions.gcry_cipher_authenticate)(self.raw, aad.as_ptr().cast(), aad.len())
        })
    }

    #[inline]
    fn finish(&mut self, direction: Direction, request: &mut Request<'_>) -> Result<(), Refused> {
        let functions = &self.library.functions;
        let mut tag = [0; 16];
        // SAFETY: a live handle; the tag has room for the length given.
        success(unsafe {
            (functions.gcry_cipher_gettag)(self.raw, tag.as_mut_ptr().cast(), tag.len())
        })?;
        request.finish_tag(direction, &tag);
        Ok(())
    }
}

impl Drop for Cipher {
    fn drop(&mut self) {
        // SAFETY: opened by us, closed once.
        unsafe { (self.library.functions.gcry_cipher_close)(self.raw) }
    }
}

/// A MAC handle with a key. Closing it wipes the key.
pub(super) struct Mac {
    library: Arc<LibGcrypt>,
    raw: *mut MacHandle,
}

// SAFETY: a handle may move between threads; it is not shared (no `Sync`).
unsafe impl Send for Mac {}

impl Context for Mac {
    /// The library and its number of the MAC.
    type Algorithm = (Arc<LibGcrypt>, c_int);

    fn new((library, number): &Self::Algorithm, _: Direction, key: &[u8]) -> Result<Self, Refused> {
        let functions = &library.functions;
        let mut raw = null_mut();
        // SAFETY: the library is initialised; `raw` receives the handle.
        success(unsafe { (functions.gcry_mac_open)(&mut raw, *number, 0, null_mut()) })?;
        let handle = Mac {
            library: library.clone(),
            raw,
        };
        // SAFETY: a live handle and a key of the length given.
        success(unsafe { (functions.gcry_mac_setkey)(raw, key.as_ptr().cast(), key.len()) })?;
        Ok(handle)
    }
}

impl MacContext for Mac {
    #[inline]
    fn mac(&mut self, parts: &[&[u8]]) -> Result<[u8; 64], Refused> {
        let functions = &self.library.functions;
        let mut mac = [0; 64];
        let mut len = mac.len();
        // SAFETY: a live handle with a key; the parts and the result are of the lengths given.
        unsafe {
            success((functions.gcry_mac_ctl)(self.raw, RESET, null_mut(), 0))?;
            for part in parts {
                success((functions.gcry_mac_write)(
                    self.raw,
                    part.as_ptr().cast(),
                    part.len(),
                ))?;
            }
            success((functions.gcry_mac_read)(
                self.raw,
                mac.as_mut_ptr().cast(),
                &mut len,
            ))?;
        }
        Ok(mac)
    }
}

impl Drop for Mac {
    fn drop(&mut self) {
        // SAFETY: opened by us, closed once.
        unsafe { (self.library.functions.gcry_mac_close)(self.raw) }
    }
}
