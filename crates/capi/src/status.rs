//! What calls answer: a number, and the reason in words for the thread.

use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

use cipherlane::Error;

/// `enum cipherlane_status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Status {
    /// Done.
    Ok = 0,
    /// Authentication failed; the output was wiped.
    BadTag = 1,
    /// An argument was refused.
    Invalid = 2,
    /// A driver that is unknown or cannot be used.
    Unavailable = 3,
    /// A driver failed in the middle of a request in place.
    Failed = 4,
    /// Settings.
    Config = 5,
    /// A counter of nonces is at its end, or another process's.
    Nonces = 6,
    /// The work is not finished yet.
    Pending = 7,
    /// A fault of this library.
    Internal = 8,
}

/// Why a call is refused.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// By the framework.
    Framework(Error),
    /// By an SA.
    Esp(cipherlane_esp::Error),
    /// By this library.
    Argument(String),
    /// Not finished: no error, and no words.
    Pending,
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Refusal::Framework(error)
    }
}

impl From<cipherlane_esp::Error> for Refusal {
    fn from(error: cipherlane_esp::Error) -> Self {
        match error {
            cipherlane_esp::Error::Session(error) => Refusal::Framework(error),
            error => Refusal::Esp(error),
        }
    }
}

impl From<&Error> for Status {
    fn from(error: &Error) -> Self {
        match error {
            Error::BadTag { .. } => Status::BadTag,
            Error::UnknownDriver { .. } | Error::DriverUnusable { .. } => Status::Unavailable,
            Error::DriverFailed { .. } => Status::Failed,
            Error::Config { .. } | Error::Io { .. } => Status::Config,
            Error::NoncesUsedUp | Error::NonceForked => Status::Nonces,
            // The rest are lengths, names and calls that an algorithm does not take.
            _ => Status::Invalid,
        }
    }
}

impl Refusal {
    fn status(&self) -> Status {
        match self {
            Refusal::Framework(error) => error.into(),
            Refusal::Esp(cipherlane_esp::Error::Random(_)) => Status::Unavailable,
            Refusal::Esp(_) | Refusal::Argument(_) => Status::Invalid,
            Refusal::Pending => Status::Pending,
        }
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Refusal::Framework(error) => error.fmt(f),
            Refusal::Esp(error) => error.fmt(f),
            Refusal::Argument(text) => f.write_str(text),
            Refusal::Pending => f.write_str("the work is not finished yet"),
        }
    }
}

thread_local! {
    static TEXT: RefCell<CString> = RefCell::new(CString::default());
}

/// Runs what a function of the library does, and turns its end into a number.
#[inline]
pub(crate) fn answer(work: impl FnOnce() -> Result<(), Refusal>) -> c_int {
    // What a panic leaves half done is a session or a framework, which are made for drivers that
    // panic, or a value that is not given to the caller.
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => Status::Ok as c_int,
        Ok(Err(refusal)) => tell(refusal.status(), &refusal),
        Err(_) => tell(
            Status::Internal,
            &"a fault of Cipherlane; what was told on standard error helps to report the fault",
        ),
    }
}

#[cold]
fn tell(status: Status, text: &dyn std::fmt::Display) -> c_int {
    let mut text = text.to_string().into_bytes();
    text.retain(|&byte| byte != 0);
    // A thread that ends has no text any more, and cannot ask for one.
    let _ = TEXT.try_with(|kept| *kept.borrow_mut() = CString::new(text).unwrap_or_default());
    status as c_int
}

/// `cipherlane_error_text`.
#[unsafe(no_mangle)]
pub extern "C" fn cipherlane_error_text() -> *const c_char {
    TEXT.try_with(|kept| kept.borrow().as_ptr())
        .unwrap_or(c"".as_ptr())
}
