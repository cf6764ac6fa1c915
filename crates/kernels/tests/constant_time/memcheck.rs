//! Client requests to valgrind's memcheck (valgrind.h and memcheck.h): bytes are marked
//! undefined, and memcheck then reports every branch on them and every address made of
//! them. Outside of valgrind a request does nothing.
//!
//! The only unsafe code of this test.

use std::arch::asm;

/// Bytes that memcheck takes for undefined from here on: a copy of `bytes`.
pub(crate) fn secret(bytes: &[u8]) -> Vec<u8> {
    const MAKE_MEM_UNDEFINED: usize = 0x4d43_0001;
    let copy = bytes.to_vec();
    request(MAKE_MEM_UNDEFINED, &copy);
    copy
}

/// Lets `bytes` be looked at again.
pub(crate) fn publish(bytes: &mut [u8]) {
    const MAKE_MEM_DEFINED: usize = 0x4d43_0002;
    request(MAKE_MEM_DEFINED, bytes);
}

/// The keys of the kernels that run next: memcheck need not be told.
pub(crate) fn keys<K>(_: &[&K], _: impl Iterator<Item = usize>) {}

/// Stack that is not initialised is no matter here.
pub(crate) fn clean() {}

/// Runs a kernel.
pub(crate) fn kernel<R>(run: impl FnOnce() -> R) -> R {
    run()
}

/// Runs a kernel over a piece of a message.
pub(crate) fn piece<R>(_: usize, run: impl FnOnce() -> R) -> R {
    run()
}

/// Whether this process runs under valgrind.
pub(crate) fn is_watching() -> bool {
    const RUNNING_ON_VALGRIND: usize = 0x1001;
    request(RUNNING_ON_VALGRIND, &[]) > 0
}

/// One request, and what valgrind answers; 0 outside of it.
fn request(code: usize, bytes: &[u8]) -> usize {
    let arguments = [
        code,
        bytes.as_ptr().expose_provenance(),
        bytes.len(),
        0,
        0,
        0,
    ];
    let mut answer = 0;
    // SAFETY: the rotations add up to 128 bits and leave rdi as it was, and the exchange
    // changes nothing either. Valgrind reads the six words behind rax, writes rdx, and
    // keeps its own books of `bytes`.
    unsafe {
        asm!(
            "rol rdi, 3", "rol rdi, 13", "rol rdi, 61", "rol rdi, 51",
            "xchg rbx, rbx",
            in("rax") arguments.as_ptr(),
            inout("rdx") answer,
            options(nostack),
        );
    }
    answer
}
