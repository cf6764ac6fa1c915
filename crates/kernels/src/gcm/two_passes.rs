//! AES-GCM as counter mode over a message and GHASH over its ciphertext, one after the other, for
//! implementations that do not have both in one loop.

use core::mem;

use inout::InOutBuf;

use super::block::xor;
use super::counter::{counter_from, first_counter};
use super::key::GcmKey;
use super::rest::{Begun, Rest, lengths};
use crate::aes::key::{Block, EncryptionKey};
use crate::job::{AeadJob, Direction};

/// What such an implementation has.
pub(crate) trait TwoPasses: Copy {
    /// The block cipher alone.
    fn encrypt(self, key: &EncryptionKey, block: &Block) -> Block;
    /// Counter mode with the 32-bit counter of GCM, from `counter`.
    fn apply(self, key: &EncryptionKey, counter: &Block, data: InOutBuf<'_, '_, u8>);
    /// GHASH on from `y` over bytes and zeros up to a whole block.
    fn hash(self, key: &GcmKey, y: &mut Block, bytes: &[u8]);
}

/// The tag of a message, from GHASH so far and E(J0).
pub(crate) fn tag<P: TwoPasses>(
    by: P,
    key: &GcmKey,
    y: &Block,
    rest: &Rest<'_>,
    pad: &Block,
) -> Block {
    let mut last = [[0; 16], lengths(rest.aad_len, rest.data_len)];
    let from = match rest.block {
        Some(block) => {
            last[0] = *block;
            0
        }
        None => 1,
    };
    let mut y = *y;
    by.hash(key, &mut y, last[from..].as_flattened());
    xor(&y, pad)
}

/// Encrypts or decrypts every job and gives it the tag of its ciphertext.
pub(crate) fn crypt_batch<P: TwoPasses>(by: P, dir: Direction, jobs: &mut [AeadJob<'_, GcmKey>]) {
    for job in jobs {
        let nonce = job.iv[..12].try_into().expect("12 of 16 bytes");
        let j0 = first_counter(nonce);
        let mut y = [0; 16];
        by.hash(job.key, &mut y, job.aad);
        let len = job.data.len();
        crypt(
            by,
            dir,
            job.key,
            &counter_from(&j0, 1),
            &mut y,
            job.data.reborrow(),
        );
        let lengths = lengths(job.aad.len() as u64, len as u64);
        by.hash(job.key, &mut y, &lengths);
        let mask = by.encrypt(&job.key.aes, &j0);
        job.write_tag(&xor(&y, &mask));
    }
}

/// A piece of a message from `counter`, which moves on. GHASH takes less than a block at the end with zeros
/// behind it or, where `begun` is given, leaves it there.
pub(crate) fn crypt_piece<P: TwoPasses>(
    by: P,
    dir: Direction,
    key: &GcmKey,
    counter: &mut Block,
    y: &mut Block,
    begun: Option<&mut Begun>,
    data: InOutBuf<'_, '_, u8>,
) {
    let blocks = data.len().div_ceil(16) as u32;
    if let Some(begun) = begun {
        if mem::take(&mut begun.is_aad) {
            by.hash(key, y, &mem::take(&mut begun.block));
        }
        let whole = data.len() & !15;
        let (data, mut rest) = data.split_at(whole);
        crypt(by, dir, key, counter, y, data);
        if !rest.is_empty() {
            begun.stream = by.encrypt(&key.aes, &counter_from(counter, blocks - 1));
            let block = &mut begun.block[..rest.len()];
            block.copy_from_slice(rest.get_in());
            rest.xor_in2out(&begun.stream[..rest.len()]);
            if dir == Direction::Encrypt {
                block.copy_from_slice(rest.get_out());
            }
        }
    } else {
        crypt(by, dir, key, counter, y, data);
    }
    *counter = counter_from(counter, blocks);
}

/// Counter mode from `counter`, and GHASH on from `y`, over a piece of data that is
/// followed by zeros up to a whole block.
fn crypt<P: TwoPasses>(
    by: P,
    dir: Direction,
    key: &GcmKey,
    counter: &Block,
    y: &mut Block,
    mut data: InOutBuf<'_, '_, u8>,
) {
    if dir == Direction::Decrypt {
        by.hash(key, y, data.get_in());
    }
    by.apply(&key.aes, counter, data.reborrow());
    if dir == Direction::Encrypt {
        by.hash(key, y, data.get_out());
    }
}
