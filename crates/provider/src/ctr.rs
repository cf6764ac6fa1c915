//! AES in counter mode: data in pieces of any length.

use cipherlane_kernels::aes::AesKey;
use cipherlane_kernels::ctr;
use cipherlane_kernels::job::{CipherJob, Direction};
use inout::InOutBuf;
use zeroize::Zeroize;

use crate::buffers::Buffers;
use crate::context::Context;
use crate::error::Reason;
use crate::ffi::{Param, data_type};
use crate::params::Name;
use crate::spec::Spec;

const BLOCK: usize = 16;

#[derive(Clone)]
pub(crate) struct Ctr {
    spec: &'static Spec,
    key: Option<AesKey>,
    given_iv: [u8; BLOCK],
    /// The counter of the next block.
    counter: [u8; BLOCK],
    /// Keystream of the block begun, and how much of it is used: `num`.
    keystream: [u8; BLOCK],
    used: usize,
}

impl Ctr {
    fn apply(&mut self, data: InOutBuf<'_, '_, u8>) -> Result<(), Reason> {
        let key = self.key.as_ref().ok_or(Reason::NoKeySet)?;
        let mut jobs = [CipherJob {
            key,
            iv: self.counter,
            data,
        }];
        ctr::apply(&mut jobs);
        self.counter = jobs[0].iv;
        Ok(())
    }
}

impl Drop for Ctr {
    fn drop(&mut self) {
        self.keystream.zeroize();
    }
}

impl Context for Ctr {
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
        Param::describe(c"padding", data_type::UNSIGNED_INTEGER),
        Param::describe(c"num", data_type::UNSIGNED_INTEGER),
        Param::END,
    ];

    fn new(spec: &'static Spec) -> Self {
        Ctr {
            spec,
            key: None,
            given_iv: [0; BLOCK],
            counter: [0; BLOCK],
            keystream: [0; BLOCK],
            used: 0,
        }
    }

    fn spec(&self) -> &'static Spec {
        self.spec
    }

    fn init(&mut self, _: Direction, key: Option<&[u8]>, iv: Option<&[u8]>) -> Result<(), Reason> {
        self.used = 0;
        if let Some(iv) = iv {
            self.given_iv = iv.try_into().map_err(|_| Reason::InvalidIvLength)?;
            self.counter = self.given_iv;
        }
        if let Some(key) = key {
            if key.len() != self.spec.key_len {
                return Err(Reason::InvalidKeyLength);
            }
            self.key = AesKey::new(key);
        }
        Ok(())
    }

    fn update(&mut self, mut buffers: Buffers<'_>) -> Result<usize, Reason> {
        let len = buffers.len();
        if self.key.is_none() {
            return Err(Reason::NoKeySet);
        }
        buffers.need_room(len)?;
        if self.used > 0 {
            let taken = len.min(BLOCK - self.used);
            let keystream = &self.keystream[self.used..][..taken];
            buffers.work(taken)?.xor_in2out(keystream);
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
            buffers.work(rest)?.xor_in2out(&keystream[..rest]);
            self.keystream = keystream;
            self.used = rest;
            keystream.zeroize();
        }
        Ok(len)
    }

    fn finish(&mut self, _: Buffers<'_>) -> Result<usize, Reason> {
        match self.key {
            Some(_) => Ok(0),
            None => Err(Reason::NoKeySet),
        }
    }

    fn cipher(&mut self, buffers: Buffers<'_>) -> Result<usize, Reason> {
        self.update(buffers)
    }

    fn get(&mut self, name: Name, param: &mut Param) -> Result<(), Reason> {
        match name {
            Name::KeyLength => param.give_number(self.spec.key_len as u64),
            Name::IvLength => param.give_number(self.spec.iv_len as u64),
            Name::Padding => param.give_number(1),
            Name::Number => param.give_number(self.used as u64),
            Name::Iv => param.give_octets(&self.given_iv),
            Name::UpdatedIv => param.give_octets(&self.counter),
            _ => Ok(()),
        }
    }

    fn set(&mut self, name: Name, param: &Param) -> Result<(), Reason> {
        let number = || param.number().ok_or(Reason::FailedToGetParameter);
        match name {
            // There is no padding to turn on or off, but the question is allowed.
            Name::Padding => number().map(|_| ()),
            Name::Number => {
                let used = number()? as usize;
                // Other values would need the keystream of a block gone by.
                if used != self.used && used != 0 {
                    return Err(Reason::FailedToGetParameter);
                }
                self.used = used;
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
