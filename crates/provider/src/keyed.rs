//! What contexts of the modes without a tag hold and do alike: a key that fits, and an IV of
//! one block or none.

use cipherlane_kernels::aes::AesKey;
use cipherlane_kernels::cbc;
use cipherlane_kernels::job::{CipherJob, Direction};
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
    /// `num`, which most modes only keep.
    number: u64,
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
            number: 0,
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

    /// Answers as a mode does that has no padding.
    pub(crate) fn get(&self, name: Name, param: &mut Param) -> Result<(), Reason> {
        match name {
            Name::KeyLength => param.give_number(self.spec.key_len as u64),
            Name::IvLength => param.give_number(self.spec.iv_len as u64),
            Name::Padding => param.give_number(1),
            Name::Number => param.give_number(self.number),
            Name::Iv => param.give_octets(&self.given_iv[..self.spec.iv_len]),
            Name::UpdatedIv => param.give_octets(&self.iv[..self.spec.iv_len]),
            _ => Ok(()),
        }
    }

    /// Takes what changes nothing in a mode that has no padding.
    pub(crate) fn set(&mut self, name: Name, param: &Param) -> Result<(), Reason> {
        let number = || param.number().ok_or(Reason::FailedToGetParameter);
        match name {
            Name::Padding => number().map(drop),
            Name::Number => {
                self.number = Some(number()?)
                    .filter(|&number| number < self.spec.block as u64)
                    .ok_or(Reason::FailedToGetParameter)?;
                Ok(())
            }
            _ => Ok(()),
        }
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
            Direction::Decrypt => {
                let mut jobs = [CipherJob {
                    key,
                    iv: *iv,
                    data: data.into(),
                }];
                cbc::decrypt(&mut jobs);
                *iv = jobs[0].iv;
            }
        }
        Ok(())
    }
}
