//! A request as C has it, and the framework's request over the same memory.

use std::ffi::c_int;

use cipherlane::Direction;

use crate::memory::{apart, bytes, bytes_mut, check, region};
use crate::status::{Refusal, Status};

/// `struct cipherlane_request`.
#[derive(Debug)]
#[repr(C)]
pub struct Request {
    iv: *const u8,
    iv_len: usize,
    aad: *const u8,
    aad_len: usize,
    input: *const u8,
    output: *mut u8,
    len: usize,
    tag: *mut u8,
    tag_len: usize,
    status: c_int,
}

/// What a request has beside its payload.
pub(crate) struct Parts<'a> {
    pub(crate) iv: &'a [u8],
    pub(crate) aad: &'a [u8],
    pub(crate) tag: &'a mut [u8],
}

/// The payload: where it is read, where it is written, and how long it is.
pub(crate) struct Payload {
    pub(crate) input: *const u8,
    pub(crate) output: *mut u8,
    pub(crate) len: usize,
}

impl Payload {
    /// Bytes that are written.
    pub(crate) fn output_len(&self) -> usize {
        match self.output.is_null() {
            true => 0,
            false => self.len,
        }
    }
}

impl Request {
    pub(crate) fn set(&mut self, status: Status) {
        self.status = status as c_int;
    }

    /// Writes the tag.
    ///
    /// # Safety
    /// The pointer leads to as many bytes as its length says, which nobody else uses.
    pub(crate) unsafe fn take_tag(&mut self, tag: &[u8]) {
        let len = tag.len().min(self.tag_len);
        if !self.tag.is_null() {
            // SAFETY: as promised.
            unsafe { self.tag.copy_from_nonoverlapping(tag.as_ptr(), len) };
        }
    }

    /// Its regions, checked.
    ///
    /// # Safety
    /// Each pointer leads to as many bytes as its length says, or is null; for `'a` nobody else
    /// writes them, or reads the output and the tag.
    #[inline]
    pub(crate) unsafe fn regions<'a>(&self) -> Result<(Payload, Parts<'a>), Refusal> {
        check("input", self.input, self.len)?;
        if !self.output.is_null() {
            check("output", self.output, self.len)?;
        }
        // SAFETY: as promised.
        let parts = unsafe {
            Parts {
                iv: bytes("iv", self.iv, self.iv_len)?,
                aad: bytes("aad", self.aad, self.aad_len)?,
                tag: bytes_mut("tag", self.tag, self.tag_len)?,
            }
        };
        let payload = Payload {
            input: self.input,
            output: self.output,
            len: self.len,
        };
        let input = || ("input", region(self.input, self.len));
        let output = || ("output", region(self.output, payload.output_len()));
        let aad = || ("aad", region(self.aad, self.aad_len));
        let tag = || ("tag", region(self.tag, self.tag_len));
        apart(tag(), input())?;
        apart(tag(), output())?;
        apart(tag(), aad())?;
        apart(output(), aad())?;
        Ok((payload, parts))
    }

    /// The framework's request over the same memory.
    ///
    /// # Safety
    /// As [`regions`](Self::regions).
    #[inline]
    pub(crate) unsafe fn borrowed<'a>(&self) -> Result<cipherlane::Request<'a>, Refusal> {
        // SAFETY: as promised.
        let (payload, parts) = unsafe { self.regions() }?;
        // SAFETY: the regions are checked, and belong to the call.
        let request = unsafe {
            cipherlane::Request::from_raw(
                payload.input,
                payload.len,
                payload.output,
                payload.output_len(),
            )
        };
        Ok(request.iv(parts.iv).aad(parts.aad).tag(parts.tag))
    }
}

/// `enum cipherlane_direction`.
#[inline]
pub(crate) fn direction(number: c_int) -> Result<Direction, Refusal> {
    match number {
        0 => Ok(Direction::Encrypt),
        1 => Ok(Direction::Decrypt),
        _ => Err(Refusal::Argument(format!(
            "direction {number}: use CIPHERLANE_ENCRYPT or CIPHERLANE_DECRYPT"
        ))),
    }
}

/// What became of a request.
#[inline]
pub(crate) fn status(status: cipherlane::Status) -> Status {
    match status {
        cipherlane::Status::Done => Status::Ok,
        cipherlane::Status::Pending => Status::Pending,
        cipherlane::Status::BadTag => Status::BadTag,
        cipherlane::Status::Untouched | cipherlane::Status::Failed => Status::Failed,
        _ => Status::Invalid,
    }
}
