//! Cipherlane as a provider of OpenSSL 3: programs that use OpenSSL get the lanes unchanged.
//!
//! | file | what it holds |
//! |---|---|
//! | `lib.rs` | the one symbol that OpenSSL looks for, and what the provider says of itself |
//! | `registry`, `spec` | the ciphers, and their constants |
//! | `offered` | those that the configuration has on offer |
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
//! to it and a call is large; all others run where they were made. OpenSSL's random generator
//! fetches AES-CTR from it, so nothing here asks OpenSSL for random bytes; those that GCM needs
//! come from the kernel.
//!
//! # Where it differs from OpenSSL's default provider
//!
//! Calls of EVP, `ctrl` and `OSSL_PARAM` return what they return with the default provider,
//! write the same, and have an error for the same calls: the test `evp` draws sequences of them
//! for both (`tests/evp/sequences`). These differ on purpose.
//!
//! | call | default provider | here |
//! |---|---|---|
//! | ChaCha20-Poly1305: a second message without a new IV, also after a new key, or a message under the IV that records of TLS are counted from | encrypts under the same nonce (3.0 and 3.5) | refused, as both do for AES-GCM. No user of the default provider needs it: libssl's TLS 1.3, QUIC, HPKE, `openssl speed` and `evp_test` give each message an IV, and TLS 1.2 gives its number |
//! | ChaCha20-Poly1305 without a key or an IV | uses zeros | refused |
//! | ChaCha20-Poly1305: the end of a message to open, without a tag | takes none for the right one | refused |
//! | ChaCha20-Poly1305: the tag before the end of the first message | zeros | refused |
//! | ChaCha20-Poly1305: additional data after data | makes a tag that nobody can check | refused |
//! | ChaCha20-Poly1305: `EVP_Cipher` without input | does nothing before 3.0.22, then ends the message | ends the message |
//! | AES-GCM: data after a new key in the middle of a message | goes on with a counter of zeros | refused until there is an IV |
//! | AES-GCM: data after a wrong tag | goes on with the message | refused until there is an IV |
//! | AES-GCM: the next IV of a counter under which a message was sealed without asking for it | the same IV again | refused |
//! | AES-GCM: the next IV of less than 8 bytes; part of an IV that is longer than the IV | counts, or writes, beside the IV | refused |
//! | AES-GCM and ChaCha20-Poly1305: a header of TLS that is refused | the record after it is done as if it were not | it is forgotten |
//! | AES-GCM: the tag while a record's header waits, or when sealing a tag that is set | both are in one place, and overwrite each other | they are kept apart |
//! | ECB, CBC: `EVP_Cipher` with part of a block | reads and writes a whole one | refused |
//! | ECB, CBC, CTR: no output | writes to the null pointer | refused |
//! | CBC with ciphertext stealing, XTS in a copy: no key | computes with what is in memory | refused |
//! | ECB, CBC: in place with a block begun before; input and output that overlap in part | overwrites input that is not read yet | as if they were apart |
//! | ECB, CBC, CTS, XTS: another direction without a key | goes on with the key's schedule for the first | the other direction |
//! | ECB, CBC, CTR, CTS: `num` of a block or more | taken before 3.0.20 | refused |
//! | CTR: `tls-version` and `tls-mac-size` | takes a MAC off each piece that is opened; TLS has no such suite | kept, and not obeyed |
//! | A record of TLS by CBC: empty, to be opened; a copy of the context after one was opened | reads before the record; frees its MAC twice | refused; copies the MAC |
//! | A length below zero | read as nearly all memory by older releases of EVP | refused |
//! | Numbers of more than 64 bytes, or a null pointer for what is set | read and written as said | refused |
//! | `cts_mode` with a size that is shorter than the string | believes the string's end | believes the size |
//! | A call that is refused | now and then has no entry on the error queue | always has one |

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
mod offered;
mod params;
mod pipeline;
mod registry;
mod spec;
mod split;
mod statistics;
mod tls_record;
mod xts;

use std::ffi::{CStr, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

use error::Core;
use ffi::{Dispatch, Function, Item, Offer, Param, data_type, provider};
use offered::Offered;
use params::{Name, described};

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
    type Teardown = unsafe extern "C" fn(*mut c_void);
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

static GETTABLE: [Param; 5] = described![Title, Release, BuildInfo, Status];

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
        let setting = |name| unsafe { configured(core, handle, name) };
        let offered = Box::new(Offered::new(Core(handle), setting(c"ciphers").as_deref()));
        split::start(setting(c"cores").as_deref());
        offered
    });
    let Ok(offered) = started else {
        return 0;
    };
    // SAFETY: both have places.
    unsafe {
        *functions = FUNCTIONS.as_ptr();
        *context = Box::into_raw(offered).cast();
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

unsafe extern "C" fn teardown(provider: *mut c_void) {
    let _ = catch_unwind(statistics::report);
    let _ = catch_unwind(split::stop);
    // SAFETY: it is what `OSSL_provider_init` gave, and this is the last call with it. OpenSSL
    // keeps no list of a provider that it tears down.
    drop(unsafe { Box::from_raw(provider.cast::<Offered>()) });
}

/// Runs when the library is unloaded, and at the latest when the process ends: a program that
/// never frees what it had of OpenSSL, such as an `SSL_CTX`, has no tear-down.
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_END: extern "C" fn() = at_end;

extern "C" fn at_end() {
    let _ = catch_unwind(statistics::report_rest);
}

extern "C" fn gettable_params(_: *mut c_void) -> *const Param {
    GETTABLE.as_ptr()
}

unsafe extern "C" fn get_params(_: *mut c_void, params: *mut Param) -> c_int {
    let version = CStr::from_bytes_with_nul(VERSION).unwrap_or(c"");
    // SAFETY: an array as OpenSSL hands it over.
    let answered = catch_unwind(AssertUnwindSafe(|| unsafe {
        params::each_asked(params, |name, param| match name {
            Name::Title => param.give_text_pointer(NAME),
            Name::Release | Name::BuildInfo => param.give_text_pointer(version),
            Name::Status => param.give_u32(1),
            _ => Ok(()),
        })
    }));
    matches!(answered, Ok(Ok(()))).into()
}

unsafe extern "C" fn query(
    provider: *mut c_void,
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
        // SAFETY: OpenSSL's promise about providers.
        provider::CIPHERS => unsafe { Offered::of(provider) }.ciphers(),
        _ => std::ptr::null(),
    }
}

extern "C" fn reasons(_: *mut c_void) -> *const Item {
    error::REASONS.as_ptr()
}
