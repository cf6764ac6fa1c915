//! The counter blocks.

use crate::aes::key::Block;

/// J0 of a nonce of 12 bytes (section 7.1, step 2).
#[inline]
pub(crate) fn first_counter(nonce: &[u8; 12]) -> Block {
    let mut j0 = [0; 16];
    j0[..12].copy_from_slice(nonce);
    j0[15] = 1;
    j0
}

/// The counter block `n` behind `counter`; its last 32 bits wrap (section 6.2).
#[inline]
pub(crate) fn counter_from(counter: &Block, n: u32) -> Block {
    let mut next = *counter;
    let low = u32::from_be_bytes([counter[12], counter[13], counter[14], counter[15]]);
    next[12..].copy_from_slice(&low.wrapping_add(n).to_be_bytes());
    next
}
