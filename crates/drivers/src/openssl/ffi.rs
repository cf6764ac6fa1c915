//! The functions of libcrypto 3 that the driver calls, as `openssl/evp.h` declares them.

use std::ffi::{c_char, c_int, c_uint, c_ulong, c_void};

use crate::foreign::functions;

/// `OSSL_LIB_CTX`.
pub(super) enum LibContext {}
/// `OSSL_PROVIDER`.
pub(super) enum Provider {}
/// `EVP_CIPHER`.
pub(super) enum EvpCipher {}
/// `EVP_CIPHER_CTX`.
pub(super) enum EvpCipherContext {}
/// `EVP_MAC`.
pub(super) enum EvpMac {}
/// `EVP_MAC_CTX`.
pub(super) enum EvpMacContext {}

/// `OSSL_PARAM`: a named parameter; a list of them ends with one that has no name.
#[repr(C)]
pub(super) struct Param {
    pub(super) key: *const c_char,
    pub(super) data_type: c_uint,
    pub(super) data: *mut c_void,
    pub(super) data_size: usize,
    pub(super) return_size: usize,
}

/// `OSSL_PARAM_UTF8_STRING`.
pub(super) const PARAM_UTF8_STRING: c_uint = 4;
/// What `EVP_CIPHER_do_all_provided` calls.
pub(super) type EachCipher = unsafe extern "C" fn(*mut EvpCipher, *mut c_void);

/// `EVP_CIPH_FLAG_AEAD_CIPHER`.
pub(super) const FLAG_AEAD: c_ulong = 0x20_0000;
/// `EVP_CIPH_FLAG_CTS`.
pub(super) const FLAG_CTS: c_ulong = 0x4000;
/// `EVP_CIPH_XTS_MODE`.
pub(super) const MODE_XTS: c_int = 0x10001;
/// `OPENSSL_INIT_NO_ATEXIT`.
pub(super) const INIT_NO_ATEXIT: u64 = 0x80000;
/// `EVP_CTRL_AEAD_GET_TAG`.
pub(super) const AEAD_GET_TAG: c_int = 0x10;
/// `EVP_CTRL_AEAD_SET_TAG`.
pub(super) const AEAD_SET_TAG: c_int = 0x11;
/// `OPENSSL_VERSION`, for `OpenSSL_version`.
pub(super) const VERSION: c_int = 0;

functions! {
    /// libcrypto's functions. Those that return an int return 1 for success.
    Functions {
        OPENSSL_init_crypto: fn(u64, *const c_void) -> c_int;
        OpenSSL_version: fn(c_int) -> *const c_char;
        OSSL_LIB_CTX_new: fn() -> *mut LibContext;
        OSSL_LIB_CTX_free: fn(*mut LibContext);
        OSSL_PROVIDER_load: fn(*mut LibContext, *const c_char) -> *mut Provider;
        OSSL_PROVIDER_unload: fn(*mut Provider) -> c_int;
        ERR_set_mark: fn() -> c_int;
        ERR_pop_to_mark: fn() -> c_int;

        EVP_CIPHER_fetch: fn(*mut LibContext, *const c_char, *const c_char) -> *mut EvpCipher;
        EVP_CIPHER_free: fn(*mut EvpCipher);
        EVP_CIPHER_do_all_provided: fn(*mut LibContext, EachCipher, *mut c_void);
        EVP_CIPHER_get0_name: fn(*const EvpCipher) -> *const c_char;
        EVP_CIPHER_get_flags: fn(*const EvpCipher) -> c_ulong;
        EVP_CIPHER_get_mode: fn(*const EvpCipher) -> c_int;
        EVP_CIPHER_get_key_length: fn(*const EvpCipher) -> c_int;
        EVP_CIPHER_get_iv_length: fn(*const EvpCipher) -> c_int;
        EVP_CIPHER_get_block_size: fn(*const EvpCipher) -> c_int;

        EVP_CIPHER_CTX_new: fn() -> *mut EvpCipherContext;
        EVP_CIPHER_CTX_free: fn(*mut EvpCipherContext);
        EVP_CIPHER_CTX_set_padding: fn(*mut EvpCipherContext, c_int) -> c_int;
        EVP_CIPHER_CTX_ctrl: fn(*mut EvpCipherContext, c_int, c_int, *mut c_void) -> c_int;
        EVP_CipherInit_ex2: fn(*mut EvpCipherContext, *const EvpCipher, *const u8, *const u8, c_int, *const Param) -> c_int;
        EVP_CipherUpdate: fn(*mut EvpCipherContext, *mut u8, *mut c_int, *const u8, c_int) -> c_int;
        EVP_CipherFinal_ex: fn(*mut EvpCipherContext, *mut u8, *mut c_int) -> c_int;

        EVP_MAC_fetch: fn(*mut LibContext, *const c_char, *const c_char) -> *mut EvpMac;
        EVP_MAC_free: fn(*mut EvpMac);
        EVP_MAC_CTX_new: fn(*mut EvpMac) -> *mut EvpMacContext;
        EVP_MAC_CTX_free: fn(*mut EvpMacContext);
        EVP_MAC_init: fn(*mut EvpMacContext, *const u8, usize, *const Param) -> c_int;
        EVP_MAC_update: fn(*mut EvpMacContext, *const u8, usize) -> c_int;
        EVP_MAC_final: fn(*mut EvpMacContext, *mut u8, *mut usize, usize) -> c_int;
    }
}
