//! What OpenSSL asks of a cipher before there is a context.

use crate::error::Reason;
use crate::ffi::Param;
use crate::params::{self, Name, described};
use crate::split::Ledger;

/// A cipher's constants.
pub(crate) struct Spec {
    /// For statistics.
    pub(crate) name: &'static str,
    pub(crate) mode: Mode,
    /// Bytes of the key.
    pub(crate) key_len: usize,
    /// Bytes of the IV, unless another length is set.
    pub(crate) iv_len: usize,
    /// Bytes of a block; 1 where data need not come in blocks.
    pub(crate) block: usize,
    /// The place of the cipher among all ciphers.
    pub(crate) number: usize,
    pub(crate) ledger: Ledger,
}

/// Modes of ciphers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Ecb,
    Cbc,
    /// CBC with ciphertext stealing.
    CbcCts,
    Ctr,
    Gcm,
    Xts,
    ChaCha20Poly1305,
}

impl Mode {
    /// OpenSSL's number (evp.h, `EVP_CIPH_*_MODE`).
    fn number(self) -> u32 {
        match self {
            Mode::ChaCha20Poly1305 => 0,
            Mode::Ecb => 1,
            Mode::Cbc | Mode::CbcCts => 2,
            Mode::Ctr => 5,
            Mode::Gcm => 6,
            Mode::Xts => 0x10001,
        }
    }
}

pub(crate) static GETTABLE: [Param; 10] = described![
    Mode,
    KeyLength,
    IvLength,
    BlockSize,
    Aead,
    CustomIv,
    Cts,
    TlsMultiblock,
    HasRandomKey
];

impl Spec {
    /// Refuses a key of another length.
    pub(crate) fn fits(&self, key: &[u8]) -> Result<(), Reason> {
        match key.len() == self.key_len {
            true => Ok(()),
            false => Err(Reason::InvalidKeyLength),
        }
    }

    /// # Safety
    /// As [`params::each_asked`].
    pub(crate) unsafe fn answer(&self, params: *mut Param) -> Result<(), Reason> {
        let aead = matches!(self.mode, Mode::Gcm | Mode::ChaCha20Poly1305);
        let custom_iv = aead || self.mode == Mode::Xts;
        let steals = self.mode == Mode::CbcCts;
        // SAFETY: promised by the caller.
        unsafe {
            params::each_asked(params, |name, param| match name {
                Name::Mode => param.give_u32(self.mode.number()),
                Name::KeyLength => param.give_usize(self.key_len),
                Name::IvLength => param.give_usize(self.iv_len),
                Name::BlockSize => param.give_usize(self.block),
                Name::Aead => param.give_u32(aead.into()),
                Name::CustomIv => param.give_u32(custom_iv.into()),
                Name::Cts => param.give_u32(steals.into()),
                Name::TlsMultiblock | Name::HasRandomKey => param.give_u32(0),
                _ => Ok(()),
            })
        }
    }
}
