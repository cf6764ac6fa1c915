//! AES in XTS mode. Every call is a whole data unit.

use cipherlane_kernels::is_same;
use cipherlane_kernels::job::Direction;
use cipherlane_kernels::stack::depth;
use cipherlane_kernels::xts::{self, XtsKey};
use zeroize::Zeroize;

use crate::buffers::Buffers;
use crate::context::Context;
use crate::error::Reason;
use crate::ffi::Param;
use crate::keyed::{BLOCK, Keyed};
use crate::params::{Name, described};
use crate::spec::Spec;
use crate::split::{self, Work};

/// The longest data unit, in bytes (IEEE 1619 section 5.1).
const LONGEST: usize = (1 << 20) * BLOCK;

#[derive(Clone)]
pub(crate) struct Xts {
    keyed: Keyed<XtsKey>,
    /// The encrypted tweak of a data unit's first block. It is computed when key and IV come, while the
    /// program still prepares the data.
    tweak: [u8; BLOCK],
}

impl Drop for Xts {
    fn drop(&mut self) {
        self.tweak.zeroize();
    }
}

fn expand(direction: Direction, place: &mut XtsKey, key: &[u8]) -> Result<(), Reason> {
    let (data, tweak) = key.split_at(key.len() / 2);
    // FIPS 140-2 IG A.9: data that was encrypted so can still be decrypted.
    if direction == Direction::Encrypt && is_same(data, tweak) {
        return Err(Reason::XtsDuplicatedKeys);
    }
    place.rekey(key).ok_or(Reason::InvalidKeyLength)
}

impl Context for Xts {
    const DEPTH: usize = depth::XTS;
    const UPDATE_FAILS: Option<Reason> = Some(Reason::CipherOperationFailed);
    const CIPHER_FAILS: Option<Reason> = Some(Reason::Unsaid);
    const GETTABLE: &'static [Param] =
        &described![KeyLength, IvLength, Padding, Number, Iv, UpdatedIv, TlsMac];
    const SETTABLE: &'static [Param] = &described![KeyLength];

    #[inline(always)]
    fn new(spec: &'static Spec) -> Self {
        Xts {
            keyed: Keyed::new(spec, XtsKey::none()),
            tweak: [0; BLOCK],
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
        self.keyed.init(direction, key, iv, |place, key| {
            expand(direction, place, key)
        })?;
        if let Ok((key, iv)) = self.keyed.key_and_given_iv() {
            xts::first_tweak(key, iv, &mut self.tweak);
        }
        Ok(())
    }

    fn update(&mut self, mut buffers: Buffers<'_>) -> Result<usize, Reason> {
        let (key, iv) = self.keyed.key_and_given_iv()?;
        let len = buffers.len();
        if len < BLOCK {
            return Err(Reason::CipherOperationFailed);
        }
        if len > LONGEST {
            return Err(Reason::XtsDataUnitIsTooLarge);
        }
        let data = buffers.work(len)?;
        let direction = self.keyed.direction;
        if split::takes(len) {
            let (spec, work) = (self.keyed.spec, Work::Xts(key));
            return split::crypt(spec, direction, &work, iv, data.into()).map(|()| len);
        }
        xts::crypt_one(direction, key, &self.tweak, data.into());
        Ok(len)
    }

    fn finish(&mut self, _: Buffers<'_>) -> Result<usize, Reason> {
        Ok(0)
    }

    fn cipher(&mut self, buffers: Buffers<'_>) -> Result<usize, Reason> {
        self.update(buffers)
    }

    fn get(&mut self, name: Name, param: &mut Param) -> Result<(), Reason> {
        self.keyed.get(name, param)
    }

    fn set(&mut self, name: Name, param: &Param) -> Result<(), Reason> {
        match name {
            Name::KeyLength if param.as_usize()? != self.keyed.spec.key_len => Err(Reason::Unsaid),
            _ => Ok(()),
        }
    }
}
