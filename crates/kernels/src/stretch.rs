//! Parts of data that may be in place or apart.

use inout::InOutBuf;

/// A stretch of `data`, cut where it ends.
#[inline(always)]
pub(crate) fn stretch<'b>(
    data: &'b mut InOutBuf<'_, '_, u8>,
    start: usize,
    len: usize,
) -> InOutBuf<'b, 'b, u8> {
    let len = len.min(data.len() - start);
    data.reborrow().split_at(start).1.split_at(len).0
}
