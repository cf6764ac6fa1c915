//! The powers of H, computed from H.

use core::arch::x86_64::*;

use super::sum::{fold, multiply};
use crate::aes::key::Block;
use crate::cpu::is_intel;
use crate::gcm::powers::{FIRST_POWERS, SHIFTED, SHIFTED_STEP, Table};
use crate::x86_64::gcm::Lane;

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
pub(in crate::x86_64) unsafe fn first_powers<V: Lane>(table: &mut Table, h: __m128i) {
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
/// need, or of eight of the widest; and shifted ones, where a table has them.
///
/// # Safety
/// The instructions of `V` are enabled, and the table has the first powers.
#[inline(always)]
pub(in crate::x86_64) unsafe fn further_powers<V: Lane>(table: &mut Table) {
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
        if has_shifted::<V>() {
            for i in 0..SHIFTED / SHIFTED_STEP {
                let power = table.at_power(SHIFTED - i * SHIFTED_STEP).load::<__m128i>();
                fold(power, __m128i::zero()).store(table.shifted[i].as_mut_ptr());
            }
        }
    }
}

/// Whether tables have shifted powers: where kernels take products that are
/// [`whole`](super::Product::whole), which pays where the number of operations counts.
#[inline(always)]
pub(in crate::x86_64) fn has_shifted<V: Lane>() -> bool {
    V::BLOCKS == 4 && is_intel()
}

/// The product of two blocks in the field of GHASH.
///
/// # Safety
/// The instructions of `__m128i` as a [`Lane`] are enabled.
#[inline(always)]
pub(in crate::x86_64) unsafe fn product(a: &Block, b: &Block) -> Block {
    // SAFETY: the caller's contract.
    unsafe {
        let a = times_x(__m128i::load(a.as_ptr()).reverse());
        let product = multiply(a, __m128i::load(b.as_ptr()).reverse()).reverse();
        let mut out = [0; 16];
        product.store(out.as_mut_ptr());
        out
    }
}
