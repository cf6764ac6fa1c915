//! Sums of products in the fields of MGM: polynomials modulo w^128 + w^7 + w^2 + w + 1
//! and w^64 + w^4 + w^3 + w + 1, the first bit of a block that of the highest power.

use zeroize::Zeroize;

use crate::choose::choose;

/// Products added up, not yet reduced. Of the field of 64 bits only `low` is used.
/// Wiped on drop.
#[derive(Default)]
pub(super) struct Sum {
    pub(super) high: u128,
    pub(super) low: u128,
}

impl Drop for Sum {
    fn drop(&mut self) {
        self.high.zeroize();
        self.low.zeroize();
    }
}

/// The field of blocks of `N` bytes.
pub(super) trait Field<const N: usize> {
    /// Adds the products of multipliers and blocks of `data`, the last of which may be
    /// short: zeros are appended.
    fn add(&mut self, multipliers: &[[u8; N]], data: &[u8]);

    /// The sum in the field.
    fn reduce(self) -> [u8; N];
}

/// The blocks of `data` as numbers; a short one has zeros appended.
fn numbers<const N: usize>(data: &[u8]) -> impl Iterator<Item = [u8; N]> {
    data.chunks(N).map(|bytes| {
        let mut block = [0; N];
        block[..bytes.len()].copy_from_slice(bytes);
        block
    })
}

impl Field<16> for Sum {
    #[inline]
    fn add(&mut self, multipliers: &[[u8; 16]], data: &[u8]) {
        choose! {
            token: HaveClmul => {
                let (whole, rest) = data.as_chunks();
                let sum = (&mut self.high, &mut self.low);
                let (own, others) = multipliers.split_at(whole.len());
                crate::x86_64::mgm::add_128(token, sum, own, whole);
                for (h, x) in others.iter().zip(numbers(rest)) {
                    let sum = (&mut self.high, &mut self.low);
                    crate::x86_64::mgm::add_128(token, sum, &[*h], &[x]);
                }
            },
            _ => add_128(self, multipliers, data),
        }
    }

    fn reduce(self) -> [u8; 16] {
        // Twice: what the first time sends over the top is at most 7 bits.
        let fold = |high: u128, low: u128| {
            let over = high >> 127 ^ high >> 126 ^ high >> 121;
            (over, low ^ high ^ high << 1 ^ high << 2 ^ high << 7)
        };
        let (over, low) = fold(self.high, self.low);
        fold(over, low).1.to_be_bytes()
    }
}

impl Field<8> for Sum {
    #[inline]
    fn add(&mut self, multipliers: &[[u8; 8]], data: &[u8]) {
        choose! {
            token: HaveClmul => {
                let (whole, rest) = data.as_chunks();
                let (own, others) = multipliers.split_at(whole.len());
                crate::x86_64::mgm::add_64(token, &mut self.low, own, whole);
                for (h, x) in others.iter().zip(numbers(rest)) {
                    crate::x86_64::mgm::add_64(token, &mut self.low, &[*h], &[x]);
                }
            },
            _ => add_64(self, multipliers, data),
        }
    }

    fn reduce(self) -> [u8; 8] {
        let fold = |value: u128| {
            let high = value >> 64;
            value ^ high << 64 ^ high ^ high << 1 ^ high << 3 ^ high << 4
        };
        (fold(fold(self.low)) as u64).to_be_bytes()
    }
}

fn add_128(sum: &mut Sum, multipliers: &[[u8; 16]], data: &[u8]) {
    for (h, x) in multipliers.iter().zip(numbers(data)) {
        let (h, x) = (u128::from_be_bytes(*h), u128::from_be_bytes(x));
        let ((h1, h0), (x1, x0)) = ((h >> 64, h), (x >> 64, x));
        let high = multiply(h1 as u64, x1 as u64);
        let low = multiply(h0 as u64, x0 as u64);
        let middle = multiply((h1 ^ h0) as u64, (x1 ^ x0) as u64) ^ high ^ low;
        sum.high ^= high ^ middle >> 64;
        sum.low ^= low ^ middle << 64;
    }
}

fn add_64(sum: &mut Sum, multipliers: &[[u8; 8]], data: &[u8]) {
    for (h, x) in multipliers.iter().zip(numbers(data)) {
        sum.low ^= multiply(u64::from_be_bytes(*h), u64::from_be_bytes(x));
    }
}

/// The product of polynomials without carries. The upper half is the lower half of
/// the product of both turned round.
fn multiply(x: u64, y: u64) -> u128 {
    let turned = multiply_low(x.reverse_bits(), y.reverse_bits()).reverse_bits();
    u128::from(turned >> 1) << 64 | u128::from(multiply_low(x, y))
}

/// The lower half of a product: integer multiplication of every fourth bit, where
/// carries stay within the three bits of zeros before the next one.
fn multiply_low(x: u64, y: u64) -> u64 {
    const EVERY_FOURTH: u64 = 0x1111_1111_1111_1111;
    let part = |z: u64, i: usize| z & EVERY_FOURTH << i;
    (0..4).fold(0, |product, i| {
        let sum = (0..4).fold(0, |sum, j| {
            sum ^ part(x, j).wrapping_mul(part(y, (4 + i - j) % 4))
        });
        product | part(sum, i)
    })
}
