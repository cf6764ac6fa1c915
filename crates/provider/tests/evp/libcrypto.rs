//! libcrypto with a library context that has the provider, or only the default one.

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_ulong, c_void};
use std::ptr::{null, null_mut};
use std::sync::LazyLock;

use libloading::Library;

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
    EVP_CIPHER_CTX_copy: fn(*mut c_void, *const c_void) -> c_int;
    EVP_CIPHER_CTX_ctrl: fn(*mut c_void, c_int, c_int, *mut c_void) -> c_int;
    EVP_CIPHER_CTX_get_block_size: fn(*const c_void) -> c_int;
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
    ERR_peek_last_error: fn() -> u64;
    ERR_error_string_n: fn(u64, *mut c_char, usize);
}

const SET_IV_LENGTH: c_int = 0x9;
const GET_TAG: c_int = 0x10;
const SET_TAG: c_int = 0x11;
const SET_FIXED_IV: c_int = 0x12;
const SET_TLS_HEADER: c_int = 0x16;

/// `OSSL_PARAM`
#[repr(C)]
struct Param {
    key: *const c_char,
    data_type: c_uint,
    data: *mut c_void,
    data_size: usize,
    return_size: usize,
}

const NUMBER: c_uint = 2;
const TEXT: c_uint = 4;

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

/// What was refused, in the words of OpenSSL's error queue; empty if it has none.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refused(pub(crate) String);

pub(crate) type Done = Result<Vec<u8>, Refused>;

/// `EVP_CIPHER_CTX`.
pub(crate) struct Context {
    raw: *mut c_void,
}

impl Context {
    /// Runs a call, with the error queue empty before it.
    fn call(&mut self, work: impl FnOnce(*mut c_void) -> c_int) -> Result<(), Refused> {
        // SAFETY: no preconditions.
        unsafe { (LIBCRYPTO.ERR_clear_error)() };
        match work(self.raw) {
            1.. => Ok(()),
            _ => {
                let mut text = [0u8; 256];
                // SAFETY: there is room for the text, which ends with a zero.
                unsafe {
                    let error = (LIBCRYPTO.ERR_peek_last_error)();
                    if error == 0 {
                        return Err(Refused(String::new()));
                    }
                    (LIBCRYPTO.ERR_error_string_n)(error, text.as_mut_ptr().cast(), text.len());
                }
                let text = CStr::from_bytes_until_nul(&text).unwrap();
                Err(Refused(text.to_str().unwrap().to_owned()))
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
    fn block(&self) -> usize {
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
        // SAFETY: callers give memory as long as they say.
        self.call(|raw| unsafe {
            (LIBCRYPTO.EVP_CIPHER_CTX_ctrl)(raw, what, len as c_int, at.cast())
        })
    }

    pub(crate) fn set_iv_length(&mut self, len: usize) -> Result<(), Refused> {
        self.control(SET_IV_LENGTH, len, null_mut())
    }

    pub(crate) fn set_tag(&mut self, tag: &[u8]) -> Result<(), Refused> {
        self.control(SET_TAG, tag.len(), tag.to_vec().as_mut_ptr())
    }

    /// The length of a tag that is not given.
    pub(crate) fn set_tag_length(&mut self, len: usize) -> Result<(), Refused> {
        self.control(SET_TAG, len, null_mut())
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

    /// The header of the record of TLS that comes next.
    pub(crate) fn announce(&mut self, header: &[u8]) -> Result<(), Refused> {
        self.control(SET_TLS_HEADER, header.len(), header.to_vec().as_mut_ptr())
    }

    pub(crate) fn updated_iv(&mut self, len: usize) -> Done {
        let mut iv = vec![0; len];
        // SAFETY: there is room for so much.
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
