//! GOST 28147-89 of libgcrypt, loaded at run time.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr::{null, null_mut};
use std::sync::OnceLock;

use libloading::Library;

type Handle = *mut c_void;
type Error = c_uint;

/// Its ciphers: without key meshing, and with.
pub(crate) const CIPHERS: [c_int; 2] = [315, 317];

/// Its modes.
pub(crate) const ECB: c_int = 1;
pub(crate) const CFB: c_int = 2;

const IMIT: c_int = 1;
const SET_SBOX: c_int = 73;

/// The functions that are called, with the types of its header.
pub(crate) struct Gcrypt {
    cipher_open: unsafe extern "C" fn(*mut Handle, c_int, c_int, c_uint) -> Error,
    cipher_ctl: unsafe extern "C" fn(Handle, c_int, *const c_void, usize) -> Error,
    cipher_setkey: unsafe extern "C" fn(Handle, *const c_void, usize) -> Error,
    cipher_setiv: unsafe extern "C" fn(Handle, *const c_void, usize) -> Error,
    cipher_encrypt: unsafe extern "C" fn(Handle, *mut c_void, usize, *const c_void, usize) -> Error,
    cipher_close: unsafe extern "C" fn(Handle),
    mac_open: unsafe extern "C" fn(*mut Handle, c_int, c_uint, *mut c_void) -> Error,
    mac_setkey: unsafe extern "C" fn(Handle, *const c_void, usize) -> Error,
    mac_ctl: unsafe extern "C" fn(Handle, c_int, *mut c_void, usize) -> Error,
    mac_write: unsafe extern "C" fn(Handle, *const c_void, usize) -> Error,
    mac_read: unsafe extern "C" fn(Handle, *mut c_void, *mut usize) -> Error,
    mac_close: unsafe extern "C" fn(Handle),
    _library: Library,
}

/// libgcrypt, where it is installed.
pub(crate) fn gcrypt() -> Option<&'static Gcrypt> {
    static LOADED: OnceLock<Option<Gcrypt>> = OnceLock::new();
    LOADED.get_or_init(Gcrypt::load).as_ref()
}

impl Gcrypt {
    fn load() -> Option<Gcrypt> {
        // SAFETY: the library's initialisers have no conditions, and the types are those
        // of its header.
        unsafe {
            let library = Library::new("libgcrypt.so.20").ok()?;
            macro_rules! function {
                ($name:literal) => {
                    *library.get($name).expect("a function of libgcrypt")
                };
            }
            let check: unsafe extern "C" fn(*const c_char) -> *const c_char =
                function!(b"gcry_check_version");
            assert!(!check(null()).is_null(), "initialising libgcrypt");
            Some(Gcrypt {
                cipher_open: function!(b"gcry_cipher_open"),
                cipher_ctl: function!(b"gcry_cipher_ctl"),
                cipher_setkey: function!(b"gcry_cipher_setkey"),
                cipher_setiv: function!(b"gcry_cipher_setiv"),
                cipher_encrypt: function!(b"gcry_cipher_encrypt"),
                cipher_close: function!(b"gcry_cipher_close"),
                mac_open: function!(b"gcry_mac_open"),
                mac_setkey: function!(b"gcry_mac_setkey"),
                mac_ctl: function!(b"gcry_mac_ctl"),
                mac_write: function!(b"gcry_mac_write"),
                mac_read: function!(b"gcry_mac_read"),
                mac_close: function!(b"gcry_mac_close"),
                _library: library,
            })
        }
    }

    /// A key in one of the [`CIPHERS`], the S-box by its object identifier.
    pub(crate) fn cipher(
        &'static self,
        cipher: c_int,
        mode: c_int,
        sbox: &CStr,
        key: &[u8; 32],
    ) -> Cipher {
        let mut handle = null_mut();
        // SAFETY: the lengths are those of the buffers.
        unsafe {
            assert_eq!((self.cipher_open)(&mut handle, cipher, mode, 0), 0);
            let set = (self.cipher_ctl)(handle, SET_SBOX, sbox.as_ptr().cast(), 0);
            assert_eq!(set, 0, "{sbox:?}");
            assert_eq!((self.cipher_setkey)(handle, key.as_ptr().cast(), 32), 0);
        }
        Cipher {
            gcrypt: self,
            handle,
        }
    }

    /// A key in IMIT with the set CryptoPro-A, without key meshing: it has no other.
    pub(crate) fn imit(&'static self, key: &[u8; 32]) -> Imit {
        let mut handle = null_mut();
        // SAFETY: the lengths are those of the buffers.
        unsafe {
            assert_eq!((self.mac_open)(&mut handle, IMIT, 0, null_mut()), 0);
            assert_eq!((self.mac_setkey)(handle, key.as_ptr().cast(), 32), 0);
        }
        Imit {
            gcrypt: self,
            handle,
        }
    }
}

/// A cipher with its key.
pub(crate) struct Cipher {
    gcrypt: &'static Gcrypt,
    handle: Handle,
}

impl Cipher {
    /// Encrypts in place, from an IV of eight bytes if the mode has one.
    pub(crate) fn encrypt(&mut self, iv: Option<&[u8]>, data: &mut [u8]) {
        // SAFETY: the lengths are those of the buffers.
        unsafe {
            if let Some(iv) = iv {
                let set = (self.gcrypt.cipher_setiv)(self.handle, iv.as_ptr().cast(), iv.len());
                assert_eq!(set, 0);
            }
            let (to, len) = (data.as_mut_ptr().cast(), data.len());
            let done = (self.gcrypt.cipher_encrypt)(self.handle, to, len, null(), 0);
            assert_eq!(done, 0);
        }
    }
}

impl Drop for Cipher {
    fn drop(&mut self) {
        // SAFETY: it was opened, and is not used again.
        unsafe { (self.gcrypt.cipher_close)(self.handle) }
    }
}

/// IMIT with its key.
pub(crate) struct Imit {
    gcrypt: &'static Gcrypt,
    handle: Handle,
}

impl Imit {
    /// The MAC of a message, which is not empty.
    pub(crate) fn mac(&mut self, data: &[u8]) -> [u8; 4] {
        const RESET: c_int = 4;
        let (mut mac, mut len) = ([0; 4], 4);
        // SAFETY: the lengths are those of the buffers.
        unsafe {
            assert_eq!((self.gcrypt.mac_ctl)(self.handle, RESET, null_mut(), 0), 0);
            let written = (self.gcrypt.mac_write)(self.handle, data.as_ptr().cast(), data.len());
            assert_eq!(written, 0);
            let read = (self.gcrypt.mac_read)(self.handle, mac.as_mut_ptr().cast(), &mut len);
            assert_eq!(read, 0);
        }
        mac
    }
}

impl Drop for Imit {
    fn drop(&mut self) {
        // SAFETY: it was opened, and is not used again.
        unsafe { (self.gcrypt.mac_close)(self.handle) }
    }
}
