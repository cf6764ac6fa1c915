//! Poly1305 over 4 blocks side by side with AVX2, 8 with AVX-512.
//!
//! Lane `i` sums every 4th (8th) block times powers of r to the 4th (8th); at the
//! end each lane gets the power that its place in the message asks for. Limbs of
//! 26 bits, so that a 32-bit multiplication takes two of them.

use core::arch::x86_64::*;

use crate::cpu::{HaveAvx2, HaveAvx512};
use crate::x86_64::memory;

/// A number modulo 2^130 - 5 in limbs of 26 bits or not much more.
pub(crate) type Limbs26 = [u64; 5];

/// Powers of r.
#[derive(Clone, Copy)]
pub(crate) struct Powers {
    /// From the first to that of a group of blocks, the 8th or the 4th.
    pub(crate) low: [Limbs26; 8],
    /// That of the groups that are taken in at once: two with AVX-512, one with AVX2.
    pub(crate) step: Limbs26,
}

/// Takes in whole groups of 8 blocks: the new sum, and the rest of the data.
pub(crate) fn x8<'d>(
    _: HaveAvx512,
    sum: Limbs26,
    powers: &Powers,
    data: &'d [u8],
) -> (Limbs26, &'d [u8]) {
    let (groups, rest) = data.as_chunks::<128>();
    // SAFETY: the token is made only where the instructions are present.
    (unsafe { avx512::sum(sum, powers, groups) }, rest)
}

/// Takes in whole groups of 4 blocks, as [`x8`].
pub(crate) fn x4<'d>(
    _: HaveAvx2,
    sum: Limbs26,
    powers: &Powers,
    data: &'d [u8],
) -> (Limbs26, &'d [u8]) {
    let (groups, rest) = data.as_chunks::<64>();
    // SAFETY: the token is made only where the instructions are present.
    (unsafe { avx2::sum(sum, powers, groups) }, rest)
}

/// The evaluation over groups of `$lanes` blocks, `$sets` groups at once, since
/// one sum alone waits for itself. `$order` says which block of a group stands in
/// which element. The operations are functions of the module.
macro_rules! sum {
    (
        $features:literal, $sets:literal sets of $lanes:literal lanes of $group:literal bytes,
        order $order:expr
    ) => {
        #[target_feature(enable = $features)]
        pub(super) fn sum(sum: Limbs26, powers: &Powers, groups: &[[u8; $group]]) -> Limbs26 {
            const ORDER: [usize; $lanes] = $order;
            let (sets, mut rest) = groups.as_chunks::<$sets>();
            let group_step = factor(everywhere(&powers.low[$lanes - 1]));
            let mut total = if let [first, others @ ..] = sets {
                let mut totals = [[splat(0); 5]; $sets];
                for set in 0..$sets {
                    totals[set] = limbs(&first[set]);
                }
                totals[0] = plus(totals[0], only_first(&sum));
                let step = factor(everywhere(&powers.step));
                for groups in others {
                    for set in 0..$sets {
                        let product = carry(multiply(totals[set], &step));
                        totals[set] = plus(product, limbs(&groups[set]));
                    }
                }
                let [mut total, others @ ..] = totals;
                for other in others {
                    total = plus(carry(multiply(total, &group_step)), other);
                }
                total
            } else if let [first, others @ ..] = rest {
                rest = others;
                plus(limbs(first), only_first(&sum))
            } else {
                return sum;
            };
            for group in rest {
                total = plus(carry(multiply(total, &group_step)), limbs(group));
            }
            let mut last = total;
            for i in 0..5 {
                let mut of_lanes = [0; $lanes];
                for (lane, block) in of_lanes.iter_mut().zip(ORDER) {
                    *lane = powers.low[$lanes - 1 - block][i];
                }
                last[i] = from_array(of_lanes);
            }
            let product = carry(multiply(total, &factor(last)));
            let mut sum = [0; 5];
            for i in 0..5 {
                for lane in to_array(product[i]) {
                    sum[i] += lane;
                }
            }
            sum
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn plus(mut x: [V; 5], y: [V; 5]) -> [V; 5] {
            for i in 0..5 {
                x[i] = add(x[i], y[i]);
            }
            x
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn everywhere(x: &Limbs26) -> [V; 5] {
            [
                splat(x[0]),
                splat(x[1]),
                splat(x[2]),
                splat(x[3]),
                splat(x[4]),
            ]
        }

        /// In the first lane, with zero in the others.
        #[inline]
        #[target_feature(enable = $features)]
        fn only_first(x: &Limbs26) -> [V; 5] {
            [zext(x[0]), zext(x[1]), zext(x[2]), zext(x[3]), zext(x[4])]
        }

        /// The limbs of a multiplier, and the upper four times 5, which is what
        /// they weigh when a product passes 2^130.
        #[inline]
        #[target_feature(enable = $features)]
        fn factor(r: [V; 5]) -> [V; 9] {
            let mut factor = [r[0]; 9];
            for i in 1..5 {
                factor[i] = r[i];
                factor[4 + i] = mul(r[i], splat(5));
            }
            factor
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn multiply(h: [V; 5], f: &[V; 9]) -> [V; 5] {
            let [r0, r1, r2, r3, r4, s1, s2, s3, s4] = *f;
            let rows = [
                [r0, s4, s3, s2, s1],
                [r1, r0, s4, s3, s2],
                [r2, r1, r0, s4, s3],
                [r3, r2, r1, r0, s4],
                [r4, r3, r2, r1, r0],
            ];
            let mut product = h;
            for i in 0..5 {
                let row = rows[i];
                let low = add(mul(h[0], row[0]), mul(h[1], row[1]));
                let high = add(mul(h[2], row[2]), mul(h[3], row[3]));
                product[i] = add(add(low, high), mul(h[4], row[4]));
            }
            product
        }

        /// Brings the limbs of a product back to 26 bits and a little.
        #[inline]
        #[target_feature(enable = $features)]
        fn carry(mut d: [V; 5]) -> [V; 5] {
            let mask = splat((1 << 26) - 1);
            // Two chains at once; the carry out of the top weighs 5.
            d[1] = add(d[1], shr::<26>(d[0]));
            d[0] = and(d[0], mask);
            d[4] = add(d[4], shr::<26>(d[3]));
            d[3] = and(d[3], mask);
            d[2] = add(d[2], shr::<26>(d[1]));
            d[1] = and(d[1], mask);
            let top = shr::<26>(d[4]);
            d[0] = add(d[0], add(top, shl::<2>(top)));
            d[4] = and(d[4], mask);
            d[3] = add(d[3], shr::<26>(d[2]));
            d[2] = and(d[2], mask);
            d[1] = add(d[1], shr::<26>(d[0]));
            d[0] = and(d[0], mask);
            d[4] = add(d[4], shr::<26>(d[3]));
            d[3] = and(d[3], mask);
            d
        }

        /// The limbs of a group of blocks, each with the bit above it.
        #[inline]
        #[target_feature(enable = $features)]
        fn limbs(group: &[u8; $group]) -> [V; 5] {
            let mask = splat((1 << 26) - 1);
            let (first, second) = halves(group);
            let (low, high) = (unpack_low(first, second), unpack_high(first, second));
            [
                and(low, mask),
                and(shr::<26>(low), mask),
                and(or(shr::<52>(low), shl::<12>(high)), mask),
                and(shr::<14>(high), mask),
                or(shr::<40>(high), splat(1 << 24)),
            ]
        }
    };
}

/// 8 blocks: an element for each.
mod avx512 {
    use super::*;

    type V = __m512i;

    sum!("avx512f", 2 sets of 8 lanes of 128 bytes, order [0, 4, 1, 5, 2, 6, 3, 7]);

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn add(x: V, y: V) -> V {
        _mm512_add_epi64(x, y)
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn mul(x: V, y: V) -> V {
        _mm512_mul_epu32(x, y)
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn and(x: V, y: V) -> V {
        _mm512_and_si512(x, y)
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn or(x: V, y: V) -> V {
        _mm512_or_si512(x, y)
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn shr<const N: u32>(x: V) -> V {
        _mm512_srli_epi64::<N>(x)
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn shl<const N: u32>(x: V) -> V {
        _mm512_slli_epi64::<N>(x)
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn unpack_low(x: V, y: V) -> V {
        _mm512_unpacklo_epi64(x, y)
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn unpack_high(x: V, y: V) -> V {
        _mm512_unpackhi_epi64(x, y)
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn splat(x: u64) -> V {
        _mm512_set1_epi64(x as i64)
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn zext(x: u64) -> V {
        _mm512_zextsi128_si512(_mm_cvtsi64_si128(x as i64))
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn from_array(x: [u64; 8]) -> V {
        // SAFETY: a load of 64 bytes from as many.
        unsafe { memory::load(x.as_ptr().cast()) }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn to_array(x: V) -> [u64; 8] {
        let mut array = [0; 8];
        // SAFETY: a store of 64 bytes to as many.
        unsafe { _mm512_storeu_si512(array.as_mut_ptr().cast(), x) };
        array
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn halves(group: &[u8; 128]) -> (V, V) {
        let group = group.as_ptr();
        // SAFETY: two loads of 64 bytes from 128.
        unsafe { (memory::load(group), memory::load(group.add(64))) }
    }
}

/// 4 blocks: an element for each.
mod avx2 {
    use super::*;

    type V = __m256i;

    sum!("avx2", 1 sets of 4 lanes of 64 bytes, order [0, 2, 1, 3]);

    #[inline]
    #[target_feature(enable = "avx2")]
    fn add(x: V, y: V) -> V {
        _mm256_add_epi64(x, y)
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn mul(x: V, y: V) -> V {
        _mm256_mul_epu32(x, y)
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn and(x: V, y: V) -> V {
        _mm256_and_si256(x, y)
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn or(x: V, y: V) -> V {
        _mm256_or_si256(x, y)
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn shr<const N: i32>(x: V) -> V {
        _mm256_srli_epi64::<N>(x)
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn shl<const N: i32>(x: V) -> V {
        _mm256_slli_epi64::<N>(x)
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn unpack_low(x: V, y: V) -> V {
        _mm256_unpacklo_epi64(x, y)
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn unpack_high(x: V, y: V) -> V {
        _mm256_unpackhi_epi64(x, y)
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn splat(x: u64) -> V {
        _mm256_set1_epi64x(x as i64)
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn zext(x: u64) -> V {
        _mm256_zextsi128_si256(_mm_cvtsi64_si128(x as i64))
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn from_array(x: [u64; 4]) -> V {
        // SAFETY: a load of 32 bytes from as many.
        unsafe { memory::load(x.as_ptr().cast()) }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn to_array(x: V) -> [u64; 4] {
        let mut array = [0; 4];
        // SAFETY: a store of 32 bytes to as many.
        unsafe { _mm256_storeu_si256(array.as_mut_ptr().cast(), x) };
        array
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn halves(group: &[u8; 64]) -> (V, V) {
        let group = group.as_ptr();
        // SAFETY: two loads of 32 bytes from 64.
        unsafe { (memory::load(group), memory::load(group.add(32))) }
    }
}
