//! Where a kernel stands in the data of a job.

use inout::InOutBuf;

/// Input and output of the bytes still to do. The two addresses are equal, or the
/// buffers do not overlap.
pub(crate) struct Cursor {
    pub(crate) from: *const u8,
    pub(crate) to: *mut u8,
    pub(crate) len: usize,
}

impl Cursor {
    /// At the start of `data`, which must outlive the cursor.
    #[inline(always)]
    pub(crate) fn new(data: &mut InOutBuf<'_, '_, u8>) -> Cursor {
        let len = data.len();
        let (from, to) = data.reborrow().into_raw();
        Cursor { from, to, len }
    }

    /// Steps over `len` bytes.
    ///
    /// # Safety
    /// At most `self.len`.
    #[inline(always)]
    pub(crate) unsafe fn advance(&mut self, len: usize) {
        // SAFETY: within the buffers, as for this function.
        unsafe {
            self.from = self.from.add(len);
            self.to = self.to.add(len);
        }
        self.len -= len;
    }

    /// Whole blocks to do.
    #[inline(always)]
    pub(crate) fn blocks(&self) -> usize {
        self.len / 16
    }
}
