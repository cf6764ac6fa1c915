//! XTS (IEEE 1619, NIST SP 800-38E) with ciphertext stealing.

mod key;

use inout::InOutBuf;
use zeroize::Zeroize;

pub use self::key::XtsKey;
use crate::aes::Block;
use crate::choose::by_tier;
use crate::job::{CipherJob, Direction};
use crate::{ecb, portable};

/// Every job as a whole data unit.
///
/// # Panics
/// If the length of a job's data is less than 16.
pub fn crypt(dir: Direction, jobs: &mut [CipherJob<'_, XtsKey>]) {
    for job in jobs.iter() {
        assert!(job.data.len() >= 16, "XTS takes a block or more");
    }
    by_tier!(xts(dir, jobs), _ => portable::xts::crypt(dir, jobs))
}

/// The part of a data unit that starts at block `first_block`, with the IV that
/// the whole unit has. Its length is a multiple of 16 unless it is the last part:
/// stealing crosses no border, so a last part with an odd length has 16 bytes or
/// more before its odd ones.
///
/// # Panics
/// If the length of the job's data is less than 16.
pub fn crypt_from(dir: Direction, job: &mut CipherJob<'_, XtsKey>, first_block: u64) {
    assert!(job.data.len() >= 16, "XTS takes a block or more");
    let mut tweak = tweak_at(job.key, job.iv, first_block);
    rest_of_unit(dir, job, &tweak);
    tweak.zeroize();
}

/// The encrypted tweak of the first block of the data unit `iv`, for [`crypt_one`]: it can
/// be made before the data is there.
pub fn first_tweak(key: &XtsKey, iv: Block) -> Block {
    tweak_at(key, iv, 0)
}

/// A data unit from its [`first_tweak`]; the IV of the job is not looked at.
///
/// # Panics
/// If the length of the job's data is less than 16.
pub fn crypt_one(dir: Direction, job: &mut CipherJob<'_, XtsKey>, tweak: &Block) {
    assert!(job.data.len() >= 16, "XTS takes a block or more");
    rest_of_unit(dir, job, tweak);
}

/// The encrypted tweak of a block of the data unit `iv`.
fn tweak_at(key: &XtsKey, mut iv: Block, block: u64) -> Block {
    let mut jobs = [CipherJob {
        key: key.tweak(),
        iv: [0; 16],
        data: InOutBuf::from(&mut iv[..]),
    }];
    ecb::crypt(Direction::Encrypt, &mut jobs);
    times_power(u128::from_le_bytes(iv), block).to_le_bytes()
}

fn rest_of_unit(dir: Direction, job: &mut CipherJob<'_, XtsKey>, tweak: &Block) {
    by_tier!(xts_from(dir, job, tweak), _ => portable::xts::crypt_from(dir, job, tweak))
}

/// The product with x modulo x^128 + x^7 + x^2 + x + 1, the tweak of the next block
/// (section 5.2), in constant time.
pub(crate) fn double(a: u128) -> u128 {
    (a << 1) ^ ((a >> 127) * 0x87)
}

/// The product of the secret `a` with x^`n`; `n` is public.
fn times_power(mut a: u128, n: u64) -> u128 {
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
fn power(n: u64) -> u128 {
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

#[cfg(test)]
mod tests;
