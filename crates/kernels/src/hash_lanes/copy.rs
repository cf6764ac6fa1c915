//! Copies of few bytes.

/// Copies a few bytes without a call: the ends of a message are mostly short.
#[inline(always)]
pub(crate) fn copy_short(to: &mut [u8], from: &[u8]) {
    match from.len() {
        0 => {}
        1..4 => {
            for (to, from) in to.iter_mut().zip(from) {
                *to = *from;
            }
        }
        4..8 => copy_ends::<4>(to, from),
        8..16 => copy_ends::<8>(to, from),
        16..32 => copy_ends::<16>(to, from),
        32..64 => copy_ends::<32>(to, from),
        _ => to.copy_from_slice(from),
    }
}

/// Copies `N` to `2 * N` bytes: the first and the last `N`, which may overlap.
#[inline(always)]
fn copy_ends<const N: usize>(to: &mut [u8], from: &[u8]) {
    if let (Some(first), Some(to)) = (from.first_chunk::<N>(), to.first_chunk_mut()) {
        *to = *first;
    }
    if let (Some(last), Some(to)) = (from.last_chunk::<N>(), to.last_chunk_mut()) {
        *to = *last;
    }
}
