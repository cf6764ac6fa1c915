//! Products of blocks and powers, their sums, and the reduction of these.

use core::arch::x86_64::*;

use super::powers::Powers;
use crate::x86_64::gcm::Lane;

/// A vector of blocks times as many powers: what is to be added to the low, the middle and the high
/// part of a sum, and to the middle once more; of one that is [`whole`](Product::whole), to the low part
/// twice and to the high part twice.
#[derive(Clone, Copy)]
pub(in crate::x86_64) struct Product<V>([V; 4]);

impl<V: Lane> Product<V> {
    /// By three products of halves, of which the middle one is of sums.
    ///
    /// # Safety
    /// The instructions of `V` are enabled, and `powers` is the place of some H^n, n > 0.
    #[inline(always)]
    pub(in crate::x86_64) unsafe fn of_sums(blocks: V, powers: Powers<'_>) -> Self {
        // SAFETY: the caller's contract.
        unsafe { Product::of(blocks, powers.load(), powers.load_sums()) }
    }

    /// The same for the first or the second of two vectors whose [halves](Lane::reversed_halves) these
    /// are.
    ///
    /// # Safety
    /// As for `of_sums`.
    #[inline(always)]
    pub(in crate::x86_64) unsafe fn of_halves(
        [low, high]: [V; 2],
        is_second: bool,
        powers: Powers<'_>,
    ) -> Self {
        // SAFETY: the caller's contract.
        unsafe {
            let (powers, sums) = (powers.load::<V>(), powers.load_sums::<V>());
            let sum = low.xor(high);
            let [low, middle, high] = match is_second {
                false => [
                    low.clmul_low(powers),
                    sum.clmul_low(sums),
                    high.clmul_low_high(powers),
                ],
                // Both halves of a sum of powers are the same.
                true => [
                    powers.clmul_low_high(low),
                    sum.clmul_high(sums),
                    high.clmul_high(powers),
                ],
            };
            Product([low, middle, high, V::zero()])
        }
    }

    /// Each block times the one power at `power`, by four products of halves, for
    /// [`add_whole`](Sum::add_whole): the low half of each block times the power divided by x^64, and the
    /// high half times the power, are two products of 192 bits that begin at one place.
    ///
    /// # Safety
    /// The instructions of `V` are enabled, and `power` is the place of a power that is kept shifted too.
    #[inline(always)]
    pub(in crate::x86_64) unsafe fn whole(blocks: V, power: Powers<'_>) -> Self {
        // SAFETY: the caller's contract.
        unsafe {
            let [power, shifted] = power.load_shifted::<V>();
            Product([
                blocks.clmul_low(shifted),
                power.clmul_low_high(blocks),
                blocks.clmul_low_high(shifted),
                blocks.clmul_high(power),
            ])
        }
    }

    /// # Safety
    /// The instructions of `V` are enabled.
    #[inline(always)]
    unsafe fn of(blocks: V, powers: V, sums: V) -> Self {
        // SAFETY: the caller's contract.
        unsafe {
            let folded = blocks.xor(blocks.swap_halves());
            let low = blocks.clmul_low(powers);
            let high = blocks.clmul_high(powers);
            Product([low, folded.clmul_low(sums), high, V::zero()])
        }
    }

    /// Each part that is computed.
    #[inline(always)]
    pub(in crate::x86_64) fn parts(&self) -> &[V; 4] {
        &self.0
    }
}

/// Products of a group, not yet reduced.
#[derive(Clone, Copy)]
pub(in crate::x86_64) struct Sum<V> {
    low: V,
    middle: V,
    high: V,
}

impl<V: Lane> Sum<V> {
    /// # Safety
    /// As for every method here: the instructions of `V` are enabled.
    #[inline(always)]
    pub(in crate::x86_64) unsafe fn zero() -> Self {
        // SAFETY: the caller's contract.
        unsafe {
            Sum {
                low: V::zero(),
                middle: V::zero(),
                high: V::zero(),
            }
        }
    }

    /// Its parts; the last one is not used where products are [`whole`](Product::whole).
    #[inline(always)]
    pub(in crate::x86_64) fn parts(&self) -> [V; 3] {
        [self.low, self.high, self.middle]
    }

    /// Adds a product.
    ///
    /// # Safety
    /// The instructions of `V` are enabled.
    #[inline(always)]
    pub(in crate::x86_64) unsafe fn add_product(&mut self, product: Product<V>) {
        let Product([low, middle, high, other]) = product;
        // SAFETY: the caller's contract.
        unsafe {
            self.low = self.low.xor(low);
            self.high = self.high.xor(high);
            self.middle = self.middle.xor(middle).xor(other);
        }
    }

    /// Adds two products, with AVX-512 by one instruction for each part.
    ///
    /// # Safety
    /// The instructions of `V` are enabled.
    #[inline(always)]
    pub(in crate::x86_64) unsafe fn add_products(&mut self, one: Product<V>, two: Product<V>) {
        let Product([one_low, one_middle, one_high, one_other]) = one;
        let Product([two_low, two_middle, two_high, two_other]) = two;
        // SAFETY: the caller's contract.
        unsafe {
            self.low = self.low.xor(one_low).xor(two_low);
            self.high = self.high.xor(one_high).xor(two_high);
            self.middle = self.middle.xor(one_middle).xor(two_middle);
            self.middle = self.middle.xor(one_other).xor(two_other);
        }
    }

    /// Adds a product that is [`whole`](Product::whole) to a sum of such.
    ///
    /// # Safety
    /// The instructions of `V` are enabled.
    #[inline(always)]
    pub(in crate::x86_64) unsafe fn add_whole(&mut self, product: Product<V>) {
        let Product([low, other_low, high, other_high]) = product;
        // SAFETY: the caller's contract.
        unsafe {
            self.low = self.low.xor(low).xor(other_low);
            self.high = self.high.xor(high).xor(other_high);
        }
    }

    /// The sum of products that are [`whole`](Product::whole) from one of products that are
    /// [`of_sums`](Product::of_sums): its lowest 64 bits are folded into the others.
    ///
    /// # Safety
    /// The instructions of `V` are enabled.
    #[inline(always)]
    pub(in crate::x86_64) unsafe fn folded(self) -> Self {
        // SAFETY: the caller's contract.
        unsafe {
            let middle = self.middle.xor(self.low.xor(self.high));
            Sum {
                low: fold(self.low, middle),
                middle: V::zero(),
                high: self.high,
            }
        }
    }

    /// [`reduce`](Self::reduce) for a sum of products that are [`whole`](Product::whole).
    ///
    /// # Safety
    /// The instructions of `V` are enabled.
    #[inline(always)]
    pub(in crate::x86_64) unsafe fn reduce_whole(self) -> V {
        // SAFETY: the caller's contract.
        unsafe { fold(self.low, self.high) }
    }

    /// Adds a vector of blocks times as many powers.
    ///
    /// # Safety
    /// The instructions of `V` are enabled, and `powers` is the place of some H^n, n > 0.
    #[inline(always)]
    pub(in crate::x86_64) unsafe fn add(&mut self, blocks: V, powers: Powers<'_>) {
        // SAFETY: the caller's contract.
        unsafe {
            let powers = powers.after(blocks).after(self.low);
            self.add_product(Product::of_sums(blocks, powers));
        }
    }

    /// Adds a vector of blocks times the powers from H^n down, and one more block in
    /// lane `n < BLOCKS`, which is zero in `blocks`, times the power at `other`.
    ///
    /// # Safety
    /// The instructions of `V` are enabled, n > 0, `powers` is the place of H^n, and
    /// `other` that of some H^m, m > 0.
    #[inline(always)]
    pub(in crate::x86_64) unsafe fn add_with(
        &mut self,
        blocks: V,
        powers: Powers<'_>,
        n: usize,
        block: __m128i,
        other: Powers<'_>,
    ) {
        // SAFETY: the caller's contract; lanes behind H are zero in the table.
        unsafe {
            let blocks = blocks.with_lane(block, n);
            let (powers, other) = (powers.after(blocks), other.after(blocks));
            let product = powers.load::<V>().with_lane(other.load(), n);
            let sums = powers.load_sums::<V>().with_lane(other.load_sums(), n);
            self.add_product(Product::of(blocks, product, sums));
        }
    }

    /// Each lane reduced; the lanes are still to be added up.
    ///
    /// # Safety
    /// The instructions of `V` are enabled.
    #[inline(always)]
    pub(in crate::x86_64) unsafe fn reduce(self) -> V {
        // SAFETY: the caller's contract.
        unsafe { self.folded().reduce_whole() }
    }
}

/// What is to be added 64 bits above `low` in place of it, and `above`, in each lane: `low` divided by x^64.
///
/// # Safety
/// The instructions of `V` are enabled.
#[inline(always)]
pub(super) unsafe fn fold<V: Lane>(low: V, above: V) -> V {
    // SAFETY: the caller's contract.
    unsafe {
        let polynomial = V::splat(_mm_set_epi64x(0xc200_0000_0000_0000_u64.cast_signed(), 1));
        above
            .xor(low.swap_halves())
            .xor(low.clmul_low_high(polynomial))
    }
}

/// The product of each lane of `a` with that of `b`, one of which is times x.
///
/// # Safety
/// The instructions of `V` are enabled.
#[inline(always)]
pub(super) unsafe fn multiply<V: Lane>(a: V, b: V) -> V {
    // SAFETY: the caller's contract.
    unsafe {
        let mut sum = Sum::zero();
        sum.add_product(Product::of(a, b, b.xor(b.swap_halves())));
        sum.reduce()
    }
}
