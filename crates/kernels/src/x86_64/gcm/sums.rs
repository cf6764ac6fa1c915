//! Counter blocks after two rounds of AES, as sums of what the last byte of the counter gives and of what
//! the nonce gives.

use super::chunk::{Chunk, Start};
use super::lane::Lane;
use super::rounds::*;

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
