//! Poly1305 over 8 blocks side by side by the multiplications of AVX-512 IFMA.
//!
//! As in [`poly1305_lanes`](super::poly1305_lanes), lane `i` sums every 8th block times powers of r
//! to the 8th. Limbs of 44, 44 and 42 bits, of whose products an instruction adds the lower 52 bits
//! to one sum and another what is above them to a second.

use core::arch::x86_64::*;

use crate::cpu::HaveAvx512Ifma;
use crate::x86_64::memory;

/// A number modulo 2^130 - 5 in limbs of 44, 44 and 42 bits or a bit more.
pub(crate) type Limbs = [u64; 3];

/// Powers of r.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(crate) struct Powers {
    /// From the first to the 8th, that of a group of blocks: the limbs of what each lane is multiplied
    /// by at the end.
    low: [[u64; 8]; 3],
    /// That of the groups that are taken in at once.
    step: Limbs,
}

/// Groups at once, since one sum alone waits for itself.
const SETS: usize = 2;

impl Powers {
    pub(crate) const ZERO: Powers = Powers {
        low: [[0; 8]; 3],
        step: [0; 3],
    };

    /// Of a number of 128 bits or less.
    #[inline]
    pub(crate) fn set(&mut self, _: HaveAvx512Ifma, r: Limbs) {
        // SAFETY: the token is made only where the instructions are present.
        unsafe { self.fill(r) }
    }

    // Halves of blocks are unpacked in pairs, so that lanes of even numbers have the first four blocks of a
    // group and their powers, the 8th to the 5th, the others the last four and the 4th to the first.
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn fill(&mut self, r: Limbs) {
        let zero = [splat(0); 3];
        let times = |x: [__m512i; 3], y: [__m512i; 3]| times_plus(x, &factor(y), zero);
        let first = everywhere(&r);
        let second = times(first, first);
        let pairs = chosen(0b1100_1100, second, first);
        let upper = times(pairs, second);
        let fourths = chosen(0b1111_0000, upper, pairs);
        let eighths = times(fourths, of_first_lane(fourths));
        let low = chosen(0b1010_1010, eighths, fourths);
        for (to, limbs) in self.low.iter_mut().zip(low) {
            // SAFETY: a store of 64 bytes to as many.
            unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), limbs) };
        }
        let eighth = of_first_lane(eighths);
        self.step = times(eighth, eighth)
            .map(|limb| _mm_cvtsi128_si64(_mm512_castsi512_si128(limb)).cast_unsigned());
    }

    /// One of the first eight, in every lane.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn everywhere(&self, power: usize) -> [__m512i; 3] {
        const LANES: [usize; 8] = [7, 5, 3, 1, 6, 4, 2, 0];
        let lane = LANES[power - 1];
        everywhere(&[self.low[0][lane], self.low[1][lane], self.low[2][lane]])
    }
}

/// The lanes of `x` where a bit is clear, and of `y` where it is set.
#[inline]
#[target_feature(enable = "avx512f")]
fn chosen(mask: __mmask8, x: [__m512i; 3], y: [__m512i; 3]) -> [__m512i; 3] {
    [0, 1, 2].map(|i| _mm512_mask_blend_epi64(mask, x[i], y[i]))
}

/// The first lane, in every lane.
#[inline]
#[target_feature(enable = "avx512f")]
fn of_first_lane(x: [__m512i; 3]) -> [__m512i; 3] {
    x.map(|limb| _mm512_broadcastq_epi64(_mm512_castsi512_si128(limb)))
}

/// Takes in whole groups of 8 blocks: the new sum, whose limbs have up to 48 bits, and the rest of
/// the data.
pub(crate) fn x8<'d>(
    _: HaveAvx512Ifma,
    sum: Limbs,
    powers: &Powers,
    data: &'d [u8],
) -> (Limbs, &'d [u8]) {
    let (groups, rest) = data.as_chunks::<128>();
    // SAFETY: the token is made only where the instructions are present.
    (unsafe { self::sum(sum, powers, groups, &[]) }, rest)
}

/// Takes in all of the data, of a group or more, with zeros up to a whole block.
///
/// # Panics
/// If the data is shorter than that.
pub(crate) fn x8_padded(_: HaveAvx512Ifma, sum: Limbs, powers: &Powers, data: &[u8]) -> Limbs {
    let (groups, rest) = data.as_chunks::<128>();
    assert!(!groups.is_empty());
    // SAFETY: the token is made only where the instructions are present.
    unsafe { self::sum(sum, powers, groups, rest) }
}

/// The groups, and behind one at least less than a group.
#[target_feature(enable = "avx512f,avx512bw,avx512ifma")]
fn sum(sum: Limbs, powers: &Powers, groups: &[[u8; 128]], rest: &[u8]) -> Limbs {
    let (sets, mut single) = groups.as_chunks::<SETS>();
    let group_step = factor(powers.everywhere(8));
    let mut total = if let [first, others @ ..] = sets {
        let mut totals = [[splat(0); 3]; SETS];
        for set in 0..SETS {
            totals[set] = limbs(&first[set]);
        }
        totals[0] = plus(totals[0], only_first(&sum));
        let step = factor(everywhere(&powers.step));
        for groups in others {
            for set in 0..SETS {
                totals[set] = times_plus(totals[set], &step, limbs(&groups[set]));
            }
        }
        let [mut total, others @ ..] = totals;
        for other in others {
            total = times_plus(total, &group_step, other);
        }
        total
    } else if let [first, others @ ..] = single {
        single = others;
        plus(limbs(first), only_first(&sum))
    } else {
        return sum;
    };
    for group in single {
        total = times_plus(total, &group_step, limbs(group));
    }
    if !rest.is_empty() {
        let power = factor(powers.everywhere(rest.len().div_ceil(16)));
        total = times_plus(total, &power, last_limbs(rest));
    }
    // SAFETY: a load of 64 bytes from as many.
    let last = [0, 1, 2].map(|i| unsafe { memory::load(powers.low[i].as_ptr().cast()) });
    let product = times_plus(total, &factor(last), [splat(0); 3]);
    product.map(|lanes| _mm512_reduce_add_epi64(lanes) as u64)
}

/// A number in every lane.
#[inline]
#[target_feature(enable = "avx512f")]
fn everywhere(x: &Limbs) -> [__m512i; 3] {
    [splat(x[0]), splat(x[1]), splat(x[2])]
}

/// In the first lane, with zero in the others.
#[inline]
#[target_feature(enable = "avx512f")]
fn only_first(x: &Limbs) -> [__m512i; 3] {
    let first = |limb: u64| _mm512_zextsi128_si512(_mm_cvtsi64_si128(limb as i64));
    [first(x[0]), first(x[1]), first(x[2])]
}

#[inline]
#[target_feature(enable = "avx512f")]
fn plus(x: [__m512i; 3], y: [__m512i; 3]) -> [__m512i; 3] {
    [add(x[0], y[0]), add(x[1], y[1]), add(x[2], y[2])]
}

/// The limbs of a multiplier, and the upper two times 5 * 4, which is what they weigh when a
/// product passes 2^130.
#[inline]
#[target_feature(enable = "avx512f")]
fn factor([r0, r1, r2]: [__m512i; 3]) -> [__m512i; 5] {
    let folded = |r| {
        let four = _mm512_slli_epi64::<2>(r);
        add(_mm512_slli_epi64::<2>(four), four)
    };
    [r0, r1, r2, folded(r1), folded(r2)]
}

/// The product and a third number; limbs of 44, 44 and 42 bits, and in the second a few units
/// above them.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn times_plus([h0, h1, h2]: [__m512i; 3], f: &[__m512i; 5], more: [__m512i; 3]) -> [__m512i; 3] {
    let [r0, r1, r2, s1, s2] = *f;
    // The second limb of a sum is there last.
    let low = |more, [f0, f1, f2]: [__m512i; 3]| {
        let sum = _mm512_madd52lo_epu64(more, h2, f2);
        _mm512_madd52lo_epu64(_mm512_madd52lo_epu64(sum, h0, f0), h1, f1)
    };
    let high = |[f0, f1, f2]: [__m512i; 3]| {
        let sum = _mm512_madd52hi_epu64(splat(0), h2, f2);
        _mm512_madd52hi_epu64(_mm512_madd52hi_epu64(sum, h0, f0), h1, f1)
    };
    let rows = [[r0, s2, s1], [r1, r0, s2], [r2, r1, r0]];
    let [low0, low1, low2] = [
        low(more[0], rows[0]),
        low(more[1], rows[1]),
        low(more[2], rows[2]),
    ];
    // 2^52 is 2^8 in the next limb; above the third it is 5 * 2^10 in the first.
    let high0 = _mm512_slli_epi64::<8>(high(rows[0]));
    let high1 = _mm512_slli_epi64::<8>(high(rows[1]));
    let high2 = _mm512_slli_epi64::<10>(high(rows[2]));
    let (mask_44, mask_42) = (splat((1 << 44) - 1), splat((1 << 42) - 1));
    let d1 = add(add(low1, high0), _mm512_srli_epi64::<44>(low0));
    let d2 = add(add(low2, high1), _mm512_srli_epi64::<44>(d1));
    let top = add(high2, _mm512_srli_epi64::<42>(d2));
    let d0 = add(and(low0, mask_44), add(top, _mm512_slli_epi64::<2>(top)));
    [
        and(d0, mask_44),
        add(and(d1, mask_44), _mm512_srli_epi64::<44>(d0)),
        and(d2, mask_42),
    ]
}

/// The limbs of a group of blocks, each with the bit above it.
#[inline]
#[target_feature(enable = "avx512f")]
fn limbs(group: &[u8; 128]) -> [__m512i; 3] {
    let from = group.as_ptr();
    // SAFETY: two loads of 64 bytes from 128.
    let halves = unsafe { (memory::load(from), memory::load(from.add(64))) };
    limbs_of(halves, splat(1 << 40))
}

/// The limbs of the last blocks, less than a group, with zeros up to a whole block and before them, which
/// is where the powers of the lanes have them.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn last_limbs(bytes: &[u8]) -> [__m512i; 3] {
    let before = 128 - bytes.len().next_multiple_of(16);
    let from = bytes.as_ptr().wrapping_sub(before);
    let mask = ((1_u128 << bytes.len()) - 1) << before;
    // SAFETY: all that is loaded is of these bytes; what is masked is not touched.
    let halves = unsafe {
        (
            _mm512_maskz_loadu_epi8(mask as u64, from.cast()),
            _mm512_maskz_loadu_epi8((mask >> 64) as u64, from.wrapping_add(64).cast()),
        )
    };
    let blocks = _mm512_set_epi64(7, 3, 6, 2, 5, 1, 4, 0);
    let there = _mm512_cmpge_epu64_mask(blocks, splat(before as u64 / 16));
    limbs_of(halves, _mm512_maskz_set1_epi64(there, 1 << 40))
}

/// The limbs of the blocks of two halves, and what stands above them.
#[inline]
#[target_feature(enable = "avx512f")]
fn limbs_of((first, second): (__m512i, __m512i), above: __m512i) -> [__m512i; 3] {
    let low = _mm512_unpacklo_epi64(first, second);
    let high = _mm512_unpackhi_epi64(first, second);
    let mask = splat((1 << 44) - 1);
    let middle = _mm512_or_si512(_mm512_srli_epi64::<44>(low), _mm512_slli_epi64::<20>(high));
    let top = _mm512_or_si512(_mm512_srli_epi64::<24>(high), above);
    [and(low, mask), and(middle, mask), top]
}

#[inline]
#[target_feature(enable = "avx512f")]
fn add(x: __m512i, y: __m512i) -> __m512i {
    _mm512_add_epi64(x, y)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn and(x: __m512i, y: __m512i) -> __m512i {
    _mm512_and_si512(x, y)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn splat(x: u64) -> __m512i {
    _mm512_set1_epi64(x as i64)
}
