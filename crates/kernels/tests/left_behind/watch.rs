//! What happens around each kernel that `every_kernel` calls: the stack is wiped as by those who let
//! go of a key, and looked at.

use std::panic::Location;

use cipherlane_kernels::stack::CLEAN;

use super::search;

/// The keys of the kernels that run next. They stay where they are until those have run.
#[track_caller]
pub(crate) fn keys<K>(keys: &[&K], lengths: impl Iterator<Item = usize>) {
    let line = Location::caller();
    let file = line.file().rsplit('/').next().unwrap_or_default();
    let lengths: Vec<_> = lengths.collect();
    let calls = format!("{file} line {}, messages of {lengths:?} bytes", line.line());
    search::keys(keys, calls);
}

/// Overwrites the stack below with what is no word of a key.
pub(crate) fn clean() {
    search::paint();
}

/// Runs a kernel, and looks at the stack after it was wiped.
pub(crate) fn kernel<R>(run: impl FnOnce() -> R) -> R {
    search::after(|| {
        let result = run();
        cipherlane_kernels::wipe_stack();
        result
    })
}

/// The same for a piece of a message in ECB, CBC or CTR, of which short ones leave nothing to be wiped.
pub(crate) fn piece<R>(bytes: usize, run: impl FnOnce() -> R) -> R {
    match bytes <= CLEAN && bytes.is_multiple_of(16) {
        true => search::after(run),
        false => kernel(run),
    }
}

/// Data is not looked for.
pub(crate) fn secret(bytes: &[u8]) -> Vec<u8> {
    bytes.to_vec()
}

/// Nothing has to be made known again.
pub(crate) fn publish(_: &mut [u8]) {}
