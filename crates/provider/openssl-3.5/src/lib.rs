//! The provider inside a libcrypto 3.5 of our own: the release that brought cipher pipelines,
//! and that few distributions have. Loaded at run time, as programs load theirs, and the
//! provider into it by its file's name.
//!
//! | file | what it holds |
//! |---|---|
//! | `build.rs` | builds the libcrypto |
//! | `lib.rs` | its functions, library contexts, ciphers |
//! | `message` | one message at a time, by the calls that every OpenSSL 3 has |
//! | `pipeline` | up to 32 at a time |
//! | `bin/pipelines.rs`, `bin/large.rs` | what pipelines gain, and dedicated cores |

pub mod message;
pub mod pipeline;

use std::ffi::{CStr, CString, OsString, c_char, c_int, c_uint, c_void};
use std::path::{Path, PathBuf};
use std::ptr::null;
use std::sync::LazyLock;

use libloading::Library;

macro_rules! functions {
    ($($name:ident: fn($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// As OpenSSL's headers declare them.
        #[allow(non_snake_case)]
        pub(crate) struct Functions {
            $(pub(crate) $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
            _library: Library,
        }

        pub(crate) static LIBCRYPTO: LazyLock<Functions> = LazyLock::new(|| {
            // SAFETY: libcrypto may be loaded, and its functions have these types.
            unsafe {
                let library = Library::new(env!("LIBCRYPTO_3_5")).expect("build.rs built it");
                Functions {
                    $($name: *library.get(stringify!($name)).unwrap(),)*
                    _library: library,
                }
            }
        });
    };
}

functions! {
    OpenSSL_version_num: fn() -> u64;
    OSSL_LIB_CTX_new: fn() -> *mut c_void;
    OSSL_LIB_CTX_free: fn(*mut c_void);
    OSSL_PROVIDER_set_default_search_path: fn(*mut c_void, *const c_char) -> c_int;
    OSSL_PROVIDER_load: fn(*mut c_void, *const c_char) -> *mut c_void;
    OSSL_PROVIDER_unload: fn(*mut c_void) -> c_int;
    EVP_CIPHER_fetch: fn(*mut c_void, *const c_char, *const c_char) -> *mut c_void;
    EVP_CIPHER_free: fn(*mut c_void);
    EVP_CIPHER_can_pipeline: fn(*const c_void, c_int) -> c_int;
    EVP_CIPHER_get_key_length: fn(*const c_void) -> c_int;
    EVP_CIPHER_get_iv_length: fn(*const c_void) -> c_int;
    EVP_CIPHER_CTX_new: fn() -> *mut c_void;
    EVP_CIPHER_CTX_free: fn(*mut c_void);
    EVP_CIPHER_CTX_copy: fn(*mut c_void, *const c_void) -> c_int;
    EVP_CIPHER_CTX_ctrl: fn(*mut c_void, c_int, c_int, *mut c_void) -> c_int;
    EVP_CIPHER_CTX_set_padding: fn(*mut c_void, c_int) -> c_int;
    EVP_CIPHER_CTX_get_params: fn(*mut c_void, *mut Param) -> c_int;
    EVP_CIPHER_CTX_set_params: fn(*mut c_void, *const Param) -> c_int;
    EVP_CipherInit_ex2: fn(*mut c_void, *const c_void, *const u8, *const u8, c_int, *const c_void) -> c_int;
    EVP_CipherUpdate: fn(*mut c_void, *mut u8, *mut c_int, *const u8, c_int) -> c_int;
    EVP_CipherFinal_ex: fn(*mut c_void, *mut u8, *mut c_int) -> c_int;
    EVP_CipherPipelineEncryptInit: fn(*mut c_void, *const c_void, *const u8, usize, usize, *const *const u8, usize) -> c_int;
    EVP_CipherPipelineDecryptInit: fn(*mut c_void, *const c_void, *const u8, usize, usize, *const *const u8, usize) -> c_int;
    EVP_CipherPipelineUpdate: fn(*mut c_void, *const *mut u8, *mut usize, *const usize, *const *const u8, *const usize) -> c_int;
    EVP_CipherPipelineFinal: fn(*mut c_void, *const *mut u8, *mut usize, *const usize) -> c_int;
    ERR_clear_error: fn();
    ERR_peek_last_error: fn() -> u64;
    ERR_error_string_n: fn(u64, *mut c_char, usize);
}

/// `OSSL_PARAM`
#[repr(C)]
pub(crate) struct Param {
    pub(crate) key: *const c_char,
    pub(crate) data_type: c_uint,
    pub(crate) data: *mut c_void,
    pub(crate) data_size: usize,
    pub(crate) return_size: usize,
}

/// `OPENSSL_VERSION_NUMBER` of the library that runs.
pub fn version() -> u64 {
    // SAFETY: no preconditions.
    unsafe { (LIBCRYPTO.OpenSSL_version_num)() }
}

/// What was refused, in the words of OpenSSL's error queue; empty if it has none.
#[derive(Debug, PartialEq, Eq)]
pub struct Refused(pub String);

/// Runs a call; where it fails, with the last words of the error queue, which is then empty.
pub(crate) fn call(work: impl FnOnce() -> c_int) -> Result<(), Refused> {
    if work() > 0 {
        return Ok(());
    }
    let mut text = [0u8; 256];
    // SAFETY: there is room for the text, which ends with a zero.
    unsafe {
        let error = (LIBCRYPTO.ERR_peek_last_error)();
        if error != 0 {
            (LIBCRYPTO.ERR_error_string_n)(error, text.as_mut_ptr().cast(), text.len());
        }
        (LIBCRYPTO.ERR_clear_error)();
    }
    let text = CStr::from_bytes_until_nul(&text).expect("it ends with a zero");
    Err(Refused(text.to_string_lossy().into_owned()))
}

/// The provider's file: `CIPHERLANE_PROVIDER`, or what the repository's tests use.
fn provider() -> PathBuf {
    let built = "/../../../target/debug/deps/libcipherlane_provider.so";
    let named = std::env::var_os("CIPHERLANE_PROVIDER");
    let built = || OsString::from(concat!(env!("CARGO_MANIFEST_DIR")).to_owned() + built);
    let path = PathBuf::from(named.unwrap_or_else(built));
    path.canonicalize().unwrap_or_else(|error| {
        let path = path.display();
        panic!("{path}: {error}; cargo test -p cipherlane-provider --no-run builds it")
    })
}

/// A library context with one provider.
pub struct Lib {
    raw: *mut c_void,
    provider: *mut c_void,
}

// SAFETY: OpenSSL's library contexts may be used from any number of threads at once.
unsafe impl Send for Lib {}
// SAFETY: as above.
unsafe impl Sync for Lib {}

impl Lib {
    /// One that has nothing but our provider.
    pub fn ours() -> Lib {
        let file = provider();
        let text = |part: Option<&std::ffi::OsStr>| {
            CString::new(part.expect("a file in a folder").as_encoded_bytes()).unwrap()
        };
        let folder = text(file.parent().map(|folder| folder.as_os_str()));
        Lib::with(&text(file.file_stem()), Some(&folder))
    }

    /// One that has nothing but OpenSSL's own ciphers.
    pub fn theirs() -> Lib {
        Lib::with(c"default", None)
    }

    /// Our provider once more, from a copy of its file, so that it shares nothing with the first.
    pub fn ours_apart(folder: &Path) -> Lib {
        let copy = "cipherlane_apart";
        std::fs::copy(provider(), folder.join(copy).with_extension("so")).expect("a copy");
        let folder = CString::new(folder.as_os_str().as_encoded_bytes()).unwrap();
        Lib::with(&CString::new(copy).unwrap(), Some(&folder))
    }

    fn with(name: &CStr, folder: Option<&CStr>) -> Lib {
        // SAFETY: the context is new, and names are strings.
        unsafe {
            let raw = (LIBCRYPTO.OSSL_LIB_CTX_new)();
            if let Some(folder) = folder {
                let set = LIBCRYPTO.OSSL_PROVIDER_set_default_search_path;
                assert_eq!(set(raw, folder.as_ptr()), 1);
            }
            let provider = (LIBCRYPTO.OSSL_PROVIDER_load)(raw, name.as_ptr());
            assert!(!provider.is_null(), "{name:?} in {folder:?}");
            Lib { raw, provider }
        }
    }

    /// A cipher by its name.
    pub fn cipher(&self, name: &str) -> Cipher {
        let name = CString::new(name).unwrap();
        // SAFETY: the context lives; the name is a string.
        let raw = unsafe { (LIBCRYPTO.EVP_CIPHER_fetch)(self.raw, name.as_ptr(), null()) };
        assert!(!raw.is_null(), "{name:?}");
        Cipher { raw }
    }
}

impl Drop for Lib {
    fn drop(&mut self) {
        // SAFETY: the provider and the context are ours; ciphers hold on to what they need.
        unsafe {
            (LIBCRYPTO.OSSL_PROVIDER_unload)(self.provider);
            (LIBCRYPTO.OSSL_LIB_CTX_free)(self.raw);
        }
    }
}

/// A cipher of a provider.
pub struct Cipher {
    pub(crate) raw: *mut c_void,
}

// SAFETY: fetched ciphers do not change.
unsafe impl Send for Cipher {}
// SAFETY: as above.
unsafe impl Sync for Cipher {}

impl Cipher {
    /// Bytes of the key.
    pub fn key_len(&self) -> usize {
        // SAFETY: a fetched cipher.
        unsafe { (LIBCRYPTO.EVP_CIPHER_get_key_length)(self.raw) as usize }
    }

    /// Bytes of the IV.
    pub fn iv_len(&self) -> usize {
        // SAFETY: a fetched cipher.
        unsafe { (LIBCRYPTO.EVP_CIPHER_get_iv_length)(self.raw) as usize }
    }

    /// Whether the provider has pipelines for it, both ways.
    pub fn can_pipeline(&self) -> bool {
        let can = LIBCRYPTO.EVP_CIPHER_can_pipeline;
        // SAFETY: a fetched cipher.
        [0, 1].map(|encrypt| unsafe { can(self.raw, encrypt) }) == [1, 1]
    }
}

impl Drop for Cipher {
    fn drop(&mut self) {
        // SAFETY: fetched, and freed once.
        unsafe { (LIBCRYPTO.EVP_CIPHER_free)(self.raw) };
    }
}

/// `EVP_CIPHER_CTX`, freed when dropped.
pub(crate) struct Raw(pub(crate) *mut c_void);

// SAFETY: a context may move from thread to thread.
unsafe impl Send for Raw {}

impl Raw {
    pub(crate) fn new() -> Raw {
        // SAFETY: no preconditions.
        let raw = unsafe { (LIBCRYPTO.EVP_CIPHER_CTX_new)() };
        assert!(!raw.is_null());
        Raw(raw)
    }

    pub(crate) fn duplicate(&self) -> Raw {
        let copy = Raw::new();
        // SAFETY: both contexts live.
        let copied = unsafe { (LIBCRYPTO.EVP_CIPHER_CTX_copy)(copy.0, self.0) };
        assert_eq!(copied, 1);
        copy
    }

    pub(crate) fn set_padding(&mut self, on: bool) {
        // SAFETY: the context lives.
        let set = unsafe { (LIBCRYPTO.EVP_CIPHER_CTX_set_padding)(self.0, on.into()) };
        assert_eq!(set, 1);
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        // SAFETY: ours, and freed once.
        unsafe { (LIBCRYPTO.EVP_CIPHER_CTX_free)(self.0) };
    }
}
