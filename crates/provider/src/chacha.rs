//! ChaCha20-Poly1305: messages in pieces, and records of TLS 1.2 (RFC 7905) in one call. Records of
//! TLS 1.3 are messages like any other.

use cipherlane_kernels::chacha::{self, ChaChaKey, ChaChaState};
use cipherlane_kernels::is_same;
use cipherlane_kernels::job::{AeadJob, Direction};
use cipherlane_kernels::stack::depth;
use inout::InOutBuf;
use zeroize::Zeroize;

use crate::aead::{self, TAG, TLS_AAD, Tag};
use crate::buffers::{Buffers, exactly};
use crate::context::Context;
use crate::error::Reason;
use crate::ffi::Param;
use crate::params::{Name, described};
use crate::spec::Spec;

const NONCE: usize = 12;

#[derive(Clone)]
pub(crate) struct ChaCha {
    spec: &'static Spec,
    key: Option<ChaChaKey>,
    direction: Direction,
    nonce: Option<[u8; NONCE]>,
    /// A message was begun under the nonce, or the numbers of TLS records are counted from it.
    used: bool,
    open: Option<Open>,
    tag: Tag,
    /// The parameter `taglen`, which can be set without a tag.
    tag_len: usize,
    /// The header of the record of TLS 1.2 that comes next.
    tls_aad: Option<[u8; TLS_AAD]>,
    tls_aad_pad: usize,
}

/// A message that was begun and has not ended.
#[derive(Clone)]
struct Open {
    state: ChaChaState,
    in_data: bool,
    /// Bytes of data that the message has had.
    data: u64,
}

impl ChaCha {
    fn key(&self) -> Result<&ChaChaKey, Reason> {
        self.key.as_ref().ok_or(Reason::NoKeySet)
    }

    /// The message that is open, or a new one, and its key. Each message needs an IV of its own: two
    /// messages under one IV would give away each other's data, and the key of their tags.
    fn message(&mut self) -> Result<(&ChaChaKey, &mut Open), Reason> {
        let key = self.key.as_ref().ok_or(Reason::NoKeySet)?;
        let nonce = self.nonce.as_ref().ok_or(Reason::NoIvSet)?;
        if self.open.is_none() && self.used {
            return Err(Reason::NoIvSet);
        }
        self.used = true;
        let open = self.open.get_or_insert_with(|| Open {
            state: ChaChaState::new(self.direction, key, nonce),
            in_data: false,
            data: 0,
        });
        Ok((key, open))
    }

    /// Ends a message: its tag is kept, or compared.
    fn end(&mut self) -> Result<(), Reason> {
        if self.direction == Direction::Decrypt && self.tag.len() == 0 {
            return Err(Reason::InvalidTag);
        }
        let found = self.message()?.1.state.finish();
        self.open = None;
        match self.direction {
            Direction::Encrypt => {
                self.tag.computed(found);
                Ok(())
            }
            Direction::Decrypt => self.tag.judge(found),
        }
    }

    /// A record of TLS 1.2: `data | tag`.
    fn tls_record(
        &mut self,
        aad: &[u8; TLS_AAD],
        mut buffers: Buffers<'_>,
    ) -> Result<usize, Reason> {
        let len = usize::from(u16::from_be_bytes([aad[11], aad[12]]));
        if buffers.len() != len + TAG || !buffers.has_output() {
            return Err(Reason::CipherOperationFailed);
        }
        buffers.need_room(len + TAG)?;
        self.tls_aad = None;
        let mut tag = [0; TAG];
        tag.copy_from_slice(buffers.last(TAG));
        let mut data = InOutBuf::from(buffers.work(len)?);
        let found = self.whole(aad, data.reborrow())?;
        match self.direction {
            Direction::Encrypt => {
                self.tag.computed(found);
                buffers.write(&found)?;
                Ok(len + TAG)
            }
            Direction::Decrypt if is_same(&found, &tag) => Ok(len),
            Direction::Decrypt => {
                data.get_out().zeroize();
                Err(Reason::BadDecrypt)
            }
        }
    }

    /// Does the data of a record in one call, and returns the tag.
    fn whole(&self, aad: &[u8; TLS_AAD], data: InOutBuf<'_, '_, u8>) -> Result<[u8; TAG], Reason> {
        // The sequence number of the record makes its nonce (RFC 7905 section 2).
        let mut iv = [0; 16];
        iv[..NONCE].copy_from_slice(&self.nonce.ok_or(Reason::NoIvSet)?);
        for (byte, sequence) in iv[4..NONCE].iter_mut().zip(aad) {
            *byte ^= sequence;
        }
        let mut tag = [0; TAG];
        let mut jobs = [AeadJob {
            key: self.key()?,
            iv,
            aad,
            data,
            tag: &mut tag,
        }];
        match self.direction {
            Direction::Encrypt => chacha::seal(&mut jobs),
            Direction::Decrypt => chacha::open(&mut jobs),
        }
        Ok(tag)
    }

    fn set_nonce(&mut self, nonce: &[u8]) -> Result<(), Reason> {
        self.nonce = Some(*exactly(nonce).ok_or(Reason::InvalidIvLength)?);
        self.used = false;
        Ok(())
    }

    /// Forgets a message that was begun under another key or IV, which cannot go on.
    fn restart(&mut self) {
        self.open = None;
        self.tls_aad = None;
    }
}

impl Context for ChaCha {
    const DEPTH: usize = depth::ONE;
    const GETTABLE: &'static [Param] =
        &described![KeyLength, IvLength, TagLength, Tag, PipelineTag, TlsAadPad];
    const SETTABLE: &'static [Param] =
        &described![KeyLength, IvLength, Tag, PipelineTag, TlsAad, TlsIvFixed];

    #[inline(always)]
    fn new(spec: &'static Spec) -> Self {
        ChaCha {
            spec,
            key: None,
            direction: Direction::Encrypt,
            nonce: None,
            used: false,
            open: None,
            tag: Tag::default(),
            tag_len: 0,
            tls_aad: None,
            tls_aad_pad: 0,
        }
    }

    fn spec(&self) -> &'static Spec {
        self.spec
    }

    fn init(
        &mut self,
        direction: Direction,
        key: Option<&[u8]>,
        iv: Option<&[u8]>,
    ) -> Result<(), Reason> {
        if direction != self.direction {
            // A message that was begun in one direction cannot go on in the other. A record's header
            // stays, as with the default provider.
            self.open = None;
        }
        self.direction = direction;
        if let Some(iv) = iv {
            self.set_nonce(iv)?;
            self.restart();
        }
        if let Some(key) = key {
            self.spec.fits(key)?;
            self.key = ChaChaKey::new(key);
            self.restart();
        }
        Ok(())
    }

    fn update(&mut self, mut buffers: Buffers<'_>) -> Result<usize, Reason> {
        if buffers.is_empty() {
            return Ok(0);
        }
        if let Some(aad) = self.tls_aad {
            let done = self.tls_record(&aad, buffers);
            return done.map_err(|_| Reason::Unsaid);
        }
        let (key, open) = self.message()?;
        let len = buffers.len();
        if !buffers.has_output() {
            if open.in_data {
                return Err(Reason::CipherOperationFailed);
            }
            open.state.aad(buffers.read(len));
            return Ok(len);
        }
        let data = buffers.work(len)?;
        let so_far = open.data.checked_add(len as u64);
        open.data = so_far
            .filter(|&data| data <= ChaChaState::LONGEST)
            .ok_or(Reason::CipherOperationFailed)?;
        open.in_data = true;
        open.state.update(key, data.into());
        Ok(len)
    }

    fn finish(&mut self, _: Buffers<'_>) -> Result<usize, Reason> {
        let opens = self.direction == Direction::Decrypt;
        let ended = self.end();
        // What is opened is good or not, as OpenSSL's own provider has it.
        ended.map_err(|reason| if opens { Reason::Unsaid } else { reason })?;
        Ok(0)
    }

    fn cipher(&mut self, buffers: Buffers<'_>) -> Result<usize, Reason> {
        match buffers.has_input() {
            true => self.update(buffers),
            false => self.finish(buffers),
        }
    }

    fn get(&mut self, name: Name, param: &mut Param) -> Result<(), Reason> {
        match name {
            Name::KeyLength => param.give_usize(self.spec.key_len),
            Name::IvLength => param.give_usize(self.spec.iv_len),
            Name::TagLength => param.give_usize(self.tag_len),
            Name::Tag if !param.is_octets() => Err(Reason::FailedToSetParameter),
            Name::Tag if self.direction == Direction::Decrypt => Err(Reason::TagNotSet),
            Name::Tag if !(1..=TAG).contains(&param.data_size) => Err(Reason::InvalidTagLength),
            Name::Tag => self.tag.get(self.direction, param),
            Name::TlsAadPad => param.give_usize(self.tls_aad_pad),
            _ => Ok(()),
        }
    }

    fn set(&mut self, name: Name, param: &Param) -> Result<(), Reason> {
        match name {
            Name::KeyLength if param.as_usize()? != self.spec.key_len => {
                Err(Reason::InvalidKeyLength)
            }
            Name::IvLength if param.as_usize()? != self.spec.iv_len => Err(Reason::InvalidIvLength),
            Name::Tag => {
                let len = param.data_size;
                if !param.is_octets() {
                    return Err(Reason::FailedToGetParameter);
                }
                if !(1..=TAG).contains(&len) {
                    return Err(Reason::InvalidTagLength);
                }
                // Without data only the length of the tag is set.
                if !param.data.is_null() {
                    if self.direction == Direction::Encrypt {
                        return Err(Reason::TagNotNeeded);
                    }
                    self.tag.expect(self.direction, param)?;
                }
                self.tag_len = len;
                Ok(())
            }
            Name::TlsAad => {
                let around = match self.direction {
                    Direction::Encrypt => 0,
                    Direction::Decrypt => TAG,
                };
                let header = param.octets_or(TLS_AAD, Reason::InvalidData)?;
                self.tls_aad = Some(aead::tls_header(header, around)?);
                self.tls_aad_pad = TAG;
                // Each record is a message, and the nonce of the first record is this one.
                self.open = None;
                self.used = true;
                Ok(())
            }
            Name::TlsIvFixed => self.set_nonce(param.octets_or(NONCE, Reason::InvalidIvLength)?),
            _ => Ok(()),
        }
    }
}
