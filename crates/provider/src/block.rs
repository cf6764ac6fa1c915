//! AES in ECB and CBC: data in pieces, with PKCS #7 padding unless it is turned off, and
//! CBC records of TLS 1.0 to 1.2.

use cipherlane_kernels::aes::AesKey;
use cipherlane_kernels::ecb;
use cipherlane_kernels::job::Direction;
use cipherlane_kernels::stack::{CLEAN, depth};
use subtle::{ConditionallySelectable, ConstantTimeEq, ConstantTimeGreater};
use zeroize::{Zeroize, ZeroizeOnDrop, optimization_barrier};

use crate::buffers::{Buffers, Piece};
use crate::context::Context;
use crate::error::Reason;
use crate::ffi::Param;
use crate::hint::rarely;
use crate::keyed::{BLOCK, Keyed, expand};
use crate::params::{Name, described};
use crate::spec::{Mode, Spec};
use crate::split::{self, Work};
use crate::tls_record;

#[derive(Clone)]
pub(crate) struct Block {
    keyed: Keyed<AesKey>,
    /// Input that is not a whole block yet; when decrypting, also a block that may be the last.
    held: Held,
    /// The MAC of the last TLS record.
    tls_mac: tls_record::Mac,
}

#[derive(Clone, Default, Zeroize, ZeroizeOnDrop)]
struct Held {
    bytes: [u8; BLOCK],
    len: usize,
}

impl Held {
    /// Takes as much of the input as there is and as fits.
    #[inline]
    fn fill(&mut self, buffers: &mut Buffers<'_>) {
        let taken = buffers.len().min(BLOCK - self.len);
        if taken == 0 {
            return;
        }
        let input = buffers.read(taken);
        match input.first_chunk() {
            Some(block) => self.bytes = *block,
            None => self.bytes[self.len..][..taken].copy_from_slice(input),
        }
        self.len += taken;
    }

    #[inline]
    fn take(&mut self) -> [u8; BLOCK] {
        let block = self.bytes;
        wipe(&mut self.bytes);
        self.len = 0;
        block
    }
}

/// Overwrites a block by one store that the compiler may not leave out. Overwriting it byte by byte
/// would take longer than the cipher.
#[inline]
pub(crate) fn wipe(block: &mut [u8; BLOCK]) {
    *block = [0; BLOCK];
    optimization_barrier(block);
}

impl Block {
    #[inline(always)]
    fn crypt(&mut self, data: Piece<'_>) -> Result<(), Reason> {
        if self.keyed.spec.mode == Mode::Cbc {
            return self.keyed.cbc(data);
        }
        let (spec, direction) = (self.keyed.spec, self.keyed.direction);
        let key = self.keyed.key()?;
        if split::takes(data.len()) {
            let work = Work::Ecb(key);
            return split::crypt(spec, direction, &work, &[0; BLOCK], data.into());
        }
        ecb::crypt_one(direction, key, data.into());
        Ok(())
    }

    /// Writes the block that is held to the output.
    fn crypt_held(&mut self, buffers: &mut Buffers<'_>) -> Result<usize, Reason> {
        buffers.need_room(BLOCK)?;
        let mut block = self.held.take();
        self.crypt(Piece::from(&mut block[..]))?;
        buffers.insert(&block)?;
        wipe(&mut block);
        Ok(BLOCK)
    }

    /// Whether the last block of a piece must be held, since it may be the last block of the message:
    /// that is known only when the message ends.
    #[inline(always)]
    fn may_be_last(&self) -> bool {
        self.keyed.direction == Direction::Decrypt && self.keyed.pad
    }

    /// Does a piece that is not only whole blocks or of which a block is held, and records of TLS.
    #[inline(never)]
    fn pieces(&mut self, mut buffers: Buffers<'_>) -> Result<usize, Reason> {
        self.keyed.key()?;
        if self.keyed.tls_version > 0 {
            return self.tls_record(buffers);
        }
        buffers.settle()?;
        let may_be_last = self.may_be_last();
        let mut done = 0;
        if self.held.len > 0 {
            self.held.fill(&mut buffers);
            if self.held.len == BLOCK && !(may_be_last && buffers.is_empty()) {
                done += self.crypt_held(&mut buffers)?;
            }
        }
        let mut whole = buffers.len() / BLOCK * BLOCK;
        if may_be_last && whole == buffers.len() {
            whole = whole.saturating_sub(BLOCK);
        }
        if whole > 0 {
            self.crypt(buffers.work(whole)?)?;
            done += whole;
        }
        self.held.fill(&mut buffers);
        Ok(done)
    }

    /// Does a whole record of TLS in place.
    fn tls_record(&mut self, mut buffers: Buffers<'_>) -> Result<usize, Reason> {
        let len = buffers.len();
        // A record may be empty: TLS 1.0 sends an empty one before each other one, so that nobody can
        // guess the IV.
        if !buffers.has_input() || !buffers.is_in_place() || !self.keyed.pad {
            return Err(Reason::CipherOperationFailed);
        }
        buffers.need_room(len)?;
        self.tls_mac = tls_record::Mac::default();
        match self.keyed.direction {
            Direction::Encrypt => {
                let padded = (len / BLOCK + 1) * BLOCK;
                buffers.need_room(padded)?;
                let record = &mut buffers.output()[..padded];
                tls_record::pad(self.keyed.tls_version, &mut record[len..]);
                self.crypt(record.into())?;
                Ok(padded)
            }
            Direction::Decrypt => {
                if len == 0 || !len.is_multiple_of(BLOCK) {
                    return Err(Reason::CipherOperationFailed);
                }
                let record = &mut buffers.output()[..len];
                self.crypt((&mut *record).into())?;
                let (left, mac) = tls_record::unpad(
                    self.keyed.tls_version,
                    record,
                    BLOCK,
                    self.keyed.tls_mac_size,
                )
                .ok_or(Reason::CipherOperationFailed)?;
                self.tls_mac = mac;
                Ok(left)
            }
        }
    }
}

impl Context for Block {
    const DEPTH: usize = depth::BLOCKS;
    const CLEAN: usize = CLEAN;
    const GETTABLE: &'static [Param] =
        &described![KeyLength, IvLength, Padding, Number, Iv, UpdatedIv, TlsMac];
    const SETTABLE: &'static [Param] =
        &described![Padding, Number, UseBits, TlsVersion, TlsMacSize];

    #[inline(always)]
    fn new(spec: &'static Spec) -> Self {
        Block {
            keyed: Keyed::new(spec, AesKey::none()),
            held: Held::default(),
            tls_mac: tls_record::Mac::default(),
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
        self.held.take();
        self.keyed.restart_iv();
        self.keyed.init(direction, key, iv, expand)
    }

    #[inline(always)]
    fn update(&mut self, mut buffers: Buffers<'_>) -> Result<usize, Reason> {
        let len = buffers.len();
        let held = self.held.len > 0 || self.may_be_last();
        if rarely(held || !len.is_multiple_of(BLOCK) || self.keyed.tls_version > 0) {
            return self.pieces(buffers);
        }
        self.crypt(buffers.work(len)?)?;
        Ok(len)
    }

    fn finish(&mut self, mut buffers: Buffers<'_>) -> Result<usize, Reason> {
        self.keyed.key()?;
        // Every record of TLS is a whole message.
        if self.keyed.tls_version > 0 {
            return Err(Reason::CipherOperationFailed);
        }
        let held = self.held.len;
        match (self.keyed.direction, self.keyed.pad) {
            (_, false) if held == 0 => Ok(0),
            (_, false) if held < BLOCK => Err(Reason::WrongFinalBlockLength),
            (Direction::Encrypt, true) => {
                self.held.bytes[held..].fill((BLOCK - held) as u8);
                self.crypt_held(&mut buffers)
            }
            (_, false) => self.crypt_held(&mut buffers),
            (Direction::Decrypt, true) if held < BLOCK => Err(Reason::WrongFinalBlockLength),
            (Direction::Decrypt, true) => {
                let mut block = self.held.take();
                self.crypt(Piece::from(&mut block[..]))?;
                let left = unpadded(&block).ok_or(Reason::BadDecrypt)?;
                let written = buffers.write(&block[..left]);
                wipe(&mut block);
                written.map(|()| left)
            }
        }
    }

    fn cipher(&mut self, mut buffers: Buffers<'_>) -> Result<usize, Reason> {
        let len = buffers.len();
        if !len.is_multiple_of(BLOCK) {
            return Err(Reason::WrongFinalBlockLength);
        }
        self.crypt(buffers.work(len)?)?;
        Ok(len)
    }

    fn get(&mut self, name: Name, param: &mut Param) -> Result<(), Reason> {
        match name {
            Name::TlsMac if !self.tls_mac.bytes().is_empty() => {
                let mac = self.tls_mac.bytes();
                param.give_pointer(mac.as_ptr(), mac.len())
            }
            _ => self.keyed.get(name, param),
        }
    }

    fn set(&mut self, name: Name, param: &Param) -> Result<(), Reason> {
        self.keyed.set(name, param)
    }
}

/// The bytes of data in a padded block; `None` if the padding is wrong. The time does not show which
/// byte of the padding is wrong.
pub(crate) fn unpadded(block: &[u8; BLOCK]) -> Option<usize> {
    let padding = block[BLOCK - 1];
    let mut good = !padding.ct_eq(&0) & !padding.ct_gt(&(BLOCK as u8));
    for (i, byte) in block.iter().rev().enumerate() {
        let inside = padding.ct_gt(&(i as u8));
        good &= !inside | byte.ct_eq(&padding);
    }
    let left = u8::conditional_select(&0xff, &(BLOCK as u8).wrapping_sub(padding), good);
    (left <= BLOCK as u8).then_some(left.into())
}
