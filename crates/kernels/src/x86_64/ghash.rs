//! GHASH by carry-less multiplication (NIST SP 800-38D section 6.4).
//!
//! GHASH puts the coefficient of x^0 in the first bit of a block. With the bytes of
//! a block reversed the bits stand in falling order, and a product of two such
//! values comes out one place too low: it is enough to keep every power of H
//! multiplied by x once. The products are then reduced modulo
//! x^128 + x^127 + x^126 + x^121 + 1 by Montgomery's method, as for POLYVAL
//! (RFC 8452 appendix A).
//!
//! A group of n blocks is summed with falling powers, x1 H^n + ... + xn H, and
//! reduced once. In the table the powers fall as addresses rise and zeros follow
//! H, so a group that ends anywhere inside a vector finds its powers at one
//! address, and lanes behind the group are multiplied by zero.

use core::arch::x86_64::*;

use zeroize::Zeroize;

use super::gcm_lane::Lane;
use crate::aes::Block;

/// The highest power a group may start with. Used are 34: a group of eight of the
/// widest vectors, a block of lengths behind it and one of additional data before
/// it. With 36 the powers for eight whole vectors start a cache line.
pub(super) const POWERS: usize = 36;

/// Zeros behind the powers, so that a vector may start at any of them.
const SLACK: usize = 4;

/// H^36 to H, each times x, then zeros; and the sum of both halves of each.
// The multiplication of Karatsuba takes three products instead of four, and one of
// the three is of the sums.
#[derive(Zeroize)]
#[repr(C, align(64))]
pub(crate) struct Table {
    powers: [Block; POWERS + SLACK],
    sums: [Block; POWERS + SLACK],
}

impl Table {
    pub(crate) const fn new() -> Table {
        Table {
            powers: [[0; 16]; POWERS + SLACK],
            sums: [[0; 16]; POWERS + SLACK],
        }
    }

    /// The powers from H^n down, as many as `V` has lanes.
    ///
    /// # Safety
    /// The instructions of `V` are enabled, and 0 < n <= POWERS.
    #[inline(always)]
    unsafe fn powers<V: Lane>(&self, n: usize) -> V {
        debug_assert!(0 < n && n <= POWERS);
        // SAFETY: SLACK - 1 entries at least follow the one at POWERS - n.
        unsafe { V::load(self.powers.as_ptr().add(POWERS - n).cast()) }
    }

    /// The sums of the halves of [`powers`](Self::powers).
    ///
    /// # Safety
    /// As for `powers`.
    #[inline(always)]
    unsafe fn sums<V: Lane>(&self, n: usize) -> V {
        debug_assert!(0 < n && n <= POWERS);
        // SAFETY: as in `powers`.
        unsafe { V::load(self.sums.as_ptr().add(POWERS - n).cast()) }
    }

    /// # Safety
    /// The instructions of `V` are enabled, and V::BLOCKS <= n <= POWERS.
    #[inline(always)]
    unsafe fn put<V: Lane>(&mut self, n: usize, powers: V) {
        debug_assert!(V::BLOCKS <= n && n <= POWERS);
        // SAFETY: V::BLOCKS entries fit from POWERS - n on.
        unsafe {
            powers.store(self.powers.as_mut_ptr().add(POWERS - n).cast());
            let sums = powers.xor(powers.swap_halves());
            sums.store(self.sums.as_mut_ptr().add(POWERS - n).cast());
        }
    }
}

/// Products of a group, not yet reduced.
#[derive(Clone, Copy)]
pub(super) struct Sum<V> {
    low: V,
    middle: V,
    high: V,
}

impl<V: Lane> Sum<V> {
    /// # Safety
    /// As for every method here: the instructions of `V` are enabled.
    #[inline(always)]
    pub(super) unsafe fn zero() -> Self {
        // SAFETY: the caller's contract.
        unsafe {
            Sum {
                low: V::zero(),
                middle: V::zero(),
                high: V::zero(),
            }
        }
    }

    /// Adds a vector of blocks times the powers from H^n down.
    ///
    /// # Safety
    /// The instructions of `V` are enabled, and 0 < n <= POWERS.
    #[inline(always)]
    pub(super) unsafe fn add(&mut self, blocks: V, table: &Table, n: usize) {
        // SAFETY: the caller's contract.
        unsafe { self.add_product(blocks, table.powers(n), table.sums(n)) }
    }

    /// Adds a vector of blocks times the powers from H^n down, and one more block in
    /// lane `n < BLOCKS`, which is zero in `blocks`, times H^m.
    ///
    /// # Safety
    /// The instructions of `V` are enabled, 0 < n < BLOCKS and 0 < m <= POWERS.
    #[inline(always)]
    pub(super) unsafe fn add_with(
        &mut self,
        blocks: V,
        table: &Table,
        n: usize,
        block: __m128i,
        m: usize,
    ) {
        // SAFETY: the caller's contract; lanes behind H are zero in the table.
        unsafe {
            let blocks = blocks.with_lane(block, n);
            let powers = table.powers::<V>(n).with_lane(table.powers(m), n);
            let sums = table.sums::<V>(n).with_lane(table.sums(m), n);
            self.add_product(blocks, powers, sums);
        }
    }

    /// # Safety
    /// The instructions of `V` are enabled.
    #[inline(always)]
    unsafe fn add_product(&mut self, blocks: V, powers: V, sums: V) {
        // SAFETY: the caller's contract.
        unsafe {
            let folded = blocks.xor(blocks.swap_halves());
            self.low = self.low.xor(blocks.clmul_low(powers));
            self.high = self.high.xor(blocks.clmul_high(powers));
            self.middle = self.middle.xor(folded.clmul_low(sums));
        }
    }

    /// Each lane reduced; the lanes are still to be added up.
    ///
    /// # Safety
    /// The instructions of `V` are enabled.
    #[inline(always)]
    pub(super) unsafe fn reduce(self) -> V {
        // SAFETY: the caller's contract.
        unsafe {
            let polynomial = V::splat(_mm_set_epi64x(0xc200_0000_0000_0000_u64.cast_signed(), 1));
            let middle = self.middle.xor(self.low.xor(self.high));
            let middle = middle
                .xor(self.low.swap_halves())
                .xor(self.low.clmul_low_high(polynomial));
            self.high
                .xor(middle.swap_halves())
                .xor(middle.clmul_low_high(polynomial))
        }
    }
}

/// The product of each lane of `a` with that of `b`, one of which is times x.
///
/// # Safety
/// The instructions of `V` are enabled.
#[inline(always)]
unsafe fn multiply<V: Lane>(a: V, b: V) -> V {
    // SAFETY: the caller's contract.
    unsafe {
        let mut sum = Sum::zero();
        sum.add_product(a, b, b.xor(b.swap_halves()));
        sum.reduce()
    }
}

/// A block with its bytes reversed, times x: the coefficient of x^127 comes back as
/// the terms of the polynomial.
#[inline(always)]
fn times_x(block: u128) -> u128 {
    let carry = (block >> 127).wrapping_neg();
    (block << 1) ^ (carry & (0xc2 << 120 | 1))
}

/// # Safety
/// SSE2 is enabled, as always on x86-64.
#[inline(always)]
unsafe fn block(bits: u128) -> __m128i {
    // SAFETY: both are 16 bytes of plain data.
    unsafe { core::mem::transmute(bits) }
}

/// Fills the table from H = E(0), up to the powers that groups of eight vectors of
/// `V` need.
///
/// # Safety
/// The instructions of `V` are enabled.
#[inline(always)]
pub(super) unsafe fn fill<V: Lane>(table: &mut Table, h: &Block) {
    let lanes = V::BLOCKS;
    let group = 8 * lanes;
    // SAFETY: every power from `lanes` to `group + 2 <= POWERS` is put where it
    // belongs, and read after it has been put.
    unsafe {
        let h = block(times_x(u128::from_be_bytes(*h)));
        table.put(1, h);
        let mut power = h;
        for n in 2..=lanes {
            power = multiply(power, h);
            table.put(n, power);
        }
        // H^n times H^n .. H, vector by vector: each turn doubles the table.
        let mut n = lanes;
        while n < group {
            let top = V::splat(table.powers(n));
            for i in (lanes..=n).step_by(lanes) {
                table.put(n + i, multiply(table.powers::<V>(i), top));
            }
            n *= 2;
        }
        let top = V::splat(table.powers(group - lanes));
        if lanes == 1 {
            table.put(group + 1, multiply(table.powers::<V>(lanes + 1), top));
        }
        table.put(group + 2, multiply(table.powers::<V>(lanes + 2), top));
    }
}

/// The product of two blocks in the field of GHASH.
///
/// # Safety
/// The instructions of `__m128i` as a [`Lane`] are enabled.
#[inline(always)]
pub(super) unsafe fn product(a: &Block, b: &Block) -> Block {
    // SAFETY: the caller's contract.
    unsafe {
        let a = block(times_x(u128::from_be_bytes(*a)));
        let product = multiply(a, block(u128::from_be_bytes(*b))).reverse();
        let mut out = [0; 16];
        product.store(out.as_mut_ptr());
        out
    }
}
