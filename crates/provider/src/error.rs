//! Errors: reasons with a number and words, put onto OpenSSL's error queue.

use std::ffi::{CStr, c_void};
use std::ptr::null;
use std::sync::OnceLock;

use crate::ffi::{Dispatch, Function, Item, core};

/// `ERR_LIB_PROV` as it stands in an error's number (err.h): the library of OpenSSL's own providers.
const OF_PROVIDERS: u32 = 57 << 23;

macro_rules! reasons {
    ($($name:ident = $number:literal, $text:literal;)*) => {
        /// Why something was refused. Numbers are those of OpenSSL's own providers
        /// (proverr.h) and are put onto the queue as theirs: programs compare both.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u32)]
        pub(crate) enum Reason {
            /// The queue stays as it is: OpenSSL's own providers say nothing there either, and programs
            /// take the empty queue for the reason. Python's package cryptography tells a forged message
            /// from all other failures by it.
            Unsaid = 0,
            $($name = $number,)*
        }

        impl Reason {
            fn words(self) -> &'static CStr {
                match self {
                    Self::Unsaid => c"",
                    $(Self::$name => $text,)*
                }
            }
        }

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
    InvalidAad = 108, c"invalid aad";
    InvalidTag = 110, c"invalid tag";
    NoKeySet = 114, c"no key set";
    InvalidData = 115, c"invalid data";
    InvalidTagLength = 118, c"invalid tag length";
    TagNotSet = 119, c"tag not set";
    TagNotNeeded = 120, c"tag not needed";
    InvalidInputLength = 230, c"invalid input length";
    XtsDuplicatedKeys = 149, c"xts duplicated keys";
    XtsDataUnitIsTooLarge = 148, c"xts data unit is too large";
    NoIvSet = 152, c"cipherlane: no iv set, or it was used up: give a new one";
    InternalError = 153, c"cipherlane: internal error, please report it";
    OtherPipes = 154, c"cipherlane: not the 1 to 32 pipes that the pipeline was begun with";
    IvWasUsed = 155, c"cipherlane: the iv was used up: give a new one";
}

/// The core's handle of a provider in one library context, to which errors are reported.
#[derive(Clone, Copy)]
pub(crate) struct Core(pub(crate) *const c_void);

/// The core's functions for its error queue, which are the same in every library context.
struct Queue {
    new: core::NewError,
    place: core::SetErrorDebug,
    set: core::SetError,
}

static QUEUE: OnceLock<Queue> = OnceLock::new();

/// Keeps the core's functions for its error queue.
///
/// # Safety
/// `functions` is the core's dispatch table, or null.
pub(crate) unsafe fn listen(functions: *const Dispatch) {
    // SAFETY: the table has its end, and the functions of these numbers have these types.
    let (new, place, set) = unsafe {
        use std::mem::transmute;
        (
            Dispatch::find(functions, core::NEW_ERROR)
                .map(|found| transmute::<Function, core::NewError>(found)),
            Dispatch::find(functions, core::SET_ERROR_DEBUG)
                .map(|found| transmute::<Function, core::SetErrorDebug>(found)),
            Dispatch::find(functions, core::VSET_ERROR)
                .map(|found| transmute::<Function, core::SetError>(found)),
        )
    };
    if let (Some(new), Some(place), Some(set)) = (new, place, set) {
        let _ = QUEUE.set(Queue { new, place, set });
    }
}

/// Puts a reason onto the error queue of this thread; `instead`, where OpenSSL's own providers give that
/// one for every failure of a call, and the words of the reason beside it.
#[cold]
pub(crate) fn raise(Core(handle): Core, reason: Reason, instead: Option<Reason>) {
    // OpenSSL's own providers do not fail for these.
    let is_own = matches!(reason, Reason::InternalError | Reason::IvWasUsed);
    let (said, beside) = match instead {
        Some(instead) if !is_own => (instead, reason.words().as_ptr()),
        _ => (reason, null()),
    };
    if said == Reason::Unsaid {
        return;
    }
    if let Some(queue) = QUEUE.get() {
        let code = match said {
            Reason::NoIvSet | Reason::IvWasUsed | Reason::InternalError | Reason::OtherPipes => {
                said as u32
            }
            _ => OF_PROVIDERS | said as u32,
        };
        let mut none = core::NO_ARGUMENTS;
        // SAFETY: the core's own functions with its own handle, which lives as long as the
        // contexts that were made under it; the words ask for no arguments.
        unsafe {
            (queue.new)(handle);
            // Who refused it stands in what ERR_print_errors prints.
            (queue.place)(handle, c"".as_ptr(), 0, c"cipherlane".as_ptr());
            (queue.set)(handle, code, beside, none.as_mut_ptr().cast());
        }
    }
}
