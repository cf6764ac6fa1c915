//! The SHA-2 compression functions of the `sha2` crate.

/// SHA-256 compression of whole blocks of 64 bytes; words a to h in order.
pub(crate) fn compress256(state: &mut [u32; 8], blocks: &[u8]) {
    sha2::block_api::compress256(state, blocks.as_chunks().0);
}

/// SHA-512 compression of whole blocks of 128 bytes; words a to h in order.
pub(crate) fn compress512(state: &mut [u64; 8], blocks: &[u8]) {
    sha2::block_api::compress512(state, blocks.as_chunks().0);
}
