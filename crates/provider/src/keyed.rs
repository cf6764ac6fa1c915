//! What contexts of the modes without a tag hold and do alike: a key that fits, and an IV of
//! one block or none.

use std::ptr::null;

use cipherlane_kernels::aes::AesKey;
use cipherlane_kernels::cbc;
use cipherlane_kernels::job::Direction;
use inout::InOutBuf;

use crate::buffers::Piece;
use crate::error::Reason;
use crate::ffi::Param;
use crate::params::Name;
use crate::spec::Spec;
use crate::split::{self, Work};

/// Bytes of a block of AES.
pub(crate) const BLOCK: usize = 16;

/// A cipher, its key expanded to `K`, the direction of data, and the IV.
#[derive(Clone)]
pub(crate) struct Keyed<K> {
    pub(crate) spec: &'static Spec,
    pub(crate) direction: Direction,
    key: Option<K>,
    /// The IV as given, and as it is now.
    given_iv: [u8; BLOCK],
    pub(crate) iv: [u8; BLOCK],
    iv_set: bool,
    /// `padding`, which ECB and CBC alone obey.
    pub(crate) pad: bool,
    /// `num`, which most modes only keep.
    number: u32,
    /// 0, or the version of the TLS records that come to CBC.
    pub(crate) tls_version: u32,
    pub(crate) tls_mac_size: usize,
}

/// A key of AES alone.
pub(crate) fn expand(key: &[u8]) -> Result<AesKey, Reason> {
    AesKey::new(key).ok_or(Reason::InvalidKeyLength)
}

impl<K> Keyed<K> {
    pub(crate) fn new(spec: &'static Spec) -> Self {
        Keyed {
            spec,
            direction: Direction::Encrypt,
            key: None,
            given_iv: [0; BLOCK],
            iv: [0; BLOCK],
            iv_set: false,
            pad: true,
            number: 0,
            tls_version: 0,
            tls_mac_size: 0,
        }
    }

    /// Takes direction, IV and key, each of the latter where it is given.
    pub(crate) fn init(
        &mut self,
        direction: Direction,
        key: Option<&[u8]>,
        iv: Option<&[u8]>,
        expand: impl FnOnce(&[u8]) -> Result<K, Reason>,
    ) -> Result<(), Reason> {
        self.direction = direction;
        self.number = 0;
        if let Some(iv) = iv.filter(|_| self.spec.iv_len > 0) {
            self.given_iv = iv.try_into().map_err(|_| Reason::InvalidIvLength)?;
            self.iv = self.given_iv;
            self.iv_set = true;
        }
        if let Some(key) = key {
            self.spec.fits(key)?;
            self.key = Some(expand(key)?);
        }
        Ok(())
    }

    /// The IV is again what was given, if one was.
    pub(crate) fn restart_iv(&mut self) {
        if self.iv_set {
            self.iv = self.given_iv;
        }
    }

    pub(crate) fn key(&self) -> Result<&K, Reason> {
        self.key.as_ref().ok_or(Reason::NoKeySet)
    }

    /// The key, and the IV that changes with the data.
    pub(crate) fn key_and_iv(&mut self) -> Result<(&K, &mut [u8; BLOCK]), Reason> {
        let key = self.key.as_ref().ok_or(Reason::NoKeySet)?;
        Ok((key, &mut self.iv))
    }

    /// The key, and the IV that was given.
    pub(crate) fn key_and_given_iv(&self) -> Result<(&K, &[u8; BLOCK]), Reason> {
        let key = self.key()?;
        match self.iv_set {
            true => Ok((key, &self.given_iv)),
            false => Err(Reason::NoIvSet),
        }
    }

    /// Answers what is alike in all modes.
    pub(crate) fn get(&self, name: Name, param: &mut Param) -> Result<(), Reason> {
        match name {
            Name::KeyLength => param.give_usize(self.spec.key_len),
            Name::IvLength => param.give_usize(self.spec.iv_len),
            Name::Padding => param.give_u32(self.pad.into()),
            Name::Number => param.give_u32(self.number),
            Name::Iv => param.give_octets_or_pointer(&self.given_iv[..self.spec.iv_len]),
            Name::TlsMac => param.give_pointer(null(), self.tls_mac_size),
            Name::UpdatedIv => param.give_octets_or_pointer(&self.iv[..self.spec.iv_len]),
            _ => Ok(()),
        }
    }

    /// Takes what is alike in all modes.
    pub(crate) fn set(&mut self, name: Name, param: &Param) -> Result<(), Reason> {
        match name {
            Name::Padding => self.pad = param.as_u32()? != 0,
            Name::Number => {
                self.number = Some(param.as_u32()?)
                    .filter(|&number| (number as usize) < self.spec.block)
                    .ok_or(Reason::FailedToGetParameter)?;
            }
            // It means something to modes that are not offered.
            Name::UseBits => drop(param.as_u32()?),
            Name::TlsVersion => self.tls_version = param.as_u32()?,
            Name::TlsMacSize => self.tls_mac_size = param.as_usize()?,
            _ => {}
        }
        Ok(())
    }
}

impl Keyed<AesKey> {
    /// Whole blocks in CBC.
    #[inline(always)]
    pub(crate) fn cbc<'d>(&mut self, data: impl Into<Piece<'d>>) -> Result<(), Reason> {
        let data = data.into();
        let (spec, direction) = (self.spec, self.direction);
        let (key, iv) = self.key_and_iv()?;
        match direction {
            Direction::Encrypt => cbc::encrypt_one(key, iv, data.into()),
            Direction::Decrypt if split::takes(data.len()) => {
                let data: InOutBuf<'_, '_, u8> = data.into();
                let last = data.get_in().last_chunk().copied().unwrap_or(*iv);
                split::crypt(spec, direction, &Work::Cbc(key), iv, data)?;
                *iv = last;
            }
            Direction::Decrypt => cbc::decrypt_one(key, iv, data.into()),
        }
        Ok(())
    }
}
