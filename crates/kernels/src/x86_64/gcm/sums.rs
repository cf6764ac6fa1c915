//! Counter blocks after two rounds of AES, as sums of what the last byte of the counter gives and of what
//! the nonce gives.

use super::chunk::{Chunk, Start};
use super::lane::Lane;
use super::rounds::*;
use crate::x86_64::states::WINDOW;

/// The counter blocks of a message after two rounds, from where a chunk begins.
#[derive(Clone, Copy)]
pub(super) struct Sums<V> {
    /// What the last bytes of the counters give.
    from: *const V,
    /// What the nonce gives.
    nonce: V,
}

impl<V: Lane> Sums<V> {
    /// # Safety
    /// There are vectors for all blocks of the message from that place on, and one more.
    #[inline(always)]
    pub(super) unsafe fn new(from: *const V, nonce: V) -> Self {
        Sums { from, nonce }
    }

    /// Those of `M` vectors from vector `i` on.
    #[inline(always)]
    pub(super) unsafe fn states<const M: usize>(&self, i: usize) -> [V; M] {
        // SAFETY: the caller enables the instructions of `V`; whoever made this gives the place of all
        // vectors of the message.
        unsafe {
            let mut state = [V::zero(); M];
            for (j, state) in state.iter_mut().enumerate() {
                *state = self.nonce.xor(self.from.add(i + j).read());
            }
            state
        }
    }
}

impl<V: Lane> Start<V> for Sums<V> {
    const DONE: usize = 2;
}

impl<V: Lane> Chunk<V> for Sums<V> {
    #[inline(always)]
    unsafe fn start(&mut self, _: &mut RoundKeys<'_>) -> [V; WIDTH] {
        // SAFETY: as for `states`.
        let state = unsafe { self.states(0) };
        self.from = self.from.wrapping_add(WIDTH);
        state
    }
}

/// The counter blocks of a message of one window or more, but less than two, after two rounds, by the states
/// of a window of another message. Both messages begin where a chunk does.
#[derive(Clone, Copy)]
pub(super) struct Across<V> {
    window: *const V,
    /// The next chunk of it.
    chunk: usize,
    differences: Differences<V>,
}

/// How the states of a message differ from those of the window.
#[derive(Clone, Copy)]
pub(super) struct Differences<V> {
    /// Where the counters of both blocks are below 256.
    pub(super) below: V,
    /// Where both are not, as the last two of the window are not.
    pub(super) above: V,
    /// Where the counter of the block in the window is and the other is not.
    pub(super) behind: V,
}

impl<V: Lane> Across<V> {
    /// # Safety
    /// There are all vectors of the window.
    #[inline(always)]
    pub(super) unsafe fn new(window: *const V, differences: Differences<V>) -> Self {
        Across {
            window,
            chunk: 0,
            differences,
        }
    }

    /// Those that follow, which end before the last chunk of the window.
    #[inline(always)]
    pub(super) fn sums(self) -> Sums<V> {
        Sums {
            from: self.window.wrapping_add(self.chunk * WIDTH),
            nonce: self.differences.below,
        }
    }
}

impl<V: Lane> Start<V> for Across<V> {
    const DONE: usize = 2;
}

impl<V: Lane> Chunk<V> for Across<V> {
    #[inline(always)]
    unsafe fn start(&mut self, _: &mut RoundKeys<'_>) -> [V; WIDTH] {
        let Differences {
            below,
            above,
            behind,
        } = self.differences;
        let is_last = self.chunk + 1 == WINDOW / chunk_blocks::<V>();
        let end = if is_last { above } else { below };
        let from = self.window.wrapping_add(self.chunk * WIDTH);
        self.chunk += 1;
        if is_last {
            (self.chunk, self.differences.below) = (0, behind);
        }
        // SAFETY: the caller enables the instructions of `V`; whoever made this gives the whole window.
        unsafe {
            let mut state = [V::zero(); WIDTH];
            for (i, state) in state.iter_mut().enumerate() {
                *state = of_place(below, end, i).xor(from.add(i).read());
            }
            state
        }
    }
}
