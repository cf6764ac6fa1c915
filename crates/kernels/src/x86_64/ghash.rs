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

use super::gcm::Lane;
use crate::aes::key::Block;
use crate::gcm::powers::{FIRST_POWERS, POWERS, SHIFTED, SHIFTED_STEP, SLACK, Table};
use crate::x86_64::states::forget;

impl Table {
    /// Where the powers from H^n down start.
    #[inline(always)]
    pub(super) fn at_power(&self, n: usize) -> Powers<'_> {
        Powers::at(self, n)
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

/// A place in a table: some H^n, which lower powers and zeros follow.
#[derive(Clone, Copy)]
pub(super) struct Powers<'t> {
    start: *const Block,
    /// The power there.
    n: usize,
    /// Whether zeros are left where they are loaded from.
    are_taken: bool,
    table: core::marker::PhantomData<&'t Table>,
}

impl<'t> Powers<'t> {
    /// Where the powers from H^n down start in a table, of which others need not be there.
    #[inline(always)]
    pub(super) fn at(table: *const Table, n: usize) -> Powers<'t> {
        debug_assert!(0 < n && n <= POWERS);
        Powers {
            // Wrapping, as bounds are the business of those who load. Powers stand first in a table.
            start: table.cast::<Block>().wrapping_add(POWERS - n),
            n,
            are_taken: false,
            table: core::marker::PhantomData,
        }
    }

    /// The same place, in which zeros are left.
    ///
    /// # Safety
    /// The place is valid for writes.
    #[inline(always)]
    pub(super) unsafe fn taken(self) -> Self {
        Powers {
            are_taken: true,
            ..self
        }
    }

    /// Puts this power and its sum into the places of as many powers as `V` has lanes, from H^n down.
    ///
    /// # Safety
    /// The instructions of `V` are enabled, V::BLOCKS <= n <= POWERS, the table is valid for writes, and
    /// this is the place of some H^m, m > 0.
    #[inline(always)]
    pub(super) unsafe fn copy_to_all_lanes<V: Lane>(self, table: *mut Table, n: usize) {
        let to = table.cast::<Block>().wrapping_add(POWERS - n);
        // SAFETY: the caller's contract; a power and a sum have 16 bytes.
        unsafe {
            for place in [0, POWERS + SLACK] {
                let block = V::splat_load(self.start.wrapping_add(place).cast());
                block.store(to.wrapping_add(place).cast());
            }
        }
    }

    /// The place of H^(n - by), for by < n.
    #[inline(always)]
    pub(super) fn lower(self, by: usize) -> Self {
        Powers {
            start: self.start.wrapping_add(by),
            n: self.n - by,
            ..self
        }
    }

    /// The same place, from which the compiler loads nothing before it has `value`.
    ///
    /// # Safety
    /// The instructions of `V` are enabled.
    #[inline(always)]
    pub(super) unsafe fn after<V: Lane>(self, value: V) -> Self {
        // SAFETY: as for this function.
        let start = unsafe { V::after(self.start, value) };
        Powers { start, ..self }
    }

    /// As many powers as `V` has lanes.
    ///
    /// # Safety
    /// The instructions of `V` are enabled, and this is the place of some H^n, n > 0.
    #[inline(always)]
    unsafe fn load<V: Lane>(self) -> V {
        // SAFETY: SLACK - 1 entries at least follow that of H^n, n > 0.
        unsafe { self.load_from(self.start) }
    }

    /// The sums of their halves.
    ///
    /// # Safety
    /// As for `load`.
    #[inline(always)]
    unsafe fn load_sums<V: Lane>(self) -> V {
        // SAFETY: as in `load`; the sums stand behind the powers in the same order.
        unsafe { self.load_from(self.start.wrapping_add(POWERS + SLACK)) }
    }

    /// This power in every lane, and the same divided by x^64.
    ///
    /// # Safety
    /// The instructions of `V` are enabled, and this is the place of a power that is kept shifted too, in a
    /// table that has all of these.
    #[inline(always)]
    unsafe fn load_shifted<V: Lane>(self) -> [V; 2] {
        debug_assert!(self.n.is_multiple_of(SHIFTED_STEP) && self.n <= SHIFTED);
        let shifted = 2 * (POWERS + SLACK) + (SHIFTED - self.n) / SHIFTED_STEP;
        // Shifted powers stand behind powers and sums.
        let behind = shifted + self.n - POWERS;
        // SAFETY: the caller's contract; a power has 16 bytes.
        unsafe {
            let power = V::splat_load(self.start.cast());
            [power, V::splat_load(self.start.wrapping_add(behind).cast())]
        }
    }

    /// # Safety
    /// As for `load`, for a place in this table.
    #[inline(always)]
    unsafe fn load_from<V: Lane>(self, place: *const Block) -> V {
        // SAFETY: the caller's contract, and that of `taken`.
        unsafe {
            let powers = V::load(place.cast());
            if self.are_taken {
                forget::<V, 1>(V::zero(), place.cast_mut().cast());
            }
            powers
        }
    }
}

/// A vector of blocks times as many powers: what is to be added to the low, the middle and the high
/// part of a sum, and to the middle once more; of one that is [`whole`](Product::whole), to the low part
/// twice and to the high part twice.
#[derive(Clone, Copy)]
pub(super) struct Product<V>([V; 4]);

impl<V: Lane> Product<V> {
    /// By three products of halves, of which the middle one is of sums.
    ///
    /// # Safety
    /// The instructions of `V` are enabled, and `powers` is the place of some H^n, n > 0.
    #[inline(always)]
    pub(super) unsafe fn of_sums(blocks: V, powers: Powers<'_>) -> Self {
        // SAFETY: the caller's contract.
        unsafe { Product::of(blocks, powers.load(), powers.load_sums()) }
    }

    /// The same for the first or the second of two vectors whose [halves](Lane::reversed_halves) these
    /// are.
    ///
    /// # Safety
    /// As for `of_sums`.
    #[inline(always)]
    pub(super) unsafe fn of_halves(
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
    pub(super) unsafe fn whole(blocks: V, power: Powers<'_>) -> Self {
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
    pub(super) fn parts(&self) -> &[V; 4] {
        &self.0
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

    /// Its parts; the last one is not used where products are [`whole`](Product::whole).
    #[inline(always)]
    pub(super) fn parts(&self) -> [V; 3] {
        [self.low, self.high, self.middle]
    }

    /// Adds a product.
    ///
    /// # Safety
    /// The instructions of `V` are enabled.
    #[inline(always)]
    pub(super) unsafe fn add_product(&mut self, product: Product<V>) {
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
    pub(super) unsafe fn add_products(&mut self, one: Product<V>, two: Product<V>) {
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
    pub(super) unsafe fn add_whole(&mut self, product: Product<V>) {
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
    pub(super) unsafe fn folded(self) -> Self {
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
    pub(super) unsafe fn reduce_whole(self) -> V {
        // SAFETY: the caller's contract.
        unsafe { fold(self.low, self.high) }
    }

    /// Adds a vector of blocks times as many powers.
    ///
    /// # Safety
    /// The instructions of `V` are enabled, and `powers` is the place of some H^n, n > 0.
    #[inline(always)]
    pub(super) unsafe fn add(&mut self, blocks: V, powers: Powers<'_>) {
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
    pub(super) unsafe fn add_with(
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
    pub(super) unsafe fn reduce(self) -> V {
        // SAFETY: the caller's contract.
        unsafe { self.folded().reduce_whole() }
    }
}

/// What is to be added 64 bits above `low` in place of it, and `above`, in each lane: `low` divided by x^64.
///
/// # Safety
/// The instructions of `V` are enabled.
#[inline(always)]
unsafe fn fold<V: Lane>(low: V, above: V) -> V {
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
unsafe fn multiply<V: Lane>(a: V, b: V) -> V {
    // SAFETY: the caller's contract.
    unsafe {
        let mut sum = Sum::zero();
        sum.add_product(Product::of(a, b, b.xor(b.swap_halves())));
        sum.reduce()
    }
}

/// A block with its bytes reversed, times x: the coefficient of x^127 comes back as
/// the terms of the polynomial.
///
/// # Safety
/// SSE2 is enabled, as always on x86-64.
#[inline(always)]
unsafe fn times_x(block: __m128i) -> __m128i {
    // SAFETY: the caller's contract.
    unsafe {
        let out = _mm_srli_epi64::<63>(block);
        let shifted = _mm_or_si128(_mm_slli_epi64::<1>(block), _mm_bslli_si128::<8>(out));
        // Ones in every place where the highest bit is set, zeros where it is clear.
        let carry = _mm_sub_epi32(_mm_setzero_si128(), _mm_shuffle_epi32::<0b10_10_10_10>(out));
        let polynomial = _mm_set_epi64x(0xc200_0000_0000_0000_u64.cast_signed(), 1);
        _mm_xor_si128(shifted, _mm_and_si128(carry, polynomial))
    }
}

/// The [`FIRST_POWERS`], from H = E(0).
///
/// # Safety
/// The instructions of `V` are enabled.
// Each product waits for the one before, so none is loaded from where it was put, and no power
// waits for another that it can do without.
#[inline(always)]
pub(super) unsafe fn first_powers<V: Lane>(table: &mut Table, h: __m128i) {
    let lanes = V::BLOCKS;
    // SAFETY: the caller's contract; every power is put where it belongs.
    unsafe {
        let h = times_x(h.reverse());
        let lowest: V = match lanes {
            1 => V::first(h),
            2 => V::first(multiply(h, h)).with_lane(h, 1),
            _ => {
                let square = multiply(h, h);
                let two = V::first(square).with_lane(h, 1);
                let behind = V::zero().with_lane(square, 2).with_lane(h, 3);
                multiply(two, V::splat(square)).xor(behind)
            }
        };
        table.put(lanes, lowest);
        let (mut n, mut powers) = (lanes, [lowest; FIRST_POWERS]);
        while n < FIRST_POWERS {
            let top = V::splat(powers[n / lanes - 1].low());
            for i in 0..n / lanes {
                powers[n / lanes + i] = multiply(powers[i], top);
                table.put(n + (i + 1) * lanes, powers[n / lanes + i]);
            }
            n *= 2;
        }
    }
}

/// The powers above the [first](first_powers), up to those that groups of sixteen vectors of `V`
/// need, or of eight of the widest; for these, shifted ones too.
///
/// # Safety
/// The instructions of `V` are enabled, and the table has the first powers.
#[inline(always)]
pub(super) unsafe fn further_powers<V: Lane>(table: &mut Table) {
    let lanes = V::BLOCKS;
    let group = (16 * lanes).min(32);
    // SAFETY: the caller's contract; every power up to `group` and a vector or two more, at most
    // POWERS, is put where it belongs, and read after it has been put.
    unsafe {
        // H^n times H^n .. H, vector by vector: each turn doubles the table.
        let mut n = FIRST_POWERS;
        let mut top = V::splat(table.at_power(n).load());
        while n < group {
            let next = multiply(table.at_power(n).load::<V>(), top);
            table.put(2 * n, next);
            for i in (lanes..n).step_by(lanes) {
                table.put(n + i, multiply(table.at_power(i).load::<V>(), top));
            }
            n *= 2;
            if n < group {
                top = V::splat(next.low());
            }
        }
        // What is left is H^(n / 2) times powers that are there.
        for i in (lanes..=lanes.max(2)).step_by(lanes) {
            let power = table.at_power(n / 2 + i).load::<V>();
            table.put(n + i, multiply(power, top));
        }
        if lanes == 4 {
            for i in 0..SHIFTED / SHIFTED_STEP {
                let power = table.at_power(SHIFTED - i * SHIFTED_STEP).load::<__m128i>();
                fold(power, __m128i::zero()).store(table.shifted[i].as_mut_ptr());
            }
        }
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
        let a = times_x(__m128i::load(a.as_ptr()).reverse());
        let product = multiply(a, __m128i::load(b.as_ptr()).reverse()).reverse();
        let mut out = [0; 16];
        product.store(out.as_mut_ptr());
        out
    }
}
