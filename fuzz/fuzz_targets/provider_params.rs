//! The OpenSSL provider's parameters, by its own functions as OpenSSL finds them: any name, type
//! and size, between calls that change what a context has. Nothing is read or written beyond
//! what a parameter may hold, and nothing panics across the C boundary.
#![no_main]

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::mem::transmute;
use std::ptr::{null, null_mut, with_exposed_provenance_mut};
use std::sync::LazyLock;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;

/// `OSSL_DISPATCH`
#[repr(C)]
struct Dispatch {
    id: c_int,
    function: Option<unsafe extern "C" fn()>,
}

/// `OSSL_ALGORITHM`
#[repr(C)]
struct Algorithm {
    names: *const c_char,
    properties: *const c_char,
    functions: *const Dispatch,
    description: *const c_char,
}

/// `OSSL_PARAM`
#[repr(C)]
struct Param {
    key: *const c_char,
    data_type: c_uint,
    data: *mut c_void,
    data_size: usize,
    return_size: usize,
}

const END: Param = Param {
    key: null(),
    data_type: 0,
    data: null_mut(),
    data_size: 0,
    return_size: 0,
};

type Initialise = unsafe extern "C" fn(
    *const c_void,
    *const Dispatch,
    *mut *const Dispatch,
    *mut *mut c_void,
) -> c_int;
type Query = unsafe extern "C" fn(*mut c_void, c_int, *mut c_int) -> *const Algorithm;
type NewContext = unsafe extern "C" fn(*mut c_void) -> *mut c_void;
type Init =
    unsafe extern "C" fn(*mut c_void, *const u8, usize, *const u8, usize, *const Param) -> c_int;
type Update =
    unsafe extern "C" fn(*mut c_void, *mut u8, *mut usize, usize, *const u8, usize) -> c_int;
type Final = unsafe extern "C" fn(*mut c_void, *mut u8, *mut usize, usize) -> c_int;
type Free = unsafe extern "C" fn(*mut c_void);
type Duplicate = unsafe extern "C" fn(*mut c_void) -> *mut c_void;
type Get = unsafe extern "C" fn(*mut c_void, *mut Param) -> c_int;
type GetConstants = unsafe extern "C" fn(*mut Param) -> c_int;
type Set = unsafe extern "C" fn(*mut c_void, *const Param) -> c_int;

/// A cipher's functions.
struct Cipher {
    /// The address of the provider, for `new`.
    provider: usize,
    new: NewContext,
    init: [Init; 2],
    update: Update,
    finish: Final,
    free: Free,
    duplicate: Duplicate,
    constants: GetConstants,
    get: Get,
    set: Set,
}

/// # Safety
/// The table has its end.
unsafe fn find(mut table: *const Dispatch, id: c_int) -> unsafe extern "C" fn() {
    // SAFETY: the table goes on until number 0.
    unsafe {
        while (*table).id != id {
            assert_ne!((*table).id, 0, "function {id}");
            table = table.add(1);
        }
        (*table).function.expect("a function")
    }
}

static CIPHERS: LazyLock<Vec<Cipher>> = LazyLock::new(|| {
    const QUERY: c_int = 1027;
    let core = [Dispatch {
        id: 0,
        function: None,
    }];
    // SAFETY: the function has this type, as core_dispatch.h says; a core may offer nothing.
    let (mut offers, provider) = unsafe {
        let initialise = cipherlane_provider::OSSL_provider_init as *const c_void;
        let initialise = transmute::<*const c_void, Initialise>(initialise);
        let (mut functions, mut context) = (null(), null_mut());
        assert_eq!(
            initialise(null(), core.as_ptr(), &mut functions, &mut context),
            1
        );
        let query: Query = transmute(find(functions, QUERY));
        (query(context, 2, &mut 0), context.expose_provenance())
    };
    let mut ciphers = Vec::new();
    // SAFETY: the list has its end, and the functions of these numbers have these types.
    unsafe {
        while !(*offers).names.is_null() {
            let table = (*offers).functions;
            ciphers.push(Cipher {
                provider,
                new: transmute(find(table, 1)),
                init: [transmute(find(table, 2)), transmute(find(table, 3))],
                update: transmute(find(table, 4)),
                finish: transmute(find(table, 5)),
                free: transmute(find(table, 7)),
                duplicate: transmute(find(table, 8)),
                constants: transmute(find(table, 9)),
                get: transmute(find(table, 10)),
                set: transmute(find(table, 11)),
            });
            offers = offers.add(1);
        }
    }
    ciphers
});

const NAMES: [&CStr; 26] = [
    c"tag",
    c"pipeline-tag",
    c"ivlen",
    c"keylen",
    c"iv",
    c"updated-iv",
    c"padding",
    c"num",
    c"taglen",
    c"tlsaad",
    c"tlsaadpad",
    c"tlsivfixed",
    c"tlsivgen",
    c"tlsivinv",
    c"tls-version",
    c"tls-mac",
    c"tls-mac-size",
    c"cts_mode",
    c"use-bits",
    c"iv-generated",
    c"mode",
    c"blocksize",
    c"aead",
    c"cts",
    c"has-randkey",
    c"",
];

#[derive(Arbitrary, Debug)]
struct Given {
    name: u8,
    data_type: u8,
    size: Size,
    null: bool,
    data: [u8; 16],
}

#[derive(Arbitrary, Debug)]
enum Size {
    Small(u8),
    /// Longer than anything that a parameter may hold.
    Long,
    Longest,
}

#[derive(Arbitrary, Debug)]
enum Call {
    Init {
        direction: bool,
        key: bool,
        iv: bool,
        given: Vec<Given>,
    },
    Update {
        from: u8,
        to: u8,
        len: u16,
        output: bool,
    },
    Finish,
    Set(Vec<Given>),
    Get(Vec<Given>),
    Constants(Vec<Given>),
    Duplicate,
}

/// As many bytes as a small size has at most, and more than any IV, tag or pointer needs.
type Memory = [u8; 256];

/// Calls `work` with an array of what was given, its end marked.
fn with<R>(given: &[Given], work: impl FnOnce(*mut Param) -> R) -> R {
    let mut memory: Vec<Memory> = vec![[0; 256]; given.len()];
    let mut array: Vec<Param> = Vec::new();
    for (given, memory) in given.iter().zip(&mut memory) {
        memory[..16].copy_from_slice(&given.data);
        let key = NAMES[usize::from(given.name) % NAMES.len()];
        // An array of pointers cannot be told from what is none: it must be one.
        let pointers = key == c"pipeline-tag";
        array.push(Param {
            key: key.as_ptr(),
            data_type: (given.data_type % 9).into(),
            data: match given.null || pointers {
                true => null_mut(),
                false => memory.as_mut_ptr().cast(),
            },
            data_size: match given.size {
                Size::Small(size) => size.into(),
                Size::Long => 1 << 31,
                Size::Longest => usize::MAX,
            },
            return_size: usize::MAX,
        });
    }
    array.push(END);
    work(array.as_mut_ptr())
}

fuzz_target!(|input: (u8, Vec<Call>)| {
    let (which, calls) = input;
    let cipher = &CIPHERS[usize::from(which) % CIPHERS.len()];
    let (mut key_len, mut iv_len) = (0usize, 0usize);
    let mut constants = [
        Param {
            key: c"keylen".as_ptr(),
            data_type: 2,
            data: (&raw mut key_len).cast(),
            data_size: 8,
            return_size: 0,
        },
        END,
    ];
    let mut memory = vec![0u8; 1 << 17];
    // SAFETY: contexts are the cipher's own; memory is as long as said, or longer than what
    // the provider may believe.
    unsafe {
        assert_eq!((cipher.constants)(constants.as_mut_ptr()), 1);
        let mut context = (cipher.new)(with_exposed_provenance_mut(cipher.provider));
        for call in &calls {
            match call {
                Call::Init {
                    direction,
                    key,
                    iv,
                    given,
                } => {
                    // As EVP does: an IV has the length that the context says.
                    let mut asked = [
                        Param {
                            key: c"ivlen".as_ptr(),
                            data_type: 2,
                            data: (&raw mut iv_len).cast(),
                            data_size: 8,
                            return_size: 0,
                        },
                        END,
                    ];
                    assert_eq!((cipher.get)(context, asked.as_mut_ptr()), 1);
                    let bytes: Memory = std::array::from_fn(|i| i as u8);
                    let some = |given: bool| if given { bytes.as_ptr() } else { null() };
                    let init = cipher.init[usize::from(*direction)];
                    with(given, |array| {
                        init(context, some(*key), key_len, some(*iv), iv_len, array)
                    });
                }
                Call::Update {
                    from,
                    to,
                    len,
                    output,
                } => {
                    let base = memory.as_mut_ptr();
                    let (from, len) = (base.add(usize::from(*from)), usize::from(*len));
                    let to = match output {
                        true => base.add(usize::from(*to)),
                        false => null_mut(),
                    };
                    (cipher.update)(context, to, &mut 0, len + 16, from, len);
                }
                Call::Finish => {
                    (cipher.finish)(context, memory.as_mut_ptr(), &mut 0, 16);
                }
                Call::Set(given) => {
                    with(given, |array| (cipher.set)(context, array));
                }
                Call::Get(given) => {
                    with(given, |array| (cipher.get)(context, array));
                }
                Call::Constants(given) => {
                    with(given, |array| (cipher.constants)(array));
                }
                Call::Duplicate => {
                    let duplicate = (cipher.duplicate)(context);
                    assert!(!duplicate.is_null());
                    (cipher.free)(context);
                    context = duplicate;
                }
            }
        }
        (cipher.free)(context);
    }
});
