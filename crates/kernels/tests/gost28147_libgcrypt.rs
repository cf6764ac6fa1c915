//! GOST 28147-89 against libgcrypt, where that implements the mode: ECB, CFB, CFB with
//! key meshing, and IMIT, with every S-box that it knows.
#![cfg(target_os = "linux")]

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::io::Write;
use std::ptr::{null, null_mut};

use cipherlane_kernels::gost28147::{Key, Sbox, cfb, ecb, imit};
use cipherlane_kernels::job::{CipherJob, MacJob};
use inout::InOutBuf;
use libloading::Library;

type Handle = *mut c_void;
type Error = c_uint;

/// A mode of ours.
type Mode = fn(&mut [CipherJob<'_, Key>]);

const CIPHER: c_int = 315;
const CIPHER_MESHED: c_int = 317;
const ECB: c_int = 1;
const CFB: c_int = 2;
const IMIT: c_int = 1;
const SET_SBOX: c_int = 73;

/// The functions of libgcrypt that the comparison needs.
struct Gcrypt {
    cipher_open: unsafe extern "C" fn(*mut Handle, c_int, c_int, c_uint) -> Error,
    cipher_ctl: unsafe extern "C" fn(Handle, c_int, *const c_void, usize) -> Error,
    cipher_setkey: unsafe extern "C" fn(Handle, *const c_void, usize) -> Error,
    cipher_setiv: unsafe extern "C" fn(Handle, *const c_void, usize) -> Error,
    cipher_encrypt: unsafe extern "C" fn(Handle, *mut c_void, usize, *const c_void, usize) -> Error,
    cipher_close: unsafe extern "C" fn(Handle),
    mac_open: unsafe extern "C" fn(*mut Handle, c_int, c_uint, *mut c_void) -> Error,
    mac_setkey: unsafe extern "C" fn(Handle, *const c_void, usize) -> Error,
    mac_write: unsafe extern "C" fn(Handle, *const c_void, usize) -> Error,
    mac_read: unsafe extern "C" fn(Handle, *mut c_void, *mut usize) -> Error,
    mac_close: unsafe extern "C" fn(Handle),
    _library: Library,
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
                mac_write: function!(b"gcry_mac_write"),
                mac_read: function!(b"gcry_mac_read"),
                mac_close: function!(b"gcry_mac_close"),
                _library: library,
            })
        }
    }

    fn encrypt(
        &self,
        (cipher, mode): (c_int, c_int),
        sbox: &CStr,
        key: &[u8; 32],
        iv: &[u8],
        data: &[u8],
    ) -> Vec<u8> {
        let mut data = data.to_vec();
        let mut handle = null_mut();
        // SAFETY: lengths are those of the buffers, and the handle is closed once.
        unsafe {
            assert_eq!((self.cipher_open)(&mut handle, cipher, mode, 0), 0);
            assert_eq!(
                (self.cipher_ctl)(handle, SET_SBOX, sbox.as_ptr().cast(), 0),
                0
            );
            assert_eq!((self.cipher_setkey)(handle, key.as_ptr().cast(), 32), 0);
            if mode == CFB {
                assert_eq!((self.cipher_setiv)(handle, iv.as_ptr().cast(), iv.len()), 0);
            }
            let (to, len) = (data.as_mut_ptr().cast(), data.len());
            assert_eq!((self.cipher_encrypt)(handle, to, len, null(), 0), 0);
            (self.cipher_close)(handle);
        }
        data
    }

    fn imit(&self, key: &[u8; 32], data: &[u8]) -> [u8; 4] {
        let (mut mac, mut len) = ([0; 4], 4);
        let mut handle = null_mut();
        // SAFETY: lengths are those of the buffers, and the handle is closed once.
        unsafe {
            assert_eq!((self.mac_open)(&mut handle, IMIT, 0, null_mut()), 0);
            assert_eq!((self.mac_setkey)(handle, key.as_ptr().cast(), 32), 0);
            assert_eq!(
                (self.mac_write)(handle, data.as_ptr().cast(), data.len()),
                0
            );
            assert_eq!(
                (self.mac_read)(handle, mac.as_mut_ptr().cast(), &mut len),
                0
            );
            (self.mac_close)(handle);
        }
        mac
    }
}

fn run(jobs: fn(&mut [CipherJob<'_, Key>]), key: &Key, iv: [u8; 16], data: &[u8]) -> Vec<u8> {
    let mut data = data.to_vec();
    jobs(&mut [CipherJob {
        key,
        iv,
        data: InOutBuf::from(&mut data[..]),
    }]);
    data
}

#[test]
fn libgcrypt_gives_the_same() {
    let Some(gcrypt) = Gcrypt::load() else {
        // Straight to the stream: what a test prints is not shown if it passes.
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED: libgcrypt is not installed (scripts/needs test)"
        );
        return;
    };
    let sets = [
        (Sbox::crypto_pro_a(), c"1.2.643.2.2.31.1"),
        (Sbox::crypto_pro_b(), c"1.2.643.2.2.31.2"),
        (Sbox::crypto_pro_c(), c"1.2.643.2.2.31.3"),
        (Sbox::crypto_pro_d(), c"1.2.643.2.2.31.4"),
        (Sbox::param_z(), c"1.2.643.7.1.2.5.1.1"),
    ];
    for (n, (sbox, oid)) in sets.iter().enumerate() {
        for len in [0, 1, 7, 8, 9, 16, 100, 256, 1024, 1025, 1400, 2048, 4099] {
            let byte = |i: usize| (((i + n) * (2 * len + 167)) >> 3) as u8;
            let key = std::array::from_fn(|i| byte(7 * i + len));
            let expanded = Key::new(&key, sbox).expect("32 bytes");
            let iv: [u8; 16] = std::array::from_fn(|i| byte(i + 99));
            let data: Vec<u8> = (0..len).map(byte).collect();

            let whole = &data[..len / 8 * 8];
            assert_eq!(
                run(ecb::encrypt, &expanded, iv, whole),
                gcrypt.encrypt((CIPHER, ECB), oid, &key, &[], whole),
                "ECB, {len} bytes"
            );
            let modes: [(_, Mode); 2] =
                [(CIPHER, cfb::encrypt), (CIPHER_MESHED, cfb::encrypt_meshed)];
            for (cipher, mode) in modes {
                assert_eq!(
                    run(mode, &expanded, iv, &data),
                    gcrypt.encrypt((cipher, CFB), oid, &key, &iv[..8], &data),
                    "CFB as cipher {cipher}, {len} bytes"
                );
            }
            // It computes IMIT with this set only, and without key meshing.
            if n == 0 && len > 0 {
                let mut jobs = [MacJob {
                    key: &expanded,
                    head: &[],
                    data: &data,
                    suffix: &[],
                    mac: [0xee; 64],
                }];
                imit::mac(&mut jobs);
                assert_eq!(
                    jobs[0].mac[..4],
                    gcrypt.imit(&key, &data),
                    "IMIT, {len} bytes"
                );
            }
        }
    }
}
