//! Calls with whatever C allows, and all that a caller sees of them.

use std::ffi::{CStr, c_int, c_uint, c_void};
use std::ptr::{null, null_mut};

use super::{Cipher, Context, LIBCRYPTO, Param, params};

/// Memory that calls are given, longer than any IV, tag or number.
pub(crate) type Memory = [u8; 256];

/// Where a call's input and output stand in one piece of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placed {
    Apart,
    /// Each begins at an offset; with the same one this is a call in place.
    Within(usize, usize),
    /// The input is additional data.
    NoOutput,
    /// There is no input, and an output or none.
    NoInput(bool),
}

/// What a caller sees of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) returned: c_int,
    /// What the error queue has: OpenSSL's numbers of libraries and reasons, the first error first.
    pub(crate) errors: Vec<(u64, u64)>,
    /// What was written, where the call succeeded.
    pub(crate) output: Vec<u8>,
    /// The length that was told.
    pub(crate) told: usize,
}

impl Reply {
    pub(crate) fn succeeded(&self) -> bool {
        self.returned > 0
    }

    /// Of a call that cannot fail.
    pub(crate) fn of(numbers: &[c_int]) -> Reply {
        Reply {
            returned: 1,
            errors: Vec::new(),
            output: numbers.iter().flat_map(|n| n.to_ne_bytes()).collect(),
            told: 0,
        }
    }
}

/// A parameter as a program gives it; the size may be wrong.
#[derive(Clone, Debug)]
pub(crate) struct Given {
    pub(crate) key: &'static CStr,
    pub(crate) data_type: c_uint,
    pub(crate) size: usize,
    pub(crate) null: bool,
    pub(crate) memory: Vec<u8>,
}

impl Given {
    /// The array with its end, of which the data is `memory`.
    pub(super) fn array(&self, memory: &mut Memory) -> [Param; 2] {
        memory[..self.memory.len()].copy_from_slice(&self.memory);
        let mut array = params(self.key, self.data_type, memory);
        array[0].data_size = self.size;
        if self.null {
            array[0].data = null_mut();
        }
        array
    }
}

const OCTET_PTR: c_uint = 7;

/// The begin of memory, up to where it has but one byte.
fn written(memory: &Memory) -> Vec<u8> {
    let last = memory.iter().rposition(|byte| *byte != memory[255]);
    memory[..last.map_or(0, |last| last + 1)].to_vec()
}

/// Takes all of this thread's error queue.
fn errors() -> Vec<(u64, u64)> {
    // SAFETY: no preconditions.
    let codes = std::iter::repeat_with(|| unsafe { (LIBCRYPTO.ERR_get_error)() });
    let codes = codes.take_while(|&code| code != 0);
    // err.h: ERR_LIB_OFFSET, ERR_LIB_MASK, ERR_REASON_MASK
    codes
        .map(|code| (code >> 23 & 0xff, code & 0x7f_ffff))
        .collect()
}

impl Context {
    /// Runs a call with the error queue empty before it.
    fn reply(&mut self, work: impl FnOnce(*mut c_void) -> c_int) -> Reply {
        // SAFETY: no preconditions.
        let (returned, errors) = unsafe {
            (LIBCRYPTO.ERR_clear_error)();
            (work(self.raw), errors())
        };
        Reply {
            returned,
            errors,
            output: Vec::new(),
            told: 0,
        }
    }

    /// With a cipher the context is as new but for its flags. Key and IV are as long as any.
    pub(crate) fn any_init(
        &mut self,
        cipher: Option<&Cipher>,
        direction: c_int,
        key: Option<&[u8]>,
        iv: Option<&[u8]>,
        param: Option<&Given>,
    ) -> Reply {
        let mut memory = [0; 256];
        let array = param.map(|param| param.array(&mut memory));
        let pointer = |bytes: Option<&[u8]>| bytes.map_or(null(), <[u8]>::as_ptr);
        // SAFETY: as promised; the parameters are an array with its end.
        self.reply(|raw| unsafe {
            let cipher = cipher.map_or(null_mut(), |cipher| cipher.raw);
            let params = array.as_ref().map_or(null(), |array| array.as_ptr().cast());
            let (key, iv) = (pointer(key), pointer(iv));
            (LIBCRYPTO.EVP_CipherInit_ex2)(raw, cipher, key, iv, direction, params)
        })
    }

    /// `EVP_CIPHER_CTX_reset`, after which a context has no cipher.
    pub(crate) fn any_reset(&mut self) -> Reply {
        // SAFETY: the context is ours.
        self.reply(|raw| unsafe { (LIBCRYPTO.EVP_CIPHER_CTX_reset)(raw) })
    }

    /// `EVP_CipherUpdate`, or with `once` `EVP_Cipher`. A length below zero is given as it is,
    /// with no input.
    pub(crate) fn any_update(
        &mut self,
        once: bool,
        placed: Placed,
        input: &[u8],
        len: c_int,
    ) -> Reply {
        const UNTOUCHED: u8 = 0xa5;
        let (from, to) = match placed {
            Placed::Apart => (0, input.len() + 32),
            Placed::Within(from, to) => (from, to),
            Placed::NoOutput | Placed::NoInput(_) => (0, input.len()),
        };
        let room = input.len() + self.block();
        let mut memory = vec![UNTOUCHED; from.max(to) + room + 32];
        memory[from..][..input.len()].copy_from_slice(input);
        let before = memory.clone();
        let mut told = 0;
        let mut reply = self.reply(|raw| {
            let base = memory.as_mut_ptr();
            let input = match placed {
                Placed::NoInput(_) => null(),
                _ => base.wrapping_add(from).cast_const(),
            };
            let output = match placed {
                Placed::NoOutput | Placed::NoInput(false) => null_mut(),
                _ => base.wrapping_add(to),
            };
            // SAFETY: input and output are null or as long as EVP wants them.
            unsafe {
                match once {
                    true => (LIBCRYPTO.EVP_Cipher)(raw, output, input, len as c_uint),
                    false => (LIBCRYPTO.EVP_CipherUpdate)(raw, output, &mut told, input, len),
                }
            }
        });
        let written = match once {
            true => reply.returned.max(0) as usize,
            false => told as usize,
        };
        reply.told = written;
        if reply.returned >= 0 && !matches!(placed, Placed::NoOutput | Placed::NoInput(false)) {
            reply.output = memory[to..][..written].to_vec();
        }
        // Nothing is written beyond what EVP allows.
        let end = to + room;
        assert!(memory[..to] == before[..to] && memory[end..] == before[end..]);
        reply
    }

    pub(crate) fn any_finish(&mut self) -> Reply {
        let mut output = [0; 16];
        let mut told = 0;
        // SAFETY: there is room for a block.
        let mut reply = self.reply(|raw| unsafe {
            (LIBCRYPTO.EVP_CipherFinal_ex)(raw, output.as_mut_ptr(), &mut told)
        });
        reply.told = told as usize;
        if reply.succeeded() {
            reply.output = output[..reply.told].to_vec();
        }
        reply
    }

    /// `EVP_CIPHER_CTX_ctrl` with memory or a null pointer.
    pub(crate) fn any_control(
        &mut self,
        what: c_int,
        len: c_int,
        memory: Option<&Memory>,
    ) -> Reply {
        let mut memory = memory.copied();
        let at = memory
            .as_mut()
            .map_or(null_mut(), |bytes| bytes.as_mut_ptr());
        // SAFETY: the memory is longer than any IV or tag.
        let mut reply =
            self.reply(|raw| unsafe { (LIBCRYPTO.EVP_CIPHER_CTX_ctrl)(raw, what, len, at.cast()) });
        if reply.succeeded() {
            reply.output = memory.as_ref().map_or(Vec::new(), written);
        }
        reply
    }

    pub(crate) fn any_set(&mut self, given: &Given) -> Reply {
        let mut memory = [0; 256];
        let array = given.array(&mut memory);
        // SAFETY: an array with its end.
        let mut reply =
            self.reply(|raw| unsafe { (LIBCRYPTO.EVP_CIPHER_CTX_set_params)(raw, array.as_ptr()) });
        reply.told = array[0].return_size;
        reply
    }

    pub(crate) fn any_get(&mut self, given: &Given) -> Reply {
        let mut memory = [0; 256];
        let mut array = given.array(&mut memory);
        // SAFETY: an array with its end.
        let mut reply = self
            .reply(|raw| unsafe { (LIBCRYPTO.EVP_CIPHER_CTX_get_params)(raw, array.as_mut_ptr()) });
        reply.told = array[0].return_size;
        let pointed = given.data_type == OCTET_PTR && !given.null && reply.told != usize::MAX;
        reply.output = match pointed && reply.succeeded() {
            // SAFETY: the data is a pointer to octets of the context, or null.
            true => unsafe {
                let octets = memory.as_ptr().cast::<*const u8>().read_unaligned();
                match octets.is_null() {
                    true => Vec::new(),
                    false => std::slice::from_raw_parts(octets, reply.told).to_vec(),
                }
            },
            false if reply.succeeded() => written(&memory),
            false => Vec::new(),
        };
        reply
    }

    pub(crate) fn any_padding(&mut self, pad: c_int) -> Reply {
        // SAFETY: the context has a cipher.
        self.reply(|raw| unsafe { (LIBCRYPTO.EVP_CIPHER_CTX_set_padding)(raw, pad) })
    }

    pub(crate) fn any_key_length(&mut self, len: c_int) -> Reply {
        // SAFETY: the context has a cipher.
        self.reply(|raw| unsafe { (LIBCRYPTO.EVP_CIPHER_CTX_set_key_length)(raw, len) })
    }

    pub(crate) fn any_number(&mut self, number: c_int) -> Reply {
        // SAFETY: the context has a cipher.
        self.reply(|raw| unsafe { (LIBCRYPTO.EVP_CIPHER_CTX_set_num)(raw, number) })
    }

    /// What EVP's own functions tell of a context.
    pub(crate) fn lengths(&self) -> [c_int; 4] {
        // SAFETY: the context has a cipher.
        unsafe {
            [
                (LIBCRYPTO.EVP_CIPHER_CTX_get_key_length)(self.raw),
                (LIBCRYPTO.EVP_CIPHER_CTX_get_iv_length)(self.raw),
                (LIBCRYPTO.EVP_CIPHER_CTX_get_tag_length)(self.raw),
                (LIBCRYPTO.EVP_CIPHER_CTX_get_num)(self.raw),
            ]
        }
    }
}
