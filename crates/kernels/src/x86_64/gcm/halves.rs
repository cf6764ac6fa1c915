//! Chunks of which half is encrypted while the half before it is hashed.
//!
//! On a processor of Intel four vectors of 512 bits are enough for AES, which begins one operation per
//! cycle there and ends it after three. What is hashed is nearer behind what is encrypted then, so less
//! is left to hash when all is encrypted, and less is encrypted before anything can be hashed. Lanes
//! stay apart, as in [`chunk`](super::chunk).

use super::chunk::{Chunk, Hashed, rounds, rounds_beside_half};
use super::hash::Hash;
use super::lane::Lane;
use super::rounds::*;
use crate::gcm::key::GcmKey;

/// Half a chunk through the last round.
#[inline(always)]
pub(super) unsafe fn finish<V: Lane>(
    state: [V; HALF],
    last: V,
    from: *const u8,
    to: *mut u8,
) -> [V; HALF] {
    // SAFETY: the caller enables the instructions of `V` and gives four vectors at each pointer.
    unsafe {
        let mut text = state;
        for (i, text) in text.iter_mut().enumerate() {
            let data = V::load(from.add(i * V::BYTES)).xor(last);
            *text = text.aesenclast(data);
            text.store(to.add(i * V::BYTES));
        }
        text
    }
}

/// A chunk of eight vectors that is encrypted. Its first half goes through AES while the second half
/// of the chunk before, which is `text`, is hashed, unless this chunk is the `FIRST` of its message;
/// its second half goes through AES while the first one is hashed.
#[inline(always)]
pub(super) unsafe fn halves<V: Lane, C: Chunk<V>, const FIRST: bool>(
    key: &GcmKey,
    start: &mut C,
    from: *const u8,
    to: *mut u8,
    text: &mut [V; HALF],
    mut hash: Hash<V>,
) -> Hash<V> {
    let middle = HALF * V::BYTES;
    // SAFETY: the caller enables the instructions of `V` and gives eight vectors at each pointer.
    unsafe {
        let mut keys = RoundKeys::of(&key.aes);
        let [a, b, c, d, e, f, g, h] = start.start(&mut keys);
        let (mut one, mut two) = ([a, b, c, d], [e, f, g, h]);
        if FIRST {
            rounds(start, &mut one, &mut keys);
        } else {
            let powers = key.table.at_power(chunk_blocks::<V>());
            rounds_beside_half::<V, C, true, HALF>(
                start,
                &mut one,
                &mut keys,
                Hashed::Kept(text),
                powers,
                &mut hash,
            );
            hash.y = V::zero();
        }
        let last = late_rounds(&mut one, &mut keys);
        let one = finish(one, last, from, to);
        keys.again(one[HALF - 1]);
        let powers = key.table.at_power(chunk_blocks::<V>() / 2);
        start.second();
        rounds_beside_half::<V, C, true, HALF>(
            start,
            &mut two,
            &mut keys,
            Hashed::Kept(&one),
            powers,
            &mut hash,
        );
        hash = hash.reduce_lanes::<true>();
        let last = late_rounds(&mut two, &mut keys);
        *text = finish(two, last, from.add(middle), to.add(middle));
        hash
    }
}
