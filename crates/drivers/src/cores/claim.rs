//! The two words that threads agree by: which slots are taken, and which pieces of a
//! slot's task nobody has claimed.
//!
//! A task is published in a slot by [`Pieces::open`], and a piece of it belongs to whoever
//! clears its bit by compare-and-swap. Nothing else of the slot is read before that, so a
//! thread that slept between its load and its swap cannot harm: either the word has
//! changed and the swap fails, or the bit it clears is a piece of the task that is there
//! now, whichever that is. Hence no generation count is needed. The slot keeps its task
//! until every claimed piece is finished, so whoever holds a piece may use the task.

use super::sync::{AtomicU32, AtomicU64, Ordering};

/// Most pieces of one task, and most slots of a pool: bits of a word.
pub(super) const BITS: usize = 64;

/// Which slots are taken: a bit each. What is only read lies in other cache lines, which
/// processors fetch in pairs.
#[repr(align(128))]
pub(super) struct Slots(AtomicU64);

impl Slots {
    pub(super) fn new() -> Self {
        Slots(AtomicU64::new(0))
    }

    /// Takes a slot, unless `limit` are taken already.
    #[inline]
    pub(super) fn take(&self, limit: u32) -> Option<usize> {
        let mut taken = self.0.load(Ordering::Relaxed);
        loop {
            if taken.count_ones() >= limit {
                return None;
            }
            let slot = taken.trailing_ones();
            // Acquire: what the last owner did to the slot is over.
            match self.0.compare_exchange_weak(
                taken,
                taken | 1 << slot,
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Some(slot as usize),
                Err(now) => taken = now,
            }
        }
    }

    /// Gives a slot back; no piece of it is claimed or unclaimed any more.
    #[inline]
    pub(super) fn release(&self, slot: usize) {
        self.0.fetch_and(!(1 << slot), Ordering::Release);
    }

    /// The bits. A hint: it may be old.
    #[inline]
    pub(super) fn taken(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The pieces of the task in one slot.
pub(super) struct Pieces {
    /// A bit for each piece that nobody has claimed.
    unclaimed: AtomicU64,
    /// Pieces not finished.
    left: AtomicU32,
}

impl Pieces {
    pub(super) fn new() -> Self {
        Pieces {
            unclaimed: AtomicU64::new(0),
            left: AtomicU32::new(0),
        }
    }

    /// Publishes a task of 1 to 64 pieces, of which the first `claimed` are claimed already, by
    /// the one who calls. Only the owner of the slot may call it, when all pieces of the task
    /// before are finished.
    #[inline]
    pub(super) fn open(&self, count: usize, claimed: usize) {
        debug_assert!((1..=BITS).contains(&count) && claimed < BITS);
        // Release: a forked child that sees it sees the task.
        self.left.store(count as u32, Ordering::Release);
        // Release: whoever claims a piece sees the task.
        self.unclaimed.store(
            u64::MAX >> (BITS - count) & u64::MAX << claimed,
            Ordering::Release,
        );
    }

    /// Claims a piece, if there is one: number `next` where it can be had, else one [far from
    /// everybody](far).
    #[inline]
    pub(super) fn claim(&self, next: u32) -> Option<u32> {
        let mut unclaimed = self.unclaimed.load(Ordering::Relaxed);
        while unclaimed != 0 {
            let piece = match unclaimed.checked_shr(next) {
                Some(ahead) if ahead & 1 != 0 => next,
                _ => far(unclaimed),
            };
            // Acquire: the task is seen. It was published by the store that heads the
            // release sequence of this word.
            match self.unclaimed.compare_exchange_weak(
                unclaimed,
                unclaimed & !(1 << piece),
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Some(piece),
                Err(now) => unclaimed = now,
            }
        }
        None
    }

    /// A claimed piece that was not begun goes back, for others to claim.
    #[cold]
    pub(super) fn give_back(&self, piece: u32) {
        self.unclaimed.fetch_or(1 << piece, Ordering::Release);
    }

    /// A claimed piece is finished; true for the last of the task. Whoever gets true may
    /// use the task alone, unless somebody waits for [`are_finished`](Self::are_finished);
    /// whoever gets false must not touch the task any more.
    #[inline]
    pub(super) fn finish(&self) -> bool {
        // Release: the last one, and the one that waits, see what this piece wrote.
        self.left.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Whether all pieces are finished; then their results are seen.
    #[inline]
    pub(super) fn are_finished(&self) -> bool {
        self.left.load(Ordering::Acquire) == 0
    }

    /// How many pieces wait to be claimed. A hint.
    #[inline]
    pub(super) fn unclaimed(&self) -> u32 {
        self.unclaimed.load(Ordering::Relaxed).count_ones()
    }
}

/// The middle of the longest run of pieces that nobody has claimed: whoever works
/// before the run goes on in its first half, and the second half is for who begins there.
fn far(mut unclaimed: u64) -> u32 {
    let (mut longest, mut middle) = (0, 0);
    while unclaimed != 0 {
        let start = unclaimed.trailing_zeros();
        let length = (unclaimed >> start).trailing_ones();
        if length > longest {
            (longest, middle) = (length, start + length / 2);
        }
        // Adding the lowest bit carries through the run, whose bits are then clear.
        unclaimed &= unclaimed.wrapping_add(1 << start);
    }
    middle
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn far_is_the_middle_of_the_longest_run() {
        for (unclaimed, expected) in [
            (0b1, 0),
            (0b10, 1),
            (0b110, 2),
            (0b1111_1110, 4),
            (0b0111_0011, 5),
            (0b1100_0011, 1),
            (u64::MAX, 32),
            (u64::MAX << 1, 32),
            (1 << 63, 63),
            (0b11 << 62 | 1, 63),
        ] {
            assert_eq!(far(unclaimed), expected, "{unclaimed:b}");
        }
    }

    #[test]
    fn threads_go_up_from_where_they_begin_and_share_what_is_left() {
        let pieces = Pieces::new();
        pieces.open(8, 0);
        let (mut first, mut second) = (0, 4);
        for expected in [(0, 4), (1, 5), (2, 6)] {
            let claimed = (pieces.claim(first).unwrap(), pieces.claim(second).unwrap());
            assert_eq!(claimed, expected);
            (first, second) = (claimed.0 + 1, claimed.1 + 1);
        }
        // The second is slow: the first goes on to its own end, then to the other's.
        assert_eq!(pieces.claim(first), Some(3));
        assert_eq!(pieces.claim(4), Some(7));
        assert_eq!(pieces.claim(8), None);
        assert_eq!(pieces.claim(64), None);
        pieces.open(2, 1);
        assert_eq!((pieces.claim(0), pieces.claim(0)), (Some(1), None));
    }
}
