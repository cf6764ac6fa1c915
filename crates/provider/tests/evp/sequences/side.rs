//! One of the two contexts that a sequence is made on.

use std::ffi::c_int;

use super::call::{Call, GET_TAG, SET_TAG, bytes};
use crate::libcrypto::{Cipher, Context, Memory, Placed, Reply};

fn pad_to(memory: &[u8]) -> Memory {
    let mut padded = [0x5a; 256];
    padded[..memory.len()].copy_from_slice(memory);
    padded
}

/// A context, and what was sealed with it.
pub(super) struct Side {
    pub(super) cipher: Cipher,
    pub(super) context: Context,
    pub(super) sealed: Vec<u8>,
    encrypts: bool,
    pub(super) tag: Vec<u8>,
}

impl Side {
    pub(super) fn new(cipher: Cipher) -> Side {
        Side {
            context: cipher.context(),
            cipher,
            sealed: Vec::new(),
            encrypts: true,
            tag: Vec::new(),
        }
    }

    /// Makes a call; keys and IVs are longer than any length that is taken. `place` says where
    /// input and output stand.
    pub(super) fn make(&mut self, call: &Call, place: impl Fn(Placed) -> Placed) -> Reply {
        let context = &mut self.context;
        match call {
            Call::Init {
                anew,
                direction,
                key,
                iv,
                param,
            } => {
                if *direction >= 0 {
                    self.encrypts = *direction == 1;
                }
                if self.encrypts {
                    self.sealed.clear();
                }
                let cipher = anew.then_some(&self.cipher);
                let key = key.map(|seed| bytes(64, seed.into()));
                let iv = iv.map(|seed| bytes(256, 7 + usize::from(seed)));
                let (key, iv) = (key.as_deref(), iv.as_deref());
                context.any_init(cipher, *direction, key, iv, param.as_ref())
            }
            Call::Reset => {
                self.encrypts = true;
                self.sealed.clear();
                context.any_reset();
                context.any_init(Some(&self.cipher), 1, None, None, None)
            }
            Call::Update { once, placed, len } => {
                let input = bytes((*len).max(0) as usize, 0);
                let reply = context.any_update(*once, place(*placed), &input, *len);
                if self.encrypts {
                    self.sealed.extend(&reply.output);
                }
                reply
            }
            Call::UpdateSealed => {
                let placed = place(Placed::Within(0, 0));
                context.any_update(false, placed, &self.sealed, self.sealed.len() as c_int)
            }
            Call::SealedTag(len) => {
                let tag = pad_to(&self.tag[..self.tag.len().min(16)]);
                context.any_control(SET_TAG, *len as c_int, Some(&tag))
            }
            Call::Finish => {
                let reply = context.any_finish();
                if self.encrypts {
                    self.sealed.extend(&reply.output);
                }
                reply
            }
            Call::Control { what, len, memory } => {
                let memory = memory.as_deref().map(pad_to);
                let reply = context.any_control(*what, *len, memory.as_ref());
                if *what == GET_TAG && reply.succeeded() {
                    self.tag.clone_from(&reply.output);
                }
                reply
            }
            Call::Set(given) => context.any_set(given),
            Call::Get(given) => context.any_get(given),
            Call::Padding(pad) => context.any_padding(*pad),
            Call::KeyLength(len) => context.any_key_length(*len),
            Call::Number(number) => context.any_number(*number),
            Call::Lengths => Reply::of(&context.lengths()),
            Call::Copy => {
                *context = context.duplicate();
                Reply::of(&[])
            }
        }
    }
}
