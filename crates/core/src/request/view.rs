//! A flat request's payload, for threads that share the work on it.

use std::ops::Range;

use inout::InOutBuf;

/// The payload and IV of a flat request, for threads that share the work on it.
#[derive(Clone, Copy)]
pub struct View {
    pub(super) input: *const u8,
    pub(super) output: *mut u8,
    pub(super) len: usize,
    pub(super) iv: [u8; 16],
}

// SAFETY: a view is pointers to memory that the request's owner keeps alive and
// unshared; every dereference is behind an unsafe function with that contract.
unsafe impl Send for View {}
// SAFETY: as above.
unsafe impl Sync for View {}

impl View {
    /// Bytes of payload.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no payload.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The IV, padded with zeros to 16 bytes.
    pub fn iv_block(&self) -> [u8; 16] {
        self.iv
    }

    /// A range of the payload, for reading its input and writing its output.
    ///
    /// # Safety
    /// The request must outlive the result, and no two threads may hold
    /// overlapping ranges at a time.
    #[inline]
    pub unsafe fn range<'b>(&self, range: Range<usize>) -> InOutBuf<'b, 'b, u8> {
        assert!(range.start <= range.end && range.end <= self.len);
        // SAFETY: the range lies in both regions (checked), which are equal or
        // disjoint (checked by the session); the rest is the caller's promise.
        unsafe {
            InOutBuf::from_raw(
                self.input.add(range.start),
                self.output.add(range.start),
                range.end - range.start,
            )
        }
    }

    /// The 16 bytes of input before `end`.
    ///
    /// # Safety
    /// The request must be alive, and nobody may write those bytes meanwhile.
    pub unsafe fn block_before(&self, end: usize) -> [u8; 16] {
        assert!(end >= 16 && end <= self.len);
        // SAFETY: in range (checked), readable and not written (the caller's promise).
        unsafe { self.input.add(end - 16).cast::<[u8; 16]>().read() }
    }
}
