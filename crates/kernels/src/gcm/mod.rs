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
//!
//! A message is at most 2^36 - 32 bytes (SP 800-38D section 5.2.1.1); behind that
//! the counter repeats. The caller keeps to it, and to one use of each nonce.

mod key;
mod stream;

use inout::InOutBuf;

pub use self::key::GcmKey;
use self::key::{Implementation, run};
pub use self::stream::{Done, GcmState, GcmStream, InverseHashKey};
use crate::aes::Block;
use crate::job::{AeadJob, Direction};
use crate::portable;
use crate::wipe::on_portable;

#[cfg(target_arch = "x86_64")]
use crate::x86_64::gcm as x86;

/// Encrypts each job and computes its tag.
#[inline]
pub fn seal(jobs: &mut [AeadJob<'_, GcmKey>]) {
    if let Some(by) = jobs.first().map(|job| job.key.implementation()) {
        run!(by, seal(jobs), _ => portable::gcm::crypt_batch(Direction::Encrypt, jobs));
    }
}

/// Decrypts each job and computes the tag that it should have. Comparing that with
/// the tag received, in constant time, and wiping the output if they differ, is the
/// caller's duty.
#[inline]
pub fn open(jobs: &mut [AeadJob<'_, GcmKey>]) {
    if let Some(by) = jobs.first().map(|job| job.key.implementation()) {
        run!(by, open(jobs), _ => portable::gcm::crypt_batch(Direction::Decrypt, jobs));
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
    crypt(dir, key, &mut counter, &mut hash, data);
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

pub(crate) fn xor(a: &Block, b: &Block) -> Block {
    (u128::from_ne_bytes(*a) ^ u128::from_ne_bytes(*b)).to_ne_bytes()
}

/// J0 of a nonce of 12 bytes (section 7.1, step 2).
pub(crate) fn first_counter(nonce: &[u8; 12]) -> Block {
    let mut j0 = [0; 16];
    j0[..12].copy_from_slice(nonce);
    j0[15] = 1;
    j0
}

/// The counter block `n` behind `counter`; its last 32 bits wrap (section 6.2).
pub(crate) fn counter_from(counter: &Block, n: u32) -> Block {
    let mut next = *counter;
    let low = u32::from_be_bytes([counter[12], counter[13], counter[14], counter[15]]);
    next[12..].copy_from_slice(&low.wrapping_add(n).to_be_bytes());
    next
}

/// The last block of GHASH: both lengths, given in bytes, in bits.
pub(crate) fn lengths(aad: u64, data: u64) -> Block {
    (u128::from(aad) << 67 | u128::from(data) << 3).to_be_bytes()
}

/// Counter mode on from `counter` and GHASH on from `y` over a piece of data that is
/// followed by zeros up to a whole block.
fn crypt(
    dir: Direction,
    key: &GcmKey,
    counter: &mut Block,
    y: &mut Block,
    data: InOutBuf<'_, '_, u8>,
) {
    run!(key.implementation(), crypt(dir, key, counter, y, data), _ => {
        let blocks = data.len().div_ceil(16);
        portable::gcm::crypt(dir, key, counter, y, data);
        *counter = counter_from(counter, blocks as u32);
    })
}

/// GHASH on from `y` over bytes and zeros up to a whole block.
fn hash(key: &GcmKey, y: &mut Block, bytes: &[u8]) {
    run!(key.implementation(), hash(key, y, bytes), _ => portable::gcm::hash(key, y, bytes))
}

/// GHASH on from `y` over one block.
fn hash_block(key: &GcmKey, y: &mut Block, block: &Block) {
    match key.implementation() {
        Implementation::Portable => on_portable(|| portable::gcm::hash(key, y, block)),
        #[cfg(target_arch = "x86_64")]
        Implementation::AesNi(token) => x86::last::x128::hash_block(token, key, y, block),
        #[cfg(target_arch = "x86_64")]
        Implementation::Vaes(token) => x86::last::x256::hash_block(token, key, y, block),
        // One block needs no long vectors, which take longer to be cleared.
        #[cfg(target_arch = "x86_64")]
        Implementation::Vaes512(token) => x86::last::x256::hash_block(token.vaes(), key, y, block),
    }
}

/// What GHASH is still to be told of a message.
pub(crate) struct Rest<'a> {
    /// The block begun, with zeros behind it.
    pub(crate) block: Option<&'a Block>,
    /// Bytes of additional data, and of data.
    pub(crate) aad_len: u64,
    pub(crate) data_len: u64,
}

/// The tag of a message, from GHASH so far.
fn tag(key: &GcmKey, y: &Block, rest: &Rest<'_>, j0: &Block) -> Block {
    match key.implementation() {
        Implementation::Portable => on_portable(|| {
            let mut last = [[0; 16], lengths(rest.aad_len, rest.data_len)];
            let from = match rest.block {
                Some(block) => {
                    last[0] = *block;
                    0
                }
                None => 1,
            };
            let mut y = *y;
            portable::gcm::hash(key, &mut y, last[from..].as_flattened());
            xor(&y, &portable::gcm::encrypt(&key.aes, j0))
        }),
        #[cfg(target_arch = "x86_64")]
        Implementation::AesNi(token) => x86::last::x128::tag(token, key, y, rest, j0),
        #[cfg(target_arch = "x86_64")]
        Implementation::Vaes(token) => x86::last::x256::tag(token, key, y, rest, j0),
        #[cfg(target_arch = "x86_64")]
        Implementation::Vaes512(token) => x86::last::x256::tag(token.vaes(), key, y, rest, j0),
    }
}

/// Less than a block, with zeros behind it, in words of 64 bits: [`hash_block`] loads it as
/// such at once, where a load over shorter stores would wait for them.
fn padded(bytes: &[u8]) -> Block {
    let word = |from: usize| {
        let bytes = bytes.get(from..).unwrap_or_default();
        match bytes.first_chunk() {
            Some(whole) => u64::from_le_bytes(*whole),
            None => bytes
                .iter()
                .rev()
                .fold(0, |word, &byte| word << 8 | u64::from(byte)),
        }
    };
    (u128::from(word(8)) << 64 | u128::from(word(0))).to_le_bytes()
}

fn encrypt(key: &GcmKey, block: &Block) -> Block {
    run!(key.implementation(), encrypt(&key.aes, block), _ => portable::gcm::encrypt(&key.aes, block))
}

/// The product of two blocks in the field of GHASH.
fn multiply(key: &GcmKey, a: &Block, b: &Block) -> Block {
    run!(key.implementation(), multiply(a, b), _ => portable::gcm::multiply(a, b))
}

#[cfg(test)]
mod tests;
