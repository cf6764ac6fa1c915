//! Keys for tests that look where they are.

/// Bytes in which no word is one of the IV or the data of any message (SplitMix64).
pub(crate) fn unlike_data(len: usize, seed: usize) -> Vec<u8> {
    let word = |i: usize| {
        let mut x = ((seed * 64 + i + 1) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (x ^ x >> 31).to_le_bytes()
    };
    (0..len.div_ceil(8)).flat_map(word).take(len).collect()
}
