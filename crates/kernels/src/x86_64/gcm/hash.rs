//! GHASH from one group of blocks to the next.

use core::arch::x86_64::*;

use super::lane::Lane;
use super::rounds::{WIDTH, load_block};
use crate::gcm::powers::Table;
use crate::x86_64::ghash::Sum;

/// What is known of GHASH before a group: what is to be added to its first vector, which is
/// for the first block alone unless the lanes are kept [`apart`](Hash::reduce_lanes), and
/// products that are to be reduced with it.
#[derive(Clone, Copy)]
pub(super) struct Hash<V> {
    pub(super) y: V,
    pub(super) sum: Sum<V>,
}

impl<V: Lane> Hash<V> {
    #[inline(always)]
    pub(super) unsafe fn from(y: __m128i) -> Self {
        // SAFETY: the caller enables the instructions of `V`.
        unsafe {
            Hash {
                y: V::first(y),
                sum: Sum::zero(),
            }
        }
    }

    /// Adds vector `i` of a group of `n` blocks, their bytes reversed.
    #[inline(always)]
    pub(super) unsafe fn add(&mut self, mut blocks: V, i: usize, table: &Table, n: usize) {
        // SAFETY: the caller enables the instructions of `V`, and n < POWERS.
        unsafe {
            if i == 0 {
                blocks = blocks.xor(self.y);
            }
            self.sum.add(blocks, table.at_power(n).lower(i * V::BLOCKS));
        }
    }

    /// Adds a block, its bytes reversed, that stands before a group of `n`.
    #[inline(always)]
    pub(super) unsafe fn add_before(&mut self, block: __m128i, table: &Table, n: usize) {
        // SAFETY: the caller enables the instructions of `V`, and n < POWERS.
        unsafe {
            let y = core::mem::replace(&mut self.y, V::zero());
            self.sum.add(V::first(block).xor(y), table.at_power(n + 1));
        }
    }

    /// Ends a group.
    #[inline(always)]
    pub(super) unsafe fn reduce(self) -> Self {
        // SAFETY: the caller enables the instructions of `V`.
        unsafe { Hash::from(self.sum.reduce().sum_lanes()) }
    }

    /// Ends a group whose blocks were multiplied each by the power for the first block of its
    /// vector, by whole products if `WHOLE`. Their lanes are added up when the group of as many vectors that
    /// follows is multiplied by the power for each block.
    #[inline(always)]
    pub(super) unsafe fn reduce_lanes<const WHOLE: bool>(self) -> Self {
        // SAFETY: the caller enables the instructions of `V`.
        unsafe {
            Hash {
                y: match WHOLE {
                    true => self.sum.reduce_whole(),
                    false => self.sum.reduce(),
                },
                sum: Sum::zero(),
            }
        }
    }
}

/// Hash of `len` bytes and zeros up to a whole block.
#[inline(always)]
pub(super) unsafe fn hash<V: Lane>(
    table: &Table,
    y: __m128i,
    mut from: *const u8,
    mut len: usize,
) -> __m128i {
    // SAFETY: the caller enables the instructions of `V` and gives `len` readable
    // bytes; every load is of bytes inside them.
    unsafe {
        let mut hash = Hash::<V>::from(y);
        while len > 0 {
            let group = len.min(WIDTH * V::BYTES);
            let n = group.div_ceil(16);
            let mut i = 0;
            while (i + 1) * V::BYTES <= group {
                hash.add(V::load(from.add(i * V::BYTES)).reverse(), i, table, n);
                i += 1;
            }
            if i * V::BYTES < group {
                let rest = V::load_part(from.add(i * V::BYTES), group - i * V::BYTES);
                hash.add(rest.reverse(), i, table, n);
            }
            hash = hash.reduce();
            from = from.add(group);
            len -= group;
        }
        hash.y.low()
    }
}

/// GHASH after the additional data, before a first group of `n` blocks.
///
/// One block of additional data, as in most protocols, joins the group.
#[inline(always)]
pub(super) unsafe fn start<V: Lane>(table: &Table, aad: &[u8], n: usize) -> Hash<V> {
    // SAFETY: the caller enables the instructions of `V`, and n < POWERS.
    unsafe {
        let zero = _mm_setzero_si128();
        if aad.len() > 16 {
            return Hash::from(self::hash::<V>(table, zero, aad.as_ptr(), aad.len()));
        }
        let mut hash = Hash::from(zero);
        if !aad.is_empty() {
            hash.add_before(load_block(aad).reverse(), table, n);
        }
        hash
    }
}
