//! Cipherlane as a provider of OpenSSL 3: programs that use OpenSSL get the lanes unchanged.
//!
//! | file | what it holds |
//! |---|---|
//! | `lib.rs` | the one symbol that OpenSSL looks for, and what the provider says of itself |
//! | `registry`, `spec` | the ciphers on offer, and their constants |
//! | `context` | the C functions of a cipher, over a trait |
//! | `block`, `cts`, `ctr`, `gcm`, `xts`, `chacha` | that trait for each mode |
//! | `keyed`, `aead` | what the modes without a tag do alike, and those with one |
//! | `pipeline` | up to 32 messages in one call, for OpenSSL 3.5 |
//! | `split` | large calls, shared with worker threads where the user dedicates cores |
//! | `tls_record` | CBC records of TLS: padding and MAC, in constant time |
//! | `buffers`, `params` | memory and parameters that a program hands over |
//! | `error` | OpenSSL's error queue |
//! | `statistics` | who used what, told at exit |
//! | `ffi` | the ABI |
//!
//! The provider does not link to libcrypto. It starts a thread only where cores are dedicated
//! to it and a call is large; all others run where they were made. OpenSSL's random generator fetches AES-CTR from it, so nothing
//! here asks OpenSSL for random bytes; those that GCM needs come from the kernel.

mod aead;
mod block;
mod buffers;
mod chacha;
mod context;
mod ctr;
mod cts;
mod error;
mod ffi;
mod gcm;
mod keyed;
mod params;
mod pipeline;
mod registry;
mod spec;
mod split;
mod statistics;
mod tls_record;
mod xts;

use std::ffi::{CStr, c_char, c_int, c_void};
use std::panic::catch_unwind;

use ffi::{Dispatch, Function, Item, Offer, Param, data_type, provider};

const NAME: &CStr = c"Cipherlane OpenSSL provider";
const VERSION: &[u8] = concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes();

static FUNCTIONS: [Dispatch; 6] = {
    const fn entry(id: c_int, function: Function) -> Dispatch {
        Dispatch {
            id,
            function: Some(function),
        }
    }
    type Gettable = extern "C" fn(*mut c_void) -> *const Param;
    type Get = unsafe extern "C" fn(*mut c_void, *mut Param) -> c_int;
    type Query = unsafe extern "C" fn(*mut c_void, c_int, *mut c_int) -> *const Offer;
    type Reasons = extern "C" fn(*mut c_void) -> *const Item;
    type Teardown = extern "C" fn(*mut c_void);
    // SAFETY: OpenSSL calls each by its number as the type that it has.
    unsafe {
        use std::mem::transmute;
        [
            entry(
                provider::TEARDOWN,
                transmute::<Teardown, Function>(teardown),
            ),
            entry(
                provider::GETTABLE_PARAMS,
                transmute::<Gettable, Function>(gettable_params),
            ),
            entry(provider::GET_PARAMS, transmute::<Get, Function>(get_params)),
            entry(
                provider::QUERY_OPERATION,
                transmute::<Query, Function>(query),
            ),
            entry(
                provider::GET_REASON_STRINGS,
                transmute::<Reasons, Function>(reasons),
            ),
            Dispatch::END,
        ]
    }
};

static GETTABLE: [Param; 5] = [
    Param::describe(c"name", data_type::UTF8_PTR),
    Param::describe(c"version", data_type::UTF8_PTR),
    Param::describe(c"buildinfo", data_type::UTF8_PTR),
    Param::describe(c"status", data_type::INTEGER),
    Param::END,
];

/// What OpenSSL calls when it loads the provider.
///
/// # Safety
/// `core` is the core's dispatch table; `functions` and `context` have places.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn OSSL_provider_init(
    handle: *const c_void,
    core: *const Dispatch,
    functions: *mut *const Dispatch,
    context: *mut *mut c_void,
) -> c_int {
    let started = catch_unwind(|| {
        // SAFETY: the core's own table.
        unsafe { error::listen(core) };
        statistics::start();
        // SAFETY: the core's own table and handle.
        let cores = unsafe { configured(core, handle, c"cores") };
        split::start(cores.as_deref());
    });
    if started.is_err() {
        return 0;
    }
    // SAFETY: both have places. Nothing of ours hangs on the context but whom errors are told.
    unsafe {
        *functions = FUNCTIONS.as_ptr();
        *context = handle.cast_mut();
    }
    1
}

/// A setting in the provider's section of the configuration.
///
/// # Safety
/// `core` is the core's dispatch table, and `handle` its handle of the provider.
unsafe fn configured(
    core: *const Dispatch,
    handle: *const c_void,
    name: &'static CStr,
) -> Option<String> {
    let mut text: *const c_char = std::ptr::null();
    let mut params = [
        Param {
            data: (&raw mut text).cast(),
            ..Param::describe(name, data_type::UTF8_PTR)
        },
        Param::END,
    ];
    // SAFETY: the function of this number has this type; the array has its end, and what it
    // leads to is a string or stays null.
    unsafe {
        let get = Dispatch::find(core, ffi::core::GET_PARAMS)?;
        let get = std::mem::transmute::<Function, ffi::core::GetParams>(get);
        let told = get(handle, params.as_mut_ptr()) == 1 && !text.is_null();
        told.then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
    }
}

extern "C" fn teardown(_: *mut c_void) {
    let _ = catch_unwind(statistics::report);
    let _ = catch_unwind(split::stop);
}

extern "C" fn gettable_params(_: *mut c_void) -> *const Param {
    GETTABLE.as_ptr()
}

unsafe extern "C" fn get_params(_: *mut c_void, mut params: *mut Param) -> c_int {
    let version = CStr::from_bytes_with_nul(VERSION).unwrap_or(c"");
    // SAFETY: an array as OpenSSL hands it over; its end is marked.
    while let Some(param) = unsafe { params.as_mut() }.filter(|param| !param.key.is_null()) {
        // SAFETY: names are strings.
        let name = unsafe { CStr::from_ptr::<'_>(param.key as *const c_char) };
        let given = match name.to_bytes() {
            b"name" => param.give_text(NAME),
            b"version" | b"buildinfo" => param.give_text(version),
            b"status" => param.give_number(1),
            _ => Ok(()),
        };
        if given.is_err() {
            return 0;
        }
        // SAFETY: this was not the last.
        params = unsafe { params.add(1) };
    }
    1
}

unsafe extern "C" fn query(
    _: *mut c_void,
    operation: c_int,
    uncacheable: *mut c_int,
) -> *const Offer {
    // SAFETY: OpenSSL gives a place for the answer.
    unsafe {
        if let Some(uncacheable) = uncacheable.as_mut() {
            *uncacheable = 0;
        }
    }
    match operation {
        provider::CIPHERS => registry::OFFERS.as_ptr(),
        _ => std::ptr::null(),
    }
}

extern "C" fn reasons(_: *mut c_void) -> *const Item {
    error::REASONS.as_ptr()
}
