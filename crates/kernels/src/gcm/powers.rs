//! Where the powers of H stand, for implementations that add up groups of blocks at once.

use crate::aes::key::Block;

/// The highest power a group may start with. Used are 34: a group of eight of the
/// widest vectors, a block of lengths behind it and one of additional data before
/// it. With 36 the powers for eight whole vectors start a cache line.
pub(crate) const POWERS: usize = 36;

/// Powers that are computed with every key, whatever it is used for.
pub(crate) const FIRST_POWERS: usize = 8;

/// Zeros behind the powers, so that a vector may start at any of them.
pub(crate) const SLACK: usize = 4;

/// Blocks from one power to the next of those that are kept [shifted](Table::shifted) too.
pub(crate) const SHIFTED_STEP: usize = 4;

/// The highest of these.
pub(crate) const SHIFTED: usize = 32;

/// H^36 to H, each times x, then zeros; and the sum of both halves of each.
// The multiplication of Karatsuba takes three products instead of four, and one of
// the three is of the sums.
#[derive(Clone)]
#[repr(C, align(64))]
pub(crate) struct Table {
    pub(crate) powers: [Block; POWERS + SLACK],
    pub(crate) sums: [Block; POWERS + SLACK],
    /// H^32, H^28 and so on to H^4, each times x and divided by x^64, for the kernels that take them; else zeros.
    pub(crate) shifted: [Block; SHIFTED / SHIFTED_STEP],
}

impl Table {
    pub(crate) const fn new() -> Table {
        Table {
            powers: [[0; 16]; POWERS + SLACK],
            sums: [[0; 16]; POWERS + SLACK],
            shifted: [[0; 16]; SHIFTED / SHIFTED_STEP],
        }
    }
}
