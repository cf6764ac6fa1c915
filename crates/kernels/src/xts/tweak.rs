//! The field of the tweaks.

/// The product with x modulo x^128 + x^7 + x^2 + x + 1, the tweak of the next block
/// (section 5.2), in constant time.
#[inline]
pub(crate) fn double(a: u128) -> u128 {
    (a << 1) ^ ((a >> 127) * 0x87)
}

/// The product of the secret `a` with x^`n`; `n` is public.
pub(super) fn times_power(mut a: u128, n: u64) -> u128 {
    let power = power(n);
    let mut product = 0;
    for bit in 0..128 - power.leading_zeros() {
        if power >> bit & 1 == 1 {
            product ^= a;
        }
        a = double(a);
    }
    product
}

/// x^`n`, by squaring from the top bits of `n` on.
pub(super) fn power(n: u64) -> u128 {
    // What fits below 128 is a single bit.
    let squarings = (64 - n.leading_zeros()).saturating_sub(7);
    let mut power = 1 << (n >> squarings);
    for bit in (0..squarings).rev() {
        power = square(power);
        if n >> bit & 1 == 1 {
            power = double(power);
        }
    }
    power
}

/// Squaring spreads the bits apart; the upper half then folds down.
fn square(a: u128) -> u128 {
    let (low, high) = (spread(a as u64), spread((a >> 64) as u64));
    let fold = |a: u128| a ^ (a << 1) ^ (a << 2) ^ (a << 7);
    let carried = (high >> 127) ^ (high >> 126) ^ (high >> 121);
    low ^ fold(high) ^ fold(carried)
}

/// A zero above each bit.
fn spread(a: u64) -> u128 {
    let mut a = u128::from(a);
    for (shift, mask) in [
        (32, 0x0000_0000_ffff_ffff_0000_0000_ffff_ffff),
        (16, 0x0000_ffff_0000_ffff_0000_ffff_0000_ffff),
        (8, 0x00ff_00ff_00ff_00ff_00ff_00ff_00ff_00ff),
        (4, 0x0f0f_0f0f_0f0f_0f0f_0f0f_0f0f_0f0f_0f0f),
        (2, 0x3333_3333_3333_3333_3333_3333_3333_3333),
        (1, 0x5555_5555_5555_5555_5555_5555_5555_5555),
    ] {
        a = (a | a << shift) & mask;
    }
    a
}
