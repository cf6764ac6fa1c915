//! libcrypto with a library context that has the provider, or only the default one.

mod any;
mod context;

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_ulong, c_void};
use std::ptr::{null, null_mut};
use std::sync::LazyLock;

use libloading::Library;

pub(crate) use self::any::{Given, Memory, Placed, Reply};
pub(crate) use self::context::{Context, Done, Refused};

macro_rules! functions {
    ($($name:ident: fn($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// As OpenSSL's headers declare them.
        #[allow(non_snake_case)]
        struct Functions {
            $($name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
            _library: Library,
        }

        static LIBCRYPTO: LazyLock<Functions> = LazyLock::new(|| {
            let expected = "libcrypto.so.3 is installed by scripts/needs test";
            // SAFETY: libcrypto may be loaded, and its functions have these types.
            unsafe {
                let library = Library::new("libcrypto.so.3").expect(expected);
                Functions {
                    $($name: *library.get(stringify!($name)).unwrap(),)*
                    _library: library,
                }
            }
        });
    };
}

functions! {
    OSSL_LIB_CTX_new: fn() -> *mut c_void;
    OSSL_LIB_CTX_free: fn(*mut c_void);
    OSSL_PROVIDER_add_builtin: fn(*mut c_void, *const c_char, *const c_void) -> c_int;
    OSSL_PROVIDER_load: fn(*mut c_void, *const c_char) -> *mut c_void;
    OSSL_PROVIDER_unload: fn(*mut c_void) -> c_int;
    EVP_CIPHER_fetch: fn(*mut c_void, *const c_char, *const c_char) -> *mut c_void;
    EVP_CIPHER_free: fn(*mut c_void);
    EVP_CIPHER_get_key_length: fn(*const c_void) -> c_int;
    EVP_CIPHER_get_iv_length: fn(*const c_void) -> c_int;
    EVP_CIPHER_get_flags: fn(*const c_void) -> c_ulong;
    EVP_CIPHER_CTX_new: fn() -> *mut c_void;
    EVP_CIPHER_CTX_free: fn(*mut c_void);
    EVP_CIPHER_CTX_reset: fn(*mut c_void) -> c_int;
    EVP_CIPHER_CTX_copy: fn(*mut c_void, *const c_void) -> c_int;
    EVP_CIPHER_CTX_ctrl: fn(*mut c_void, c_int, c_int, *mut c_void) -> c_int;
    EVP_CIPHER_CTX_get_block_size: fn(*const c_void) -> c_int;
    EVP_CIPHER_CTX_get_iv_length: fn(*const c_void) -> c_int;
    EVP_CIPHER_CTX_get_key_length: fn(*const c_void) -> c_int;
    EVP_CIPHER_CTX_get_tag_length: fn(*const c_void) -> c_int;
    EVP_CIPHER_CTX_get_num: fn(*const c_void) -> c_int;
    EVP_CIPHER_CTX_set_num: fn(*mut c_void, c_int) -> c_int;
    EVP_CIPHER_gettable_ctx_params: fn(*const c_void) -> *const Param;
    EVP_CIPHER_settable_ctx_params: fn(*const c_void) -> *const Param;
    EVP_CIPHER_gettable_params: fn(*const c_void) -> *const Param;
    EVP_CIPHER_get_params: fn(*mut c_void, *mut Param) -> c_int;
    EVP_CIPHER_CTX_get_updated_iv: fn(*mut c_void, *mut u8, usize) -> c_int;
    EVP_CIPHER_CTX_set_params: fn(*mut c_void, *const Param) -> c_int;
    EVP_CIPHER_CTX_get_params: fn(*mut c_void, *mut Param) -> c_int;
    EVP_CIPHER_CTX_set_padding: fn(*mut c_void, c_int) -> c_int;
    EVP_CIPHER_CTX_set_key_length: fn(*mut c_void, c_int) -> c_int;
    EVP_Cipher: fn(*mut c_void, *mut u8, *const u8, c_uint) -> c_int;
    EVP_CipherInit_ex2: fn(*mut c_void, *const c_void, *const u8, *const u8, c_int, *const c_void) -> c_int;
    EVP_CipherUpdate: fn(*mut c_void, *mut u8, *mut c_int, *const u8, c_int) -> c_int;
    EVP_CipherFinal_ex: fn(*mut c_void, *mut u8, *mut c_int) -> c_int;
    ERR_clear_error: fn();
    ERR_get_error: fn() -> u64;
    ERR_peek_last_error_data: fn(*mut *const c_char, *mut c_int) -> u64;
    ERR_error_string_n: fn(u64, *mut c_char, usize);
}

/// `OSSL_PARAM`
#[repr(C)]
struct Param {
    key: *const c_char,
    data_type: c_uint,
    data: *mut c_void,
    data_size: usize,
    return_size: usize,
}

/// An array of one parameter, and its end.
fn params(key: &CStr, data_type: c_uint, data: &mut [u8]) -> [Param; 2] {
    let end = Param {
        key: null(),
        data_type: 0,
        data: null_mut(),
        data_size: 0,
        return_size: 0,
    };
    let param = Param {
        key: key.as_ptr(),
        data_type,
        data: data.as_mut_ptr().cast(),
        data_size: data.len(),
        return_size: usize::MAX,
    };
    [param, end]
}

/// A library context, which threads share.
pub(crate) struct Lib {
    raw: *mut c_void,
    providers: Vec<*mut c_void>,
}

// SAFETY: OpenSSL's library contexts may be used from any number of threads at once.
unsafe impl Send for Lib {}
// SAFETY: as above.
unsafe impl Sync for Lib {}

impl Lib {
    fn with(names: &[&CStr]) -> Lib {
        // SAFETY: the provider's function has the type that OpenSSL wants.
        unsafe {
            let raw = (LIBCRYPTO.OSSL_LIB_CTX_new)();
            let init = cipherlane_provider::OSSL_provider_init as *const c_void;
            assert_eq!(
                (LIBCRYPTO.OSSL_PROVIDER_add_builtin)(raw, c"cipherlane".as_ptr(), init),
                1
            );
            let load = |name: &&CStr| (LIBCRYPTO.OSSL_PROVIDER_load)(raw, name.as_ptr());
            let providers: Vec<_> = names.iter().map(load).collect();
            assert!(providers.iter().all(|provider| !provider.is_null()));
            Lib { raw, providers }
        }
    }

    /// One that has nothing but the provider.
    pub(crate) fn ours() -> Lib {
        Lib::with(&[c"cipherlane"])
    }

    pub(crate) fn default() -> Lib {
        Lib::with(&[c"default"])
    }

    pub(crate) fn cipher(&self, name: &str) -> Cipher {
        let name = CString::new(name).unwrap();
        // SAFETY: the context lives; the name is a string.
        let raw = unsafe { (LIBCRYPTO.EVP_CIPHER_fetch)(self.raw, name.as_ptr(), null()) };
        assert!(!raw.is_null(), "{name:?}");
        Cipher { raw }
    }
}

/// For tests that need many contexts: OpenSSL has numbers for the errors of a hundred
/// providers, and after that no words.
pub(crate) static OURS: LazyLock<Lib> = LazyLock::new(Lib::ours);
pub(crate) static DEFAULT: LazyLock<Lib> = LazyLock::new(Lib::default);

impl Drop for Lib {
    fn drop(&mut self) {
        // SAFETY: the providers and the context are ours; ciphers hold on to what they need.
        unsafe {
            for &provider in &self.providers {
                (LIBCRYPTO.OSSL_PROVIDER_unload)(provider);
            }
            (LIBCRYPTO.OSSL_LIB_CTX_free)(self.raw);
        }
    }
}

pub(crate) struct Cipher {
    raw: *mut c_void,
}

// SAFETY: fetched ciphers do not change.
unsafe impl Send for Cipher {}
// SAFETY: as above.
unsafe impl Sync for Cipher {}

impl Cipher {
    pub(crate) fn key_len(&self) -> usize {
        // SAFETY: a fetched cipher.
        unsafe { (LIBCRYPTO.EVP_CIPHER_get_key_length)(self.raw) as usize }
    }

    pub(crate) fn iv_len(&self) -> usize {
        // SAFETY: a fetched cipher.
        unsafe { (LIBCRYPTO.EVP_CIPHER_get_iv_length)(self.raw) as usize }
    }

    /// `EVP_CIPH_*`
    pub(crate) fn flags(&self) -> u64 {
        // SAFETY: a fetched cipher.
        unsafe { (LIBCRYPTO.EVP_CIPHER_get_flags)(self.raw) }
    }

    /// What lists say that can be asked of the cipher, and asked and set of its contexts: names
    /// and types.
    pub(crate) fn lists(&self) -> [Vec<(String, c_uint)>; 3] {
        let functions = [
            LIBCRYPTO.EVP_CIPHER_gettable_params,
            LIBCRYPTO.EVP_CIPHER_gettable_ctx_params,
            LIBCRYPTO.EVP_CIPHER_settable_ctx_params,
        ];
        functions.map(|function| {
            let mut list = Vec::new();
            // SAFETY: a fetched cipher; lists have their ends.
            unsafe {
                let mut param = function(self.raw);
                while !(*param).key.is_null() {
                    let name = CStr::from_ptr((*param).key).to_string_lossy();
                    list.push((name.into_owned(), (*param).data_type));
                    param = param.add(1);
                }
            }
            list.sort();
            list
        })
    }

    /// `EVP_CIPHER_get_params`: what it returns, the memory then, and the size told.
    pub(crate) fn ask(&self, given: &Given) -> (c_int, Memory, usize) {
        let mut memory = [0; 256];
        let mut array = given.array(&mut memory);
        // SAFETY: a fetched cipher, and an array with its end.
        let returned = unsafe { (LIBCRYPTO.EVP_CIPHER_get_params)(self.raw, array.as_mut_ptr()) };
        (returned, memory, array[0].return_size)
    }

    /// A context with the cipher, and nothing set.
    pub(crate) fn context(&self) -> Context {
        // SAFETY: a fetched cipher; neither key nor IV.
        unsafe {
            let raw = (LIBCRYPTO.EVP_CIPHER_CTX_new)();
            assert!(!raw.is_null());
            let init = LIBCRYPTO.EVP_CipherInit_ex2;
            assert_eq!(init(raw, self.raw, null(), null(), 1, null()), 1);
            Context { raw }
        }
    }
}

impl Drop for Cipher {
    fn drop(&mut self) {
        // SAFETY: fetched, and freed once.
        unsafe { (LIBCRYPTO.EVP_CIPHER_free)(self.raw) };
    }
}
