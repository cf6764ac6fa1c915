//! SPIs that this gateway allots, with room for a shard in their high bits.
//!
//! The SPI tells every router of a cluster which shard an SA belongs to, without a table: the
//! high 8 bits are the shard. A single gateway is shard 1, as SPIs below 256 are reserved.

use std::collections::HashSet;

/// Bits of an SPI that stand for the shard.
pub const SHARD_BITS: u32 = 8;

/// The shard of a gateway that is by itself.
pub const ALONE: u8 = 1;

/// A random SPI of `shard` that is not in `used`. `None`: the shard is full, or the system's
/// random generator failed.
pub fn allot(shard: u8, used: &HashSet<u32>) -> Option<u32> {
    // Half of a shard is never in use, so that a try succeeds with a chance of a half or more.
    let tries = 128;
    (0..tries).find_map(|_| {
        let mut random = [0; 4];
        getrandom::fill(&mut random).ok()?;
        let number = u32::from_ne_bytes(random) >> SHARD_BITS;
        let spi = u32::from(shard) << (32 - SHARD_BITS) | number;
        (spi > 255 && !used.contains(&spi)).then_some(spi)
    })
}

/// The shard of an SPI.
pub fn shard(spi: u32) -> u8 {
    (spi >> (32 - SHARD_BITS)) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spis_are_of_their_shard_and_their_own() {
        let mut used = HashSet::new();
        for shard in [0, ALONE, 255] {
            for _ in 0..100 {
                let spi = allot(shard, &used).unwrap();
                assert!(spi > 255 && used.insert(spi));
                assert_eq!(super::shard(spi), shard);
            }
        }
    }
}
