//! The counter blocks, as numbers: a block that is put together from bytes in memory is waited for
//! when it is read.

use crate::aes::key::Block;

/// Where the counter begins in a block, in bits.
const COUNTER: u32 = 96;

/// J0 of a nonce of 12 bytes (section 7.1, step 2).
#[inline]
pub(crate) fn first_counter(nonce: &[u8; 12]) -> Block {
    let mut block = [0; 16];
    block[..12].copy_from_slice(nonce);
    let block = u128::from_le_bytes(block);
    (block | u128::from(1u32.swap_bytes()) << COUNTER).to_le_bytes()
}

/// The counter block `n` behind `counter`; its last 32 bits wrap (section 6.2).
#[inline]
pub(crate) fn counter_from(counter: &Block, n: u32) -> Block {
    let block = u128::from_le_bytes(*counter);
    let low = ((block >> COUNTER) as u32).swap_bytes().wrapping_add(n);
    let nonce = block << (128 - COUNTER) >> (128 - COUNTER);
    (nonce | u128::from(low.swap_bytes()) << COUNTER).to_le_bytes()
}
