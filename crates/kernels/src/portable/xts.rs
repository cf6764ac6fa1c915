//! XTS over the portable cipher.

use inout::InOutBuf;
use zeroize::Zeroize;

use super::aes::BATCH;
use crate::aes::key::{AesKey, Block};
use crate::aes::schedule::Schedule;
use crate::job::{CipherJob, Direction};
use crate::xts::key::XtsKey;
use crate::xts::tweak::double;

pub(crate) fn crypt(dir: Direction, jobs: &mut [CipherJob<'_, XtsKey>]) {
    for job in jobs {
        let mut tweak = job.iv;
        let cipher = job.key.tweak().portable();
        cipher.crypt(Direction::Encrypt, core::slice::from_mut(&mut tweak));
        crypt_from(dir, job.key.data(), &tweak, job.data.reborrow());
        tweak.zeroize();
    }
}

/// A data unit, or the rest of one, from its first block's encrypted tweak.
pub(crate) fn crypt_from(
    dir: Direction,
    key: &AesKey,
    tweak: &Block,
    mut data: InOutBuf<'_, '_, u8>,
) {
    let cipher = key.portable();
    let mut tweak = u128::from_le_bytes(*tweak);
    let odd = data.len() % 16;
    // Stealing takes the last whole block of a ciphertext out of its turn.
    let apart = match (odd, dir) {
        (0, _) => 0,
        (_, Direction::Encrypt) => odd,
        (_, Direction::Decrypt) => odd + 16,
    };
    let whole = data.len() - apart;
    let (in_turn, _) = data.reborrow().split_at(whole);
    blocks(dir, cipher, &mut tweak, in_turn);
    if odd > 0 {
        steal(dir, cipher, tweak, data, odd);
    }
    tweak.zeroize();
}

/// Whole blocks in turn; leaves the tweak of the next.
fn blocks(dir: Direction, cipher: &Schedule, tweak: &mut u128, mut rest: InOutBuf<'_, '_, u8>) {
    let mut tweaks = [[0; 16]; BATCH];
    let mut state = [[0; 16]; BATCH];
    while !rest.is_empty() {
        let n = (rest.len() / 16).min(BATCH);
        let (mut data, next) = rest.split_at(16 * n);
        let (tweaks, state) = (&mut tweaks[..n], &mut state[..n]);
        for place in tweaks.iter_mut() {
            *place = tweak.to_le_bytes();
            *tweak = double(*tweak);
        }
        state.as_flattened_mut().copy_from_slice(data.get_in());
        xor(state.as_flattened_mut(), tweaks.as_flattened());
        cipher.crypt(dir, state);
        xor(state.as_flattened_mut(), tweaks.as_flattened());
        data.get_out().copy_from_slice(state.as_flattened());
        rest = next;
    }
    tweaks.zeroize();
    state.zeroize();
}

/// Ciphertext stealing (IEEE 1619 section 5.3.2) over the last whole block and the
/// `odd` bytes behind it. Encrypting, that block is already in the output, and
/// `tweak` is the one behind it; decrypting, it is still to do, and `tweak` is its.
fn steal(dir: Direction, cipher: &Schedule, tweak: u128, data: InOutBuf<'_, '_, u8>, odd: usize) {
    let single = |block: &mut Block, tweak: u128| {
        xor(block, &tweak.to_le_bytes());
        cipher.crypt(dir, core::slice::from_mut(block));
        xor(block, &tweak.to_le_bytes());
    };
    let start = data.len() - odd - 16;
    let (_, mut data) = data.split_at(start);
    let mut whole: Block = [0; 16];
    match dir {
        Direction::Encrypt => whole.copy_from_slice(&data.get_out()[..16]),
        Direction::Decrypt => {
            whole.copy_from_slice(&data.get_in()[..16]);
            single(&mut whole, double(tweak));
        }
    }
    let mut joined = whole;
    joined[..odd].copy_from_slice(&data.get_in()[16..]);
    single(&mut joined, tweak);
    data.get_out()[..16].copy_from_slice(&joined);
    data.get_out()[16..].copy_from_slice(&whole[..odd]);
    whole.zeroize();
    joined.zeroize();
}

fn xor(to: &mut [u8], from: &[u8]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to ^= from;
    }
}
