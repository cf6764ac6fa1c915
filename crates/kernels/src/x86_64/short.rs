//! One short request on its own: its blocks stay in registers from beginning to end,
//! which takes less time than the way through slots.

use core::arch::x86_64::__m128i;

use super::cursor::Cursor;
use super::rounds::{Keys, Schedule, middle};
use super::slots::Feed;
use super::wide::Wide;

/// Whether [`crypt`] takes a request of `len` bytes, `longest` at most. Behind 240
/// vectors take less time for any mode.
#[inline(always)]
pub(super) fn takes(len: usize, longest: usize) -> bool {
    debug_assert!(longest <= 240);
    len.is_multiple_of(16) && 0 < len && len <= longest
}

/// All of `at`, as `feed` makes it.
///
/// # Safety
/// AES-NI is there and the data behind `at`, which [`takes`] has agreed to, is valid.
#[inline(always)]
pub(super) unsafe fn crypt<const DECRYPT: bool>(
    mut at: Cursor,
    key: Schedule,
    feed: &mut impl Feed<__m128i>,
) {
    // SAFETY: as for this function, and there are that many blocks.
    unsafe {
        match at.blocks() {
            1 => return blocks::<_, 1, DECRYPT>(&at, key, feed),
            2 => return blocks::<_, 2, DECRYPT>(&at, key, feed),
            3 => return blocks::<_, 3, DECRYPT>(&at, key, feed),
            4 => return blocks::<_, 4, DECRYPT>(&at, key, feed),
            _ => {}
        }
        // The processor overlaps the turns: none waits for the one before.
        while at.len >= 64 {
            blocks::<_, 4, DECRYPT>(&at, key, feed);
            at.advance(64);
        }
        while at.len > 0 {
            blocks::<_, 1, DECRYPT>(&at, key, feed);
            at.advance(16);
        }
    }
}

/// # Safety
/// As for [`crypt`], and there are `N` blocks or more.
#[inline(always)]
unsafe fn blocks<F: Feed<__m128i>, const N: usize, const DECRYPT: bool>(
    at: &Cursor,
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
        middle::<__m128i, _, N, DECRYPT>(&mut state, &key);
        let last: __m128i = key.at(0, key.rounds());
        for i in 0..N {
            let output = state[i].last_round::<DECRYPT>(last.xor(post[i]));
            output.store(at.to.add(16 * i));
        }
    }
}
