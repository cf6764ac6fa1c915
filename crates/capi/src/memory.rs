//! Pointers and lengths of a caller in C, checked as far as they can be.

use std::ffi::{CStr, c_char};
use std::ops::Range;

use crate::status::Refusal;

/// Bytes to read. Null is memory of no bytes.
///
/// # Safety
/// `pointer` leads to `len` bytes that nobody writes for `'a`, or is null.
#[inline]
pub(crate) unsafe fn bytes<'a>(
    name: &str,
    pointer: *const u8,
    len: usize,
) -> Result<&'a [u8], Refusal> {
    check(name, pointer, len)?;
    Ok(match pointer.is_null() {
        true => &[],
        // SAFETY: the caller's promise; the length is one that memory can have.
        false => unsafe { std::slice::from_raw_parts(pointer, len) },
    })
}

/// Bytes to write.
///
/// # Safety
/// `pointer` leads to `len` bytes that nobody else uses for `'a`, or is null.
#[inline]
pub(crate) unsafe fn bytes_mut<'a>(
    name: &str,
    pointer: *mut u8,
    len: usize,
) -> Result<&'a mut [u8], Refusal> {
    check(name, pointer, len)?;
    Ok(match pointer.is_null() {
        true => &mut [],
        // SAFETY: the caller's promise; the length is one that memory can have.
        false => unsafe { std::slice::from_raw_parts_mut(pointer, len) },
    })
}

/// Whether there can be such memory.
#[inline]
pub(crate) fn check(name: &str, pointer: *const u8, len: usize) -> Result<(), Refusal> {
    if pointer.is_null() && len > 0 {
        return Err(Refusal::Argument(format!(
            "{name} is NULL, but has {len} bytes"
        )));
    }
    let end = pointer.addr().checked_add(len);
    if end.is_none() || isize::try_from(len).is_err() {
        return Err(Refusal::Argument(format!(
            "{name}: {len} bytes are more than memory has"
        )));
    }
    Ok(())
}

/// Refuses memory that is written and used for something else as well.
#[inline]
pub(crate) fn apart(
    (name, first): (&str, Range<usize>),
    (other, second): (&str, Range<usize>),
) -> Result<(), Refusal> {
    let overlap = first.start < second.end && second.start < first.end;
    match overlap && !first.is_empty() && !second.is_empty() {
        false => Ok(()),
        true => Err(Refusal::Argument(format!(
            "{name} and {other} overlap; they must be apart"
        ))),
    }
}

/// The addresses of a region that [`check`] has passed.
#[inline]
pub(crate) fn region(pointer: *const u8, len: usize) -> Range<usize> {
    pointer.addr()..pointer.addr() + len
}

/// A caller's array, of which one that has elements is not null.
///
/// # Safety
/// `pointer` leads to `count` elements that nobody else uses for `'a`, or is null.
#[inline]
pub(crate) unsafe fn array<'a, T>(
    name: &str,
    pointer: *mut T,
    count: usize,
) -> Result<&'a mut [T], Refusal> {
    check(name, pointer.cast(), count.saturating_mul(size_of::<T>()))?;
    Ok(match pointer.is_null() {
        true => &mut [],
        // SAFETY: as promised; memory can have as many.
        false => unsafe { std::slice::from_raw_parts_mut(pointer, count) },
    })
}

/// Copies a structure that begins with its size into `known`, which has the defaults. The
/// caller's may be of another version: what it lacks stays, and what is unknown here must be 0.
///
/// # Safety
/// `pointer` leads to as many bytes as its first word says; every pattern of bytes is a value of
/// `T`, which begins with its size.
pub(crate) unsafe fn sized<T>(name: &str, pointer: *const T, known: &mut T) -> Result<(), Refusal> {
    // Far more than any version has.
    const MAX_SIZE: usize = 4096;
    // SAFETY: the first word is there at any rate.
    let size = unsafe { pointer.cast::<usize>().read() };
    if !(size_of::<usize>()..=MAX_SIZE).contains(&size) {
        return Err(Refusal::Argument(format!(
            "a struct {name} of {size} bytes: set 'size' to sizeof(struct {name})"
        )));
    }
    // SAFETY: as promised.
    let given = unsafe { bytes(name, pointer.cast(), size) }?;
    let shared = size.min(size_of::<T>());
    if given[shared..].iter().any(|&byte| byte != 0) {
        return Err(Refusal::Argument(format!(
            "a struct {name} with more than this version knows; use a later libcipherlane"
        )));
    }
    // SAFETY: both have as many bytes, and lie apart.
    unsafe {
        let own = std::ptr::from_mut(known).cast::<u8>();
        own.copy_from_nonoverlapping(given.as_ptr(), shared);
    }
    Ok(())
}

/// A string.
///
/// # Safety
/// `pointer` leads to a string that nobody writes for `'a`, or is null.
pub(crate) unsafe fn text<'a>(name: &str, pointer: *const c_char) -> Result<&'a str, Refusal> {
    if pointer.is_null() {
        return Err(Refusal::Argument(format!("{name} is NULL")));
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str()
        .map_err(|_| Refusal::Argument(format!("{name} '{}' is no UTF-8", text.to_string_lossy())))
}

/// What a handle leads to.
///
/// # Safety
/// `pointer` was given by this library and not freed since, or is null.
#[inline]
pub(crate) unsafe fn handle<'a, T>(name: &str, pointer: *const T) -> Result<&'a T, Refusal> {
    // SAFETY: the caller's promise.
    unsafe { pointer.as_ref() }.ok_or_else(|| Refusal::Argument(format!("{name} is NULL")))
}

/// The place of an answer, which has nothing in it until the call has succeeded.
///
/// # Safety
/// `pointer` leads to a place that nobody else uses for `'a`, or is null.
pub(crate) unsafe fn place<'a, T>(
    name: &str,
    pointer: *mut *mut T,
) -> Result<&'a mut *mut T, Refusal> {
    if pointer.is_null() {
        return Err(Refusal::Argument(format!("{name} is NULL")));
    }
    // SAFETY: the caller's promise; what was there is overwritten without being read.
    unsafe {
        pointer.write(std::ptr::null_mut());
        Ok(&mut *pointer)
    }
}

/// Gives a value to the caller, as a handle.
pub(crate) fn give<T>(place: &mut *mut T, value: T) {
    *place = Box::into_raw(Box::new(value));
}

/// Drops what a handle leads to; a panic while it is dropped ends here.
///
/// # Safety
/// `pointer` was given by [`give`] and is not used again, or is null.
pub(crate) unsafe fn free<T>(pointer: *mut T) {
    if !pointer.is_null() {
        // SAFETY: the caller's promise.
        let value = unsafe { Box::from_raw(pointer) };
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(value)));
    }
}
