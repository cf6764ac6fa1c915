//! AES in counter mode: data in pieces of any length.

use cipherlane_kernels::aes::AesKey;
use cipherlane_kernels::ctr;
use cipherlane_kernels::job::Direction;
use cipherlane_kernels::stack::{CLEAN, depth};
use inout::InOutBuf;
use zeroize::Zeroize;

use crate::buffers::{Buffers, Piece};
use crate::context::Context;
use crate::error::Reason;
use crate::ffi::Param;
use crate::hint::rarely;
use crate::keyed::{BLOCK, Keyed, expand};
use crate::params::{Name, described};
use crate::spec::Spec;
use crate::split::{self, Work};

#[derive(Clone)]
pub(crate) struct Ctr {
    /// The IV is the counter of the next block.
    keyed: Keyed<AesKey>,
    /// Keystream of a block that is used in part, and the bytes of it that are used (`num`).
    keystream: [u8; BLOCK],
    used: usize,
}

impl Ctr {
    #[inline(always)]
    fn apply(&mut self, data: Piece<'_>) -> Result<(), Reason> {
        let (spec, direction) = (self.keyed.spec, self.keyed.direction);
        let (key, counter) = self.keyed.key_and_iv()?;
        if split::takes(data.len()) {
            let blocks = data.len() as u128 / 16;
            let done = split::crypt(spec, direction, &Work::Ctr(key), counter, data.into());
            // This is done after a failure too, since some of the keystream may have been used.
            *counter = ctr::counter_add(counter, blocks);
            return done;
        }
        ctr::apply_one(key, counter, data.into());
        Ok(())
    }

    /// Does a piece that begins or ends within a block.
    #[inline(never)]
    fn pieces(&mut self, mut buffers: Buffers<'_>) -> Result<usize, Reason> {
        let len = buffers.len();
        self.keyed.key()?;
        buffers.need_room(len)?;
        buffers.settle()?;
        if self.used > 0 {
            let taken = len.min(BLOCK - self.used);
            let keystream = &self.keystream[self.used..][..taken];
            InOutBuf::from(buffers.work(taken)?).xor_in2out(keystream);
            self.used = (self.used + taken) % BLOCK;
        }
        let rest = buffers.len() % BLOCK;
        let whole = buffers.len() - rest;
        if whole > 0 {
            self.apply(buffers.work(whole)?)?;
        }
        if rest > 0 {
            let mut keystream = [0; BLOCK];
            self.apply((&mut keystream[..]).into())?;
            InOutBuf::from(buffers.work(rest)?).xor_in2out(&keystream[..rest]);
            self.keystream = keystream;
            self.used = rest;
            keystream.zeroize();
        }
        Ok(len)
    }
}

impl Drop for Ctr {
    fn drop(&mut self) {
        self.keystream.zeroize();
    }
}

impl Context for Ctr {
    const DEPTH: usize = depth::BLOCKS;
    const CLEAN: usize = CLEAN;
    const GETTABLE: &'static [Param] =
        &described![KeyLength, IvLength, Padding, Number, Iv, UpdatedIv, TlsMac];
    const SETTABLE: &'static [Param] =
        &described![Padding, Number, UseBits, TlsVersion, TlsMacSize];

    #[inline(always)]
    fn new(spec: &'static Spec) -> Self {
        Ctr {
            keyed: Keyed::new(spec, AesKey::none()),
            keystream: [0; BLOCK],
            used: 0,
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
        self.used = 0;
        self.keyed.init(direction, key, iv, expand)
    }

    #[inline(always)]
    fn update(&mut self, mut buffers: Buffers<'_>) -> Result<usize, Reason> {
        let len = buffers.len();
        if rarely(self.used > 0 || !len.is_multiple_of(BLOCK)) {
            return self.pieces(buffers);
        }
        self.apply(buffers.work(len)?)?;
        Ok(len)
    }

    fn finish(&mut self, _: Buffers<'_>) -> Result<usize, Reason> {
        self.keyed.key().map(|_| 0)
    }

    fn cipher(&mut self, buffers: Buffers<'_>) -> Result<usize, Reason> {
        self.update(buffers)
    }

    fn get(&mut self, name: Name, param: &mut Param) -> Result<(), Reason> {
        match name {
            Name::Number => param.give_u32(self.used as u32),
            _ => self.keyed.get(name, param),
        }
    }

    fn set(&mut self, name: Name, param: &Param) -> Result<(), Reason> {
        self.keyed.set(name, param)?;
        // Only 0 is taken: other numbers would need the keystream of an earlier block.
        if name == Name::Number {
            self.used = 0;
        }
        Ok(())
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
    fn the_counter_goes_on_behind_a_piece_that_failed() {
        let spec = SPECS.iter().find(|spec| spec.name == "AES-128-CTR");
        let mut ctr = Ctr::new(spec.expect("it is on offer"));
        ctr.init(Direction::Encrypt, Some(&[1; 16]), Some(&[0xff; 16]))
            .unwrap();
        let mut data = vec![0; 64];
        let at = data.as_mut_ptr();
        fault::FAILS.set(true);
        // SAFETY: the data outlives the call, which has it alone.
        let failed = unsafe { Buffers::new(at, 64, at, 64).and_then(|all| ctr.update(all)) };
        fault::FAILS.set(false);
        assert_eq!(failed, Err(Reason::InternalError));
        assert_eq!(u128::from_be_bytes(ctr.keyed.iv), 3);
    }
}
