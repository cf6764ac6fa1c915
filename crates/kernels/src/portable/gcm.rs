//! AES-GCM over the crates `aes` and `ghash`: constant time on every machine.

use core::mem;

use ghash::GHash;
use ghash::universal_hash::UniversalHash;
use inout::InOutBuf;

use crate::aes::key::{Block, EncryptionKey};
use crate::gcm::block::xor;
use crate::gcm::counter::{counter_from, first_counter};
use crate::gcm::key::GcmKey;
use crate::gcm::rest::{Begun, Rest, lengths};
use crate::job::{AeadJob, Direction};

/// Blocks of keystream made at once: enough for the widest bit slicing.
const STREAM: usize = 16;

/// E(0), the key of GHASH.
pub(crate) fn hash_key(aes: &EncryptionKey) -> Block {
    encrypt(aes, &[0; 16])
}

/// The block cipher alone.
pub(crate) fn encrypt(key: &EncryptionKey, block: &Block) -> Block {
    let mut block = *block;
    key.portable()
        .crypt(Direction::Encrypt, std::slice::from_mut(&mut block));
    block
}

/// GHASH from `y` over bytes and zeros up to a whole block.
pub(crate) fn hash(key: &GcmKey, y: &mut Block, bytes: &[u8]) {
    if bytes.is_empty() {
        return;
    }
    let (first, rest) = bytes.split_at(16.min(bytes.len()));
    // The crate has no way to set its state, but it adds a block to it first.
    for (sum, byte) in y.iter_mut().zip(first) {
        *sum ^= byte;
    }
    let mut hash = GHash::new(&(*key.hash_key()).into());
    hash.update(&[(*y).into()]);
    hash.update_padded(rest);
    *y = hash.finalize().into();
}

/// The tag of a message, from GHASH so far and E(J0).
pub(crate) fn tag(key: &GcmKey, y: &Block, rest: &Rest<'_>, pad: &Block) -> Block {
    let mut last = [[0; 16], lengths(rest.aad_len, rest.data_len)];
    let from = match rest.block {
        Some(block) => {
            last[0] = *block;
            0
        }
        None => 1,
    };
    let mut y = *y;
    hash(key, &mut y, last[from..].as_flattened());
    xor(&y, pad)
}

/// The product of two blocks in the field of GHASH.
pub(crate) fn multiply(a: &Block, b: &Block) -> Block {
    let mut hash = GHash::new(&(*a).into());
    hash.update(&[(*b).into()]);
    hash.finalize().into()
}

/// Encrypts or decrypts every job and gives it the tag of its ciphertext.
pub(crate) fn crypt_batch(dir: Direction, jobs: &mut [AeadJob<'_, GcmKey>]) {
    for job in jobs {
        let nonce = job.iv[..12].try_into().expect("12 of 16 bytes");
        let j0 = first_counter(nonce);
        let mut y = [0; 16];
        hash(job.key, &mut y, job.aad);
        let len = job.data.len();
        crypt(
            dir,
            job.key,
            &counter_from(&j0, 1),
            &mut y,
            job.data.reborrow(),
        );
        hash(job.key, &mut y, &lengths(job.aad.len() as u64, len as u64));
        let mask = encrypt(&job.key.aes, &j0);
        job.write_tag(&xor(&y, &mask));
    }
}

/// A piece of a message from `counter`, which moves on. GHASH takes less than a block at the end with zeros
/// behind it or, where `begun` is given, leaves it there.
pub(crate) fn crypt_piece(
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
            hash(key, y, &mem::take(&mut begun.block));
        }
        let whole = data.len() & !15;
        let (data, mut rest) = data.split_at(whole);
        crypt(dir, key, counter, y, data);
        if !rest.is_empty() {
            begun.stream = encrypt(&key.aes, &counter_from(counter, blocks - 1));
            let block = &mut begun.block[..rest.len()];
            block.copy_from_slice(rest.get_in());
            rest.xor_in2out(&begun.stream[..rest.len()]);
            if dir == Direction::Encrypt {
                block.copy_from_slice(rest.get_out());
            }
        }
    } else {
        crypt(dir, key, counter, y, data);
    }
    *counter = counter_from(counter, blocks);
}

/// Counter mode from `counter`, and GHASH on from `y`, over a piece of data that is
/// followed by zeros up to a whole block.
pub(crate) fn crypt(
    dir: Direction,
    key: &GcmKey,
    counter: &Block,
    y: &mut Block,
    mut data: InOutBuf<'_, '_, u8>,
) {
    if dir == Direction::Decrypt {
        hash(key, y, data.get_in());
    }
    apply(&key.aes, counter, data.reborrow());
    if dir == Direction::Encrypt {
        hash(key, y, data.get_out());
    }
}

/// Counter mode with the 32-bit counter of GCM.
fn apply(key: &EncryptionKey, counter: &Block, mut data: InOutBuf<'_, '_, u8>) {
    let mut done = 0u32;
    while !data.is_empty() {
        let len = data.len().min(16 * STREAM);
        let (mut head, tail) = data.split_at(len);
        let mut stream: [Block; STREAM] =
            core::array::from_fn(|i| counter_from(counter, done.wrapping_add(i as u32)));
        let blocks = &mut stream[..len.div_ceil(16)];
        key.portable().crypt(Direction::Encrypt, blocks);
        head.xor_in2out(&blocks.as_flattened()[..len]);
        done = done.wrapping_add(STREAM as u32);
        data = tail;
    }
}
