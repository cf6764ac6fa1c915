//! AES-GCM: messages in pieces, and records of TLS 1.2 (RFC 5288) in one call. TLS 1.3
//! needs nothing of its own.

use cipherlane_kernels::gcm::{self, GcmKey, GcmState};
use cipherlane_kernels::job::{AeadJob, Direction};
use inout::InOutBuf;
use subtle::ConstantTimeEq;
use zeroize::Zeroize;

use crate::aead::{self, TAG, TLS_AAD, Tag};
use crate::buffers::Buffers;
use crate::context::Context;
use crate::error::Reason;
use crate::ffi::Param;
use crate::params::{Name, described};
use crate::spec::Spec;
use crate::split;

/// The longest IV, in bytes, as in OpenSSL's own provider.
pub(crate) const LONGEST_IV: usize = 128;
/// The most data under one IV (SP 800-38D section 5.2.1.1).
pub(crate) const LONGEST: u64 = (1 << 36) - 32;
/// The part of the IV that a record of TLS 1.2 carries.
const EXPLICIT: usize = 8;

#[derive(Clone)]
pub(crate) struct Gcm {
    spec: &'static Spec,
    key: Option<GcmKey>,
    direction: Direction,
    iv: [u8; LONGEST_IV],
    iv_len: usize,
    stage: Stage,
    /// How much data the message has had.
    data: u64,
    tag: Tag,
    /// The IV is the program's fixed part and a counter of ours.
    counts: bool,
    /// Additional data of a record of TLS 1.2, when one comes.
    tls_aad: Option<[u8; TLS_AAD]>,
    tls_aad_pad: u64,
}

/// Where a message is.
#[derive(Clone)]
// The state is the common case, and lives inside a context that is boxed anyway.
#[allow(clippy::large_enum_variant)]
enum Stage {
    /// No IV yet.
    Bare,
    /// An IV that no message has used.
    Ready,
    /// In a message.
    Open { state: GcmState, in_data: bool },
    /// Ended: its IV must not be used again.
    Ended,
}

impl Gcm {
    fn set_iv(&mut self, iv: &[u8]) -> Result<(), Reason> {
        if iv.is_empty() || iv.len() > LONGEST_IV {
            return Err(Reason::InvalidIvLength);
        }
        self.iv_len = iv.len();
        self.iv[..iv.len()].copy_from_slice(iv);
        self.stage = Stage::Ready;
        Ok(())
    }

    fn nonce(&self) -> &[u8] {
        &self.iv[..self.iv_len]
    }

    /// Begins a message where there is none.
    fn begin(&mut self) -> Result<(), Reason> {
        if matches!(self.stage, Stage::Open { .. }) {
            return Ok(());
        }
        let key = self.key.as_ref().ok_or(Reason::NoKeySet)?;
        match self.stage {
            // A program that encrypts without an IV gets a random one, and asks for it
            // later (SP 800-38D section 8.2.2).
            Stage::Bare if self.direction == Direction::Encrypt && self.iv_len >= 12 => {
                let iv_len = self.iv_len;
                getrandom::fill(&mut self.iv[..iv_len]).map_err(|_| Reason::NoIvSet)?;
            }
            Stage::Bare | Stage::Ended => return Err(Reason::NoIvSet),
            Stage::Ready | Stage::Open { .. } => {}
        }
        self.stage = Stage::Open {
            state: GcmState::new(self.direction, key, &self.iv[..self.iv_len]),
            in_data: false,
        };
        self.data = 0;
        Ok(())
    }

    /// A record of TLS 1.2, in place: `explicit IV | data | tag`.
    fn tls_record(
        &mut self,
        aad: &[u8; TLS_AAD],
        mut buffers: Buffers<'_>,
    ) -> Result<usize, Reason> {
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
            Direction::Decrypt if bool::from(found.ct_eq(tag)) => Ok(data.len()),
            Direction::Decrypt => {
                data.zeroize();
                Err(Reason::BadDecrypt)
            }
        }
    }

    /// A whole message under the IV as it stands: its tag.
    fn whole(&self, aad: &[u8], data: InOutBuf<'_, '_, u8>) -> Result<[u8; TAG], Reason> {
        let key = self.key.as_ref().ok_or(Reason::NoKeySet)?;
        let Ok(nonce) = <[u8; 12]>::try_from(self.nonce()) else {
            let mut state = GcmState::new(self.direction, key, self.nonce());
            state.aad(key, aad);
            state.update(key, data);
            return Ok(state.finish(key));
        };
        let mut iv = [0; 16];
        iv[..12].copy_from_slice(&nonce);
        let mut jobs = [AeadJob {
            key,
            iv,
            aad,
            data,
            tag: [0; 32],
        }];
        match self.direction {
            Direction::Encrypt => gcm::seal(&mut jobs),
            Direction::Decrypt => gcm::open(&mut jobs),
        }
        let mut tag = [0; TAG];
        tag.copy_from_slice(&jobs[0].tag[..TAG]);
        Ok(tag)
    }

    /// The end of the IV for the next record.
    fn generated(&self, explicit: &mut [u8]) -> Result<(), Reason> {
        if !self.counts || self.key.is_none() || explicit.len() > self.iv_len {
            return Err(Reason::NoIvSet);
        }
        explicit.copy_from_slice(&self.iv[self.iv_len - explicit.len()..self.iv_len]);
        Ok(())
    }

    fn count_on(&mut self) {
        let counter = &mut self.iv[self.iv_len - EXPLICIT..self.iv_len];
        for byte in counter.iter_mut().rev() {
            *byte = byte.wrapping_add(1);
            if *byte != 0 {
                break;
            }
        }
    }

    /// Takes the end of the IV from a record.
    fn invert(&mut self, explicit: &[u8]) -> Result<(), Reason> {
        if !self.counts || self.direction == Direction::Encrypt || explicit.len() > self.iv_len {
            return Err(Reason::NoIvSet);
        }
        self.iv[self.iv_len - explicit.len()..self.iv_len].copy_from_slice(explicit);
        self.stage = Stage::Ready;
        Ok(())
    }

    fn fix(&mut self, fixed: &[u8]) -> Result<(), Reason> {
        if fixed.len() < 4 || fixed.len() + EXPLICIT > self.iv_len {
            return Err(Reason::InvalidIvLength);
        }
        let (head, tail) = self.iv[..self.iv_len].split_at_mut(fixed.len());
        head.copy_from_slice(fixed);
        if self.direction == Direction::Encrypt {
            getrandom::fill(tail).map_err(|_| Reason::NoIvSet)?;
        }
        self.counts = true;
        self.stage = Stage::Ready;
        Ok(())
    }

    /// Notes a record's header, with the length of the data alone.
    fn announce(&mut self, header: &[u8]) -> Result<(), Reason> {
        let around = match self.direction {
            Direction::Encrypt => EXPLICIT,
            Direction::Decrypt => EXPLICIT + TAG,
        };
        self.tls_aad = Some(aead::tls_header(header, around)?);
        self.tls_aad_pad = TAG as u64;
        Ok(())
    }
}

impl Context for Gcm {
    const GETTABLE: &'static [Param] = &described![
        KeyLength,
        IvLength,
        TagLength,
        Iv,
        UpdatedIv,
        Tag,
        PipelineTag,
        TlsAadPad,
        TlsIvGenerated
    ];
    const SETTABLE: &'static [Param] = &described![
        IvLength,
        Tag,
        PipelineTag,
        TlsAad,
        TlsIvFixed,
        TlsIvInvocation
    ];

    fn new(spec: &'static Spec) -> Self {
        Gcm {
            spec,
            key: None,
            direction: Direction::Encrypt,
            iv: [0; LONGEST_IV],
            iv_len: spec.iv_len,
            stage: Stage::Bare,
            data: 0,
            tag: Tag::default(),
            counts: false,
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
        let turned = direction != self.direction;
        self.direction = direction;
        if let Some(iv) = iv {
            self.set_iv(iv)?;
        }
        if let Some(key) = key {
            self.spec.fits(key)?;
            match &mut self.key {
                Some(old) => old.rekey(key).ok_or(Reason::InvalidKeyLength)?,
                None => self.key = GcmKey::new(key),
            }
        }
        // What was begun under another key, or the other way, cannot go on.
        if (turned || key.is_some()) && matches!(self.stage, Stage::Open { .. }) {
            self.stage = Stage::Ended;
        }
        Ok(())
    }

    fn update(&mut self, mut buffers: Buffers<'_>) -> Result<usize, Reason> {
        if let Some(aad) = self.tls_aad.take() {
            return self.tls_record(&aad, buffers);
        }
        if buffers.is_empty() {
            return Ok(0);
        }
        self.begin()?;
        let len = buffers.len();
        let (Some(key), Stage::Open { state, in_data }) = (&self.key, &mut self.stage) else {
            return Err(Reason::NoKeySet);
        };
        if !buffers.has_output() {
            if *in_data {
                return Err(Reason::CipherOperationFailed);
            }
            state.aad(key, buffers.read(len));
            return Ok(len);
        }
        let data = buffers.work(len)?;
        let so_far = self.data;
        self.data += len as u64;
        if self.data > LONGEST {
            return Err(Reason::CipherOperationFailed);
        }
        *in_data = true;
        match split::takes(len) {
            true => {
                let parts = (key, state);
                split::gcm(self.spec, self.direction, parts, so_far, data.into())?;
            }
            false => state.update(key, data.into()),
        }
        Ok(len)
    }

    fn finish(&mut self, _: Buffers<'_>) -> Result<usize, Reason> {
        if self.direction == Direction::Decrypt && self.tag.len() == 0 {
            return Err(Reason::InvalidTag);
        }
        self.begin()?;
        let Stage::Open { state, .. } = std::mem::replace(&mut self.stage, Stage::Ended) else {
            return Err(Reason::NoIvSet);
        };
        let found = state.finish(self.key.as_ref().ok_or(Reason::NoKeySet)?);
        match self.direction {
            Direction::Encrypt => self.tag.computed(found),
            Direction::Decrypt => self.tag.judge(found)?,
        }
        Ok(0)
    }

    fn cipher(&mut self, buffers: Buffers<'_>) -> Result<usize, Reason> {
        if !buffers.has_input() {
            return self.finish(buffers);
        }
        if self.tls_aad.is_none() {
            self.begin()?;
        }
        self.update(buffers)
    }

    fn get(&mut self, name: Name, param: &mut Param) -> Result<(), Reason> {
        match name {
            Name::KeyLength => param.give_number(self.spec.key_len as u64),
            Name::IvLength => param.give_number(self.iv_len as u64),
            Name::TagLength => param.give_number(match self.tag.len() {
                0 => TAG as u64,
                len => len as u64,
            }),
            Name::Iv | Name::UpdatedIv if matches!(self.stage, Stage::Bare) => Err(Reason::NoIvSet),
            Name::Iv | Name::UpdatedIv => param.give_octets(self.nonce()),
            Name::Tag => self.tag.get(self.direction, param),
            Name::TlsAadPad => param.give_number(self.tls_aad_pad),
            Name::TlsIvGenerated => {
                let mut explicit = [0; LONGEST_IV];
                let len = match param.data_size {
                    0 => self.iv_len,
                    len => len.min(self.iv_len),
                };
                self.generated(&mut explicit[..len])?;
                self.stage = Stage::Ready;
                self.begin()?;
                self.count_on();
                param.give_octets(&explicit[..len])
            }
            _ => Ok(()),
        }
    }

    fn set(&mut self, name: Name, param: &Param) -> Result<(), Reason> {
        let octets = || param.octets().ok_or(Reason::FailedToGetParameter);
        match name {
            Name::IvLength => {
                let len = param.number().ok_or(Reason::FailedToGetParameter)? as usize;
                if len == 0 || len > LONGEST_IV {
                    return Err(Reason::InvalidIvLength);
                }
                if len != self.iv_len {
                    self.iv_len = len;
                    // What there was is none of this length.
                    if !matches!(self.stage, Stage::Bare) {
                        self.stage = Stage::Ended;
                    }
                }
                Ok(())
            }
            Name::Tag => self.tag.expect(self.direction, param),
            Name::TlsAad => self.announce(octets()?),
            Name::TlsIvFixed => self.fix(octets()?),
            Name::TlsIvInvocation => self.invert(octets()?),
            _ => Ok(()),
        }
    }
}
