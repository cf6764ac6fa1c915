//! AES in XTS mode: every call is a whole data unit.

use cipherlane_kernels::job::{CipherJob, Direction};
use cipherlane_kernels::xts::{self, XtsKey};
use subtle::ConstantTimeEq;

use crate::buffers::Buffers;
use crate::context::Context;
use crate::error::Reason;
use crate::ffi::{Param, data_type};
use crate::params::Name;
use crate::spec::Spec;

const BLOCK: usize = 16;

/// The longest data unit, in bytes (IEEE 1619 section 5.1).
const LONGEST: usize = (1 << 20) * BLOCK;

#[derive(Clone)]
pub(crate) struct Xts {
    spec: &'static Spec,
    key: Option<XtsKey>,
    direction: Direction,
    iv: [u8; BLOCK],
    iv_set: bool,
}

impl Context for Xts {
    const GETTABLE: &'static [Param] = &[
        Param::describe(c"keylen", data_type::UNSIGNED_INTEGER),
        Param::describe(c"ivlen", data_type::UNSIGNED_INTEGER),
        Param::describe(c"padding", data_type::UNSIGNED_INTEGER),
        Param::describe(c"num", data_type::UNSIGNED_INTEGER),
        Param::describe(c"iv", data_type::OCTET_STRING),
        Param::describe(c"updated-iv", data_type::OCTET_STRING),
        Param::END,
    ];
    const SETTABLE: &'static [Param] = &[
        Param::describe(c"keylen", data_type::UNSIGNED_INTEGER),
        Param::describe(c"padding", data_type::UNSIGNED_INTEGER),
        Param::END,
    ];

    fn new(spec: &'static Spec) -> Self {
        Xts {
            spec,
            key: None,
            direction: Direction::Encrypt,
            iv: [0; BLOCK],
            iv_set: false,
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
        self.direction = direction;
        if let Some(iv) = iv {
            self.iv = iv.try_into().map_err(|_| Reason::InvalidIvLength)?;
            self.iv_set = true;
        }
        if let Some(key) = key {
            if key.len() != self.spec.key_len {
                return Err(Reason::InvalidKeyLength);
            }
            let (data, tweak) = key.split_at(key.len() / 2);
            // FIPS 140-2 IG A.9: data that was encrypted so can still be decrypted.
            if direction == Direction::Encrypt && bool::from(data.ct_eq(tweak)) {
                return Err(Reason::XtsDuplicatedKeys);
            }
            self.key = XtsKey::new(key);
        }
        Ok(())
    }

    fn update(&mut self, mut buffers: Buffers<'_>) -> Result<usize, Reason> {
        let key = self.key.as_ref().ok_or(Reason::NoKeySet)?;
        let len = buffers.len();
        if !self.iv_set {
            return Err(Reason::NoIvSet);
        }
        if len < BLOCK {
            return Err(Reason::CipherOperationFailed);
        }
        if len > LONGEST {
            return Err(Reason::XtsDataUnitIsTooLarge);
        }
        xts::crypt(
            self.direction,
            &mut [CipherJob {
                key,
                iv: self.iv,
                data: buffers.work(len)?,
            }],
        );
        Ok(len)
    }

    fn finish(&mut self, _: Buffers<'_>) -> Result<usize, Reason> {
        Ok(0)
    }

    fn cipher(&mut self, buffers: Buffers<'_>) -> Result<usize, Reason> {
        self.update(buffers)
    }

    fn get(&mut self, name: Name, param: &mut Param) -> Result<(), Reason> {
        match name {
            Name::KeyLength => param.give_number(self.spec.key_len as u64),
            Name::IvLength => param.give_number(self.spec.iv_len as u64),
            Name::Padding => param.give_number(1),
            Name::Number => param.give_number(0),
            Name::Iv | Name::UpdatedIv => param.give_octets(&self.iv),
            _ => Ok(()),
        }
    }

    fn set(&mut self, name: Name, param: &Param) -> Result<(), Reason> {
        match name {
            Name::KeyLength if param.number() != Some(self.spec.key_len as u64) => {
                Err(Reason::InvalidKeyLength)
            }
            _ => Ok(()),
        }
    }
}
