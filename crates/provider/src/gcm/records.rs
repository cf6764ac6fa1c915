//! Records of TLS 1.2 (RFC 5288) in one call, and IVs that end with a counter. Programs that speak
//! TLS or SSH give the first IV, and the context counts on from it.

use cipherlane_kernels::gcm::{self, GcmState};
use cipherlane_kernels::is_same;
use cipherlane_kernels::job::{AeadJob, Direction};
use inout::InOutBuf;
use zeroize::Zeroize;

use super::{Gcm, Stage};
use crate::aead::{self, TAG, TLS_AAD};
use crate::buffers::Buffers;
use crate::error::Reason;
use crate::keyed::known;

/// The part of the IV that a record of TLS 1.2 carries.
const EXPLICIT: usize = 8;
/// The fewest bytes that the IVs of a connection's records have in common.
const FIXED: usize = 4;

impl Gcm {
    /// Does a record of TLS 1.2 in place: `explicit IV | data | tag`.
    pub(super) fn tls_record(
        &mut self,
        aad: &[u8; TLS_AAD],
        mut buffers: Buffers<'_>,
    ) -> Result<usize, Reason> {
        // Whether the record is good or not, no message goes on under its IV.
        self.stage = Stage::Ended;
        let len = buffers.len();
        if !buffers.is_in_place() || len < EXPLICIT + TAG {
            return Err(Reason::CipherOperationFailed);
        }
        buffers.need_room(len)?;
        let record = &mut buffers.output()[..len];
        let (explicit, rest) = record.split_at_mut(EXPLICIT);
        match self.direction {
            Direction::Encrypt => self.generated(explicit)?,
            Direction::Decrypt => self.invert(explicit)?,
        }
        self.stage = Stage::Ended;
        let (data, tag) = rest.split_at_mut(len - EXPLICIT - TAG);
        let found = self.whole(aad, (&mut *data).into())?;
        match self.direction {
            Direction::Encrypt => {
                tag.copy_from_slice(&found);
                self.count_on();
                Ok(len)
            }
            Direction::Decrypt if is_same(&found, tag) => Ok(data.len()),
            Direction::Decrypt => {
                data.zeroize();
                Err(Reason::BadDecrypt)
            }
        }
    }

    /// Does a whole message under the present IV, and returns its tag.
    fn whole(&mut self, aad: &[u8], data: InOutBuf<'_, '_, u8>) -> Result<[u8; TAG], Reason> {
        let key = known(self.key_set, self.key.complete())?;
        let nonce = &self.iv[..self.iv_len];
        let Ok(nonce) = <[u8; 12]>::try_from(nonce) else {
            let mut state = GcmState::new(self.direction, key, nonce);
            state.aad(key, aad);
            state.update(key, data);
            return Ok(state.finish(key));
        };
        let mut iv = [0; 16];
        iv[..12].copy_from_slice(&nonce);
        let mut tag = [0; TAG];
        let mut jobs = [AeadJob {
            key,
            iv,
            aad,
            data,
            tag: &mut tag,
        }];
        match self.direction {
            Direction::Encrypt => gcm::seal(&mut jobs),
            Direction::Decrypt => gcm::open(&mut jobs),
        }
        Ok(tag)
    }

    /// The end of the IV for the next record.
    pub(super) fn generated(&self, explicit: &mut [u8]) -> Result<(), Reason> {
        let fits = (1..=self.iv_len).contains(&explicit.len()) && self.iv_len >= EXPLICIT;
        if !self.counts || !self.key_set || !fits {
            return Err(Reason::NoIvSet);
        }
        // Two messages under one IV would give away each other's data, and the hash key.
        if self.used && self.direction == Direction::Encrypt {
            return Err(Reason::IvWasUsed);
        }
        explicit.copy_from_slice(&self.iv[self.iv_len - explicit.len()..self.iv_len]);
        Ok(())
    }

    pub(super) fn count_on(&mut self) {
        let counter = self.iv[..self.iv_len].iter_mut().rev().take(EXPLICIT);
        for byte in counter {
            *byte = byte.wrapping_add(1);
            if *byte != 0 {
                break;
            }
        }
        self.used = false;
    }

    /// Takes over the end of the IV that a record carries.
    pub(super) fn invert(&mut self, explicit: &[u8]) -> Result<(), Reason> {
        let start = self.iv_len.checked_sub(explicit.len());
        let counts = self.counts && self.key_set && self.direction == Direction::Decrypt;
        let start = start.filter(|_| counts).ok_or(Reason::NoIvSet)?;
        self.iv[start..self.iv_len].copy_from_slice(explicit);
        self.ready();
        Ok(())
    }

    /// Sets the IV of the next record, from which later ones are counted, as OpenSSH gives it.
    pub(super) fn restore(&mut self, iv: &[u8]) {
        self.iv[..iv.len()].copy_from_slice(iv);
        self.counts = true;
        self.ready();
    }

    /// Sets the part of the IV that all records have in common. When encrypting, the rest of the first
    /// record's IV is random.
    pub(super) fn fix(&mut self, fixed: &[u8]) -> Result<(), Reason> {
        let counter = self.iv_len.checked_sub(fixed.len());
        if fixed.len() < FIXED || counter.is_none_or(|counter| counter < EXPLICIT) {
            return Err(Reason::FailedToGetParameter);
        }
        let (head, tail) = self.iv[..self.iv_len].split_at_mut(fixed.len());
        head.copy_from_slice(fixed);
        if self.direction == Direction::Encrypt {
            getrandom::fill(tail).map_err(|_| Reason::NoIvSet)?;
            self.random = true;
        }
        self.counts = true;
        self.ready();
        Ok(())
    }

    /// Keeps a record's header, with the length of the data alone.
    pub(super) fn announce(&mut self, header: &[u8]) -> Result<(), Reason> {
        let around = match self.direction {
            Direction::Encrypt => EXPLICIT,
            Direction::Decrypt => EXPLICIT + TAG,
        };
        self.tls_aad = Some(aead::tls_header(header, around)?);
        self.tls_aad_pad = TAG;
        Ok(())
    }
}
