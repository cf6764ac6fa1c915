//! AES in XTS mode: every call is a whole data unit.

use cipherlane_kernels::job::{CipherJob, Direction};
use cipherlane_kernels::xts::{self, XtsKey};
use subtle::ConstantTimeEq;

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
pub(crate) struct Xts(Keyed<XtsKey>);

fn expand(direction: Direction, key: &[u8]) -> Result<XtsKey, Reason> {
    let (data, tweak) = key.split_at(key.len() / 2);
    // FIPS 140-2 IG A.9: data that was encrypted so can still be decrypted.
    if direction == Direction::Encrypt && bool::from(data.ct_eq(tweak)) {
        return Err(Reason::XtsDuplicatedKeys);
    }
    XtsKey::new(key).ok_or(Reason::InvalidKeyLength)
}

impl Context for Xts {
    const GETTABLE: &'static [Param] =
        &described![KeyLength, IvLength, Padding, Number, Iv, UpdatedIv];
    const SETTABLE: &'static [Param] = &described![KeyLength, Padding];

    fn new(spec: &'static Spec) -> Self {
        Xts(Keyed::new(spec))
    }

    fn spec(&self) -> &'static Spec {
        self.0.spec
    }

    fn init(
        &mut self,
        direction: Direction,
        key: Option<&[u8]>,
        iv: Option<&[u8]>,
    ) -> Result<(), Reason> {
        self.0
            .init(direction, key, iv, |key| expand(direction, key))
    }

    fn update(&mut self, mut buffers: Buffers<'_>) -> Result<usize, Reason> {
        let (key, iv) = self.0.key_and_given_iv()?;
        let len = buffers.len();
        if len < BLOCK {
            return Err(Reason::CipherOperationFailed);
        }
        if len > LONGEST {
            return Err(Reason::XtsDataUnitIsTooLarge);
        }
        let data = buffers.work(len)?;
        if split::takes(len) {
            let (spec, direction) = (self.0.spec, self.0.direction);
            return split::crypt(spec, direction, &Work::Xts(key), iv, data.into()).map(|()| len);
        }
        let mut jobs = [CipherJob {
            key,
            iv: *iv,
            data: data.into(),
        }];
        xts::crypt(self.0.direction, &mut jobs);
        Ok(len)
    }

    fn finish(&mut self, _: Buffers<'_>) -> Result<usize, Reason> {
        Ok(0)
    }

    fn cipher(&mut self, buffers: Buffers<'_>) -> Result<usize, Reason> {
        self.update(buffers)
    }

    fn get(&mut self, name: Name, param: &mut Param) -> Result<(), Reason> {
        self.0.get(name, param)
    }

    fn set(&mut self, name: Name, param: &Param) -> Result<(), Reason> {
        match name {
            Name::KeyLength if param.number() != Some(self.0.spec.key_len as u64) => {
                Err(Reason::InvalidKeyLength)
            }
            _ => Ok(()),
        }
    }
}
