//! XTS (IEEE 1619, NIST SP 800-38E) with ciphertext stealing.

use inout::InOutBuf;
use zeroize::Zeroize;

use crate::aes::{AesKey, Block};
use crate::job::{CipherJob, Direction};
use crate::{choose, ecb};

/// The two expanded keys of XTS-AES.
pub struct XtsKey {
    data: AesKey,
    tweak: AesKey,
}

impl XtsKey {
    /// Expands a key of 32, 48 or 64 bytes, the data key and then the tweak key;
    /// `None` for any other length. Equal halves, which FIPS 140 forbids, are the
    /// caller's to refuse.
    pub fn new(key: &[u8]) -> Option<XtsKey> {
        let (data, tweak) = key.split_at(key.len() / 2);
        if data.len() != tweak.len() {
            return None;
        }
        Some(XtsKey {
            data: AesKey::new(data)?,
            tweak: AesKey::new(tweak)?,
        })
    }

    #[inline(always)]
    pub(crate) fn data(&self) -> &AesKey {
        &self.data
    }

    #[inline(always)]
    pub(crate) fn tweak(&self) -> &AesKey {
        &self.tweak
    }
}

/// Every job as a whole data unit.
///
/// # Panics
/// If the length of a job's data is less than 16.
pub fn crypt(dir: Direction, jobs: &mut [CipherJob<'_, XtsKey>]) {
    for job in jobs.iter() {
        assert!(job.data.len() >= 16, "XTS takes a block or more");
    }
    choose!(xts(dir, jobs), xts::crypt(dir, jobs))
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
    let mut tweak = job.iv;
    ecb::crypt(
        Direction::Encrypt,
        &mut [CipherJob {
            key: &job.key.tweak,
            iv: [0; 16],
            data: InOutBuf::from(&mut tweak[..]),
        }],
    );
    tweak = times_power(u128::from_le_bytes(tweak), first_block).to_le_bytes();
    rest_of_unit(dir, job, &tweak);
    tweak.zeroize();
}

fn rest_of_unit(dir: Direction, job: &mut CipherJob<'_, XtsKey>, tweak: &Block) {
    choose!(xts_from(dir, job, tweak), xts::crypt_from(dir, job, tweak))
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
mod tests {
    use super::*;

    #[test]
    fn powers_step_by_doubling() {
        for start in [0, 1, 100, 127, 128, 1 << 20, u64::MAX - 300] {
            let mut expected = power(start);
            for n in start..start + 300 {
                assert_eq!(power(n), expected, "x^{n}");
                expected = double(expected);
            }
        }
        assert_eq!(power(0), 1);
        assert_eq!(power(127), 1 << 127);
    }

    #[test]
    fn powers_multiply() {
        let a = 0x0123_4567_89ab_cdef_fedc_ba98_7654_3210;
        let mut expected = a;
        for n in 0..1000 {
            assert_eq!(times_power(a, n), expected);
            expected = double(expected);
        }
        let far = times_power(times_power(a, u64::MAX / 2), u64::MAX / 2);
        assert_eq!(far, times_power(a, u64::MAX - 1));
    }
}
