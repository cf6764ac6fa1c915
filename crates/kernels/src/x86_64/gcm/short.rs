//! Messages of a chunk at most, with one block of additional data at most.
//!
//! The blocks of such a message, E(J0) and the lengths are one group, as at the end
//! of a longer one; here the counters are constants, and the additional data takes a
//! lane that is left free.

use core::arch::x86_64::*;

use super::lane::Lane;
use super::rounds::*;
use super::store_tag;
use crate::aes::key::Block;
use crate::gcm::key::GcmKey;
use crate::job::AeadJob;
use crate::x86_64::ghash::Sum;

/// The last byte of the counter blocks of a message from its second block on, the
/// first of the data. All else of the counter is zero there.
#[repr(align(64))]
struct FirstCounters([Block; (WIDTH + 1) * 4]);
static FIRST_COUNTERS: FirstCounters = FirstCounters({
    let mut table = [[0; 16]; (WIDTH + 1) * 4];
    let mut i = 0;
    while i < table.len() {
        table[i][15] = (FIRST + i) as u8;
        i += 1;
    }
    table
});

/// Counter mode over a message of a chunk at most. `M` is one more than the number of
/// vectors that its blocks fill. Gives what is to be hashed, bytes reversed, the
/// lengths behind it, and the vector that has E(J0) in the same lane.
#[inline(always)]
unsafe fn short<V: Lane, const SEAL: bool, const M: usize>(
    job: &mut AeadJob<'_, GcmKey>,
) -> ([V; M], V) {
    let key = job.key;
    let len = job.data.len();
    let blocks = len.div_ceil(16);
    let behind = blocks % V::BLOCKS;
    let (from, to) = job.data.reborrow().into_raw();
    // SAFETY: the caller enables the instructions of `V`. The data is good for `len`
    // bytes, and what `bytes` gives keeps inside them. The table of counters has as
    // many vectors as M may be.
    unsafe {
        let mask = V::one_lane(behind);
        let mut keys = RoundKeys::of(&key.aes);
        let base = V::nonce(&job.iv).xor(keys.load(0));
        let mut state = [V::zero(); M];
        for (i, block) in state.iter_mut().enumerate() {
            let mut counters = V::load(FIRST_COUNTERS.0.as_ptr().add(i * V::BLOCKS).cast());
            if i + 1 == M {
                let one = V::splat(_mm_set_epi32(1 << 24, 0, 0, 0));
                counters = counters.select(one, mask);
            }
            *block = base.xor(counters);
        }
        for i in 1..10 {
            round(&mut state, &mut keys, i);
        }
        let last = late_rounds(&mut state, &mut keys);
        let mut hashed = last_rounds::<V, SEAL, M>(&mut state, last, from, to, len);
        let lengths = _mm_set_epi64x(
            (8 * job.aad.len() as u64).cast_signed(),
            (8 * len as u64).cast_signed(),
        );
        hashed[M - 1] = hashed[M - 1].xor(V::splat(lengths).and(mask));
        (hashed, state[M - 1].and(mask).reverse())
    }
}

/// The tag of a message from what [`short`] gives, with one block of additional data
/// at most.
#[inline(always)]
unsafe fn short_tag<V: Lane>(job: &mut AeadJob<'_, GcmKey>, hashed: &[V], pad: V) {
    let table = &job.key.table;
    let blocks = job.data.len().div_ceil(16);
    let behind = blocks % V::BLOCKS;
    let before = hashed.len() - 1;
    // SAFETY: the caller enables the instructions of `V`. The group has
    // blocks + 1 <= 8 * BLOCKS + 1 blocks, and one before it.
    unsafe {
        let powers = table.at_power(blocks + 1);
        let mut sum = Sum::<V>::zero();
        for (i, hashed) in hashed[..before].iter().enumerate() {
            sum.add(*hashed, powers.lower(i * V::BLOCKS));
        }
        let (hashed, powers) = (hashed[before], powers.lower(before * V::BLOCKS));
        if job.aad.is_empty() {
            sum.add(hashed, powers);
        } else {
            let aad = load_block(job.aad).reverse();
            let first = table.at_power(blocks + 2);
            if behind + 1 < V::BLOCKS {
                sum.add_with(hashed, powers, behind + 1, aad, first);
            } else {
                sum.add(hashed, powers);
                sum.add(V::first(aad), first);
            }
        }
        let tag = sum.reduce().xor(pad).sum_lanes().reverse();
        store_tag(job.tag, tag);
    }
}

/// The first messages of a batch, as many as fill the same number of vectors.
///
/// What limits short messages is how many instructions the processor looks ahead. So
/// each is hashed when the next has gone through AES: nothing then waits for long.
#[inline(always)]
pub(super) unsafe fn run<V: Lane, const SEAL: bool, const M: usize>(
    jobs: &mut [AeadJob<'_, GcmKey>],
) -> usize {
    // SAFETY: the caller enables the instructions of `V`.
    unsafe {
        if let [job] = jobs {
            let (hashed, pad) = short::<V, SEAL, M>(job);
            short_tag(job, &hashed, pad);
            return 1;
        }
        let mut done: Option<(&mut AeadJob<'_, GcmKey>, [V; M], V)> = None;
        let mut n = 0;
        for job in jobs {
            if !is_short::<V>(job) || vectors::<V>(job) != M - 1 {
                break;
            }
            let (hashed, pad) = short::<V, SEAL, M>(job);
            if let Some((job, hashed, pad)) = done.replace((job, hashed, pad)) {
                short_tag(job, &hashed, pad);
            }
            n += 1;
        }
        if let Some((job, hashed, pad)) = done {
            short_tag(job, &hashed, pad);
        }
        n
    }
}

/// Vectors that the blocks of a message fill.
#[inline(always)]
pub(super) fn vectors<V: Lane>(job: &AeadJob<'_, GcmKey>) -> usize {
    job.data.len().div_ceil(16) / V::BLOCKS
}

/// Whether the functions here can do it.
#[inline(always)]
pub(super) fn is_short<V: Lane>(job: &AeadJob<'_, GcmKey>) -> bool {
    job.data.len() <= WIDTH * V::BYTES && job.aad.len() <= 16
}
