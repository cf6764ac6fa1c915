//! Long messages: two rounds of AES less for each block behind the first 256.
//!
//! The counters of two blocks that stand 256 apart have the same last byte. Round one puts byte 15 of
//! a block into one column, bytes 12, 13 and 14 each into another; round two is a sum of what each
//! column gives. So their states after two rounds differ by what these three bytes make of it, which is
//! the same for all blocks with the same upper 24 bits of the counter. States of the first 256 blocks
//! are kept, and the others begin from these (counter-mode caching, Bernstein and Schwabe, 2008; Park
//! and Lee, 2018). They are read in the order of the counter, which is public.

use super::Kernels;
use super::chunk::{APART, APART_LAST, APART_WHOLE, Chunk, Start, together};
use super::lane::Lane;
use super::rounds::*;
use super::row::Row;
use super::wide::Wide;
use crate::gcm::key::GcmKey;
use crate::x86_64::states::{WINDOW, forget, keep};

/// Chunks of a window.
const fn window_chunks<V: Lane>() -> usize {
    WINDOW / chunk_blocks::<V>()
}

/// Bytes from which on this pays.
pub(super) const ENOUGH: usize = 16 * WINDOW * 3 / 2;

/// Whether keys are taken to the stack. A processor of Intel loads into every lane as fast.
const fn is_wide<V: Lane, const BY_HALVES: bool>() -> bool {
    V::BLOCKS == 4 && !BY_HALVES
}

/// A chunk whose states after two rounds are kept, if they are wanted again.
struct Keeping<'c, V> {
    counters: &'c mut Counters<V>,
    wide: Option<*mut Wide<V>>,
    to: *mut V,
    again: bool,
}

impl<V: Lane> Start<V> for Keeping<'_, V> {
    const DONE: usize = 0;

    #[inline(always)]
    fn wide(&self) -> Option<*mut Wide<V>> {
        self.wide
    }

    #[inline(always)]
    unsafe fn keep<const M: usize>(&mut self, state: &[V; M]) {
        if self.again {
            // SAFETY: whoever made this gives the place of as many vectors.
            unsafe { keep(state, self.to) }
        }
    }
}

impl<V: Lane> Chunk<V> for Keeping<'_, V> {
    #[inline(always)]
    unsafe fn start(&mut self, keys: &mut RoundKeys<'_>) -> [V; WIDTH] {
        // SAFETY: the caller enables the instructions of `V`.
        unsafe { self.counters.first_round(keys) }
    }

    #[inline(always)]
    fn second(&mut self) {
        self.to = self.to.wrapping_add(HALF);
    }
}

/// A chunk from states that were kept, and are forgotten if they are not wanted again.
struct Kept<V> {
    from: *mut V,
    wide: Option<*mut Wide<V>>,
    again: bool,
    /// The difference of the blocks up to the end of the chunk's multiple, and of those behind it.
    here: V,
    next: V,
}

impl<V: Lane> Start<V> for Kept<V> {
    const DONE: usize = 2;

    #[inline(always)]
    fn wide(&self) -> Option<*mut Wide<V>> {
        self.wide
    }
}

impl<V: Lane> Chunk<V> for Kept<V> {
    #[inline(always)]
    unsafe fn start(&mut self, _: &mut RoundKeys<'_>) -> [V; WIDTH] {
        // SAFETY: the caller enables the instructions of `V`; whoever made this gives the place of
        // as many vectors.
        unsafe {
            let mut state = [V::zero(); WIDTH];
            for (i, state) in state.iter_mut().enumerate() {
                *state = of_place(self.here, self.next, i).xor(self.from.add(i).read());
            }
            if !self.again {
                forget::<V, WIDTH>(V::zero(), self.from);
            }
            state
        }
    }
}

/// A counter block through two rounds.
#[inline(always)]
pub(super) unsafe fn two_rounds<V: Lane>(key: &GcmKey, counter: V) -> V {
    // SAFETY: the caller enables the instructions of `V`.
    unsafe {
        let keys = RoundKeys::of(&key.aes);
        let state = counter.swap_counter().xor(keys.load(0));
        state.aesenc(keys.load(1)).aesenc(keys.load(2))
    }
}

/// The whole groups of chunks that are left of a long message. One chunk stays where it is the input
/// that is hashed and lanes are apart. There is room for a window of `states` and for a `copy` of the key,
/// of which nothing is left.
/// The caller wipes the frame of this function.
#[inline(always)]
pub(super) unsafe fn windows<V: Lane, const SEAL: bool, const BY_HALVES: bool>(
    row: &mut Row<'_, V>,
    counters: &mut Counters<V>,
    states: *mut V,
    copy: &mut Wide<V>,
) {
    let size = WIDTH * V::BYTES;
    let group = together::<V>();
    let is_wide = is_wide::<V, BY_HALVES>();
    let least = match (is_wide || BY_HALVES) && !SEAL {
        true => 2 * size,
        false => group * size,
    };
    debug_assert!(row.len >= ENOUGH);
    let (key, len) = (row.key, row.len);
    // Whether states of the next group are wanted by the one a window behind it.
    let again = |left: usize| left >= 16 * WINDOW + least;
    // SAFETY: the caller enables the instructions of `V` and gives what is left, and before it a chunk
    // if it is encrypted. States are read where they were written.
    unsafe {
        let mut half = [V::zero(); HALF];
        let mut text = [V::zero(); WIDTH];
        if SEAL && BY_HALVES {
            half = row.before();
        } else if SEAL {
            text = row.before();
        }
        macro_rules! group {
            ($first:expr, $is_last:expr, |$at:ident, $again:ident| $start:expr) => {{
                let ($at, $again) = ($first, again(row.len));
                if SEAL && BY_HALVES {
                    row.halves::<_, false>($start, &mut half);
                } else if BY_HALVES {
                    row.chunk::<_, SEAL, APART_WHOLE>($start, &mut text);
                } else if is_wide && $is_last {
                    row.chunk::<_, SEAL, APART_LAST>($start, &mut text);
                } else if is_wide {
                    row.chunk::<_, SEAL, APART>($start, &mut text);
                } else {
                    if group == 2 {
                        row.chunk::<_, SEAL, 2>($start, &mut text);
                    }
                    let $at = $at + group - 1;
                    row.chunk::<_, SEAL, 1>($start, &mut text);
                }
            }};
        }
        let wide = is_wide.then(|| {
            copy.fill(key);
            &raw mut *copy
        });
        let first = counters.base();
        // The chunk in which the last byte of the counter begins again.
        let ends = window_chunks::<V>()
            - 1
            - counters.number() / chunk_blocks::<V>() % window_chunks::<V>();
        for i in (0..window_chunks::<V>()).step_by(group) {
            group!(i, false, |at, again| Keeping {
                counters: &mut *counters,
                wide,
                to: states.add(at * WIDTH),
                again,
            });
        }
        if is_wide {
            copy.forget_first(2);
        }
        let step = count(WINDOW as u32);
        let mut base = first.add32(step);
        let before = [two_rounds(key, first), two_rounds(key, base)];
        let mut now = before[1];
        while row.len >= least {
            base = base.add32(step);
            let here = now.xor(before[0]);
            now = two_rounds(key, base);
            let next = now.xor(before[1]);
            let mut i = 0;
            while i < window_chunks::<V>() && row.len >= least {
                group!(i, row.len < least + size, |at, again| Kept {
                    from: states.add(at * WIDTH),
                    wide,
                    again,
                    here: if at <= ends { here } else { next },
                    next: if at < ends { here } else { next },
                });
                i += group;
            }
        }
        let blocks = (len - row.len) / 16;
        *counters = Counters::at(first.add32(count(blocks as u32)), &key.aes);
    }
}

/// [`windows`] of a message that is long enough, of others nothing. Whether it was.
#[inline(always)]
pub(super) unsafe fn any_windows<V: Kernels, const SEAL: bool, const BY_HALVES: bool>(
    row: &mut Row<'_, V>,
    counters: &mut Counters<V>,
) -> bool {
    let is_long = row.len >= ENOUGH;
    if is_long {
        // Copies, since what a function has the address of stays in memory also where it is not called.
        let (mut row_of, mut counters_of) = (*row, *counters);
        // SAFETY: the caller's contract.
        unsafe { V::windows::<SEAL, BY_HALVES>(&mut row_of, &mut counters_of) }
        (*row, *counters) = (row_of, counters_of);
    }
    is_long
}
