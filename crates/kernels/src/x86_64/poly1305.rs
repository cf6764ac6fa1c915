//! Poly1305 (RFC 8439, section 2.5): one block or two at a time in limbs of 44
//! bits, long messages in vectors.

use zeroize::optimization_barrier;

use crate::cpu::{HaveAvx2, HaveAvx512};
use crate::x86_64::poly1305_lanes::{self, Limbs26, Powers};

const MASK_44: u64 = (1 << 44) - 1;
const MASK_26: u64 = (1 << 26) - 1;
const MASK_42: u64 = (1 << 42) - 1;

/// Bytes from which on vectors pay for the powers that they need.
const WIDE: usize = 512;

/// A number modulo 2^130 - 5 in limbs of 44, 44 and 42 bits; those of a carried
/// number are at most a bit longer.
#[derive(Clone, Copy)]
struct Limbs44([u64; 3]);

impl Limbs44 {
    const ZERO: Limbs44 = Limbs44([0; 3]);

    /// A number of 128 bits and `high` above them.
    #[inline(always)]
    fn new(n: u128, high: u64) -> Self {
        Limbs44([
            n as u64 & MASK_44,
            (n >> 44) as u64 & MASK_44,
            (n >> 88) as u64 | (high << 40),
        ])
    }

    #[inline(always)]
    fn plus(self, other: Limbs44) -> Limbs44 {
        let ([a, b, c], [x, y, z]) = (self.0, other.0);
        Limbs44([a + x, b + y, c + z])
    }

    /// The product, not carried.
    #[inline(always)]
    fn times(self, factor: &Factor) -> [u128; 3] {
        let [a, b, c] = self.0.map(u128::from);
        let [r0, r1, r2] = factor.limbs.0.map(u128::from);
        let [s1, s2] = factor.folded.map(u128::from);
        [
            a * r0 + b * s2 + c * s1,
            a * r1 + b * r0 + c * s2,
            a * r2 + b * r1 + c * r0,
        ]
    }

    #[inline(always)]
    fn carried(mut sums: [u128; 3]) -> Limbs44 {
        sums[1] += sums[0] >> 44;
        sums[2] += sums[1] >> 44;
        let low = (sums[0] as u64 & MASK_44) + (sums[2] >> 42) as u64 * 5;
        Limbs44([
            low & MASK_44,
            (sums[1] as u64 & MASK_44) + (low >> 44),
            sums[2] as u64 & MASK_42,
        ])
    }

    /// The remainder's low 128 bits.
    fn reduced(self) -> u128 {
        let [mut a, mut b, mut c] = self.0;
        // Twice, because the carry out of the top may ripple through once more.
        for _ in 0..2 {
            b += a >> 44;
            c += b >> 44;
            a = (a & MASK_44) + (c >> 42) * 5;
            (b, c) = (b & MASK_44, c & MASK_42);
        }
        b += a >> 44;
        c += b >> 44;
        (a, b) = (a & MASK_44, b & MASK_44);
        // Less the prime, if that is not negative.
        let d = a + 5;
        let e = b + (d >> 44);
        let f = (c + (e >> 44)).wrapping_sub(1 << 42);
        let keep = (f >> 63).wrapping_neg();
        let a = (a & keep) | (d & MASK_44 & !keep);
        let b = (b & keep) | (e & MASK_44 & !keep);
        let c = (c & keep) | (f & !keep);
        u128::from(a) | (u128::from(b) << 44) | (u128::from(c) << 88)
    }

    fn to_26(self) -> Limbs26 {
        let [a, b, c] = self.0;
        [
            a & MASK_26,
            (a >> 26) + ((b << 18) & MASK_26),
            (b >> 8) & MASK_26,
            (b >> 34) + ((c << 10) & MASK_26),
            c >> 16,
        ]
    }

    /// From limbs of less than 32 bits.
    fn from_26(mut limbs: Limbs26) -> Self {
        for _ in 0..2 {
            for i in 0..4 {
                limbs[i + 1] += limbs[i] >> 26;
                limbs[i] &= MASK_26;
            }
            limbs[0] += (limbs[4] >> 26) * 5;
            limbs[4] &= MASK_26;
        }
        let [a, b, c, d, e] = limbs;
        Limbs44([
            a + ((b << 26) & MASK_44),
            (b >> 18) + (c << 8) + ((d << 34) & MASK_44),
            (d >> 10) + (e << 16),
        ])
    }
}

/// A number to multiply by, and its upper limbs times 5 * 4, which is what they
/// weigh when a product passes 2^130.
#[derive(Clone, Copy)]
struct Factor {
    limbs: Limbs44,
    folded: [u64; 2],
}

impl Factor {
    fn new(limbs: Limbs44) -> Self {
        let [_, b, c] = limbs.0;
        Factor {
            limbs,
            folded: [20 * b, 20 * c],
        }
    }

    fn times(&self, other: &Factor) -> Factor {
        Factor::new(Limbs44::carried(self.limbs.times(other)))
    }
}

/// The state of a message.
#[derive(Clone)]
pub(crate) struct Poly1305 {
    sum: Limbs44,
    r: Factor,
    r_2: Factor,
    /// The other half of the key, added at the end.
    s: u128,
    /// For the vectors, once they were needed.
    powers: Powers,
    have_powers: bool,
}

impl Drop for Poly1305 {
    fn drop(&mut self) {
        self.sum.0 = [0; 3];
        self.r = Factor::new(Limbs44::ZERO);
        self.r_2 = self.r;
        self.s = 0;
        self.powers.low = [[0; 5]; 8];
        self.powers.step = [0; 5];
        optimization_barrier(self);
    }
}

impl Poly1305 {
    /// Without a key, to be started.
    pub(crate) const fn new() -> Self {
        let zero = Factor {
            limbs: Limbs44([0; 3]),
            folded: [0; 2],
        };
        Poly1305 {
            sum: zero.limbs,
            r: zero,
            r_2: zero,
            s: 0,
            powers: Powers {
                low: [[0; 5]; 8],
                step: [0; 5],
            },
            have_powers: false,
        }
    }

    /// Starts a message under a one-time key.
    #[inline]
    pub(crate) fn start(&mut self, key: &[u8; 32]) {
        const CLAMP: u128 = 0x0fff_fffc_0fff_fffc_0fff_fffc_0fff_ffff;
        let (halves, _) = key.as_chunks::<16>();
        let r = u128::from_le_bytes(halves[0]) & CLAMP;
        self.sum = Limbs44::ZERO;
        self.r = Factor::new(Limbs44::new(r, 0));
        self.r_2 = self.r.times(&self.r);
        self.s = u128::from_le_bytes(halves[1]);
        self.have_powers = false;
    }

    /// Takes in `data` with zeros up to a whole block.
    pub(crate) fn update_padded(
        &mut self,
        tokens: (HaveAvx2, Option<HaveAvx512>),
        mut data: &[u8],
    ) {
        if data.len() >= WIDE {
            data = self.update_wide(tokens, data);
        }
        let (pairs, rest) = data.as_chunks::<32>();
        for pair in pairs {
            let (blocks, _) = pair.as_chunks::<16>();
            self.two_blocks(&blocks[0], &blocks[1]);
        }
        let (blocks, rest) = rest.as_chunks::<16>();
        for block in blocks {
            self.block(block);
        }
        if !rest.is_empty() {
            let mut block = [0; 16];
            block[..rest.len()].copy_from_slice(rest);
            self.block(&block);
        }
    }

    /// The tag of what was taken in and the lengths of its two parts.
    #[inline]
    pub(crate) fn finish(&mut self, aad_len: usize, data_len: usize) -> [u8; 16] {
        let lengths = (aad_len as u128) | (data_len as u128) << 64;
        self.block(&lengths.to_le_bytes());
        self.tag()
    }

    /// The tag of all that was taken in.
    #[inline]
    pub(crate) fn tag(&self) -> [u8; 16] {
        self.sum.reduced().wrapping_add(self.s).to_le_bytes()
    }

    #[inline(always)]
    fn block(&mut self, block: &[u8; 16]) {
        let sum = self.sum.plus(Limbs44::new(u128::from_le_bytes(*block), 1));
        self.sum = Limbs44::carried(sum.times(&self.r));
    }

    /// Two products side by side: their latencies overlap.
    #[inline(always)]
    fn two_blocks(&mut self, first: &[u8; 16], second: &[u8; 16]) {
        let sum = self.sum.plus(Limbs44::new(u128::from_le_bytes(*first), 1));
        let [a, b, c] = sum.times(&self.r_2);
        let [x, y, z] = Limbs44::new(u128::from_le_bytes(*second), 1).times(&self.r);
        self.sum = Limbs44::carried([a + x, b + y, c + z]);
    }

    /// Takes in as much as fills the vectors and gives the rest.
    fn update_wide<'d>(
        &mut self,
        (avx2, avx512): (HaveAvx2, Option<HaveAvx512>),
        data: &'d [u8],
    ) -> &'d [u8] {
        if !self.have_powers {
            let mut power = self.r;
            let lanes = if avx512.is_some() { 8 } else { 4 };
            for (limbs, i) in self.powers.low[..lanes].iter_mut().zip(1..) {
                *limbs = power.limbs.to_26();
                if i < lanes {
                    power = power.times(&self.r);
                } else if avx512.is_some() {
                    power = power.times(&power);
                }
            }
            self.powers.step = power.limbs.to_26();
            self.have_powers = true;
        }
        let sum = self.sum.to_26();
        let (sum, rest) = match avx512 {
            Some(token) => poly1305_lanes::x8(token, sum, &self.powers, data),
            None => poly1305_lanes::x4(avx2, sum, &self.powers, data),
        };
        self.sum = Limbs44::from_26(sum);
        rest
    }
}
