//! CTR over long requests: two rounds of AES less for each block behind the first 256.
//!
//! The counters of two blocks that stand 256 apart have the same last byte. Round one brings that
//! byte, and bytes 0, 5 and 10 of a block, into one column, all others into the other three; round two
//! is a sum of what each column gives. So where byte 10 stays as it is, the states of these blocks
//! after two rounds differ by what the bytes before the last make of it, which is the same for all
//! blocks with the same bytes there. States of the first 256 blocks are kept, and the others begin from
//! these (counter-mode caching, Bernstein and Schwabe, 2008; Park and Lee, 2018). They are read in the
//! order of the counter, which is public.

use core::arch::x86_64::{__m128i, _mm_cvtsi128_si64};

use super::ctr::Counters;
use super::cursor::Cursor;
use super::rounds::{Keys, Schedule, middle_from};
use super::states::{WINDOW, forget, keep};
use super::tier::Tier;
use super::wide::Wide;
use crate::aes::key::Block;

/// Registers that go through AES side by side.
const WIDTH: usize = 8;

/// By how much states after two rounds differ: those of blocks up to the one where the last byte of
/// the counter begins again, and those behind it, four times each.
#[repr(align(64))]
struct Differences([Block; 8]);

impl Differences {
    /// Of as many blocks as a register has, of which the first `n` stand before that one.
    ///
    /// # Safety
    /// The instructions of `V` are there.
    #[inline(always)]
    unsafe fn load<V: Wide>(&self, n: usize) -> V {
        debug_assert!(n <= V::BLOCKS && V::BLOCKS <= 4);
        // SAFETY: as for this function; four blocks at least stand from `4 - n` on.
        unsafe { V::load(self.0.as_ptr().add(4 - n).cast()) }
    }
}

/// A counter, its bytes reversed, through two rounds.
///
/// # Safety
/// The instructions of `V` are there.
#[inline(always)]
unsafe fn two_rounds<V: Wide>(key: Schedule, counter: V) -> V {
    // SAFETY: as for this function.
    unsafe {
        let state = counter.reverse().xor(key.at(0, 0));
        state
            .round::<false>(key.at(0, 1))
            .round::<false>(key.at(0, 2))
    }
}

/// The lower half of a counter, its bytes reversed.
///
/// # Safety
/// The instructions of `V` are there.
#[inline(always)]
unsafe fn number<V: Wide>(counter: V) -> u64 {
    // SAFETY: as for this function.
    let first: __m128i = unsafe { counter.first() };
    // SAFETY: SSE2 is part of x86-64.
    unsafe { _mm_cvtsi128_si64(first) }.cast_unsigned()
}

/// The last round of a group of registers.
///
/// # Safety
/// The instructions of `V` are there and the data behind `at` is valid, as much as a group takes.
#[inline(always)]
unsafe fn finish<V: Wide>(at: &mut Cursor, state: &mut [V; WIDTH], last: V) {
    let step = 16 * V::BLOCKS;
    // SAFETY: as for this function; all is read before any is written.
    unsafe {
        for (i, state) in state.iter_mut().enumerate() {
            let data = V::load(at.from.add(i * step));
            *state = state.last_round::<false>(last.xor(data));
        }
        for (i, state) in state.iter().enumerate() {
            state.store(at.to.add(i * step));
        }
        at.advance(WIDTH * step);
    }
}

/// All whole groups of registers of a long request, nothing of any other.
///
/// # Safety
/// The instructions of `T` are there, the data behind `at` is valid, and the lower half of the counter
/// does not wrap within it.
#[inline(always)]
pub(super) unsafe fn any_windows<T: Tier>(
    at: &mut Cursor,
    key: Schedule,
    counters: &mut Counters<T::V>,
) {
    let blocks = at.len / 16;
    if blocks < WINDOW * 3 / 2 {
        return;
    }
    // SAFETY: as for this function.
    let first = unsafe { number(counters.0) };
    // Byte 10 of a block is where the counter has its bits from 40 on. Data may end where the lower half
    // wraps.
    if (first ^ first.wrapping_add(blocks as u64)) >> 40 == 0 {
        // Copies, since what a function has the address of stays in memory also where it is not called.
        let mut at_of = Cursor { ..*at };
        let mut counters_of = Counters(counters.0);
        // SAFETY: as for this function.
        unsafe { T::ctr_windows(&mut at_of, key, &mut counters_of) }
        (*at, *counters) = (at_of, counters_of);
    }
}

/// All whole groups of registers of a long request. There is room for a window of `states`, of which
/// none is left. The caller wipes the frame of this function.
///
/// # Safety
/// As for [`any_windows`]; the data is a window or more, within which byte 10 of the counter stays.
#[inline(always)]
pub(super) unsafe fn windows<V: Wide>(
    at: &mut Cursor,
    key: Schedule,
    counters: &mut Counters<V>,
    states: *mut V,
) {
    let group = WIDTH * V::BLOCKS;
    // SAFETY: as for this function.
    let first = unsafe { number(counters.0) };
    let len = at.len;
    // Whether states of the next group are wanted by the one a window behind it.
    let again = |left: usize| left >= 16 * (WINDOW + group);
    // SAFETY: as for this function; states are read where they were written.
    unsafe {
        let mut base = V::broadcast(counters.0.first());
        let step = V::splat(STEP.as_ptr().cast());
        for i in 0..WINDOW / group {
            let mut state = [V::zero(); WIDTH];
            for state in &mut state {
                *state = counters.next().xor(key.at(0, 0));
            }
            let mut key = key;
            for (round, is_second) in [(1, false), (2, true)] {
                for state in &mut state {
                    *state = state.round::<false>(key.at(0, round));
                }
                if is_second && again(at.len) {
                    keep(&state, states.add(i * WIDTH));
                }
                key = Keys::<V>::after(key, state[0]);
            }
            let key = middle_from::<V, _, WIDTH, false>(&mut state, key, 3);
            finish(at, &mut state, key.at(0, key.rounds()));
        }
        // Blocks of a window before the one whose counter has a last byte of zero.
        let before_zero = WINDOW - (first % WINDOW as u64) as usize;
        let kept = [
            two_rounds(key, base),
            two_rounds(key, base.add_halves(step)),
        ];
        let mut now = kept[1];
        base = base.add_halves(step);
        let mut differences = Differences([[0; 16]; 8]);
        while at.len >= 16 * group {
            base = base.add_halves(step);
            let here = now.xor(kept[0]);
            now = two_rounds(key, base);
            let next = now.xor(kept[1]);
            for (i, difference) in [here, next].into_iter().enumerate() {
                for block in &mut differences.0[4 * i..4 * i + 4] {
                    difference.first().store(block.as_mut_ptr());
                }
            }
            for i in 0..WINDOW / group {
                if at.len < 16 * group {
                    break;
                }
                // Those of this group.
                let before_zero = before_zero.saturating_sub(i * group);
                let mut state = [V::zero(); WIDTH];
                for (j, state) in state.iter_mut().enumerate() {
                    let difference = match before_zero {
                        0 => next,
                        n if n >= group => here,
                        n => differences.load(n.saturating_sub(j * V::BLOCKS).min(V::BLOCKS)),
                    };
                    *state = difference.xor(states.add(i * WIDTH + j).read());
                }
                if !again(at.len) {
                    forget::<V, WIDTH>(V::zero(), states.add(i * WIDTH));
                }
                let key = middle_from::<V, _, WIDTH, false>(&mut state, key, 3);
                finish(at, &mut state, key.at(0, key.rounds()));
            }
        }
        counters.skip((len - at.len) / 16 - WINDOW);
    }
}

/// A window, in the lower half of a block.
static STEP: [u64; 2] = [WINDOW as u64, 0];
