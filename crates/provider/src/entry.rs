//! The one symbol that OpenSSL looks for, and what the provider says of itself.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::error::{self, Core};
use crate::ffi::{self, Dispatch, Function, Item, Offer, Param, data_type, provider};
use crate::offered::Offered;
use crate::params::{self, Name, described};
use crate::{split, statistics};

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

/// OpenSSL calls this when it loads the provider.
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

/// Reads a setting in the provider's section of the configuration.
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

/// Runs when the library is unloaded, or when the process ends. A program that never frees an object
/// of OpenSSL, such as an `SSL_CTX`, never tears the provider down.
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
