//! Blocks of 32 numbers, each in a word with its own tag.

use crate::Refusal;
use crate::sync::{AtomicU64, Line, Ordering};

/// Words of a cache line.
const LINE: usize = 8;

/// The block of a number.
#[inline]
pub(super) fn block_of(number: u64) -> u64 {
    number >> 5
}

/// The last number of a number's block.
#[inline]
pub(super) fn last_of(number: u64) -> u64 {
    number | 31
}

/// The bit of a number in its block.
#[inline]
pub(super) fn bit_of(number: u64) -> u32 {
    1 << (number & 31)
}

/// A power of two of words: `block number, lower half << 32 | bits`.
pub(super) struct Ring {
    lines: Box<[Line<[AtomicU64; LINE]>]>,
    /// Numbers that were never accepted, of blocks that gave up their place.
    lost: AtomicU64,
}

impl Ring {
    /// A ring in which every number up to `top` is marked, and none above. There is a block
    /// more than `width` numbers fill, as a window that ends within a block begins within
    /// another.
    pub(super) fn after(top: u64, width: u32) -> Self {
        let words = (width.div_ceil(32) as usize + 1).next_power_of_two();
        let lines = words.div_ceil(LINE);
        let words = (lines * LINE) as u64;
        let word = |place: usize| {
            // The newest block with this place that is not above the top's.
            let behind = block_of(top).wrapping_sub(place as u64) % words;
            let block = block_of(top).wrapping_sub(behind);
            let bits = match behind {
                0 => u32::MAX >> (31 - (top & 31)),
                _ => u32::MAX,
            };
            AtomicU64::new(block << 32 | u64::from(bits))
        };
        Ring {
            lines: (0..lines)
                .map(|line| Line(std::array::from_fn(|column| word(line + column * lines))))
                .collect(),
            lost: AtomicU64::new(0),
        }
    }

    /// Words; a power of two.
    #[inline]
    fn len(&self) -> u64 {
        (self.lines.len() * LINE) as u64
    }

    /// Neighbouring blocks lie on neighbouring lines, so that threads with neighbouring
    /// multipackets do not write to one line.
    #[inline]
    fn word(&self, block: u64) -> &AtomicU64 {
        let (line, column) = self.place(block);
        &self.lines[line].0[column]
    }

    /// The line, and the word in it.
    #[inline]
    fn place(&self, block: u64) -> (usize, usize) {
        let lines = self.lines.len();
        let place = (block & (self.len() - 1)) as usize;
        (place & (lines - 1), place >> lines.trailing_zeros())
    }

    /// The highest number of a block that is marked; `None` where another block has its place.
    pub(super) fn highest(&self, block: u64) -> Option<u64> {
        let word = self.word(block).load(Ordering::Relaxed);
        let bit = (word as u32).checked_ilog2()?;
        (blocks_ahead(block, word) == 0).then(|| block << 5 | u64::from(bit))
    }

    /// Whether `number` may still be marked.
    #[inline]
    pub(super) fn check(&self, number: u64) -> Result<(), Refusal> {
        let block = block_of(number);
        let word = self.word(block).load(Ordering::Relaxed);
        match blocks_ahead(block, word) {
            ahead if ahead < 0 => Err(Refusal::TooOld),
            0 if word as u32 & bit_of(number) != 0 => Err(Refusal::Replayed),
            _ => Ok(()),
        }
    }

    /// Marks `bits`, at least one, of `block`. Those of them that were not marked before, or
    /// an error where the place of the block was taken by a newer one.
    #[inline]
    pub(super) fn commit(&self, block: u64, bits: u32) -> Result<u32, Refusal> {
        let place = self.word(block);
        let mut word = place.load(Ordering::Relaxed);
        loop {
            let ahead = blocks_ahead(block, word);
            let (new, fresh) = match ahead {
                ahead if ahead < 0 => return Err(Refusal::TooOld),
                0 => (word | u64::from(bits), bits & !(word as u32)),
                _ => (block << 32 | u64::from(bits), bits),
            };
            if fresh == 0 {
                return Ok(0);
            }
            match place.compare_exchange_weak(word, new, Ordering::Relaxed, Ordering::Relaxed) {
                Err(now) => word = now,
                Ok(_) => {
                    if ahead > 0 {
                        self.count_lost(missing(word, ahead as u64 / self.len() - 1));
                    }
                    return Ok(fresh);
                }
            }
        }
    }

    #[inline]
    fn count_lost(&self, count: u64) {
        if count > 0 {
            self.lost.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// Numbers up to `settled` that were never marked. `settled` is below the window.
    pub(super) fn lost(&self, settled: u64) -> u64 {
        let gone = self.lost.load(Ordering::Relaxed);
        let newest = block_of(settled);
        let here = (0..self.len()).map(|behind| {
            let Some(block) = newest.checked_sub(behind) else {
                return 0;
            };
            let word = self.word(block).load(Ordering::Relaxed);
            // What of the block is settled.
            let share = match behind {
                0 => u32::MAX >> (31 - (settled & 31)),
                _ => u32::MAX,
            };
            match blocks_ahead(block, word) {
                // The place is a later block's already, and this one's losses are counted.
                ahead if ahead < 0 => 0,
                0 => u64::from((share & !(word as u32)).count_ones()),
                ahead => {
                    let passed_over = ahead as u64 / self.len() - 1;
                    missing(word, passed_over) + u64::from(share.count_ones())
                }
            }
        });
        gone + here.sum::<u64>()
    }
}

/// How many blocks `block` is ahead of the word's.
#[inline]
fn blocks_ahead(block: u64, word: u64) -> i32 {
    (block as u32).wrapping_sub((word >> 32) as u32) as i32
}

/// Numbers that a word's block lacks, and those of blocks after it that never had its place.
#[inline]
fn missing(word: u64, passed_over: u64) -> u64 {
    u64::from((word as u32).count_zeros()) + 32 * passed_over
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "plain arithmetic, fifteen thousand times")]
    fn neighbouring_blocks_lie_on_different_lines() {
        let ring = Ring::after(0, 4096);
        for block in 0..1000 {
            for distance in 1..16 {
                assert_ne!(ring.place(block).0, ring.place(block + distance).0);
            }
        }
    }

    #[test]
    fn every_block_of_a_round_has_its_own_place() {
        let widths: &[u32] = match cfg!(miri) {
            true => &[32, 64, 1024],
            false => &[32, 64, 1024, 65_536],
        };
        for &width in widths {
            let ring = Ring::after(0, width);
            let places: std::collections::BTreeSet<_> =
                (7..7 + ring.len()).map(|block| ring.place(block)).collect();
            assert_eq!(places.len() as u64, ring.len());
            assert!(ring.len() > u64::from(width) / 32);
            assert_eq!(ring.place(3), ring.place(3 + ring.len()));
        }
    }
}
