//! The memory of one call: where data comes from, and where it goes.

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::slice;

use inout::InOutBuf;

use crate::error::Reason;
use crate::hint::rarely;

/// Bytes of the largest object in memory.
const LONGEST: usize = isize::MAX as usize;

/// The memory that a program has given to one call. Only the methods read and write it, and they do
/// each part of it at most once.
pub(crate) struct Buffers<'a> {
    input: *const u8,
    len: usize,
    output: *mut u8,
    room: usize,
    memory: PhantomData<&'a mut [u8]>,
}

/// Input and output of the same length, which are the same memory or do not overlap. It becomes an
/// [`InOutBuf`] in the place where a kernel reads that. An `InOutBuf` is never moved: the move would
/// read as one vector what was just written as several words. A processor cannot forward such
/// stores and waits until they have reached the cache, which takes longer than a block of AES. So
/// each function that takes a piece is inlined, since a call would move the piece.
pub(crate) struct Piece<'a> {
    from: *const u8,
    to: *mut u8,
    len: usize,
    memory: PhantomData<&'a mut [u8]>,
}

impl Piece<'_> {
    /// Bytes of it.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

impl<'a> From<Piece<'a>> for InOutBuf<'a, 'a, u8> {
    #[inline(always)]
    fn from(piece: Piece<'a>) -> Self {
        // SAFETY: both are valid for `len` bytes while the call lasts, and disjoint or the
        // same.
        unsafe { InOutBuf::from_raw(piece.from, piece.to, piece.len) }
    }
}

impl<'a> From<InOutBuf<'a, 'a, u8>> for Piece<'a> {
    #[inline(always)]
    fn from(data: InOutBuf<'a, 'a, u8>) -> Self {
        let len = data.len();
        let (from, to) = data.into_raw();
        Piece {
            from,
            to,
            len,
            memory: PhantomData,
        }
    }
}

impl<'a> From<&'a mut [u8]> for Piece<'a> {
    #[inline(always)]
    fn from(bytes: &'a mut [u8]) -> Self {
        Piece {
            from: bytes.as_ptr(),
            to: bytes.as_mut_ptr(),
            len: bytes.len(),
            memory: PhantomData,
        }
    }
}

/// Bytes of a program, if there are `N`. They stay where they are until they are stored: an array in a
/// `Result` may stand at an odd address, from where it is copied in pieces of all sizes. A kernel that
/// loads it as a whole then waits until these have reached the cache.
#[inline(always)]
pub(crate) fn exactly<const N: usize>(bytes: &[u8]) -> Option<&[u8; N]> {
    bytes.try_into().ok()
}

/// Copies bytes of a program, where their number is not the usual one. This is out of line, since a compiler
/// that sees it beside a copy of a known length makes one copy of any length of both.
#[cold]
#[inline(never)]
pub(crate) fn copy_unusual(from: &[u8], to: &mut [u8]) {
    to[..from.len()].copy_from_slice(from);
}

impl Buffers<'_> {
    /// Refuses a length that no memory has. Older releases of OpenSSL pass on an `int` below zero as
    /// such a length.
    ///
    /// # Safety
    /// `input` is null or readable for `len` bytes, `output` null or writable for `room`
    /// bytes, while this lives. They may overlap in any way.
    #[inline(always)]
    pub(crate) unsafe fn new(
        input: *const u8,
        len: usize,
        output: *mut u8,
        room: usize,
    ) -> Result<Self, Reason> {
        if len > LONGEST {
            return Err(Reason::InvalidInputLength);
        }
        Ok(Buffers {
            input,
            len: if input.is_null() { 0 } else { len },
            output,
            room: if output.is_null() {
                0
            } else {
                room.min(LONGEST)
            },
            memory: PhantomData,
        })
    }

    /// Bytes of input left.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn has_input(&self) -> bool {
        !self.input.is_null()
    }

    /// Whether the program has given an output. With additional data it gives none.
    pub(crate) fn has_output(&self) -> bool {
        !self.output.is_null()
    }

    pub(crate) fn is_in_place(&self) -> bool {
        std::ptr::eq(self.input, self.output)
    }

    /// Refuses an output with room for fewer than `len` bytes.
    pub(crate) fn need_room(&self, len: usize) -> Result<(), Reason> {
        match len <= self.room {
            true => Ok(()),
            false => Err(Reason::OutputBufferTooSmall),
        }
    }

    /// The next `len` bytes of input, to be read only.
    pub(crate) fn read(&mut self, len: usize) -> &[u8] {
        assert!(len <= self.len, "the input is long enough");
        let from = self.input;
        self.skip_input(len);
        if len == 0 {
            return &[];
        }
        // SAFETY: input is readable, and nothing is written while this is borrowed.
        unsafe { slice::from_raw_parts(from, len) }
    }

    /// Takes the last `len` bytes off the input, before anything is written.
    pub(crate) fn take_last(&mut self, len: usize, taken: &mut [u8]) {
        taken[..len].copy_from_slice(self.last(len));
        self.len -= len;
    }

    /// The last `len` bytes of input, to be read before anything is written.
    pub(crate) fn last(&self, len: usize) -> &[u8] {
        assert!(len <= self.len, "the input is long enough");
        if len == 0 {
            return &[];
        }
        // SAFETY: input is readable, and nothing is written while this is borrowed.
        unsafe { slice::from_raw_parts(self.input.wrapping_add(self.len - len), len) }
    }

    /// The next `len` bytes of input and of output, to work on. Input that overlaps its output in part
    /// is first moved to the output.
    #[inline(always)]
    pub(crate) fn work(&mut self, len: usize) -> Result<Piece<'_>, Reason> {
        self.need_room(len)?;
        assert!(len <= self.len, "the input is long enough");
        let (mut from, mut to) = (self.input, self.output);
        self.skip_input(len);
        self.skip_output(len);
        if rarely(len == 0) {
            (from, to) = (NonNull::dangling().as_ptr(), NonNull::dangling().as_ptr());
        } else if from.addr().abs_diff(to.addr()) < len {
            if !std::ptr::eq(from, to) {
                // SAFETY: both are valid for `len` bytes; they may overlap.
                unsafe { from.copy_to(to, len) };
            }
            from = to;
        }
        Ok(Piece {
            from,
            to,
            len,
            memory: PhantomData,
        })
    }

    /// Moves the input to the output, where the output begins within the input. Otherwise input would
    /// be overwritten before it is read.
    #[inline]
    pub(crate) fn settle(&mut self) -> Result<(), Reason> {
        let (from, to) = (self.input.addr(), self.output.addr());
        if from < to && to - from < self.len {
            self.need_room(self.len)?;
            // SAFETY: input is readable, and there is room for it.
            unsafe { self.input.copy_to(self.output, self.len) };
            self.input = self.output;
        }
        Ok(())
    }

    /// Writes to the output.
    #[inline]
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Reason> {
        self.need_room(bytes.len())?;
        if bytes.is_empty() {
            return Ok(());
        }
        // SAFETY: there is room, and `bytes` are not of the output: they are borrowed, and
        // this is the only way to the output.
        unsafe {
            bytes
                .as_ptr()
                .copy_to_nonoverlapping(self.output, bytes.len())
        };
        self.skip_output(bytes.len());
        Ok(())
    }

    /// Writes to the output. When the work is in place, the input there moves behind these bytes.
    pub(crate) fn insert<const N: usize>(&mut self, bytes: &[u8; N]) -> Result<(), Reason> {
        let (from, to) = (self.input.addr(), self.output.addr());
        let stands_there = match from < to {
            true => to - from < self.len,
            false => from - to < bytes.len(),
        };
        if self.len > 0 && stands_there {
            self.need_room(bytes.len().saturating_add(self.len))?;
            let behind = self.output.wrapping_add(bytes.len());
            // SAFETY: input is readable, and there is room for it behind the bytes.
            unsafe { self.input.copy_to(behind, self.len) };
            self.input = behind;
        }
        self.write(bytes)
    }

    /// All of the output that is left, to be read and written.
    pub(crate) fn output(&mut self) -> &mut [u8] {
        if self.room == 0 {
            return &mut [];
        }
        // SAFETY: the output is writable, and borrowed from here alone.
        unsafe { slice::from_raw_parts_mut(self.output, self.room) }
    }

    fn skip_input(&mut self, len: usize) {
        self.len -= len;
        self.input = self.input.wrapping_add(len);
    }

    fn skip_output(&mut self, len: usize) {
        self.room -= len;
        self.output = self.output.wrapping_add(len);
    }
}
