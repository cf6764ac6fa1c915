//! The interface of `/dev/crypto`, as the header `<crypto/cryptodev.h>` of cryptodev-linux 1.14
//! lays it out: numbers of requests, structures, names of algorithms.
//!
//! Pointers are numbers here: the driver makes them of its own memory, and whoever serves the
//! device (`cipherlane device cuse`) gets those of another process, which mean nothing to it.
//! The structures have the layout of the C compiler for this machine; those of 32-bit programs on
//! a 64-bit kernel are others. A branch of cryptodev-linux with compression has other structures
//! for some of the same numbers: it is not meant here.

use rustix::ioctl::Opcode;
use rustix::ioctl::opcode::{read, read_write, write};

/// Where the device is, unless the user says otherwise.
pub const DEVICE: &str = "/dev/crypto";

/// Opens a session.
pub const CIOCGSESSION: Opcode = read_write::<SessionOp>(b'c', 102);
/// Closes the session whose number it is given.
pub const CIOCFSESSION: Opcode = write::<u32>(b'c', 103);
/// Runs a cipher, a MAC, or both.
pub const CIOCCRYPT: Opcode = read_write::<CryptOp>(b'c', 104);
/// Tells which operations of public keys there are: none in Linux.
pub const CIOCASYMFEAT: Opcode = read::<u32>(b'c', 106);
/// Tells which implementations a session uses.
pub const CIOCGSESSINFO: Opcode = read_write::<SessionInfo>(b'c', 107);
/// Runs an AEAD, or a cipher and a MAC as a protocol wants them.
pub const CIOCAUTHCRYPT: Opcode = read_write::<CryptAuthOp>(b'c', 109);

/// Operation of a request: encrypts.
pub const COP_ENCRYPT: u16 = 0;
/// Operation of a request: decrypts.
pub const COP_DECRYPT: u16 = 1;

/// A part of a message for a MAC, others follow.
pub const COP_FLAG_UPDATE: u16 = 1 << 0;
/// The last part of a message for a MAC.
pub const COP_FLAG_FINAL: u16 = 1 << 1;
/// The IV with which another request would go on is written to where the IV was.
pub const COP_FLAG_WRITE_IV: u16 = 1 << 2;
/// The kernel shall copy the payload.
pub const COP_FLAG_NO_ZC: u16 = 1 << 3;
/// MAC, padding and encryption as in TLS.
pub const COP_FLAG_AEAD_TLS_TYPE: u16 = 1 << 4;
/// Encryption, then a MAC over a region that has the ciphertext within, as in SRTP.
pub const COP_FLAG_AEAD_SRTP_TYPE: u16 = 1 << 5;
/// Begins a message for a MAC anew.
pub const COP_FLAG_RESET: u16 = 1 << 6;

/// Of a [`SessionInfo`]: programs can have this implementation by the kernel only, as an
/// accelerator. Programs that look for accelerators leave sessions without it alone.
pub const SIOP_FLAG_KERNEL_DRIVER_ONLY: u32 = 1;

/// Bytes of a cipher's key at most.
pub const CRYPTO_CIPHER_MAX_KEY_LEN: usize = 64;
/// Bytes of a MAC's key at most.
pub const CRYPTO_HMAC_MAX_KEY_LEN: usize = 512;
/// Bytes of additional data of an AEAD at most: a page.
pub const MAX_AAD: usize = 4096;

/// `CRYPTO_AES_CTR`.
pub const CRYPTO_AES_CTR: u32 = 21;
/// `CRYPTO_AES_GCM`.
pub const CRYPTO_AES_GCM: u32 = 50;

/// Ciphers and AEADs by their numbers, with their names in the Linux CryptoAPI.
pub const CIPHERS: [(u32, &str); 5] = [
    (11, "cbc(aes)"),
    (CRYPTO_AES_CTR, "ctr(aes)"),
    (22, "xts(aes)"),
    (23, "ecb(aes)"),
    (CRYPTO_AES_GCM, "gcm(aes)"),
];

/// MACs by their numbers, with their names in the Linux CryptoAPI.
pub const MACS: [(u32, &str); 2] = [(18, "hmac(sha256)"), (20, "hmac(sha512)")];

/// A field of a structure in the memory of a program.
trait Field: Sized {
    fn of(bytes: &[u8]) -> Option<Self>;
    fn put(&self, bytes: &mut [u8]);
}

macro_rules! numbers {
    ($($type:ty)*) => {$(
        impl Field for $type {
            fn of(bytes: &[u8]) -> Option<Self> {
                bytes.first_chunk().map(|bytes| <$type>::from_ne_bytes(*bytes))
            }

            fn put(&self, bytes: &mut [u8]) {
                bytes[..size_of::<Self>()].copy_from_slice(&self.to_ne_bytes());
            }
        }
    )*};
}

numbers!(u16 u32 usize);

/// The name of an algorithm or of its implementation: a string that ends with a zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Name(pub [u8; 64]);

impl Default for Name {
    fn default() -> Self {
        Name([0; 64])
    }
}

impl Name {
    /// Of a text, cut where there is no room for it.
    pub fn new(text: &str) -> Name {
        let mut name = Name::default();
        let len = text.len().min(name.0.len() - 1);
        name.0[..len].copy_from_slice(&text.as_bytes()[..len]);
        name
    }

    /// What stands before the zero.
    pub fn text(&self) -> String {
        let text = self.0.split(|byte| *byte == 0).next().unwrap_or_default();
        String::from_utf8_lossy(text).into_owned()
    }
}

impl Field for Name {
    fn of(bytes: &[u8]) -> Option<Self> {
        bytes.first_chunk().map(|bytes| Name(*bytes))
    }

    fn put(&self, bytes: &mut [u8]) {
        bytes[..64].copy_from_slice(&self.0);
    }
}

macro_rules! structures {
    ($($(#[$about:meta])* $name:ident {
        $($(#[$field_about:meta])* $field:ident: $type:ty,)*
    })*) => {$(
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[repr(C)]
        pub struct $name {
            $($(#[$field_about])* pub $field: $type,)*
        }

        impl $name {
            /// Bytes of the structure.
            pub const SIZE: usize = size_of::<Self>();

            /// Names, offsets and sizes of the fields.
            pub const FIELDS: &[(&str, usize, usize)] = &[$((
                stringify!($field),
                std::mem::offset_of!($name, $field),
                size_of::<$type>(),
            )),*];

            /// Reads it as it stands in the memory of a program; `None`: there are too few bytes.
            pub fn read(bytes: &[u8]) -> Option<Self> {
                let bytes = bytes.get(..Self::SIZE)?;
                Some($name {
                    $($field: Field::of(&bytes[std::mem::offset_of!($name, $field)..])?,)*
                })
            }

            /// As it stands in the memory of a program. What lies between fields is zero.
            pub fn write(&self) -> [u8; Self::SIZE] {
                let mut bytes = [0; Self::SIZE];
                $(self.$field.put(&mut bytes[std::mem::offset_of!($name, $field)..]);)*
                bytes
            }
        }
    )*};
}

structures! {
    /// `struct session_op`, for [`CIOCGSESSION`].
    SessionOp {
        /// Number of the cipher, or 0.
        cipher: u32,
        /// Number of the MAC, or 0.
        mac: u32,
        /// Bytes of the cipher's key.
        keylen: u32,
        /// The cipher's key.
        key: usize,
        /// Bytes of the MAC's key.
        mackeylen: u32,
        /// The MAC's key.
        mackey: usize,
        /// Number of the session, which the kernel writes.
        ses: u32,
    }

    /// `struct session_info_op`, for [`CIOCGSESSINFO`].
    SessionInfo {
        /// Number of the session.
        ses: u32,
        /// The cipher's name.
        cipher_name: Name,
        /// The name of the cipher's implementation.
        cipher_driver: Name,
        /// The MAC's name.
        hash_name: Name,
        /// The name of the MAC's implementation.
        hash_driver: Name,
        /// Addresses with these bits make the kernel copy.
        alignmask: u16,
        /// [`SIOP_FLAG_KERNEL_DRIVER_ONLY`].
        flags: u32,
    }

    /// `struct crypt_op`, for [`CIOCCRYPT`].
    CryptOp {
        /// Number of the session.
        ses: u32,
        /// [`COP_ENCRYPT`] or [`COP_DECRYPT`].
        op: u16,
        /// `COP_FLAG_*`.
        flags: u16,
        /// Bytes of the input.
        len: u32,
        /// The input.
        src: usize,
        /// Where the output goes.
        dst: usize,
        /// Where the MAC goes.
        mac: usize,
        /// The IV.
        iv: usize,
    }

    /// `struct crypt_auth_op`, for [`CIOCAUTHCRYPT`].
    CryptAuthOp {
        /// Number of the session.
        ses: u32,
        /// [`COP_ENCRYPT`] or [`COP_DECRYPT`].
        op: u16,
        /// `COP_FLAG_*`.
        flags: u16,
        /// Bytes of the input, with the tag when an AEAD decrypts; afterwards those of the output.
        len: u32,
        /// Bytes of the additional data.
        auth_len: u32,
        /// The additional data; in SRTP's way all that the MAC covers.
        auth_src: usize,
        /// The input.
        src: usize,
        /// Where the output goes, with the tag behind when an AEAD encrypts.
        dst: usize,
        /// The tag in SRTP's way.
        tag: usize,
        /// Bytes of the tag; 0: the longest.
        tag_len: u32,
        /// The IV.
        iv: usize,
        /// Bytes of the IV.
        iv_len: u32,
    }
}

/// The number of an algorithm in one of the lists.
pub fn number(list: &[(u32, &'static str)], name: &str) -> Option<u32> {
    let found = list.iter().find(|(_, known)| *known == name);
    found.map(|(number, _)| *number)
}

/// The algorithm of a number in one of the lists.
pub fn name(list: &[(u32, &'static str)], number: u32) -> Option<&'static str> {
    let found = list.iter().find(|(known, _)| *known == number);
    found.map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_pointer_width = "64")]
    #[test]
    fn sizes_and_numbers_are_those_of_a_64_bit_machine() {
        let sizes = [
            SessionOp::SIZE,
            SessionInfo::SIZE,
            CryptOp::SIZE,
            CryptAuthOp::SIZE,
        ];
        assert_eq!(sizes, [48, 268, 48, 72]);
        #[cfg(target_arch = "x86_64")]
        assert_eq!(
            [CIOCGSESSION, CIOCFSESSION, CIOCCRYPT, CIOCAUTHCRYPT],
            [0xc030_6366, 0x4004_6367, 0xc030_6368, 0xc048_636d]
        );
    }

    #[test]
    fn a_structure_is_read_as_it_was_written() {
        let operation = CryptAuthOp {
            ses: 1,
            op: 2,
            flags: 3,
            len: 4,
            auth_len: 5,
            auth_src: 6,
            src: usize::MAX,
            dst: 8,
            tag: 9,
            tag_len: 10,
            iv: 11,
            iv_len: 12,
        };
        let bytes = operation.write();
        assert_eq!(CryptAuthOp::read(&bytes), Some(operation));
        assert_eq!(CryptAuthOp::read(&bytes[1..]), None);
        let name = Name::new(&"x".repeat(100));
        assert_eq!(name.text(), "x".repeat(63));
    }
}
