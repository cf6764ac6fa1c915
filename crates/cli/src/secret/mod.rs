//! Keys that the user gives: in memory that is locked, left out of core dumps and wiped, and not
//! to be seen in the process list.
//!
//! | file | what it holds |
//! |---|---|
//! | `arena` | the memory: what is allocated in a [`scope`] lies there, also by other crates |
//! | `given` | the arguments and variables that the kernel shows of this process |
//!
//! `docs/keys.md` says what is protected against whom, and what is not.

mod arena;
mod given;

use std::ffi::OsString;

use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use zeroize::Zeroizing;

pub(crate) use arena::{Arena, scope};
pub(crate) use given::Given;

/// A key, or what names it, as the user gave it.
pub(crate) type Secret = Zeroizing<Vec<u8>>;

/// From now on a crash leaves no core, and other processes of this user can neither read this
/// process's memory nor trace it.
pub(crate) fn forbid_dumps() {
    // It fails on no kernel that this program runs on.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
}

/// Takes a value out of the arguments: the copy there is wiped, and so is the one that the kernel
/// shows.
pub(crate) fn take(value: OsString) -> Secret {
    let value = Zeroizing::new(value.into_encoded_bytes());
    Given::Arguments.hide(&value);
    scope(|| Zeroizing::new(value.to_vec()))
}

/// What could not be done for keys, for a user who wants to know.
pub(crate) fn note() -> Option<&'static str> {
    arena::note()
}
