//! gost-engine, loaded by libcrypto at run time.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr::{null, null_mut};
use std::sync::OnceLock;

use libloading::Library;

/// What libcrypto gives out and takes back.
type Object = *mut c_void;

/// `OPENSSL_INIT_ENGINE_DYNAMIC`.
const ENGINE_DYNAMIC: u64 = 0x400;
/// `ENGINE_METHOD_ALL`.
const EVERYTHING: c_uint = 0xffff;
/// `EVP_CTRL_SET_SBOX`.
const SET_SBOX: c_int = 0x1e;
/// `EVP_CTRL_KEY_MESH`.
const KEY_MESH: c_int = 0x20;

/// `EVP_PKEY_CTRL_SET_MAC_KEY`.
const SET_MAC_KEY: c_int = 6;
/// Any type of key, or any operation.
const ANY: c_int = -1;

/// The functions that are called, with the types of its headers.
struct Functions {
    sn2nid: unsafe extern "C" fn(*const c_char) -> c_int,
    engine_get_cipher: unsafe extern "C" fn(Object, c_int) -> *const c_void,
    engine_get_digest: unsafe extern "C" fn(Object, c_int) -> *const c_void,
    cipher_new: unsafe extern "C" fn() -> Object,
    cipher_free: unsafe extern "C" fn(Object),
    cipher_init:
        unsafe extern "C" fn(Object, *const c_void, Object, *const u8, *const u8, c_int) -> c_int,
    cipher_ctrl: unsafe extern "C" fn(Object, c_int, c_int, *const c_void) -> c_int,
    cipher_set_padding: unsafe extern "C" fn(Object, c_int) -> c_int,
    cipher_update: unsafe extern "C" fn(Object, *mut u8, *mut c_int, *const u8, c_int) -> c_int,
    pkey_context_new: unsafe extern "C" fn(c_int, Object) -> Object,
    pkey_context_free: unsafe extern "C" fn(Object),
    keygen_init: unsafe extern "C" fn(Object) -> c_int,
    pkey_ctrl_str: unsafe extern "C" fn(Object, *const c_char, *const c_char) -> c_int,
    pkey_ctrl: unsafe extern "C" fn(Object, c_int, c_int, c_int, c_int, *const c_void) -> c_int,
    keygen: unsafe extern "C" fn(Object, *mut Object) -> c_int,
    pkey_free: unsafe extern "C" fn(Object),
    digest_new: unsafe extern "C" fn() -> Object,
    digest_free: unsafe extern "C" fn(Object),
    sign_init: unsafe extern "C" fn(Object, *mut Object, *const c_void, Object, Object) -> c_int,
    sign_update: unsafe extern "C" fn(Object, *const c_void, usize) -> c_int,
    sign_final: unsafe extern "C" fn(Object, *mut u8, *mut usize) -> c_int,
    _library: Library,
}

/// The engine, and the library that it was loaded by.
pub(crate) struct Engine {
    libcrypto: Functions,
    engine: Object,
}

// SAFETY: libcrypto may be called by any thread; the engine itself is not changed.
unsafe impl Send for Engine {}
// SAFETY: as above.
unsafe impl Sync for Engine {}

/// gost-engine, where libcrypto finds it.
pub(crate) fn engine() -> Option<&'static Engine> {
    static LOADED: OnceLock<Option<Engine>> = OnceLock::new();
    LOADED.get_or_init(Engine::load).as_ref()
}

impl Engine {
    fn load() -> Option<Engine> {
        // SAFETY: the library's initialisers have no conditions, and the types are those
        // of its headers.
        unsafe {
            let library = Library::new("libcrypto.so.3").ok()?;
            macro_rules! function {
                ($name:literal) => {
                    *library.get($name).expect("a function of libcrypto")
                };
            }
            let init: unsafe extern "C" fn(u64, *const c_void) -> c_int =
                function!(b"OPENSSL_init_crypto");
            let by_id: unsafe extern "C" fn(*const c_char) -> Object = function!(b"ENGINE_by_id");
            let engine_init: unsafe extern "C" fn(Object) -> c_int = function!(b"ENGINE_init");
            let set_default: unsafe extern "C" fn(Object, c_uint) -> c_int =
                function!(b"ENGINE_set_default");
            assert_eq!(init(ENGINE_DYNAMIC, null()), 1);
            let engine = by_id(c"gost".as_ptr());
            if engine.is_null() {
                return None;
            }
            assert_eq!(engine_init(engine), 1);
            // Contexts of MACs look it up.
            assert_eq!(set_default(engine, EVERYTHING), 1);
            let libcrypto = Functions {
                sn2nid: function!(b"OBJ_sn2nid"),
                engine_get_cipher: function!(b"ENGINE_get_cipher"),
                engine_get_digest: function!(b"ENGINE_get_digest"),
                cipher_new: function!(b"EVP_CIPHER_CTX_new"),
                cipher_free: function!(b"EVP_CIPHER_CTX_free"),
                cipher_init: function!(b"EVP_CipherInit_ex"),
                cipher_ctrl: function!(b"EVP_CIPHER_CTX_ctrl"),
                cipher_set_padding: function!(b"EVP_CIPHER_CTX_set_padding"),
                cipher_update: function!(b"EVP_CipherUpdate"),
                pkey_context_new: function!(b"EVP_PKEY_CTX_new_id"),
                pkey_context_free: function!(b"EVP_PKEY_CTX_free"),
                keygen_init: function!(b"EVP_PKEY_keygen_init"),
                pkey_ctrl_str: function!(b"EVP_PKEY_CTX_ctrl_str"),
                pkey_ctrl: function!(b"EVP_PKEY_CTX_ctrl"),
                keygen: function!(b"EVP_PKEY_keygen"),
                pkey_free: function!(b"EVP_PKEY_free"),
                digest_new: function!(b"EVP_MD_CTX_new"),
                digest_free: function!(b"EVP_MD_CTX_free"),
                sign_init: function!(b"EVP_DigestSignInit"),
                sign_update: function!(b"EVP_DigestSignUpdate"),
                sign_final: function!(b"EVP_DigestSignFinal"),
                _library: library,
            };
            Some(Engine { libcrypto, engine })
        }
    }

    fn nid(&self, name: &CStr) -> c_int {
        // SAFETY: a string.
        let nid = unsafe { (self.libcrypto.sn2nid)(name.as_ptr()) };
        assert_ne!(nid, 0, "libcrypto knows no {name:?}");
        nid
    }

    /// A key in a cipher, to encrypt. One of GOST 28147-89 may be given the name of an S-box
    /// and whether the key is meshed, instead of CryptoPro-A and that it is.
    pub(crate) fn cipher(
        &'static self,
        name: &CStr,
        set: Option<(&'static CStr, bool)>,
        key: &[u8; 32],
    ) -> Cipher {
        let Functions {
            engine_get_cipher,
            cipher_new,
            cipher_init,
            cipher_set_padding,
            ..
        } = self.libcrypto;
        // SAFETY: every object is given to functions that take it, and keys have 32 bytes.
        let context = unsafe {
            let cipher = engine_get_cipher(self.engine, self.nid(name));
            assert!(!cipher.is_null(), "gost-engine has no {name:?}");
            let context = cipher_new();
            let (key, iv) = (key.as_ptr(), null());
            assert_eq!(cipher_init(context, cipher, self.engine, key, iv, 1), 1);
            assert_eq!(cipher_set_padding(context, 0), 1);
            context
        };
        Cipher {
            engine: self,
            context,
            set,
        }
    }

    /// A key in IMIT, which meshes keys, by the name of an S-box.
    pub(crate) fn imit(&'static self, sbox: &CStr, key: &[u8; 32]) -> Imit {
        let nid = self.nid(c"gost-mac");
        let functions = &self.libcrypto;
        let mut pkey = null_mut();
        // SAFETY: every object is given to functions that take it, and the key has 32 bytes.
        let digest = unsafe {
            let context = (functions.pkey_context_new)(nid, self.engine);
            assert!(!context.is_null());
            assert_eq!((functions.keygen_init)(context), 1);
            let set = (functions.pkey_ctrl_str)(context, c"paramset".as_ptr(), sbox.as_ptr());
            assert_eq!(set, 1, "{sbox:?}");
            let set =
                (functions.pkey_ctrl)(context, ANY, ANY, SET_MAC_KEY, 32, key.as_ptr().cast());
            assert_eq!(set, 1);
            assert_eq!((functions.keygen)(context, &mut pkey), 1);
            (functions.pkey_context_free)(context);
            let digest = (functions.engine_get_digest)(self.engine, nid);
            assert!(!digest.is_null());
            digest
        };
        Imit {
            engine: self,
            digest,
            pkey,
        }
    }
}

/// A cipher with its key.
pub(crate) struct Cipher {
    engine: &'static Engine,
    context: Object,
    set: Option<(&'static CStr, bool)>,
}

impl Cipher {
    /// Encrypts in place, from an IV if the mode has one.
    pub(crate) fn encrypt(&mut self, iv: Option<&[u8; 16]>, data: &mut [u8]) {
        let Functions {
            cipher_init,
            cipher_ctrl,
            cipher_update,
            ..
        } = self.engine.libcrypto;
        let iv = iv.map_or(null(), |iv| iv.as_ptr());
        let (to, len) = (data.as_mut_ptr(), data.len() as c_int);
        let mut written = 0;
        // SAFETY: no IV is longer than 16 bytes, and the lengths are those of the buffers.
        unsafe {
            let set = cipher_init(self.context, null(), null_mut(), null(), iv, -1);
            assert_eq!(set, 1);
            // Which the IV has set back.
            if let Some((sbox, meshed)) = self.set {
                let set = cipher_ctrl(self.context, SET_SBOX, 0, sbox.as_ptr().cast());
                assert_eq!(set, 1, "{sbox:?}");
                let set = cipher_ctrl(self.context, KEY_MESH, c_int::from(meshed), null());
                assert_eq!(set, 1);
            }
            assert_eq!(cipher_update(self.context, to, &mut written, to, len), 1);
        }
        assert_eq!(written, len);
    }
}

impl Drop for Cipher {
    fn drop(&mut self) {
        // SAFETY: it is not used again.
        unsafe { (self.engine.libcrypto.cipher_free)(self.context) }
    }
}

/// IMIT with its key.
pub(crate) struct Imit {
    engine: &'static Engine,
    digest: *const c_void,
    pkey: Object,
}

impl Imit {
    /// The MAC of a message.
    pub(crate) fn mac(&mut self, data: &[u8]) -> [u8; 4] {
        let Engine { libcrypto, engine } = self.engine;
        let (mut mac, mut len) = ([0; 4], 4);
        // SAFETY: every object is given to functions that take it, and the lengths are
        // those of the buffers.
        unsafe {
            let context = (libcrypto.digest_new)();
            let none = null_mut();
            let set = (libcrypto.sign_init)(context, none, self.digest, *engine, self.pkey);
            assert_eq!(set, 1);
            let added = (libcrypto.sign_update)(context, data.as_ptr().cast(), data.len());
            assert_eq!(added, 1);
            let done = (libcrypto.sign_final)(context, mac.as_mut_ptr(), &mut len);
            assert_eq!((done, len), (1, 4));
            (libcrypto.digest_free)(context);
        }
        mac
    }
}

impl Drop for Imit {
    fn drop(&mut self) {
        // SAFETY: it is not used again.
        unsafe { (self.engine.libcrypto.pkey_free)(self.pkey) }
    }
}
