//! XTS (IEEE 1619, NIST SP 800-38E) with ciphertext stealing.

mod expand;
pub(crate) mod key;
pub(crate) mod tweak;

use inout::InOutBuf;
use zeroize::Zeroize;

pub use self::key::XtsKey;
use self::tweak::times_power;
use crate::aes::key::Block;
use crate::choose::{alone, block, by_tier, part};
use crate::job::{CipherJob, Direction};
use crate::portable;

/// Up to how many bytes a data unit takes less time with narrower registers, of which fewer are to be
/// cleared.
const SHORT: usize = 128;

/// Every job as a whole data unit.
///
/// # Panics
/// If the length of a job's data is less than 16.
pub fn crypt(dir: Direction, jobs: &mut [CipherJob<'_, XtsKey>]) {
    for job in jobs.iter() {
        assert!(job.data.len() >= 16, "XTS takes a block or more");
    }
    if let [job] = jobs {
        alone!(xts_one(dir, job));
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
    rest_of_unit(dir, job.key, &tweak, job.data.reborrow());
    tweak.zeroize();
}

/// Makes the encrypted tweak of the first block of the data unit `iv`, for [`crypt_one`]: it can
/// be made before the data is there.
#[inline]
pub fn first_tweak(key: &XtsKey, iv: &Block, tweak: &mut Block) {
    *tweak = *iv;
    key.tweak().encrypt(tweak);
}

/// A data unit from its [`first_tweak`].
///
/// # Panics
/// If the length of the data is less than 16.
#[inline(always)]
pub fn crypt_one(dir: Direction, key: &XtsKey, tweak: &Block, data: InOutBuf<'_, '_, u8>) {
    assert!(data.len() >= 16, "XTS takes a block or more");
    block!(data.len(), xts(dir, key.data(), tweak, data));
    if data.len() <= SHORT {
        part!(xts(dir, key.data(), tweak, data));
    }
    rest_of_unit(dir, key, tweak, data);
}

/// The encrypted tweak of a block of the data unit `iv`.
fn tweak_at(key: &XtsKey, iv: Block, block: u64) -> Block {
    let mut tweak = [0; 16];
    first_tweak(key, &iv, &mut tweak);
    times_power(u128::from_le_bytes(tweak), block).to_le_bytes()
}

fn rest_of_unit(dir: Direction, key: &XtsKey, tweak: &Block, data: InOutBuf<'_, '_, u8>) {
    by_tier!(
        xts_from(dir, key.data(), tweak, data),
        _ => portable::xts::crypt_from(dir, key.data(), tweak, data)
    )
}

#[cfg(test)]
mod tests;
