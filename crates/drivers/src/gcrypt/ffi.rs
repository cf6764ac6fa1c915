//! The functions of libgcrypt that the driver calls, as `gcrypt.h` declares them.

use std::ffi::{c_char, c_int, c_uint, c_void};

use crate::foreign::functions;

/// `struct gcry_cipher_handle`, to which `gcry_cipher_hd_t` points.
pub(super) enum CipherHandle {}
/// `struct gcry_mac_handle`, to which `gcry_mac_hd_t` points.
pub(super) enum MacHandle {}
/// `struct gcry_context`, to which `gcry_ctx_t` points.
pub(super) enum GcryptContext {}

/// `GCRYCTL_RESET`.
pub(super) const RESET: c_int = 4;
/// `GCRYCTL_INITIALIZATION_FINISHED`.
pub(super) const INITIALIZATION_FINISHED: c_int = 38;
/// `GCRYCTL_INITIALIZATION_FINISHED_P`.
pub(super) const INITIALIZATION_FINISHED_P: c_int = 39;

/// `GCRY_CIPHER_AES`; the 192 and 256-bit ones follow it.
pub(super) const CIPHER_AES: c_int = 7;
/// `GCRY_CIPHER_CHACHA20`.
pub(super) const CIPHER_CHACHA20: c_int = 316;

/// `GCRY_CIPHER_MODE_ECB`.
pub(super) const MODE_ECB: c_int = 1;
/// `GCRY_CIPHER_MODE_CBC`.
pub(super) const MODE_CBC: c_int = 3;
/// `GCRY_CIPHER_MODE_CTR`.
pub(super) const MODE_CTR: c_int = 6;
/// `GCRY_CIPHER_MODE_GCM`.
pub(super) const MODE_GCM: c_int = 9;
/// `GCRY_CIPHER_MODE_POLY1305`.
pub(super) const MODE_POLY1305: c_int = 10;
/// `GCRY_CIPHER_MODE_XTS`.
pub(super) const MODE_XTS: c_int = 13;

/// `GCRY_MAC_HMAC_SHA256`.
pub(super) const HMAC_SHA256: c_int = 101;
/// `GCRY_MAC_HMAC_SHA512`.
pub(super) const HMAC_SHA512: c_int = 103;

functions! {
    /// libgcrypt's functions. Those that return a `gcry_error_t` return 0 for success.
    Functions {
        gcry_check_version: fn(*const c_char) -> *const c_char;
        gcry_control: fn(c_int; ...) -> c_uint;

        gcry_cipher_open: fn(*mut *mut CipherHandle, c_int, c_int, c_uint) -> c_uint;
        gcry_cipher_close: fn(*mut CipherHandle);
        gcry_cipher_setkey: fn(*mut CipherHandle, *const c_void, usize) -> c_uint;
        gcry_cipher_setiv: fn(*mut CipherHandle, *const c_void, usize) -> c_uint;
        gcry_cipher_setctr: fn(*mut CipherHandle, *const c_void, usize) -> c_uint;
        gcry_cipher_authenticate: fn(*mut CipherHandle, *const c_void, usize) -> c_uint;
        gcry_cipher_encrypt: fn(*mut CipherHandle, *mut c_void, usize, *const c_void, usize) -> c_uint;
        gcry_cipher_decrypt: fn(*mut CipherHandle, *mut c_void, usize, *const c_void, usize) -> c_uint;
        gcry_cipher_gettag: fn(*mut CipherHandle, *mut c_void, usize) -> c_uint;

        gcry_mac_open: fn(*mut *mut MacHandle, c_int, c_uint, *mut GcryptContext) -> c_uint;
        gcry_mac_close: fn(*mut MacHandle);
        gcry_mac_setkey: fn(*mut MacHandle, *const c_void, usize) -> c_uint;
        gcry_mac_ctl: fn(*mut MacHandle, c_int, *mut c_void, usize) -> c_uint;
        gcry_mac_write: fn(*mut MacHandle, *const c_void, usize) -> c_uint;
        gcry_mac_read: fn(*mut MacHandle, *mut c_void, *mut usize) -> c_uint;
    }
}
