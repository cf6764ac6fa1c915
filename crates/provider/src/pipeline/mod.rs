//! Cipher pipelines of OpenSSL 3.5: up to 32 messages under one key in one call, which the kernels do
//! as one batch. Older releases do not ask for these functions.
//!
//! | file | what it holds |
//! |---|---|
//! | `mod.rs` | the C functions, over a trait; a context with and without a pipeline |
//! | `cbc`, `ctr`, `aead` | that trait for each mode |
//! | `gcm`, `chacha` | the two AEADs, over which `aead` is generic |

mod aead;
mod cbc;
mod chacha;
mod ctr;
mod gcm;

use std::ffi::{c_int, c_void};
use std::slice;

use arrayvec::ArrayVec;
use cipherlane_kernels::job::Direction;
use cipherlane_kernels::stack::depth;

pub(crate) use self::cbc::CbcPipes;
pub(crate) use self::ctr::CtrPipes;
use crate::buffers::Buffers;
use crate::context::{Context, LONGEST_IV, LONGEST_KEY, given, guarded};
use crate::error::Reason;
use crate::ffi::{Dispatch, Function, Param, cipher};
use crate::params::{self, Name};
use crate::spec::Spec;
use crate::statistics;

/// AES-GCM.
pub(crate) type GcmPipes = aead::AeadPipes<gcm::Gcm>;

/// ChaCha20-Poly1305.
pub(crate) type ChaChaPipes = aead::AeadPipes<chacha::ChaCha>;

/// The most messages of a pipeline (evp.h, `EVP_MAX_PIPES`).
const MAX_PIPES: usize = 32;

/// Bytes that a call may write beyond the bytes that it reads, where the program does not say how
/// much room there is: a block, as EVP promises for a single message.
const BEYOND: usize = 16;

/// The messages of a pipeline, in the order of OpenSSL's calls.
pub(crate) trait Pipes: Clone {
    fn new(spec: &'static Spec) -> Self;

    /// The number of messages that were begun.
    fn len(&self) -> usize;

    /// Begins as many messages as there are IVs. Where no key is given, the last one stays.
    fn begin(
        &mut self,
        direction: Direction,
        key: Option<&[u8]>,
        ivs: &[&[u8]],
    ) -> Result<(), Reason>;

    /// Does the next piece of each message, and returns the bytes of each output. Where one piece is
    /// refused, no piece is done.
    fn update(&mut self, pieces: &mut [Buffers<'_>], written: &mut [usize]) -> Result<(), Reason>;

    /// Ends every message, and returns the bytes of each output.
    fn finish(&mut self, pieces: &mut [Buffers<'_>], written: &mut [usize]) -> Result<(), Reason>;

    /// Sets a parameter that only pipelines have.
    fn get(&self, _: Name, _: &mut Param) -> Result<(), Reason> {
        Ok(())
    }

    /// A parameter that the pipeline may know.
    fn set(&mut self, _: Name, _: &Param) -> Result<(), Reason> {
        Ok(())
    }
}

/// A cipher whose contexts can be asked for a pipeline as well.
#[derive(Clone)]
pub(crate) struct Pipelined<C, P> {
    single: C,
    pipes: P,
}

impl<C: Context, P: Pipes> Context for Pipelined<C, P> {
    const UPDATE_FAILS: Option<Reason> = C::UPDATE_FAILS;
    const FINISH_FAILS: Option<Reason> = C::FINISH_FAILS;
    const CIPHER_FAILS: Option<Reason> = C::CIPHER_FAILS;
    const DEPTH: usize = C::DEPTH;
    const CLEAN: usize = C::CLEAN;
    const GETTABLE: &'static [Param] = C::GETTABLE;
    const SETTABLE: &'static [Param] = C::SETTABLE;
    const PIPELINE: [Dispatch; 4] = functions::<C, P>();

    #[inline(always)]
    fn new(spec: &'static Spec) -> Self {
        Pipelined {
            single: C::new(spec),
            pipes: P::new(spec),
        }
    }

    fn spec(&self) -> &'static Spec {
        self.single.spec()
    }

    fn init(
        &mut self,
        direction: Direction,
        key: Option<&[u8]>,
        iv: Option<&[u8]>,
    ) -> Result<(), Reason> {
        self.single.init(direction, key, iv)
    }

    #[inline(always)]
    fn update(&mut self, buffers: Buffers<'_>) -> Result<usize, Reason> {
        self.single.update(buffers)
    }

    fn finish(&mut self, buffers: Buffers<'_>) -> Result<usize, Reason> {
        self.single.finish(buffers)
    }

    fn cipher(&mut self, buffers: Buffers<'_>) -> Result<usize, Reason> {
        self.single.cipher(buffers)
    }

    fn get(&mut self, name: Name, param: &mut Param) -> Result<(), Reason> {
        match name {
            Name::PipelineTag => self.pipes.get(name, param),
            _ => self.single.get(name, param),
        }
    }

    fn set(&mut self, name: Name, param: &Param) -> Result<(), Reason> {
        self.pipes.set(name, param)?;
        self.single.set(name, param)
    }
}

type Init = unsafe extern "C" fn(
    context: *mut c_void,
    key: *const u8,
    key_len: usize,
    pipes: usize,
    ivs: *const *const u8,
    iv_len: usize,
    params: *const Param,
) -> c_int;

macro_rules! inits {
    ($($name:ident $direction:expr;)*) => {$(
        unsafe extern "C" fn $name<C: Context, P: Pipes>(
            context: *mut c_void,
            key: *const u8,
            key_len: usize,
            pipes: usize,
            ivs: *const *const u8,
            iv_len: usize,
            params: *const Param,
        ) -> c_int {
            // SAFETY: OpenSSL's promises: the context is ours, the key is null or as long
            // as said, there are as many IVs as pipes, and the parameters are an array.
            unsafe {
                guarded::<Pipelined<C, P>>(context, Some(depth::ANY), None, |context| {
                    let key = given(key, key_len, LONGEST_KEY).ok_or(Reason::InvalidKeyLength)?;
                    let mut all = ArrayVec::new();
                    collect_ivs(pipes, ivs, iv_len, &mut all)?;
                    context.pipes.begin($direction, key, &all)?;
                    params::each_set(params, |name, param| context.set(name, param))
                })
            }
        }
    )*};
}

inits! {
    encrypt_init Direction::Encrypt;
    decrypt_init Direction::Decrypt;
}

/// # Safety
/// `ivs` is null or has `pipes` pointers, each null or readable for `len` bytes.
unsafe fn collect_ivs(
    pipes: usize,
    ivs: *const *const u8,
    len: usize,
    all: &mut ArrayVec<&[u8], MAX_PIPES>,
) -> Result<(), Reason> {
    if pipes > MAX_PIPES {
        return Err(Reason::OtherPipes);
    }
    if ivs.is_null() {
        return Err(Reason::NoIvSet);
    }
    for i in 0..pipes {
        // SAFETY: there is a pointer for each pipe.
        let iv = unsafe { ivs.add(i).read() };
        // SAFETY: it is null or as long as said.
        let iv = unsafe { given(iv, len, LONGEST_IV) };
        all.push(iv.ok_or(Reason::InvalidIvLength)?.ok_or(Reason::NoIvSet)?);
    }
    Ok(())
}

type Update = unsafe extern "C" fn(
    context: *mut c_void,
    pipes: usize,
    outputs: *const *mut u8,
    written: *mut usize,
    rooms: *const usize,
    inputs: *const *const u8,
    lens: *const usize,
) -> c_int;

unsafe extern "C" fn update<C: Context, P: Pipes>(
    context: *mut c_void,
    pipes: usize,
    outputs: *const *mut u8,
    written: *mut usize,
    rooms: *const usize,
    inputs: *const *const u8,
    lens: *const usize,
) -> c_int {
    // SAFETY: OpenSSL's promises: the context is ours; every array is null or has an element
    // for each pipe; inputs and outputs are null or as long as said, and each pipe's are
    // apart from the other pipes'.
    unsafe {
        guarded::<Pipelined<C, P>>(context, Some(depth::ANY), None, |context| {
            let mut call = Call::new(&context.pipes, pipes, written)?;
            for i in 0..pipes {
                let len = element(lens, i).unwrap_or(0);
                let input = element(inputs, i).unwrap_or(std::ptr::null());
                call.add(i, input, len, outputs, rooms)?;
                statistics::count(context.single.spec(), len);
            }
            statistics::count_pipeline(context.single.spec());
            context.pipes.update(&mut call.pieces, call.written)
        })
    }
}

type Final = unsafe extern "C" fn(
    context: *mut c_void,
    pipes: usize,
    outputs: *const *mut u8,
    written: *mut usize,
    rooms: *const usize,
) -> c_int;

unsafe extern "C" fn finish<C: Context, P: Pipes>(
    context: *mut c_void,
    pipes: usize,
    outputs: *const *mut u8,
    written: *mut usize,
    rooms: *const usize,
) -> c_int {
    // SAFETY: OpenSSL's promises, as for an update.
    unsafe {
        guarded::<Pipelined<C, P>>(context, Some(depth::ANY), None, |context| {
            let mut call = Call::new(&context.pipes, pipes, written)?;
            for i in 0..pipes {
                call.add(i, std::ptr::null(), 0, outputs, rooms)?;
            }
            context.pipes.finish(&mut call.pieces, call.written)
        })
    }
}

/// The arrays of a call.
struct Call<'a> {
    pieces: ArrayVec<Buffers<'a>, MAX_PIPES>,
    written: &'a mut [usize],
}

impl Call<'_> {
    /// # Safety
    /// `written` is null or has `pipes` places.
    unsafe fn new(begun: &impl Pipes, pipes: usize, written: *mut usize) -> Result<Self, Reason> {
        if pipes == 0 || pipes != begun.len() || written.is_null() {
            return Err(Reason::OtherPipes);
        }
        Ok(Call {
            pieces: ArrayVec::new(),
            // SAFETY: the array has that number of places.
            written: unsafe { slice::from_raw_parts_mut(written, pipes) },
        })
    }

    /// # Safety
    /// `outputs` and `rooms` are null or have an element `i`; for the rest as
    /// [`Buffers::new`].
    unsafe fn add(
        &mut self,
        i: usize,
        input: *const u8,
        len: usize,
        outputs: *const *mut u8,
        rooms: *const usize,
    ) -> Result<(), Reason> {
        // SAFETY: promised by the caller.
        unsafe {
            let output = element(outputs, i).unwrap_or(std::ptr::null_mut());
            let room = element(rooms, i).unwrap_or(len.saturating_add(BEYOND));
            self.pieces.push(Buffers::new(input, len, output, room)?);
        }
        Ok(())
    }
}

/// An element of an array, if there is one.
///
/// # Safety
/// `array` is null or has the element.
unsafe fn element<T>(array: *const T, i: usize) -> Option<T> {
    // SAFETY: promised by the caller.
    (!array.is_null()).then(|| unsafe { array.add(i).read() })
}

/// The functions of a dispatch table by which a context becomes a pipeline.
const fn functions<C: Context, P: Pipes>() -> [Dispatch; 4] {
    // SAFETY: OpenSSL calls each by its number as the type that it has.
    unsafe {
        use std::mem::transmute;
        [
            Dispatch {
                id: cipher::PIPELINE_ENCRYPT_INIT,
                function: Some(transmute::<Init, Function>(encrypt_init::<C, P>)),
            },
            Dispatch {
                id: cipher::PIPELINE_DECRYPT_INIT,
                function: Some(transmute::<Init, Function>(decrypt_init::<C, P>)),
            },
            Dispatch {
                id: cipher::PIPELINE_UPDATE,
                function: Some(transmute::<Update, Function>(update::<C, P>)),
            },
            Dispatch {
                id: cipher::PIPELINE_FINAL,
                function: Some(transmute::<Final, Function>(finish::<C, P>)),
            },
        ]
    }
}
