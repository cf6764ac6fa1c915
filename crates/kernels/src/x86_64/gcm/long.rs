//! Messages and pieces of any length.
//!
//! A message is a row of chunks of eight vectors. While one chunk goes through the
//! rounds of AES, another is hashed: on encryption the chunk before it, on
//! decryption the same one, so the ports for AES and for carry-less multiplication
//! work together.

use core::arch::x86_64::*;

use super::chunk::{APART_WHOLE, Chunk, together};
use super::end::{Counting, End, any_rest};
use super::hash::{Hash, start};
use super::lane::Lane;
use super::rounds::*;
use super::row::Row;
use super::windows::any_windows;
use super::{Kernels, store_tag};
use crate::gcm::key::GcmKey;
use crate::job::AeadJob;
use crate::x86_64::ghash::has_shifted;

/// A piece of a message from the counter of its first block, in the form for counting, which is
/// `ahead` blocks ahead of where a chunk would begin.
#[inline(always)]
pub(super) unsafe fn piece<V: Kernels, const SEAL: bool>(
    key: &GcmKey,
    first: __m128i,
    ahead: usize,
    data: (*const u8, *mut u8, usize),
    mut hash: Hash<V>,
    mut end: End<'_, V>,
) -> __m128i {
    let (mut from, mut to, mut len) = data;
    // SAFETY: the caller enables the instructions of `V` and gives `len` bytes to
    // read and to write; each step takes what is left of them.
    unsafe {
        let mut counter = V::splat(first);
        if ahead > 0 {
            let blocks = chunk_blocks::<V>() - ahead;
            let head = 16 * blocks;
            if len < WIDTH * V::BYTES {
                let row = Row::new(key, (from, to, len), hash);
                return any_rest::<V, SEAL, 0>(&row, Counting::Block(counter), &mut end);
            }
            let row = Row::new(key, (from, to, head), hash);
            let end = &mut End::Piece(None);
            hash = Hash::from(any_rest::<V, SEAL, 0>(&row, Counting::Block(counter), end));
            counter = counter.add32(count(blocks as u32));
            (from, to, len) = (from.add(head), to.add(head), len - head);
        }
        let counters = Counters::from(counter, &key.aes);
        crypt::<V, _, SEAL>(key, counters, (from, to, len), hash, end)
    }
}

/// The counter blocks of a message or a piece of one, from where a chunk begins.
pub(super) trait Blocks<V: Kernels>: Chunk<V> + Copy {
    /// Those of what is left.
    fn rest(self) -> Counting<V>;
    /// [`any_windows`], unless states after two rounds are there already.
    #[inline(always)]
    unsafe fn any_windows<const SEAL: bool, const BY_HALVES: bool>(
        &mut self,
        _row: &mut Row<'_, V>,
    ) -> bool {
        false
    }
}

impl<V: Kernels> Blocks<V> for Counters<V> {
    #[inline(always)]
    fn rest(self) -> Counting<V> {
        Counting::Chunk(self)
    }

    #[inline(always)]
    unsafe fn any_windows<const SEAL: bool, const BY_HALVES: bool>(
        &mut self,
        row: &mut Row<'_, V>,
    ) -> bool {
        // SAFETY: the caller's contract.
        unsafe { any_windows::<V, SEAL, BY_HALVES>(row, self) }
    }
}

/// What begins where a chunk does.
#[inline(always)]
unsafe fn crypt<V: Kernels, B: Blocks<V>, const SEAL: bool>(
    key: &GcmKey,
    mut counters: B,
    (from, to, len): (*const u8, *mut u8, usize),
    hash: Hash<V>,
    mut end: End<'_, V>,
) -> __m128i {
    let size = WIDTH * V::BYTES;
    // SAFETY: the caller enables the instructions of `V` and gives `len` bytes to
    // read and to write; each step takes what is left of them.
    unsafe {
        let mut row = Row::new(key, (from, to, len), hash);
        if SEAL && len >= size {
            return seal(row, counters, &mut end);
        }
        let mut text = [V::zero(); WIDTH];
        if by_halves::<V>() && len >= 2 * size {
            row.hash.sum = row.hash.sum.folded();
            counters.any_windows::<SEAL, true>(&mut row);
            while row.len >= 2 * size {
                row.chunk::<_, SEAL, APART_WHOLE>(&mut counters, &mut text);
            }
        }
        if !by_halves::<V>() {
            counters.any_windows::<SEAL, false>(&mut row);
        }
        while row.len >= size {
            if together::<V>() == 2 && row.len >= 2 * size {
                row.chunk::<_, SEAL, 2>(&mut counters, &mut text);
            }
            row.chunk::<_, SEAL, 1>(&mut counters, &mut text);
        }
        any_rest::<V, SEAL, 0>(&row, counters.rest(), &mut end)
    }
}

/// A message or a piece of a chunk or more that is encrypted.
#[inline(always)]
unsafe fn seal<V: Kernels, B: Blocks<V>>(
    mut row: Row<'_, V>,
    mut counters: B,
    end: &mut End<'_, V>,
) -> __m128i {
    let size = WIDTH * V::BYTES;
    // SAFETY: the caller enables the instructions of `V`, and gives a chunk or more; each step takes
    // what is left of it.
    unsafe {
        if by_halves::<V>() {
            row.hash.sum = row.hash.sum.folded();
            let mut half = [V::zero(); HALF];
            row.halves::<_, true>(&mut counters, &mut half);
            if counters.any_windows::<true, true>(&mut row) {
                half = row.before();
            }
            while row.len >= size {
                row.halves::<_, false>(&mut counters, &mut half);
            }
            return any_rest::<V, true, HALF>(&row, counters.rest(), end);
        }
        let mut text = [V::zero(); WIDTH];
        row.chunk::<_, true, 0>(&mut counters, &mut text);
        if counters.any_windows::<true, false>(&mut row) {
            text = row.before();
        }
        while row.len >= size {
            // The chunk that ends the group is hashed next, here or at the end.
            if together::<V>() == 2 {
                row.chunk::<_, true, 2>(&mut counters, &mut text);
                if row.len < size {
                    break;
                }
            }
            row.chunk::<_, true, 1>(&mut counters, &mut text);
        }
        any_rest::<V, true, WIDTH>(&row, counters.rest(), end)
    }
}

/// Whether messages are encrypted by halves of chunks, and hashed by whole products, their lanes apart.
#[inline(always)]
pub(super) fn by_halves<V: Lane>() -> bool {
    has_shifted::<V>()
}

/// Blocks of the first group that is hashed of a message of `len` bytes or a piece of it, behind which
/// `end` more blocks stand. The data begins where a chunk does.
#[inline(always)]
pub(super) fn first_group<V: Lane, const SEAL: bool>(len: usize, end: usize) -> usize {
    match len / (WIDTH * V::BYTES) {
        0 => len.div_ceil(16) + end,
        _ if SEAL && by_halves::<V>() => chunk_blocks::<V>() / 2,
        chunks => chunks.min(together::<V>()) * chunk_blocks::<V>(),
    }
}

/// One message of any length, with additional data of any length.
#[inline(always)]
pub(super) unsafe fn long<V: Kernels, const SEAL: bool>(job: &mut AeadJob<'_, GcmKey>) {
    // SAFETY: the caller enables the instructions of `V`.
    unsafe {
        let counters = Counters::of(V::nonce(&job.iv), &job.key.aes);
        message::<V, _, SEAL>(job, counters, counters.j0());
    }
}

/// One message by its counter blocks, and J0 as far as these have gone through AES.
#[inline(always)]
pub(super) unsafe fn message<V: Kernels, B: Blocks<V>, const SEAL: bool>(
    job: &mut AeadJob<'_, GcmKey>,
    counters: B,
    j0: V,
) {
    let key = job.key;
    let len = job.data.len();
    let (from, to) = job.data.reborrow().into_raw();
    // SAFETY: the caller enables the instructions of `V`; the buffer is good for
    // `len` bytes, its input and output being the same or apart.
    unsafe {
        let lengths = _mm_set_epi64x(
            (8 * job.aad.len() as u64).cast_signed(),
            (8 * len as u64).cast_signed(),
        );
        let n = first_group::<V, SEAL>(len, 1);
        let hash = start(&key.table, job.aad, n);
        let end = End::Message { j0, lengths };
        let tag = crypt::<V, _, SEAL>(key, counters, (from, to, len), hash, end).reverse();
        store_tag(job.tag, tag);
    }
}
