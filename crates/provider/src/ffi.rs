//! What core.h and core_dispatch.h of OpenSSL 3 say that a provider of ciphers needs.
//! The numbers and layouts are OpenSSL's ABI and have not changed since 3.0.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

/// A function pointer of any type, as dispatch tables hold it.
pub(crate) type Function = unsafe extern "C" fn();

/// `OSSL_DISPATCH`
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Dispatch {
    pub(crate) id: c_int,
    pub(crate) function: Option<Function>,
}

impl Dispatch {
    /// The mark that ends every table.
    pub(crate) const END: Dispatch = Dispatch {
        id: 0,
        function: None,
    };

    /// The function of a number in a table.
    ///
    /// # Safety
    /// `table` is null or ends with [`END`](Self::END).
    pub(crate) unsafe fn find(mut table: *const Dispatch, id: c_int) -> Option<Function> {
        // SAFETY: the table goes on until an entry of number 0.
        while let Some(entry) = unsafe { table.as_ref() }.filter(|entry| entry.id != 0) {
            if entry.id == id {
                return entry.function;
            }
            // SAFETY: this was not the last.
            table = unsafe { table.add(1) };
        }
        None
    }
}

/// `OSSL_ALGORITHM`
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Offer {
    pub(crate) names: *const c_char,
    pub(crate) properties: *const c_char,
    pub(crate) functions: *const Dispatch,
    pub(crate) description: *const c_char,
}

// SAFETY: all four point to constants.
unsafe impl Sync for Offer {}

impl Offer {
    /// The mark that ends every list.
    pub(crate) const END: Offer = Offer {
        names: std::ptr::null(),
        properties: std::ptr::null(),
        functions: std::ptr::null(),
        description: std::ptr::null(),
    };
}

/// `OSSL_ITEM`
#[repr(C)]
pub(crate) struct Item {
    pub(crate) id: c_uint,
    pub(crate) text: *const c_char,
}

// SAFETY: the text is a constant.
unsafe impl Sync for Item {}

/// `OSSL_PARAM`
#[repr(C)]
pub(crate) struct Param {
    pub(crate) key: *const c_char,
    pub(crate) data_type: c_uint,
    pub(crate) data: *mut c_void,
    pub(crate) data_size: usize,
    pub(crate) return_size: usize,
}

// SAFETY: those that are shared describe parameters: constant keys, and no data.
unsafe impl Sync for Param {}

impl Param {
    pub(crate) const END: Param = Param {
        key: std::ptr::null(),
        data_type: 0,
        data: std::ptr::null_mut(),
        data_size: 0,
        return_size: 0,
    };

    /// An entry for lists of the parameters that can be read or set.
    pub(crate) const fn describe(key: &'static CStr, data_type: c_uint) -> Param {
        Param {
            key: key.as_ptr(),
            data_type,
            ..Param::END
        }
    }
}

/// Types of an `OSSL_PARAM`.
pub(crate) mod data_type {
    use std::ffi::c_uint;

    pub(crate) const INTEGER: c_uint = 1;
    pub(crate) const UNSIGNED_INTEGER: c_uint = 2;
    /// A `double`.
    pub(crate) const REAL: c_uint = 3;
    pub(crate) const UTF8_STRING: c_uint = 4;
    pub(crate) const OCTET_STRING: c_uint = 5;
    pub(crate) const UTF8_PTR: c_uint = 6;
    pub(crate) const OCTET_PTR: c_uint = 7;
}

/// Functions that a provider offers.
pub(crate) mod provider {
    use std::ffi::c_int;

    pub(crate) const TEARDOWN: c_int = 1024;
    pub(crate) const GETTABLE_PARAMS: c_int = 1025;
    pub(crate) const GET_PARAMS: c_int = 1026;
    pub(crate) const QUERY_OPERATION: c_int = 1027;
    pub(crate) const GET_REASON_STRINGS: c_int = 1029;

    /// `OSSL_OP_CIPHER`
    pub(crate) const CIPHERS: c_int = 2;
}

/// Functions of a cipher.
pub(crate) mod cipher {
    use std::ffi::c_int;

    pub(crate) const NEWCTX: c_int = 1;
    pub(crate) const ENCRYPT_INIT: c_int = 2;
    pub(crate) const DECRYPT_INIT: c_int = 3;
    pub(crate) const UPDATE: c_int = 4;
    pub(crate) const FINAL: c_int = 5;
    pub(crate) const CIPHER: c_int = 6;
    pub(crate) const FREECTX: c_int = 7;
    pub(crate) const DUPCTX: c_int = 8;
    pub(crate) const GET_PARAMS: c_int = 9;
    pub(crate) const GET_CTX_PARAMS: c_int = 10;
    pub(crate) const SET_CTX_PARAMS: c_int = 11;
    pub(crate) const GETTABLE_PARAMS: c_int = 12;
    pub(crate) const GETTABLE_CTX_PARAMS: c_int = 13;
    pub(crate) const SETTABLE_CTX_PARAMS: c_int = 14;
    /// These exist since 3.5; older releases ignore functions that they do not know.
    pub(crate) const PIPELINE_ENCRYPT_INIT: c_int = 15;
    pub(crate) const PIPELINE_DECRYPT_INIT: c_int = 16;
    pub(crate) const PIPELINE_UPDATE: c_int = 17;
    pub(crate) const PIPELINE_FINAL: c_int = 18;
}

/// Functions that the core offers.
pub(crate) mod core {
    use std::ffi::{c_char, c_int, c_uint, c_void};

    use super::Param;

    pub(crate) const GET_PARAMS: c_int = 2;
    pub(crate) const NEW_ERROR: c_int = 5;
    pub(crate) const SET_ERROR_DEBUG: c_int = 6;
    pub(crate) const VSET_ERROR: c_int = 7;

    pub(crate) type GetParams =
        unsafe extern "C" fn(handle: *const c_void, params: *mut Param) -> c_int;
    pub(crate) type NewError = unsafe extern "C" fn(handle: *const c_void);
    /// File, line and function where it happened.
    pub(crate) type SetErrorDebug = unsafe extern "C" fn(
        handle: *const c_void,
        file: *const c_char,
        line: c_int,
        function: *const c_char,
    );
    /// The last argument is a `va_list`, which has no arguments where the format asks for none. Some
    /// processors hand it on by copying it.
    pub(crate) type SetError = unsafe extern "C" fn(
        handle: *const c_void,
        reason: c_uint,
        format: *const c_char,
        arguments: *mut c_void,
    );
    /// As long as any processor's `va_list`.
    pub(crate) const NO_ARGUMENTS: [u64; 8] = [0; 8];
}
