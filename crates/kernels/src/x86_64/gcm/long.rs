//! Messages and pieces of any length.
//!
//! A message is a row of chunks of eight vectors. While one chunk goes through the
//! rounds of AES, another is hashed: on encryption the chunk before it, on
//! decryption the same one, so the ports for AES and for carry-less multiplication
//! work together.

use core::arch::x86_64::*;

use super::chunk::{APART, chunk, together};
use super::end::{End, any_rest};
use super::hash::{Hash, start};
use super::lane::Lane;
use super::rounds::*;
use super::{Kernels, store_tag};
use crate::cpu::is_intel;
use crate::gcm::key::GcmKey;
use crate::job::AeadJob;

/// A whole message or a piece of it from the counter of its first block, in the form for
/// counting, which is `ahead` blocks ahead of where a chunk would begin.
#[inline(always)]
pub(super) unsafe fn crypt<V: Kernels, const SEAL: bool>(
    key: &GcmKey,
    first: __m128i,
    ahead: usize,
    data: (*const u8, *mut u8, usize),
    mut hash: Hash<V>,
    mut end: End<'_, V>,
) -> __m128i {
    let size = WIDTH * V::BYTES;
    let (mut from, mut to, mut len) = data;
    // SAFETY: the caller enables the instructions of `V` and gives `len` bytes to
    // read and to write; each step takes what is left of them.
    unsafe {
        let mut counter = V::splat(first);
        if ahead > 0 && len >= size {
            let blocks = chunk_blocks::<V>() - ahead;
            let head = 16 * blocks;
            let y = any_rest::<V, SEAL, false>(
                key,
                counter,
                (from, to, head),
                hash,
                &mut End::Piece(None),
            );
            hash = Hash::from(y);
            counter = counter.add32(count(blocks as u32));
            (from, to, len) = (from.add(head), to.add(head), len - head);
        }
        let mut counters = Counters::from(counter, &key.aes);
        if SEAL {
            if len >= size {
                return seal(key, counters, (from, to, len), hash, &mut end);
            }
        } else {
            let mut text = [V::zero(); WIDTH];
            macro_rules! step {
                ($chunks:expr) => {
                    hash = chunk::<V, SEAL, { $chunks }>(
                        key,
                        &mut counters,
                        from,
                        to,
                        &mut text,
                        hash,
                    );
                    (from, to, len) = (from.add(size), to.add(size), len - size);
                };
            }
            if lanes_apart::<V>() && len >= 2 * size {
                hash.sum = hash.sum.turned();
                while len >= 2 * size {
                    step!(APART);
                }
            }
            while len >= size {
                if together::<V>() == 2 && len >= 2 * size {
                    step!(2);
                }
                step!(1);
            }
        }
        any_rest::<V, SEAL, false>(key, counters.next(), (from, to, len), hash, &mut end)
    }
}

/// A message or a piece of a chunk or more that is encrypted.
#[inline(always)]
unsafe fn seal<V: Kernels>(
    key: &GcmKey,
    mut counters: Counters<V>,
    data: (*const u8, *mut u8, usize),
    mut hash: Hash<V>,
    end: &mut End<'_, V>,
) -> __m128i {
    let size = WIDTH * V::BYTES;
    let (mut from, mut to, mut len) = data;
    // SAFETY: the caller enables the instructions of `V`, gives `len` bytes to read and to write, a
    // chunk or more; each step takes what is left of them.
    unsafe {
        let mut text = [V::zero(); WIDTH];
        macro_rules! step {
            ($chunks:expr) => {
                hash = chunk::<V, true, { $chunks }>(key, &mut counters, from, to, &mut text, hash);
                (from, to, len) = (from.add(size), to.add(size), len - size);
            };
        }
        step!(0);
        if lanes_apart::<V>() && len >= size {
            hash.sum = hash.sum.turned();
            while len >= size {
                step!(APART);
            }
        }
        while len >= size {
            // The chunk that ends the group is hashed next, here or at the end.
            if together::<V>() == 2 {
                step!(2);
                if len < size {
                    break;
                }
            }
            step!(1);
        }
        any_rest::<V, true, true>(key, counters.next(), (from, to, len), hash, end)
    }
}

/// Whether lanes stay apart from chunk to chunk, which pays where the number of operations counts.
#[inline(always)]
fn lanes_apart<V: Lane>() -> bool {
    V::BLOCKS == 4 && is_intel()
}

/// Blocks of the first group that is hashed of a message of `len` bytes or a piece of it, behind which
/// `end` more blocks stand. The data begins where a chunk does.
#[inline(always)]
pub(super) fn first_group<V: Lane>(len: usize, end: usize) -> usize {
    match len / (WIDTH * V::BYTES) {
        0 => len.div_ceil(16) + end,
        chunks => chunks.min(together::<V>()) * chunk_blocks::<V>(),
    }
}

/// One message of any length, with additional data of any length.
#[inline(always)]
pub(super) unsafe fn long<V: Kernels, const SEAL: bool>(job: &mut AeadJob<'_, GcmKey>) {
    let key = job.key;
    let len = job.data.len();
    let (from, to) = job.data.reborrow().into_raw();
    // SAFETY: the caller enables the instructions of `V`; the buffer is good for
    // `len` bytes, its input and output being the same or apart.
    unsafe {
        let j0 = _mm_insert_epi32::<3>(nonce(&job.iv), 1);
        let first = j0.add32(count(1));
        let lengths = _mm_set_epi64x(
            (8 * job.aad.len() as u64).cast_signed(),
            (8 * len as u64).cast_signed(),
        );
        let n = first_group::<V>(len, 1);
        let hash = start(&key.table, job.aad, n);
        let end = End::Message {
            j0: V::splat(j0),
            lengths,
        };
        let tag = crypt::<V, SEAL>(key, first, 0, (from, to, len), hash, end).reverse();
        store_tag(job.tag, tag);
    }
}
