//! AES-CBC with ciphertext stealing (SP 800-38A, addendum). A message is one call, and its ciphertext
//! is as long as the message.

use cipherlane_kernels::aes::AesKey;
use cipherlane_kernels::job::Direction;
use cipherlane_kernels::stack::{CLEAN, depth};
use inout::InOutBuf;
use zeroize::Zeroize;

use crate::buffers::Buffers;
use crate::context::Context;
use crate::error::Reason;
use crate::ffi::Param;
use crate::keyed::{BLOCK, Keyed, expand};
use crate::params::{Name, described};
use crate::spec::Spec;

#[derive(Clone)]
pub(crate) struct Cts {
    keyed: Keyed<AesKey>,
    variant: Variant,
    /// Whether the message has had its one call.
    done: bool,
}

/// The order of the last two blocks of ciphertext. The second last one is cut to the length of the
/// last block of the message.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Variant {
    /// The order of CBC.
    Cs1,
    /// Swapped if one of them is cut.
    Cs2,
    /// Always swapped (RFC 3962 section 5).
    Cs3,
}

impl Variant {
    const ALL: [Variant; 3] = [Variant::Cs1, Variant::Cs2, Variant::Cs3];

    fn name(self) -> &'static std::ffi::CStr {
        match self {
            Variant::Cs1 => c"CS1",
            Variant::Cs2 => c"CS2",
            Variant::Cs3 => c"CS3",
        }
    }

    fn of(name: &[u8]) -> Option<Variant> {
        let is = |variant: &Variant| variant.name().to_bytes().eq_ignore_ascii_case(name);
        Variant::ALL.into_iter().find(is)
    }

    /// Bytes of the last block of a message of `len`; `None` where it is plain CBC.
    fn last(self, len: usize) -> Option<usize> {
        match (self, len % BLOCK) {
            (Variant::Cs3, 0) if len > BLOCK => Some(BLOCK),
            (_, 0) => None,
            (_, odd) => Some(odd),
        }
    }
}

impl Cts {
    fn encrypt(&mut self, mut data: InOutBuf<'_, '_, u8>, odd: usize) -> Result<(), Reason> {
        let whole = data.len() - odd;
        let mut last = [0; BLOCK];
        last[..odd].copy_from_slice(&data.get_in()[whole..]);
        self.keyed.cbc(data.reborrow().split_at(whole).0)?;
        self.keyed.cbc(&mut last[..])?;
        let end = &mut data.get_out()[whole - BLOCK..];
        if self.variant == Variant::Cs1 {
            end[odd..].copy_from_slice(&last);
        } else {
            end.copy_within(..odd, BLOCK);
            end[..BLOCK].copy_from_slice(&last);
        }
        Ok(())
    }

    fn decrypt(&mut self, mut data: InOutBuf<'_, '_, u8>, odd: usize) -> Result<(), Reason> {
        let start = data.len() - odd - BLOCK;
        let end = &data.get_in()[start..];
        let (cut, whole) = match self.variant {
            Variant::Cs1 => end.split_at(odd),
            Variant::Cs2 | Variant::Cs3 => (&end[BLOCK..], &end[..BLOCK]),
        };
        let (mut last, mut before) = ([0; BLOCK], [0; BLOCK]);
        last.copy_from_slice(whole);
        before[..odd].copy_from_slice(cut);
        let next_iv = last;
        self.keyed.cbc(data.reborrow().split_at(start).0)?;

        // Decrypted with an IV of zeros, the last block is the exclusive or of the block before and
        // of its own plaintext with zeros behind it. So it ends with the bytes that were cut off the
        // block before.
        let iv = std::mem::take(&mut self.keyed.iv);
        self.keyed.cbc(&mut last[..])?;
        before[odd..].copy_from_slice(&last[odd..]);
        for (byte, before) in last.iter_mut().zip(before) {
            *byte ^= before;
        }
        self.keyed.iv = iv;
        self.keyed.cbc(&mut before[..])?;
        self.keyed.iv = next_iv;

        let (to_before, to_last) = data.get_out()[start..].split_at_mut(BLOCK);
        to_before.copy_from_slice(&before);
        to_last.copy_from_slice(&last[..odd]);
        before.zeroize();
        last.zeroize();
        Ok(())
    }
}

impl Context for Cts {
    const UPDATE_FAILS: Option<Reason> = Some(Reason::Unsaid);
    const DEPTH: usize = depth::BLOCKS;
    const CLEAN: usize = CLEAN;
    const GETTABLE: &'static [Param] =
        &described![KeyLength, IvLength, Padding, Number, Iv, UpdatedIv, CtsMode];
    const SETTABLE: &'static [Param] = &described![Padding, Number, CtsMode];

    #[inline(always)]
    fn new(spec: &'static Spec) -> Self {
        Cts {
            keyed: Keyed::new(spec, AesKey::none()),
            variant: Variant::Cs1,
            done: false,
        }
    }

    fn spec(&self) -> &'static Spec {
        self.keyed.spec
    }

    fn init(
        &mut self,
        direction: Direction,
        key: Option<&[u8]>,
        iv: Option<&[u8]>,
    ) -> Result<(), Reason> {
        self.done = false;
        self.keyed.restart_iv();
        self.keyed.init(direction, key, iv, expand)
    }

    fn update(&mut self, mut buffers: Buffers<'_>) -> Result<usize, Reason> {
        let len = buffers.len();
        if len < BLOCK {
            return Err(Reason::CipherOperationFailed);
        }
        // A program that gives no output asks how much room it needs.
        if !buffers.has_output() {
            return Ok(len);
        }
        self.keyed.key()?;
        if self.done {
            return Err(Reason::CipherOperationFailed);
        }
        let data = InOutBuf::from(buffers.work(len)?);
        match (self.variant.last(len), self.keyed.direction) {
            (None, _) => self.keyed.cbc(data)?,
            (Some(odd), Direction::Encrypt) => self.encrypt(data, odd)?,
            (Some(odd), Direction::Decrypt) => self.decrypt(data, odd)?,
        }
        self.done = true;
        Ok(len)
    }

    fn finish(&mut self, _: Buffers<'_>) -> Result<usize, Reason> {
        Ok(0)
    }

    fn cipher(&mut self, mut buffers: Buffers<'_>) -> Result<usize, Reason> {
        let len = buffers.len();
        if !len.is_multiple_of(BLOCK) {
            return Err(Reason::WrongFinalBlockLength);
        }
        self.keyed.cbc(buffers.work(len)?)?;
        Ok(len)
    }

    fn get(&mut self, name: Name, param: &mut Param) -> Result<(), Reason> {
        match name {
            Name::CtsMode => param.give_text(self.variant.name()),
            _ => self.keyed.get(name, param),
        }
    }

    fn set(&mut self, name: Name, param: &Param) -> Result<(), Reason> {
        if name != Name::CtsMode {
            return self.keyed.set(name, param);
        }
        let variant = param.text().and_then(Variant::of);
        self.variant = variant.ok_or(Reason::FailedToSetParameter)?;
        Ok(())
    }
}
