//! One short request on its own: its blocks stay in registers from beginning to end,
//! which takes less time than the way through slots.

use core::arch::x86_64::__m128i;

use super::cursor::Cursor;
use super::rounds::{Keys, Schedule, middle};
use super::slots::Feed;
use super::wide::Wide;

/// Whether [`crypt`] alone takes a request of `len` bytes. Behind 240 the way for long ones
/// takes less time for any mode.
#[inline(always)]
pub(super) fn takes(len: usize) -> bool {
    len.is_multiple_of(16) && 0 < len && len <= 240
}

/// All of `at`, as `feed` makes it: whole registers, and then what is left as single blocks.
///
/// # Safety
/// The instructions of `V` are there and the data behind `at`, whole blocks or none, is valid.
#[inline(always)]
pub(super) unsafe fn crypt<V: Wide, F: Feed<V>, const DECRYPT: bool>(
    at: &mut Cursor,
    key: Schedule,
    feed: &mut F,
) {
    let step = 16 * V::BLOCKS;
    // SAFETY: as for this function, and there is as much data.
    unsafe {
        while at.len >= 4 * step {
            registers::<V, F, 4, DECRYPT>(at, key, feed);
        }
        match at.len / step {
            1 => registers::<V, F, 1, DECRYPT>(at, key, feed),
            2 => registers::<V, F, 2, DECRYPT>(at, key, feed),
            3 => registers::<V, F, 3, DECRYPT>(at, key, feed),
            _ => {}
        }
        match at.blocks() {
            1 => singles::<V, F, 1, DECRYPT>(at, key, feed),
            2 => singles::<V, F, 2, DECRYPT>(at, key, feed),
            3 => singles::<V, F, 3, DECRYPT>(at, key, feed),
            _ => {}
        }
    }
}

/// `W` registers.
///
/// # Safety
/// As for [`crypt`], and there are `W` registers or more.
#[inline(always)]
unsafe fn registers<V: Wide, F: Feed<V>, const W: usize, const DECRYPT: bool>(
    at: &mut Cursor,
    key: Schedule,
    feed: &mut F,
) {
    let step = 16 * V::BLOCKS;
    // SAFETY: as for this function; all is read before any is written.
    unsafe {
        let (mut state, mut post) = ([V::zero(); W], [V::zero(); W]);
        for i in 0..W {
            let (input, with) = feed.wide(at.from.add(step * i));
            state[i] = input.xor(key.at(i, 0));
            post[i] = with;
        }
        let key = middle::<V, _, W, DECRYPT>(&mut state, key);
        let last: V = key.at(0, key.rounds());
        for i in 0..W {
            let output = state[i].last_round::<DECRYPT>(last.xor(post[i]));
            output.store(at.to.add(step * i));
        }
        at.advance(W * step);
    }
}

/// `N` blocks, less than a register.
///
/// # Safety
/// As for [`crypt`], and there are `N` blocks or more.
#[inline(always)]
unsafe fn singles<V: Wide, F: Feed<V>, const N: usize, const DECRYPT: bool>(
    at: &mut Cursor,
    key: Schedule,
    feed: &mut F,
) {
    // SAFETY: as for this function; all is read before any is written.
    unsafe {
        let (mut state, mut post) = ([__m128i::zero(); N], [__m128i::zero(); N]);
        for i in 0..N {
            let (input, with) = feed.single(at.from.add(16 * i));
            state[i] = input.xor(key.at(i, 0));
            post[i] = with;
        }
        let key = middle::<__m128i, _, N, DECRYPT>(&mut state, key);
        let last: __m128i = key.at(0, key.rounds());
        for i in 0..N {
            let output = state[i].last_round::<DECRYPT>(last.xor(post[i]));
            output.store(at.to.add(16 * i));
        }
        at.advance(16 * N);
    }
}
