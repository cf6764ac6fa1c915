//! The counter.

/// The counter `blocks` further on.
pub fn counter_add(iv: &[u8; 16], blocks: u128) -> [u8; 16] {
    u128::from_be_bytes(*iv).wrapping_add(blocks).to_be_bytes()
}
