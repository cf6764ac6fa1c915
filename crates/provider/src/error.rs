//! Errors: reasons with a number and words, put onto OpenSSL's error queue.

use std::ffi::{CStr, c_void};
use std::ptr::null;
use std::sync::OnceLock;

use crate::ffi::{Dispatch, Function, Item, core};

macro_rules! reasons {
    ($($name:ident = $number:literal, $text:literal;)*) => {
        /// Why something was refused. Numbers are those of OpenSSL's own providers
        /// (proverr.h), so that programs which look at them find what they know.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u32)]
        pub(crate) enum Reason { $($name = $number,)* }

        /// All reasons in words, for error messages.
        pub(crate) static REASONS: &[Item] = &[
            $(Item { id: $number, text: ($text as &CStr).as_ptr() },)*
            Item { id: 0, text: null() },
        ];
    };
}

reasons! {
    BadDecrypt = 100, c"bad decrypt";
    CipherOperationFailed = 102, c"cipher operation failed";
    FailedToGetParameter = 103, c"failed to get parameter";
    FailedToSetParameter = 104, c"failed to set parameter";
    InvalidKeyLength = 105, c"invalid key length";
    OutputBufferTooSmall = 106, c"output buffer too small";
    InvalidIvLength = 109, c"invalid iv length";
    WrongFinalBlockLength = 107, c"wrong final block length";
    InvalidTag = 110, c"invalid tag";
    NoKeySet = 114, c"no key set";
    InvalidData = 115, c"invalid data";
    InvalidInputLength = 230, c"invalid input length";
    XtsDuplicatedKeys = 149, c"xts duplicated keys";
    XtsDataUnitIsTooLarge = 148, c"xts data unit is too large";
    NoIvSet = 152, c"cipherlane: no iv set, or it was used up: give a new one";
    InternalError = 153, c"cipherlane: internal error, please report it";
    OtherPipes = 154, c"cipherlane: not the 1 to 32 pipes that the pipeline was begun with";
}

/// The core's handle of a provider in one library context, to which errors are reported.
#[derive(Clone, Copy)]
pub(crate) struct Core(pub(crate) *const c_void);

/// The core's functions for its error queue, which are the same in every library context.
struct Queue {
    new: core::NewError,
    set: core::SetError,
}

static QUEUE: OnceLock<Queue> = OnceLock::new();

/// Keeps the core's functions for its error queue.
///
/// # Safety
/// `functions` is the core's dispatch table, or null.
pub(crate) unsafe fn listen(functions: *const Dispatch) {
    // SAFETY: the table has its end, and the functions of these numbers have these types.
    let (new, set) = unsafe {
        use std::mem::transmute;
        (
            Dispatch::find(functions, core::NEW_ERROR)
                .map(|found| transmute::<Function, core::NewError>(found)),
            Dispatch::find(functions, core::VSET_ERROR)
                .map(|found| transmute::<Function, core::SetError>(found)),
        )
    };
    if let (Some(new), Some(set)) = (new, set) {
        let _ = QUEUE.set(Queue { new, set });
    }
}

/// Puts a reason onto the error queue of this thread.
#[cold]
pub(crate) fn raise(Core(handle): Core, reason: Reason) {
    if let Some(queue) = QUEUE.get() {
        // SAFETY: the core's own functions with its own handle, which lives as long as the
        // contexts that were made under it; there is no format.
        unsafe {
            (queue.new)(handle);
            (queue.set)(handle, reason as u32, core::NO_FORMAT, core::NO_ARGUMENTS);
        }
    }
}
