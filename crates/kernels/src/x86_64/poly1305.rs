//! Poly1305 (RFC 8439, section 2.5): in words of 64 bits, one block after the other or two
//! parts of the message side by side, and long messages in vectors.

use zeroize::optimization_barrier;

use crate::cpu::{HaveAvx2, HaveAvx512, HaveAvx512Ifma};
use crate::gcm::block::padded;
use crate::x86_64::poly1305_ifma;
use crate::x86_64::poly1305_lanes::{self, Limbs26, Powers};
use crate::x86_64::poly1305_words::{Halves, Multiplier, Sum};

const MASK_44: u64 = (1 << 44) - 1;
const MASK_26: u64 = (1 << 26) - 1;
const MASK_42: u64 = (1 << 42) - 1;

/// Bytes from which on vectors pay for the powers that they need, and those of AVX-512 IFMA.
const WIDE: usize = 1024;
const WIDE_IFMA: usize = 512;
/// Those of AVX-512 IFMA where the powers are there already: a group of blocks.
const WIDE_WITH_POWERS: usize = 128;

/// Blocks from which on two parts pay for the power that they need.
const TWO_PARTS: usize = 20;

/// The most blocks of a half.
pub(crate) const MAX_HALF_BLOCKS: usize = 32;

/// A number modulo 2^130 - 5 in limbs of 44, 44 and 42 bits; those of a carried
/// number are at most a bit longer.
#[derive(Clone, Copy)]
struct Limbs44([u64; 3]);

impl Limbs44 {
    /// A number of 128 bits and `high` above them.
    #[inline(always)]
    fn new(n: u128, high: u64) -> Self {
        Limbs44([
            n as u64 & MASK_44,
            (n >> 44) as u64 & MASK_44,
            (n >> 88) as u64 | (high << 40),
        ])
    }

    /// The same number as a sum.
    #[inline(always)]
    fn of(sum: Sum) -> Self {
        Limbs44::new(sum.low(), sum.high())
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

    /// The same number; limbs as long as those of a carried number.
    #[inline(always)]
    fn sum(self) -> Sum {
        let [a, b, c] = self.0.map(u128::from);
        let (low, carry) = (a + (b << 44)).overflowing_add(c << 88);
        Sum::new(low, (c >> 40) as u64 + u64::from(carry))
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
    const ZERO: Factor = Factor {
        limbs: Limbs44([0; 3]),
        folded: [0; 2],
    };

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
    /// r, and the sum of all before the two parts in the place of the first. It stays here, since
    /// a copy of words just written waits for them.
    halves: Halves,
    /// The other half of the key, added at the end.
    s: u128,
    /// r to the 2nd, 4th, 8th, 16th and 32nd, as many of them as were needed.
    squares: [Factor; 5],
    have_squares: usize,
    /// What the first of the two parts is multiplied by, so that it stands before the second.
    weight: Factor,
    /// For the vectors, once they were needed, the ones or the others.
    powers: Powers,
    powers_ifma: poly1305_ifma::Powers,
    have_powers: bool,
    /// Whether there is anything in the powers to be wiped.
    had_powers: bool,
}

impl Drop for Poly1305 {
    fn drop(&mut self) {
        self.halves.sums = [Sum::ZERO; 2];
        self.halves.r = Multiplier::ZERO;
        self.s = 0;
        self.squares = [Factor::ZERO; 5];
        self.weight = Factor::ZERO;
        if self.had_powers {
            self.powers.low = [[0; 5]; 8];
            self.powers.step = [0; 5];
            self.powers_ifma = poly1305_ifma::Powers::ZERO;
        }
        optimization_barrier(self);
    }
}

impl Poly1305 {
    /// Without a key, to be started.
    pub(crate) const fn new() -> Self {
        Poly1305 {
            halves: Halves {
                r: Multiplier::ZERO,
                at: [core::ptr::null(); 2],
                sums: [Sum::ZERO; 2],
            },
            s: 0,
            squares: [Factor::ZERO; 5],
            have_squares: 0,
            weight: Factor::ZERO,
            powers: Powers {
                low: [[0; 5]; 8],
                step: [0; 5],
            },
            powers_ifma: poly1305_ifma::Powers::ZERO,
            have_powers: false,
            had_powers: false,
        }
    }

    /// Starts a message under a one-time key.
    #[inline]
    pub(crate) fn start(&mut self, key: &[u8; 32]) {
        const CLAMP: u128 = 0x0fff_fffc_0fff_fffc_0fff_fffc_0fff_ffff;
        let (halves, _) = key.as_chunks::<16>();
        self.halves.sums[0] = Sum::ZERO;
        self.halves.r = Multiplier::new(u128::from_le_bytes(halves[0]) & CLAMP);
        self.s = u128::from_le_bytes(halves[1]);
        self.have_squares = 0;
        self.have_powers = false;
    }

    /// Computes the powers of r that vectors will need for `len` bytes. Each of them waits for the one
    /// before, so they cost next to nothing beside key stream.
    #[inline(always)]
    pub(crate) fn prepare(&mut self, tokens: (HaveAvx2, Option<HaveAvx512>), len: usize) {
        if len >= WIDE_IFMA
            && tokens.1.is_some()
            && let Some(token) = HaveAvx512Ifma::new()
        {
            self.set_powers(token);
        }
    }

    /// Takes in `data` with zeros up to a whole block.
    pub(crate) fn update_padded(
        &mut self,
        tokens: (HaveAvx2, Option<HaveAvx512>),
        mut data: &[u8],
    ) {
        if data.len() >= WIDE_IFMA || (self.have_powers && data.len() >= WIDE_WITH_POWERS) {
            data = self.update_wide(tokens, data);
        }
        let (mut blocks, rest) = data.as_chunks::<16>();
        while blocks.len() >= TWO_PARTS {
            let (now, later) = blocks.split_at(blocks.len().min(MAX_HALF_BLOCKS * 2) & !1);
            let half = now.len() / 2;
            let halves = self.halves(now.as_ptr().cast(), half);
            let [mut first, mut second] = halves.sums();
            for _ in 0..half {
                // SAFETY: BMI2 is there with the token, and as many blocks.
                unsafe {
                    halves.absorb_first(&mut first);
                    halves.absorb_second(&mut second);
                }
            }
            halves.set_sums([first, second]);
            self.join_after(half);
            blocks = later;
        }
        for block in blocks {
            self.halves.sums[0].absorb(tokens.0, block, &self.halves.r);
        }
        if !rest.is_empty() {
            self.halves.sums[0].absorb(tokens.0, &padded(rest), &self.halves.r);
        }
    }

    /// Takes in as many groups of blocks as there are, if they pay, and says how many bytes; nothing
    /// without AVX-512 IFMA.
    #[inline]
    pub(crate) fn update_groups(&mut self, data: &[u8]) -> Option<usize> {
        let token = HaveAvx512Ifma::new()?;
        if data.len() < WIDE_IFMA {
            return Some(0);
        }
        let mut left = data;
        self.by_ifma(token, |sum, powers| {
            let (sum, rest) = poly1305_ifma::x8(token, sum, powers, data);
            left = rest;
            sum
        });
        Some(data.len() - left.len())
    }

    /// The sum of what was taken in, and r, for whoever takes in whole blocks by himself.
    #[inline(always)]
    pub(crate) fn sum(&mut self) -> (&mut Sum, &Multiplier) {
        (&mut self.halves.sums[0], &self.halves.r)
    }

    /// Two parts that come next, of `half` blocks each, at most [`MAX_HALF_BLOCKS`].
    #[inline(always)]
    pub(crate) fn halves(&mut self, blocks: *const u8, half: usize) -> &mut Halves {
        self.halves.at = [blocks, blocks.wrapping_add(16 * half)];
        self.halves.sums[1] = Sum::ZERO;
        // Before the sums, so that the processor has both under way.
        self.weight = self.power(half);
        &mut self.halves
    }

    /// Makes one sum of those of the two parts, if any blocks went into them.
    #[inline(always)]
    pub(crate) fn join_after(&mut self, blocks: usize) {
        if blocks > 0 {
            let [a, b, c] = Limbs44::of(self.halves.sums[0]).times(&self.weight);
            let [x, y, z] = Limbs44::of(self.halves.sums[1]).0.map(u128::from);
            self.halves.sums[0] = Limbs44::carried([a + x, b + y, c + z]).sum();
        }
    }

    /// r to the power of `power`, which is from 1 to [`MAX_HALF_BLOCKS`].
    #[inline(always)]
    fn power(&mut self, power: usize) -> Factor {
        let mut rest = power;
        let mut product = self.square(rest.trailing_zeros());
        rest &= rest - 1;
        while rest > 0 {
            product = product.times(&self.square(rest.trailing_zeros()));
            rest &= rest - 1;
        }
        product
    }

    /// r to the power of 2 to the `power`, which is from 0 to 5.
    #[inline(always)]
    fn square(&mut self, power: u32) -> Factor {
        let power = power as usize;
        if power == 0 {
            return self.power_1();
        }
        while self.have_squares < power {
            let root = match self.have_squares {
                0 => self.power_1(),
                i => self.squares[i - 1],
            };
            self.squares[self.have_squares] = root.times(&root);
            self.have_squares += 1;
        }
        self.squares[power - 1]
    }

    /// r itself.
    #[inline(always)]
    fn power_1(&self) -> Factor {
        let r = u128::from(self.halves.r.low) | u128::from(self.halves.r.high) << 64;
        Factor::new(Limbs44::new(r, 0))
    }

    /// The tag of what was taken in and the lengths of its two parts.
    #[inline]
    pub(crate) fn finish(&mut self, avx2: HaveAvx2, aad_len: usize, data_len: usize) -> [u8; 16] {
        let lengths = (aad_len as u128) | (data_len as u128) << 64;
        self.halves.sums[0].absorb(avx2, &lengths.to_le_bytes(), &self.halves.r);
        self.tag()
    }

    /// The tag of all that was taken in.
    #[inline]
    pub(crate) fn tag(&self) -> [u8; 16] {
        self.halves.sums[0]
            .reduced()
            .wrapping_add(self.s)
            .to_le_bytes()
    }

    /// Takes in the data, or as much as fills the vectors, if they pay, and gives the rest.
    fn update_wide<'d>(
        &mut self,
        tokens: (HaveAvx2, Option<HaveAvx512>),
        data: &'d [u8],
    ) -> &'d [u8] {
        match HaveAvx512Ifma::new() {
            Some(token) if tokens.1.is_some() => {
                self.by_ifma(token, |sum, powers| {
                    poly1305_ifma::x8_padded(token, sum, powers, data)
                });
                &[]
            }
            _ if data.len() >= WIDE => self.update_lanes(tokens, data),
            _ => data,
        }
    }

    /// Takes in as much as fills the vectors and gives the rest, by multiplications of 32 bits.
    fn update_lanes<'d>(
        &mut self,
        (avx2, avx512): (HaveAvx2, Option<HaveAvx512>),
        data: &'d [u8],
    ) -> &'d [u8] {
        if !self.have_powers {
            let r = self.power_1();
            let mut power = r;
            let lanes = if avx512.is_some() { 8 } else { 4 };
            for (limbs, i) in self.powers.low[..lanes].iter_mut().zip(1..) {
                *limbs = power.limbs.to_26();
                if i < lanes {
                    power = power.times(&r);
                } else if avx512.is_some() {
                    power = power.times(&power);
                }
            }
            self.powers.step = power.limbs.to_26();
            (self.have_powers, self.had_powers) = (true, true);
        }
        let sum = Limbs44::of(self.halves.sums[0]).to_26();
        let (sum, rest) = match avx512 {
            Some(token) => poly1305_lanes::x8(token, sum, &self.powers, data),
            None => poly1305_lanes::x4(avx2, sum, &self.powers, data),
        };
        self.halves.sums[0] = Limbs44::from_26(sum).sum();
        rest
    }

    /// Computes the powers of r that vectors of AVX-512 IFMA need.
    #[inline(always)]
    fn set_powers(&mut self, token: HaveAvx512Ifma) {
        let r = u128::from(self.halves.r.low) | u128::from(self.halves.r.high) << 64;
        self.powers_ifma.set(token, Limbs44::new(r, 0).0);
        (self.have_powers, self.had_powers) = (true, true);
    }

    /// Adds to the sum by the powers of r that those of AVX-512 IFMA need.
    fn by_ifma(
        &mut self,
        token: HaveAvx512Ifma,
        take: impl FnOnce(poly1305_ifma::Limbs, &poly1305_ifma::Powers) -> poly1305_ifma::Limbs,
    ) {
        if !self.have_powers {
            self.set_powers(token);
        }
        let sum = take(Limbs44::of(self.halves.sums[0]).0, &self.powers_ifma);
        self.halves.sums[0] = Limbs44::carried(sum.map(u128::from)).sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::naive;

    /// Words of ones carry as far as any, and a sum can come to just below or above 2^130 - 5.
    #[test]
    fn sums_of_extreme_words_agree_with_the_reference() {
        let Some(avx2) = HaveAvx2::new() else {
            return;
        };
        let avx512 = HaveAvx512::new();
        for (avx512, lanes) in [(None, false), (avx512, false), (avx512, true)] {
            for (r, s, byte) in [
                (0xff, 0xff, 0xff),
                (0xff, 0, 0xfe),
                (0, 0xff, 0xff),
                (2, 1, 0),
            ] {
                let mut key = [s; 32];
                key[..16].fill(r);
                for len in (0..100)
                    .chain([127, 128, 1023, 1024, 1040, 2500])
                    .map(|n| 16 * n)
                {
                    let mut message = vec![byte; len];
                    let mut mac = Poly1305::new();
                    mac.start(&key);
                    let rest = match lanes {
                        true => mac.update_lanes((avx2, avx512), &message),
                        false => &message,
                    };
                    mac.update_padded((avx2, avx512), rest);
                    let tag = mac.finish(avx2, 0, len);
                    message.extend((len as u128 * (1 << 64)).to_le_bytes());
                    assert_eq!(tag, naive::poly1305(&key, &message), "{len} of {byte}");
                }
            }
        }
    }
}
