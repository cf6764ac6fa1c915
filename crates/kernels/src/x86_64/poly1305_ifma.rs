//! Poly1305 over 8 blocks side by side by the multiplications of AVX-512 IFMA.
//!
//! As in [`poly1305_lanes`](super::poly1305_lanes), lane `i` sums every 8th block times powers of r
//! to the 8th. Limbs of 44, 44 and 42 bits, of whose products an instruction adds the lower 52 bits
//! to one sum and another what is above them to a second.

use core::arch::x86_64::*;

use crate::cpu::HaveAvx512Ifma;

/// A number modulo 2^130 - 5 in limbs of 44, 44 and 42 bits or a bit more.
pub(crate) type Limbs = [u64; 3];

/// Powers of r.
#[derive(Clone, Copy)]
pub(crate) struct Powers {
    /// From the first to the 8th, that of a group of blocks.
    pub(crate) low: [Limbs; 8],
    /// That of the groups that are taken in at once.
    pub(crate) step: Limbs,
}

/// Groups at once, since one sum alone waits for itself.
const SETS: usize = 2;

/// Which block of a group stands in which lane.
const ORDER: [usize; 8] = [0, 4, 1, 5, 2, 6, 3, 7];

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
    (unsafe { self::sum(sum, powers, groups) }, rest)
}

#[target_feature(enable = "avx512f,avx512ifma")]
fn sum(sum: Limbs, powers: &Powers, groups: &[[u8; 128]]) -> Limbs {
    let (sets, mut rest) = groups.as_chunks::<SETS>();
    let group_step = factor(everywhere(&powers.low[7]));
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
    } else if let [first, others @ ..] = rest {
        rest = others;
        plus(limbs(first), only_first(&sum))
    } else {
        return sum;
    };
    for group in rest {
        total = times_plus(total, &group_step, limbs(group));
    }
    let last = [0, 1, 2].map(|i| from_array(ORDER.map(|block| powers.low[7 - block][i])));
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
    let (first, second) = unsafe {
        (
            _mm512_loadu_si512(from.cast()),
            _mm512_loadu_si512(from.add(64).cast()),
        )
    };
    let low = _mm512_unpacklo_epi64(first, second);
    let high = _mm512_unpackhi_epi64(first, second);
    let mask = splat((1 << 44) - 1);
    let middle = _mm512_or_si512(_mm512_srli_epi64::<44>(low), _mm512_slli_epi64::<20>(high));
    let top = _mm512_or_si512(_mm512_srli_epi64::<24>(high), splat(1 << 40));
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

#[inline]
#[target_feature(enable = "avx512f")]
fn from_array(x: [u64; 8]) -> __m512i {
    // SAFETY: a load of 64 bytes from as many.
    unsafe { _mm512_loadu_si512(x.as_ptr().cast()) }
}
