//! A cipher in use, and the C functions by which OpenSSL uses it.
//!
//! Each function is generic over the cipher, catches every panic, and turns an error into
//! what OpenSSL's own provider puts onto the error queue for it and a return value of 0.

use std::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::slice;

use cipherlane_kernels::job::Direction;
use cipherlane_kernels::stack::{StackUse, depth};

use crate::buffers::Buffers;
use crate::error::{self, Core, Reason};
use crate::ffi::{Dispatch, Function, Param, cipher};
use crate::hint::rarely;
use crate::memory;
use crate::offered::Offered;
use crate::params::{self, Name};
use crate::spec::{self, Spec};
use crate::split;
use crate::statistics;

/// A cipher's context, in the order of OpenSSL's calls.
pub(crate) trait Context: Clone {
    /// Parameters that [`get`](Self::get) knows.
    const GETTABLE: &'static [Param];
    /// Parameters that [`set`](Self::set) knows.
    const SETTABLE: &'static [Param];
    /// What OpenSSL's own provider puts onto the error queue, whatever the reason, where it refuses an
    /// update, the end of a message, and a call of `EVP_Cipher`; none where it says the reason.
    const UPDATE_FAILS: Option<Reason> = None;
    const FINISH_FAILS: Option<Reason> = None;
    const CIPHER_FAILS: Option<Reason> = None;
    /// To how many bytes of the stack kernels may leave its key.
    const DEPTH: usize;
    /// Bytes of a piece with which they leave nothing.
    const CLEAN: usize = 0;
    /// The functions of a pipeline, of those ciphers that have one.
    const PIPELINE: [Dispatch; 4] = [Dispatch::END; 4];

    fn new(spec: &'static Spec) -> Self;

    fn spec(&self) -> &'static Spec;

    /// Begins a message. Where no key or no IV is given, the last one stays.
    fn init(
        &mut self,
        direction: Direction,
        key: Option<&[u8]>,
        iv: Option<&[u8]>,
    ) -> Result<(), Reason>;

    /// Does the next piece, and returns the bytes of output.
    fn update(&mut self, buffers: Buffers<'_>) -> Result<usize, Reason>;

    /// Ends the message, and returns the bytes of output.
    fn finish(&mut self, buffers: Buffers<'_>) -> Result<usize, Reason>;

    /// `EVP_Cipher`: does a piece, or ends the message where there is no input.
    fn cipher(&mut self, buffers: Buffers<'_>) -> Result<usize, Reason>;

    fn get(&mut self, name: Name, param: &mut Param) -> Result<(), Reason>;

    fn set(&mut self, name: Name, param: &Param) -> Result<(), Reason>;
}

/// The longest key of any cipher, in bytes, and the longest IV.
pub(crate) const LONGEST_KEY: usize = 64;
pub(crate) const LONGEST_IV: usize = 128;

/// Bytes of the provider's own functions between the one that OpenSSL calls and a kernel.
const OWN_DEPTH: usize = 512;

/// What OpenSSL holds a pointer to: a cipher's context, and where its errors go.
struct InUse<C> {
    core: Core,
    /// How much of the stack is to be wiped with the context.
    stack: StackUse,
    /// A panic has left the context half changed. Every further call but the one that frees it is
    /// refused.
    broken: bool,
    context: C,
}

/// Runs `work`, whose kernels may leave the key to `depth` bytes of the stack if at all, on the context
/// behind a pointer of OpenSSL's and returns 1. After an error or a panic it returns 0, and OpenSSL's error
/// queue has the reason, or `instead` of it what is given so.
///
/// # Safety
/// `context` is null or came from `newctx` or `dupctx` of the same cipher, and is used by
/// one thread at a time.
#[inline(always)]
pub(crate) unsafe fn guarded<C>(
    context: *mut c_void,
    depth: Option<usize>,
    instead: Option<Reason>,
    work: impl FnOnce(&mut C) -> Result<(), Reason>,
) -> c_int {
    // SAFETY: promised by the caller.
    let Some(used) = (unsafe { context.cast::<InUse<C>>().as_mut() }) else {
        return 0;
    };
    if let Some(depth) = depth {
        used.stack.note(depth + OWN_DEPTH);
    }
    used.run(instead, work)
}

impl<C> InUse<C> {
    fn run(
        &mut self,
        instead: Option<Reason>,
        work: impl FnOnce(&mut C) -> Result<(), Reason>,
    ) -> c_int {
        let done = match rarely(self.broken) {
            true => Err(Reason::InternalError),
            false => {
                catch_unwind(AssertUnwindSafe(|| work(&mut self.context))).unwrap_or_else(|_| {
                    self.broken = true;
                    Err(Reason::InternalError)
                })
            }
        };
        match done {
            Ok(()) => 1,
            Err(reason) => {
                error::raise(self.core, reason, instead);
                0
            }
        }
    }
}

fn kept<C>(make: impl FnOnce() -> InUse<C>) -> *mut c_void {
    match catch_unwind(AssertUnwindSafe(|| memory::keep(make))) {
        Ok(context) => context.cast(),
        Err(_) => std::ptr::null_mut(),
    }
}

/// Makes a context, for `newctx`.
///
/// # Safety
/// As [`Offered::of`].
pub(crate) unsafe fn new<C: Context>(spec: &'static Spec, provider: *mut c_void) -> *mut c_void {
    statistics::count_context(spec);
    // SAFETY: promised by the caller.
    let core = unsafe { Offered::of(provider) }.core;
    kept(|| InUse {
        core,
        stack: StackUse::NONE,
        broken: false,
        context: C::new(spec),
    })
}

unsafe extern "C" fn freectx<C>(context: *mut c_void) {
    if !context.is_null() {
        let context = context.cast::<InUse<C>>();
        // SAFETY: the context came from `kept`.
        let stack = unsafe { (*context).stack };
        // SAFETY: OpenSSL frees it once. Dropping wipes.
        let free = || unsafe { memory::free(context) };
        let _ = catch_unwind(AssertUnwindSafe(free));
        stack.wipe();
    }
}

unsafe extern "C" fn dupctx<C: Context>(context: *mut c_void) -> *mut c_void {
    // SAFETY: OpenSSL's promise about contexts.
    match unsafe { context.cast::<InUse<C>>().as_ref() } {
        Some(used) if !used.broken => {
            // What is copied, keys too, may go by the stack, in parts and as a whole.
            let mut stack = StackUse::NONE;
            stack.note(2 * size_of::<InUse<C>>() + OWN_DEPTH);
            kept(|| InUse {
                core: used.core,
                stack,
                broken: false,
                context: used.context.clone(),
            })
        }
        _ => std::ptr::null_mut(),
    }
}

/// The bytes behind a pointer; `Some(None)` if the pointer is null, and `None` if the bytes are more
/// than `longest`.
///
/// # Safety
/// `bytes` is null, or readable for `len` bytes if these are at most `longest`.
pub(crate) unsafe fn given<'a>(
    bytes: *const u8,
    len: usize,
    longest: usize,
) -> Option<Option<&'a [u8]>> {
    if bytes.is_null() {
        return Some(None);
    }
    // SAFETY: promised by the caller.
    (len <= longest).then(|| Some(unsafe { slice::from_raw_parts(bytes, len) }))
}

type Init = unsafe extern "C" fn(
    context: *mut c_void,
    key: *const u8,
    key_len: usize,
    iv: *const u8,
    iv_len: usize,
    params: *const Param,
) -> c_int;

macro_rules! inits {
    ($($name:ident $direction:expr;)*) => {$(
        unsafe extern "C" fn $name<C: Context>(
            context: *mut c_void,
            key: *const u8,
            key_len: usize,
            iv: *const u8,
            iv_len: usize,
            params: *const Param,
        ) -> c_int {
            // SAFETY: OpenSSL's promises: the context is ours, key and IV are null or
            // as long as said, and the parameters are an array.
            unsafe {
                guarded::<C>(context, Some(C::DEPTH), None, |context| {
                    let key = given(key, key_len, LONGEST_KEY).ok_or(Reason::InvalidKeyLength)?;
                    let iv = given(iv, iv_len, LONGEST_IV).ok_or(Reason::InvalidIvLength)?;
                    context.init($direction, key, iv)?;
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

type Update = unsafe extern "C" fn(
    context: *mut c_void,
    output: *mut u8,
    written: *mut usize,
    room: usize,
    input: *const u8,
    len: usize,
) -> c_int;

/// To how many bytes of the stack kernels may leave the key, for a piece of `len` bytes.
#[inline(always)]
fn depth_of<C: Context>(len: usize) -> Option<usize> {
    let leaves = C::CLEAN == 0 || rarely(len > C::CLEAN);
    leaves.then(|| match split::takes(len) {
        true => depth::ANY,
        false => C::DEPTH,
    })
}

macro_rules! updates {
    ($($name:ident $method:ident $fails:ident;)*) => {$(
        unsafe extern "C" fn $name<C: Context>(
            context: *mut c_void,
            output: *mut u8,
            written: *mut usize,
            room: usize,
            input: *const u8,
            len: usize,
        ) -> c_int {
            // SAFETY: OpenSSL's promises: the context is ours, input and output are
            // null or as long as said, and the length has a place.
            unsafe {
                guarded::<C>(context, depth_of::<C>(len), C::$fails, |context| {
                    let buffers = Buffers::new(input, len, output, room)?;
                    statistics::count(context.spec(), len);
                    let done = context.$method(buffers)?;
                    if let Some(written) = written.as_mut() {
                        *written = done;
                    }
                    Ok(())
                })
            }
        }
    )*};
}

updates! {
    update update UPDATE_FAILS;
    cipher_once cipher CIPHER_FAILS;
}

type Final = unsafe extern "C" fn(
    context: *mut c_void,
    output: *mut u8,
    written: *mut usize,
    room: usize,
) -> c_int;

unsafe extern "C" fn finish<C: Context>(
    context: *mut c_void,
    output: *mut u8,
    written: *mut usize,
    room: usize,
) -> c_int {
    // SAFETY: OpenSSL's promises, as for an update.
    unsafe {
        guarded::<C>(context, Some(C::DEPTH), C::FINISH_FAILS, |context| {
            let done = context.finish(Buffers::new(std::ptr::null(), 0, output, room)?)?;
            if let Some(written) = written.as_mut() {
                *written = done;
            }
            Ok(())
        })
    }
}

type Get = unsafe extern "C" fn(context: *mut c_void, params: *mut Param) -> c_int;
type Set = unsafe extern "C" fn(context: *mut c_void, params: *const Param) -> c_int;

unsafe extern "C" fn get_ctx_params<C: Context>(context: *mut c_void, params: *mut Param) -> c_int {
    // SAFETY: OpenSSL's promises about contexts and parameters.
    unsafe {
        guarded::<C>(context, Some(C::DEPTH), None, |context| {
            params::each_asked(params, |name, param| context.get(name, param))
        })
    }
}

unsafe extern "C" fn set_ctx_params<C: Context>(
    context: *mut c_void,
    params: *const Param,
) -> c_int {
    // SAFETY: OpenSSL's promises about contexts and parameters.
    unsafe {
        guarded::<C>(context, Some(C::DEPTH), None, |context| {
            params::each_set(params, |name, param| context.set(name, param))
        })
    }
}

type Described = unsafe extern "C" fn(*mut c_void, *mut c_void) -> *const Param;

extern "C" fn gettable_ctx<C: Context>(_: *mut c_void, _: *mut c_void) -> *const Param {
    C::GETTABLE.as_ptr()
}

extern "C" fn settable_ctx<C: Context>(_: *mut c_void, _: *mut c_void) -> *const Param {
    C::SETTABLE.as_ptr()
}

extern "C" fn gettable(_: *mut c_void) -> *const Param {
    spec::GETTABLE.as_ptr()
}

/// For [`functions`]: the two that are a cipher's own, for they have no context to ask.
pub(crate) type NewContext = unsafe extern "C" fn(provider: *mut c_void) -> *mut c_void;
pub(crate) type GetParams = unsafe extern "C" fn(params: *mut Param) -> c_int;

/// For a cipher's `get_params`.
///
/// # Safety
/// As [`params::each_asked`].
pub(crate) unsafe fn answer(spec: &Spec, params: *mut Param) -> c_int {
    // There is no context, and so nobody to tell more than that it failed.
    // SAFETY: promised by the caller.
    let answered = catch_unwind(AssertUnwindSafe(|| unsafe { spec.answer(params) }));
    matches!(answered, Ok(Ok(()))).into()
}

/// The dispatch table of a cipher.
pub(crate) const fn functions<C: Context>(new: NewContext, params: GetParams) -> [Dispatch; 19] {
    /// # Safety
    /// `F` is a function pointer.
    const unsafe fn untyped<F: Copy>(function: F) -> Option<Function> {
        // SAFETY: function pointers are of one size, and OpenSSL calls each by its number
        // as the type that it has.
        Some(unsafe { std::mem::transmute_copy::<F, Function>(&function) })
    }
    macro_rules! entry {
        ($id:ident, $function:expr, $type:ty) => {
            Dispatch {
                id: cipher::$id,
                // SAFETY: the type says that it is a function.
                function: unsafe { untyped::<$type>($function) },
            }
        };
    }
    [
        entry!(NEWCTX, new, NewContext),
        entry!(ENCRYPT_INIT, encrypt_init::<C>, Init),
        entry!(DECRYPT_INIT, decrypt_init::<C>, Init),
        entry!(UPDATE, update::<C>, Update),
        entry!(FINAL, finish::<C>, Final),
        entry!(CIPHER, cipher_once::<C>, Update),
        entry!(FREECTX, freectx::<C>, unsafe extern "C" fn(*mut c_void)),
        entry!(
            DUPCTX,
            dupctx::<C>,
            unsafe extern "C" fn(*mut c_void) -> *mut c_void
        ),
        entry!(GET_PARAMS, params, GetParams),
        entry!(GET_CTX_PARAMS, get_ctx_params::<C>, Get),
        entry!(SET_CTX_PARAMS, set_ctx_params::<C>, Set),
        entry!(
            GETTABLE_PARAMS,
            gettable,
            unsafe extern "C" fn(*mut c_void) -> *const Param
        ),
        entry!(GETTABLE_CTX_PARAMS, gettable_ctx::<C>, Described),
        entry!(SETTABLE_CTX_PARAMS, settable_ctx::<C>, Described),
        C::PIPELINE[0],
        C::PIPELINE[1],
        C::PIPELINE[2],
        C::PIPELINE[3],
        Dispatch::END,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_that_panicked_is_refused_from_then_on() {
        let mut used = InUse {
            core: Core(std::ptr::null()),
            stack: StackUse::NONE,
            broken: false,
            context: 0,
        };
        let add = |number: &mut i32| {
            *number += 1;
            Ok(())
        };
        assert_eq!(used.run(None, add), 1);
        assert_eq!(used.run(None, |_| Err(Reason::InvalidData)), 0);
        assert_eq!(used.run(None, add), 1, "an error is no panic");
        assert_eq!(used.run(None, |_| panic!("on purpose")), 0);
        assert_eq!((used.run(None, add), used.context), (0, 2));
    }
}
