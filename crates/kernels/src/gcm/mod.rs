//! AES-GCM (NIST SP 800-38D; for ESP RFC 4106, for TLS RFC 5288).
//!
//! | for | use |
//! |---|---|
//! | whole messages with nonces of 12 bytes, a batch at a time | [`seal`], [`open`] |
//! | one large message on several cores | [`part`] on each, then [`join`] |
//! | data in pieces as they come, nonces of any length | [`GcmStream`], [`GcmState`] |
//! | a large piece of such data on several cores | [`GcmState::part`] on each, then [`GcmState::join`] |
//! | a message done whole that turns out to go on | [`GcmState::continue_message`] |
//! | a message that is authenticated only (GMAC) | [`mac`] |
//! | a key that may have one short message | [`LazyGcmKey`] |
//!
//! A message is at most 2^36 - 32 bytes (SP 800-38D section 5.2.1.1); behind that
//! the counter repeats. The caller keeps to it, and to one use of each nonce.

pub(crate) mod block;
mod by_key;
pub(crate) mod counter;
mod expand;
pub(crate) mod key;
mod lazy;
#[cfg(target_arch = "x86_64")]
pub(crate) mod powers;
pub(crate) mod rest;
mod stream;
pub(crate) mod two_passes;

use inout::InOutBuf;

use self::block::xor;
use self::by_key::by_key;
use self::counter::{counter_from, first_counter};
pub use self::key::GcmKey;
pub use self::lazy::LazyGcmKey;
use self::rest::{Begun, Rest, lengths};
pub use self::stream::{Done, GcmState, GcmStream, InverseHashKey};
use self::two_passes::TwoPasses;
use crate::aes::key::Block;
use crate::job::{AeadJob, Direction};
use crate::portable;
use crate::portable::gcm::Crates;

/// Encrypts each job and computes its tag.
#[inline]
pub fn seal(jobs: &mut [AeadJob<'_, GcmKey>]) {
    if let Some(by) = jobs.first().map(|job| job.key.implementation()) {
        by_key!(by, seal(jobs), _ => two_passes::crypt_batch(Crates, Direction::Encrypt, jobs));
    }
}

/// Decrypts each job and computes the tag that it should have. Comparing that with
/// the tag received, in constant time, and wiping the output if they differ, is the
/// caller's duty.
#[inline]
pub fn open(jobs: &mut [AeadJob<'_, GcmKey>]) {
    if let Some(by) = jobs.first().map(|job| job.key.implementation()) {
        by_key!(by, open(jobs), _ => two_passes::crypt_batch(Crates, Direction::Decrypt, jobs));
    }
}

/// What [`join`] needs to know of a piece of a message: GHASH over its ciphertext
/// alone, and its length in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    hash: Block,
    len: u64,
}

/// Encrypts or decrypts a piece of a message that starts at block `first_block` of
/// it (16-byte blocks, from 0). All pieces but the last are multiples of 16 bytes.
pub fn part(
    dir: Direction,
    key: &GcmKey,
    nonce: &[u8; 12],
    first_block: u32,
    data: InOutBuf<'_, '_, u8>,
) -> Part {
    let mut counter = counter_from(&first_counter(nonce), first_block.wrapping_add(1));
    let len = data.len() as u64;
    let mut hash = [0; 16];
    crypt(dir, key, &mut counter, &mut hash, None, data);
    Part { hash, len }
}

/// The tag of a message from its [`part`]s in order. Without parts it is the tag of
/// additional data alone.
pub fn join(key: &GcmKey, nonce: &[u8; 12], aad: &[u8], parts: &[Part]) -> [u8; 16] {
    let mut y = [0; 16];
    hash(key, &mut y, aad);
    y = fold(key, y, parts);
    let len = parts.iter().map(|part| part.len).sum();
    hash(key, &mut y, &lengths(aad.len() as u64, len));
    xor(&y, &encrypt(key, &first_counter(nonce)))
}

/// GHASH on from `y` over parts in order.
fn fold(key: &GcmKey, mut y: Block, parts: &[Part]) -> Block {
    // Pieces of one message mostly have one length.
    let mut shift = (0, [0; 16]);
    for part in parts {
        let blocks = part.len.div_ceil(16);
        if blocks == 0 {
            continue;
        }
        if shift.0 != blocks {
            shift = (blocks, power(key, blocks));
        }
        y = xor(&multiply(key, &y, &shift.1), &part.hash);
    }
    y
}

/// GMAC (section 3): the tag of `head` and `data` as one piece of additional data,
/// without plaintext.
pub fn mac(key: &GcmKey, nonce: &[u8; 12], head: &[u8], data: &[u8]) -> [u8; 16] {
    let mut y = [0; 16];
    let (whole, pending) = head.split_at(head.len() - head.len() % 16);
    hash(key, &mut y, whole);
    // The block in which both meet.
    let taken = if pending.is_empty() {
        0
    } else {
        data.len().min(16 - pending.len())
    };
    let (first, rest) = data.split_at(taken);
    let mut block = [0; 16];
    block[..pending.len()].copy_from_slice(pending);
    block[pending.len()..][..taken].copy_from_slice(first);
    hash(key, &mut y, &block[..pending.len() + taken]);
    hash(key, &mut y, rest);
    hash(key, &mut y, &lengths((head.len() + data.len()) as u64, 0));
    xor(&y, &encrypt(key, &first_counter(nonce)))
}

/// H^n for n > 0, by squaring.
fn power(key: &GcmKey, n: u64) -> Block {
    let mut power = *key.hash_key();
    for bit in (0..n.ilog2()).rev() {
        power = multiply(key, &power, &power);
        if n >> bit & 1 == 1 {
            power = multiply(key, &power, key.hash_key());
        }
    }
    power
}

/// Counter mode on from `counter` and GHASH on from `y` over a piece of data that is followed by zeros up
/// to a whole block. With `begun` the data is a block or more: GHASH takes the block there before it, if
/// that is additional data, and whole blocks of it; less than a block behind them begins another.
fn crypt(
    dir: Direction,
    key: &GcmKey,
    counter: &mut Block,
    y: &mut Block,
    begun: Option<&mut Begun>,
    data: InOutBuf<'_, '_, u8>,
) {
    by_key!(
        key.implementation(),
        crypt(dir, key, counter, y, begun, data),
        _ => two_passes::crypt_piece(Crates, dir, key, counter, y, begun, data)
    )
}

/// GHASH on from `y` over bytes and zeros up to a whole block.
fn hash(key: &GcmKey, y: &mut Block, bytes: &[u8]) {
    by_key!(key.implementation(), hash(key, y, bytes), _ => Crates.hash(key, y, bytes))
}

/// GHASH on from `y` over one block.
fn hash_block(key: &GcmKey, y: &mut Block, block: &Block) {
    by_key!(
        key.implementation(),
        hash_block(key, y, block),
        _ => Crates.hash(key, y, block)
    )
}

/// The tag of a message, from GHASH so far and E(J0).
fn tag(key: &GcmKey, y: &Block, rest: &Rest<'_>, pad: &Block) -> Block {
    by_key!(
        key.implementation(),
        tag(key, y, rest, pad),
        _ => two_passes::tag(Crates, key, y, rest, pad)
    )
}

fn encrypt(key: &GcmKey, block: &Block) -> Block {
    by_key!(key.implementation(), encrypt(&key.aes, block), _ => Crates.encrypt(&key.aes, block))
}

/// The product of two blocks in the field of GHASH.
fn multiply(key: &GcmKey, a: &Block, b: &Block) -> Block {
    by_key!(key.implementation(), multiply(a, b), _ => portable::gcm::multiply(a, b))
}

#[cfg(test)]
mod tests;
