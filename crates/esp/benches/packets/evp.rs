//! The same packets through OpenSSL's EVP, as a careful caller does it: the context and its
//! key schedule are made once, each packet sets its IV.

use std::ffi::{c_int, c_uchar, c_void};
use std::ptr;

use cipherlane_esp::Packet;
use libloading::Library;

type New = unsafe extern "C" fn() -> *mut c_void;
type Cipher = unsafe extern "C" fn() -> *const c_void;
type Init = unsafe extern "C" fn(
    *mut c_void,
    *const c_void,
    *mut c_void,
    *const c_uchar,
    *const c_uchar,
) -> c_int;
type Update =
    unsafe extern "C" fn(*mut c_void, *mut c_uchar, *mut c_int, *const c_uchar, c_int) -> c_int;
type Final = unsafe extern "C" fn(*mut c_void, *mut c_uchar, *mut c_int) -> c_int;
type Control = unsafe extern "C" fn(*mut c_void, c_int, c_int, *mut c_void) -> c_int;
type Free = unsafe extern "C" fn(*mut c_void);

const GET_TAG: c_int = 0x10;
const SET_TAG: c_int = 0x11;
const HEAD: usize = 16;
const ICV: usize = 16;

/// One direction.
struct Way {
    context: *mut c_void,
    init: Init,
    update: Update,
    finish: Final,
}

/// AES-128-GCM in ESP without ESN.
pub(crate) struct Aes128Gcm {
    seal: Way,
    open: Way,
    control: Control,
    free: Free,
    salt: [u8; 4],
    sequence: u32,
    _library: Library,
}

impl Aes128Gcm {
    /// `None` where libcrypto 3 is absent.
    pub(crate) fn new(key: &[u8; 16], salt: &[u8; 4]) -> Option<Self> {
        // SAFETY: libcrypto's initialisers may run at any time; the types are those of its
        // headers; the key is 16 bytes as the cipher wants it.
        unsafe {
            let library = Library::new("libcrypto.so.3").ok()?;
            let new = *library.get::<New>(b"EVP_CIPHER_CTX_new\0").ok()?;
            let cipher = *library.get::<Cipher>(b"EVP_aes_128_gcm\0").ok()?;
            let way = |init: &[u8], update: &[u8], finish: &[u8]| {
                let init = *library.get::<Init>(init).ok()?;
                let context = new();
                let made = init(
                    context,
                    cipher(),
                    ptr::null_mut(),
                    key.as_ptr(),
                    ptr::null(),
                );
                assert_eq!(made, 1, "OpenSSL takes the key");
                Some(Way {
                    context,
                    init,
                    update: *library.get::<Update>(update).ok()?,
                    finish: *library.get::<Final>(finish).ok()?,
                })
            };
            Some(Aes128Gcm {
                seal: way(
                    b"EVP_EncryptInit_ex\0",
                    b"EVP_EncryptUpdate\0",
                    b"EVP_EncryptFinal_ex\0",
                )?,
                open: way(
                    b"EVP_DecryptInit_ex\0",
                    b"EVP_DecryptUpdate\0",
                    b"EVP_DecryptFinal_ex\0",
                )?,
                control: *library.get::<Control>(b"EVP_CIPHER_CTX_ctrl\0").ok()?,
                free: *library.get::<Free>(b"EVP_CIPHER_CTX_free\0").ok()?,
                salt: *salt,
                sequence: 0,
                _library: library,
            })
        }
    }

    fn nonce(&self, iv: [u8; 8]) -> [u8; 12] {
        let mut nonce = [0; 12];
        nonce[..4].copy_from_slice(&self.salt);
        nonce[4..].copy_from_slice(&iv);
        nonce
    }

    pub(crate) fn seal_one(&mut self, packet: &mut Packet<'_>) {
        self.sequence += 1;
        let payload = packet.range();
        let pad = (payload.len() + 2).wrapping_neg() & 3;
        let end = payload.end + pad + 2;
        for (i, byte) in packet.buffer_mut()[payload.end..end - 2]
            .iter_mut()
            .enumerate()
        {
            *byte = i as u8 + 1;
        }
        packet.buffer_mut()[end - 2..end].copy_from_slice(&[pad as u8, 4]);
        packet.set_range(payload.start - HEAD..end + ICV);
        let (head, rest) = packet.content_mut().split_at_mut(HEAD);
        let (data, icv) = rest.split_at_mut(rest.len() - ICV);
        head[..4].copy_from_slice(&0x1234u32.to_be_bytes());
        head[4..8].copy_from_slice(&self.sequence.to_be_bytes());
        head[8..].copy_from_slice(&u64::from(self.sequence).to_be_bytes());
        let nonce = self.nonce(u64::from(self.sequence).to_be_bytes());
        self.seal.run(&nonce, &head[..8], data);
        // SAFETY: 16 bytes are what GCM's tag has.
        let done = unsafe {
            let done = self.seal.finish(icv);
            done && (self.control)(self.seal.context, GET_TAG, 16, icv.as_mut_ptr().cast()) == 1
        };
        assert!(done, "OpenSSL seals");
    }

    pub(crate) fn open_one(&mut self, packet: &mut Packet<'_>) {
        let sealed = packet.range();
        let (head, rest) = packet.content_mut().split_at_mut(HEAD);
        let (data, icv) = rest.split_at_mut(rest.len() - ICV);
        let nonce = self.nonce(head[8..].try_into().expect("8 bytes"));
        self.open.run(&nonce, &head[..8], data);
        let pad = usize::from(data[data.len() - 2]);
        // SAFETY: 16 bytes are what GCM's tag has.
        let done = unsafe {
            (self.control)(self.open.context, SET_TAG, 16, icv.as_mut_ptr().cast()) == 1
                && self.open.finish(icv)
        };
        assert!(done, "OpenSSL opens");
        packet.set_range(sealed.start + HEAD..sealed.end - ICV - 2 - pad);
    }
}

impl Way {
    /// Sets the nonce, authenticates the header, and works on the data in place.
    fn run(&self, nonce: &[u8; 12], aad: &[u8], data: &mut [u8]) {
        let mut len = 0;
        let data_len = data.len() as c_int;
        // SAFETY: the context is alive and has a key; lengths are those of the slices; in and
        // out are the same region, as EVP allows.
        let done = unsafe {
            (self.init)(
                self.context,
                ptr::null(),
                ptr::null_mut(),
                ptr::null(),
                nonce.as_ptr(),
            ) == 1
                && (self.update)(
                    self.context,
                    ptr::null_mut(),
                    &raw mut len,
                    aad.as_ptr(),
                    aad.len() as c_int,
                ) == 1
                && (self.update)(
                    self.context,
                    data.as_mut_ptr(),
                    &raw mut len,
                    data.as_ptr(),
                    data_len,
                ) == 1
        };
        assert!(done && len == data_len);
    }

    /// # Safety
    /// `room` is at least a block, where an EVP cipher may write.
    unsafe fn finish(&self, room: &mut [u8]) -> bool {
        let mut len = 0;
        // SAFETY: the context is alive; GCM writes nothing here.
        unsafe { (self.finish)(self.context, room.as_mut_ptr(), &raw mut len) == 1 }
    }
}

impl Drop for Aes128Gcm {
    fn drop(&mut self) {
        for way in [&self.seal, &self.open] {
            // SAFETY: made by EVP_CIPHER_CTX_new, freed once.
            unsafe { (self.free)(way.context) };
        }
    }
}
