//! Ranges of a flat request's payload, for threads that share the work on it.

use std::ops::Range;

use inout::InOutBuf;

use super::Request;

impl Request<'_> {
    /// For drivers that let several threads work on one flat request: a range of its
    /// payload, for reading the input and writing the output.
    ///
    /// # Safety
    /// While the result lives, nobody else reads or writes the same bytes of input and output,
    /// be it through another part, through [`input`](Self::input), or otherwise.
    ///
    /// # Panics
    /// If the request is scattered, or if the range is not in both input and output. The
    /// request of a MAC has no output.
    #[inline]
    pub unsafe fn part(&self, range: Range<usize>) -> InOutBuf<'_, '_, u8> {
        assert!(!self.is_scattered(), "a scattered request has no flat part");
        let (output, len) = match self.has_output() {
            true => (self.output, self.input_len.min(self.output_len)),
            false => (self.input.cast_mut(), 0),
        };
        assert!(range.start <= range.end && range.end <= len);
        // SAFETY: the range lies in both regions (checked), which live as long as the request
        // is borrowed, and which are equal or disjoint: safe code can make no others, and
        // `from_raw` demands it of a request that does not go through a session. That the
        // bytes are used by nobody else is the caller's promise.
        unsafe {
            InOutBuf::from_raw(
                self.input.add(range.start),
                output.add(range.start),
                range.end - range.start,
            )
        }
    }
}
