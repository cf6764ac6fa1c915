//! AES-GCM: messages in pieces here, and the records of TLS 1.2 and SSH in `records`. Records of TLS
//! 1.3 are messages like any other.

mod records;

use cipherlane_kernels::gcm::{GcmState, LazyGcmKey};
use cipherlane_kernels::job::Direction;
use cipherlane_kernels::stack::depth;
use inout::InOutBuf;

use crate::aead::{TAG, TLS_AAD, Tag};
use crate::buffers::{Buffers, copy_unusual, exactly};
use crate::context::{Context, LONGEST_IV};
use crate::error::Reason;
use crate::ffi::Param;
use crate::hint::rarely;
use crate::keyed::known;
use crate::params::{Name, described};
use crate::spec::Spec;
use crate::split;

/// Bytes of a nonce of most protocols.
const NONCE: usize = 12;

/// The most data under one IV (SP 800-38D section 5.2.1.1).
pub(crate) const LONGEST: u64 = (1 << 36) - 32;

#[derive(Clone)]
pub(crate) struct Gcm {
    spec: &'static Spec,
    key_set: bool,
    key: LazyGcmKey,
    direction: Direction,
    iv: [u8; LONGEST_IV],
    iv_len: usize,
    stage: Stage,
    /// The state of the message that is open. Its memory is used again for the next message.
    state: GcmState,
    /// Bytes of data that the message has had.
    data: u64,
    tag: Tag,
    /// The IV ends with a counter, and a program asks for its next value.
    counts: bool,
    /// A message was begun under the present IV.
    used: bool,
    /// The IV or a part of it was made by the provider.
    random: bool,
    /// The additional data of the record of TLS 1.2 that comes next.
    tls_aad: Option<[u8; TLS_AAD]>,
    tls_aad_pad: usize,
}

/// Where a message is.
#[derive(Clone, Copy)]
enum Stage {
    /// There is no IV yet.
    Bare,
    /// There is an IV that no message has used.
    Ready,
    /// A message is open.
    Open { in_data: bool },
    /// The message has ended: its IV must not be used again.
    Ended,
}

impl Gcm {
    fn set_iv(&mut self, iv: &[u8]) -> Result<(), Reason> {
        if iv.is_empty() || iv.len() > LONGEST_IV {
            return Err(Reason::InvalidIvLength);
        }
        self.iv_len = iv.len();
        match exactly::<NONCE>(iv) {
            Some(nonce) => self.iv[..NONCE].copy_from_slice(nonce),
            None => copy_unusual(iv, &mut self.iv),
        }
        self.ready();
        Ok(())
    }

    /// Notes that the IV is a new one.
    fn ready(&mut self) {
        self.stage = Stage::Ready;
        self.used = false;
    }

    fn nonce(&self) -> &[u8] {
        &self.iv[..self.iv_len]
    }

    /// Begins a message where none is open.
    fn begin(&mut self) -> Result<(), Reason> {
        if matches!(self.stage, Stage::Open { .. }) {
            return Ok(());
        }
        let key = known(self.key_set, self.key.for_piece(self.iv_len))?;
        match self.stage {
            // A program that encrypts without an IV gets a random one, and asks for it
            // later (SP 800-38D section 8.2.2).
            Stage::Bare if self.direction == Direction::Encrypt && self.iv_len >= 12 => {
                let iv_len = self.iv_len;
                getrandom::fill(&mut self.iv[..iv_len]).map_err(|_| Reason::NoIvSet)?;
                self.random = true;
            }
            Stage::Bare | Stage::Ended => return Err(Reason::NoIvSet),
            Stage::Ready | Stage::Open { .. } => {}
        }
        self.state
            .begin(self.direction, key, &self.iv[..self.iv_len]);
        self.stage = Stage::Open { in_data: false };
        self.used = true;
        self.data = 0;
        Ok(())
    }

    /// Does a piece of additional data or of data.
    fn piece(&mut self, mut buffers: Buffers<'_>) -> Result<usize, Reason> {
        if !matches!(self.stage, Stage::Open { .. }) {
            self.begin()?;
        }
        let len = buffers.len();
        let key = known(self.key_set, self.key.for_piece(len))?;
        let Stage::Open { in_data } = &mut self.stage else {
            return Err(Reason::NoIvSet);
        };
        if !buffers.has_output() {
            if *in_data {
                return Err(Reason::CipherOperationFailed);
            }
            self.state.aad(key, buffers.read(len));
            return Ok(len);
        }
        if len as u64 > LONGEST - self.data {
            return Err(Reason::CipherOperationFailed);
        }
        let data = buffers.work(len)?;
        *in_data |= len > 0;
        if len == 0 {
            return Ok(0);
        }
        if split::takes(len) {
            self.shared(data.into())?;
        } else {
            self.state.update(key, data.into());
        }
        self.data += len as u64;
        Ok(len)
    }

    /// Does a large piece of data. If that fails, the message has ended, since some of its keystream
    /// may have been used.
    #[cold]
    fn shared(&mut self, data: InOutBuf<'_, '_, u8>) -> Result<(), Reason> {
        self.stage = Stage::Ended;
        let key = known(self.key_set, self.key.complete())?;
        let state = std::mem::replace(&mut self.state, GcmState::idle());
        self.state = split::gcm(self.spec, self.direction, key, state, self.data, data)?;
        self.stage = Stage::Open { in_data: true };
        Ok(())
    }
}

impl Context for Gcm {
    const DEPTH: usize = depth::GCM;
    const UPDATE_FAILS: Option<Reason> = Some(Reason::CipherOperationFailed);
    const FINISH_FAILS: Option<Reason> = Some(Reason::Unsaid);
    const CIPHER_FAILS: Option<Reason> = Some(Reason::Unsaid);
    const GETTABLE: &'static [Param] = &described![
        KeyLength,
        IvLength,
        TagLength,
        Iv,
        UpdatedIv,
        Tag,
        PipelineTag,
        TlsAadPad,
        TlsIvGenerated,
        IvGenerated
    ];
    const SETTABLE: &'static [Param] = &described![
        IvLength,
        Tag,
        PipelineTag,
        TlsAad,
        TlsIvFixed,
        TlsIvInvocation
    ];

    #[inline(always)]
    fn new(spec: &'static Spec) -> Self {
        Gcm {
            spec,
            key_set: false,
            key: LazyGcmKey::none(),
            direction: Direction::Encrypt,
            iv: [0; LONGEST_IV],
            iv_len: spec.iv_len,
            stage: Stage::Bare,
            state: GcmState::idle(),
            data: 0,
            tag: Tag::default(),
            counts: false,
            used: false,
            random: false,
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
            self.key.rekey(key).ok_or(Reason::InvalidKeyLength)?;
            self.key_set = true;
        }
        // A message that was begun under another key or in the other direction cannot go on.
        if (turned || key.is_some()) && matches!(self.stage, Stage::Open { .. }) {
            self.stage = Stage::Ended;
        }
        Ok(())
    }

    fn update(&mut self, buffers: Buffers<'_>) -> Result<usize, Reason> {
        if buffers.is_empty() {
            return Ok(0);
        }
        // Most programs announce no records: nothing is taken, and so nothing written.
        if rarely(self.tls_aad.is_some())
            && let Some(aad) = self.tls_aad.take()
        {
            return self.tls_record(&aad, buffers);
        }
        self.piece(buffers)
    }

    fn finish(&mut self, _: Buffers<'_>) -> Result<usize, Reason> {
        if rarely(self.tls_aad.is_some()) {
            self.tls_aad = None;
            // A record whose header was given has no end of its own.
            self.stage = Stage::Ended;
            return Err(Reason::CipherOperationFailed);
        }
        if self.direction == Direction::Decrypt && self.tag.len() == 0 {
            return Err(Reason::InvalidTag);
        }
        if !matches!(self.stage, Stage::Open { .. }) {
            self.begin()?;
        }
        self.stage = Stage::Ended;
        let found = self
            .state
            .finish(known(self.key_set, self.key.for_piece(0))?);
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
        let len = buffers.len();
        match self.tls_aad.take() {
            Some(aad) => self.tls_record(&aad, buffers)?,
            None => self.piece(buffers)?,
        };
        // This is the length that the program gave, for a record as well.
        Ok(len)
    }

    fn get(&mut self, name: Name, param: &mut Param) -> Result<(), Reason> {
        match name {
            Name::KeyLength => param.give_usize(self.spec.key_len),
            Name::IvLength => param.give_usize(self.iv_len),
            Name::TagLength => param.give_usize(match self.tag.len() {
                0 => TAG,
                len => len,
            }),
            Name::Iv | Name::UpdatedIv if matches!(self.stage, Stage::Bare) => Err(Reason::Unsaid),
            Name::Iv | Name::UpdatedIv if param.data_size < self.iv_len => {
                Err(Reason::InvalidIvLength)
            }
            Name::Iv | Name::UpdatedIv => param.give_octets_or_pointer(self.nonce()),
            Name::IvGenerated => param.give_u32(self.random.into()),
            Name::Tag => self.tag.get(self.direction, param),
            Name::TlsAadPad => param.give_usize(self.tls_aad_pad),
            Name::TlsIvGenerated => {
                let mut explicit = [0; LONGEST_IV];
                // A program that gives no size asks for the whole IV.
                let len = match param.data_size {
                    0 => self.iv_len,
                    len => len.min(self.iv_len),
                };
                if !param.takes_octets() {
                    return Err(Reason::Unsaid);
                }
                match self.generated(&mut explicit[..len]) {
                    Ok(()) => {}
                    Err(Reason::IvWasUsed) => return Err(Reason::IvWasUsed),
                    Err(_) => return Err(Reason::Unsaid),
                }
                self.stage = Stage::Ready;
                self.begin()?;
                self.count_on();
                param.give_all_octets(&explicit[..len]);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn set(&mut self, name: Name, param: &Param) -> Result<(), Reason> {
        match name {
            Name::IvLength => {
                let len = param.as_usize()?;
                if len == 0 || len > LONGEST_IV {
                    return Err(Reason::InvalidIvLength);
                }
                if len != self.iv_len {
                    self.iv_len = len;
                    // The present IV has another length.
                    if !matches!(self.stage, Stage::Bare) {
                        self.stage = Stage::Ended;
                    }
                }
                Ok(())
            }
            Name::Tag => self.tag.expect(self.direction, param),
            Name::TlsAad => {
                let header = param.octets_or(TLS_AAD, Reason::InvalidAad)?;
                self.announce(header).map_err(|_| Reason::InvalidAad)
            }
            Name::TlsIvFixed => {
                if let Some(iv) = param.all_octets(self.iv_len) {
                    self.restore(iv);
                    return Ok(());
                }
                self.fix(param.octets(LONGEST_IV)?)
            }
            // The message begins here, so that it cannot go on under another key.
            Name::TlsIvInvocation => {
                let explicit = param.octets_or(LONGEST_IV, Reason::Unsaid);
                let inverted = explicit.and_then(|explicit| self.invert(explicit));
                inverted.map_err(|_| Reason::Unsaid)?;
                self.begin()
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::SPECS;
    use crate::split::fault;

    /// A large call that fails has used some of the keystream, and nothing may use that again.
    #[test]
    #[allow(unsafe_code)]
    fn a_message_of_which_a_piece_failed_has_ended() {
        let spec = SPECS.iter().find(|spec| spec.name == "AES-128-GCM");
        let mut gcm = Gcm::new(spec.expect("it is on offer"));
        gcm.init(Direction::Encrypt, Some(&[1; 16]), Some(&[2; 12]))
            .unwrap();
        let mut data = vec![0; 64];
        let at = data.as_mut_ptr();
        // SAFETY: the data outlives the calls, of which each has it alone.
        let update = |gcm: &mut Gcm| unsafe { gcm.update(Buffers::new(at, 64, at, 64)?) };
        assert_eq!(update(&mut gcm), Ok(64));
        fault::FAILS.set(true);
        assert_eq!(update(&mut gcm), Err(Reason::InternalError));
        fault::FAILS.set(false);
        assert_eq!(update(&mut gcm), Err(Reason::NoIvSet));
        gcm.init(Direction::Encrypt, None, Some(&[3; 12])).unwrap();
        assert_eq!(update(&mut gcm), Ok(64));
    }
}
