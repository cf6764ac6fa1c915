//! Keys as the library expands them.

use zeroize::{Zeroize, Zeroizing};

use super::ffi::{AUTH_HMAC_SHA_256, AUTH_HMAC_SHA_512, GcmContext, GcmKeyData};
use super::manager::LibIpsecMb;
use crate::foreign::Refused;

/// 0, 1, 2 for AES keys of 16, 24, 32 bytes.
fn size(key: &[u8]) -> Result<usize, Refused> {
    match key.len() {
        16 => Ok(0),
        24 => Ok(1),
        32 => Ok(2),
        _ => Err(Refused),
    }
}

/// An AES key schedule: 15 round keys.
#[repr(C, align(16))]
#[derive(Zeroize)]
pub(super) struct Schedule(pub(super) [u8; 240]);

/// An expanded AES key. Wiped when dropped.
pub(super) struct AesKey {
    pub(super) encrypt: Box<Schedule>,
    pub(super) decrypt: Box<Schedule>,
    pub(super) len: usize,
}

impl AesKey {
    pub(super) fn new(library: &LibIpsecMb, key: &[u8]) -> Result<Self, Refused> {
        let size = size(key)?;
        let mut expanded = AesKey {
            encrypt: Box::new(Schedule([0; 240])),
            decrypt: Box::new(Schedule([0; 240])),
            len: key.len(),
        };
        // SAFETY: a key of the length that the function takes, and room for two schedules.
        library.with(|manager| unsafe {
            manager.functions().keyexp[size](
                key.as_ptr(),
                expanded.encrypt.0.as_mut_ptr().cast(),
                expanded.decrypt.0.as_mut_ptr().cast(),
            );
        })?;
        Ok(expanded)
    }
}

impl Drop for AesKey {
    fn drop(&mut self) {
        self.encrypt.zeroize();
        self.decrypt.zeroize();
    }
}

/// What GCM makes of a key. Wiped when dropped.
pub(super) struct GcmKey {
    pub(super) data: Box<GcmKeyData>,
    pub(super) size: usize,
}

impl GcmKey {
    pub(super) fn new(library: &LibIpsecMb, key: &[u8]) -> Result<Self, Refused> {
        let size = size(key)?;
        let mut data = Box::new(GcmKeyData([0; 128]));
        // SAFETY: a key of the length that the function takes, and room for what it makes.
        library.with(|manager| unsafe {
            manager.functions().gcm_pre[size](key.as_ptr(), &mut *data);
        })?;
        Ok(GcmKey { data, size })
    }
}

impl Drop for GcmKey {
    fn drop(&mut self) {
        self.data.0.zeroize();
    }
}

/// Where GCM keeps the state of a message. Wiped when dropped.
pub(super) struct GcmScratch(pub(super) GcmContext);

impl GcmScratch {
    pub(super) fn new() -> Self {
        GcmScratch(GcmContext([0; 11]))
    }
}

impl Drop for GcmScratch {
    fn drop(&mut self) {
        self.0.0.zeroize();
    }
}

/// The hash of an HMAC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HmacHash {
    Sha256,
    Sha512,
}

impl HmacHash {
    pub(super) fn number(self) -> u32 {
        match self {
            HmacHash::Sha256 => AUTH_HMAC_SHA_256,
            HmacHash::Sha512 => AUTH_HMAC_SHA_512,
        }
    }

    /// Bytes of the digest; a block is twice or four times that.
    pub(super) fn digest(self) -> usize {
        match self {
            HmacHash::Sha256 => 32,
            HmacHash::Sha512 => 64,
        }
    }

    fn block(self) -> usize {
        match self {
            HmacHash::Sha256 => 64,
            HmacHash::Sha512 => 128,
        }
    }
}

/// An HMAC key: the hash's states after the inner and the outer pad. Wiped when dropped.
pub(super) struct HmacKey {
    pub(super) hash: HmacHash,
    pub(super) inner: Box<Zeroizing<[u8; 64]>>,
    pub(super) outer: Box<Zeroizing<[u8; 64]>>,
    /// The MAC of the empty message, which the library does not take.
    pub(super) empty: [u8; 64],
}

impl HmacKey {
    pub(super) fn new(library: &LibIpsecMb, hash: HmacHash, key: &[u8]) -> Result<Self, Refused> {
        library.with(|manager| {
            let functions = manager.functions();
            let (whole, one_block) = match hash {
                HmacHash::Sha256 => (functions.sha256, functions.sha256_one_block),
                HmacHash::Sha512 => (functions.sha512, functions.sha512_one_block),
            };
            let digest = |message: &[u8], out: &mut [u8; 64]| {
                // SAFETY: a message of the length given, and room for the longest digest.
                unsafe { whole(message.as_ptr(), message.len() as u64, out.as_mut_ptr()) }
            };
            let mut block = Zeroizing::new([0; 128]);
            if key.len() > hash.block() {
                let mut short = Zeroizing::new([0; 64]);
                digest(key, &mut short);
                block[..hash.digest()].copy_from_slice(&short[..hash.digest()]);
            } else {
                block[..key.len()].copy_from_slice(key);
            }
            let mut made = HmacKey {
                hash,
                inner: Box::new(Zeroizing::new([0; 64])),
                outer: Box::new(Zeroizing::new([0; 64])),
                empty: [0; 64],
            };
            let mut message = Zeroizing::new([0; 192]);
            let pads = [(0x36, &mut made.inner), (0x5c, &mut made.outer)];
            for (pad, state) in pads {
                block.iter_mut().for_each(|byte| *byte ^= pad);
                // SAFETY: one block, and room for the longest state.
                unsafe { one_block(block.as_ptr(), state.as_mut_ptr()) };
                // The digest of the pad alone, or of the other pad and the former.
                let (front, rest) = message.split_at_mut(hash.block());
                front.copy_from_slice(&block[..hash.block()]);
                rest[..64].copy_from_slice(&made.empty);
                let len = match pad {
                    0x36 => hash.block(),
                    _ => hash.block() + hash.digest(),
                };
                digest(&message[..len], &mut made.empty);
                block.iter_mut().for_each(|byte| *byte ^= pad);
            }
            made
        })
    }
}
