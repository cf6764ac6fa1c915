//! What the contexts of all modes without a tag have in common: a key of the right length, and an IV
//! of one block or none.

use std::ptr::null;

use cipherlane_kernels::aes::AesKey;
use cipherlane_kernels::cbc;
use cipherlane_kernels::job::Direction;
use inout::InOutBuf;

use crate::buffers::{Piece, exactly};
use crate::error::Reason;
use crate::ffi::Param;
use crate::params::Name;
use crate::spec::Spec;
use crate::split::{self, Work};

/// Bytes of a block of AES.
pub(crate) const BLOCK: usize = 16;

/// A cipher with its expanded key `K`, its direction, and its IV.
// The key has its place from the beginning: to expand one elsewhere and move it takes longer.
#[derive(Clone)]
pub(crate) struct Keyed<K> {
    pub(crate) spec: &'static Spec,
    pub(crate) tls_mac_size: usize,
    /// The IV as the program gave it, and the IV for the next block.
    given_iv: [u8; BLOCK],
    pub(crate) iv: [u8; BLOCK],
    /// The parameter `num`, which most modes keep and do not use.
    number: u32,
    /// The version of the TLS records that CBC is given; 0 where it is given no records.
    pub(crate) tls_version: u32,
    pub(crate) direction: Direction,
    /// The parameter `padding`, which only ECB and CBC obey.
    pub(crate) pad: bool,
    iv_set: bool,
    key_set: bool,
    key: K,
}

/// A key that has its place, if it is there.
#[inline(always)]
pub(crate) fn known<K>(is_set: bool, key: &K) -> Result<&K, Reason> {
    match is_set {
        true => Ok(key),
        false => Err(Reason::NoKeySet),
    }
}

/// Expands a single key of AES.
pub(crate) fn expand(place: &mut AesKey, key: &[u8]) -> Result<(), Reason> {
    place.rekey(key).ok_or(Reason::InvalidKeyLength)
}

impl<K> Keyed<K> {
    #[inline(always)]
    pub(crate) fn new(spec: &'static Spec, none: K) -> Self {
        Keyed {
            spec,
            tls_mac_size: 0,
            given_iv: [0; BLOCK],
            iv: [0; BLOCK],
            number: 0,
            tls_version: 0,
            direction: Direction::Encrypt,
            pad: true,
            iv_set: false,
            key_set: false,
            key: none,
        }
    }

    /// Sets the direction, and the IV and the key where they are given.
    pub(crate) fn init(
        &mut self,
        direction: Direction,
        key: Option<&[u8]>,
        iv: Option<&[u8]>,
        expand: impl FnOnce(&mut K, &[u8]) -> Result<(), Reason>,
    ) -> Result<(), Reason> {
        self.direction = direction;
        self.number = 0;
        if let Some(iv) = iv.filter(|_| self.spec.iv_len > 0) {
            let iv = exactly(iv).ok_or(Reason::InvalidIvLength)?;
            (self.given_iv, self.iv) = (*iv, *iv);
            self.iv_set = true;
        }
        if let Some(key) = key {
            self.spec.fits(key)?;
            expand(&mut self.key, key)?;
            self.key_set = true;
        }
        Ok(())
    }

    /// Goes back to the IV that the program gave, if it gave one.
    pub(crate) fn restart_iv(&mut self) {
        if self.iv_set {
            self.iv = self.given_iv;
        }
    }

    pub(crate) fn key(&self) -> Result<&K, Reason> {
        known(self.key_set, &self.key)
    }

    /// The key, and the IV for the next block.
    pub(crate) fn key_and_iv(&mut self) -> Result<(&K, &mut [u8; BLOCK]), Reason> {
        Ok((known(self.key_set, &self.key)?, &mut self.iv))
    }

    /// The key, and the IV that the program gave.
    pub(crate) fn key_and_given_iv(&self) -> Result<(&K, &[u8; BLOCK]), Reason> {
        let key = self.key()?;
        match self.iv_set {
            true => Ok((key, &self.given_iv)),
            false => Err(Reason::NoIvSet),
        }
    }

    /// Answers the parameters that all modes have.
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

    /// Sets the parameters that all modes have.
    pub(crate) fn set(&mut self, name: Name, param: &Param) -> Result<(), Reason> {
        match name {
            Name::Padding => self.pad = param.as_u32()? != 0,
            Name::Number => {
                self.number = Some(param.as_u32()?)
                    .filter(|&number| (number as usize) < self.spec.block)
                    .ok_or(Reason::FailedToGetParameter)?;
            }
            // Only modes that are not offered use it.
            Name::UseBits => drop(param.as_u32()?),
            Name::TlsVersion => self.tls_version = param.as_u32()?,
            Name::TlsMacSize => self.tls_mac_size = param.as_usize()?,
            _ => {}
        }
        Ok(())
    }
}

impl Keyed<AesKey> {
    /// Does whole blocks in CBC.
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
