//! Packets of one SA that several threads read from one queue and open, handed on flow by flow in
//! the order in which they came.
//!
//! # How it works
//! A thread says that it reads by [`Readers::begin`]; when something came, it asks for the time by
//! [`Readers::arrived`], opens what came, says by [`Turns::hold`] which numbers and flows that
//! are, and only then that it reads no more, by [`Readers::end`]. It hands the packets on once
//! [`Turns::is_next`] says so, and then says [`Turns::end`]. Until then it may read on: it may hold
//! as many batches as it has [`SLOTS`].
//!
//! What came to a thread comes behind what others hold of the same flows with lower numbers, and
//! behind what those may have in their hands that read before it arrived and have not yet said
//! what. Numbers, or others that rise with each read, tell what is earlier: the packets of a flow
//! must come with rising ones, as where one thread of the sender has sealed them. A number that is
//! missing was lost: nobody waits for what no thread has. The oldest of all
//! that is held waits for nobody, so that there is no end to progress.

use crate::sync::{AtomicU64, Line, Ordering};

/// The threads that read from one queue.
pub struct Readers {
    /// How many reads have begun.
    begun: Line<AtomicU64>,
    /// For each thread its read that is under way, counted from 1; 0: none.
    reads: Box<[Line<AtomicU64>]>,
}

/// Batches of one SA that a thread may hold at once.
pub const SLOTS: usize = 8;

/// Whose turn it is among readers with packets of one SA.
pub struct Turns {
    /// What each thread holds, a cache line for each; 0: nothing. The upper half are the lower bits
    /// of the first number, the lower half is the set of flows.
    held: Box<[Line<[AtomicU64; SLOTS]>]>,
}

impl Readers {
    /// Threads of these numbers, from 0 on.
    pub fn new(threads: usize) -> Self {
        Readers {
            begun: Line(AtomicU64::new(0)),
            reads: (0..threads).map(|_| Line(AtomicU64::new(0))).collect(),
        }
    }

    /// `thread` is about to read from the queue.
    ///
    /// # Panics
    /// If there is no such thread.
    #[inline]
    pub fn begin(&self, thread: usize) {
        let read = self.begun.0.fetch_add(1, Ordering::SeqCst) + 1;
        // SeqCst, as the queue's own order is: whoever reads from the queue later sees this.
        self.reads[thread].0.store(read, Ordering::SeqCst);
    }

    /// Something came: the time, for [`Turns::is_next`].
    #[inline]
    pub fn arrived(&self) -> u64 {
        self.begun.0.load(Ordering::SeqCst)
    }

    /// Nothing came to `thread`, or it holds what came.
    ///
    /// # Panics
    /// If there is no such thread.
    #[inline]
    pub fn end(&self, thread: usize) {
        // Release: whoever sees it sees what the thread holds.
        self.reads[thread].0.store(0, Ordering::Release);
    }
}

impl Turns {
    /// For threads of these numbers, from 0 on.
    pub fn new(threads: usize) -> Self {
        Turns {
            held: (0..threads)
                .map(|_| Line([(); SLOTS].map(|()| AtomicU64::new(0))))
                .collect(),
        }
    }

    /// A batch of `thread` that is not handed on: the first number, which is that of an authentic
    /// packet, and the set of flows, of which at least one is set. The slot is one in which nothing
    /// is held.
    ///
    /// # Panics
    /// If there is no such thread or slot.
    #[inline]
    pub fn hold(&self, thread: usize, slot: usize, first: u64, flows: u32) {
        let held = first << 32 | u64::from(flows);
        // Release: so that it does not depend on `Readers::end`, which comes later.
        self.held[thread].0[slot].store(held, Ordering::Release);
    }

    /// What `thread` held in the slot is handed on.
    ///
    /// # Panics
    /// If there is no such thread or slot.
    #[inline]
    pub fn end(&self, thread: usize, slot: usize) {
        // Release: all was handed on.
        self.held[thread].0[slot].store(0, Ordering::Release);
    }

    /// `thread` has lost all that it held.
    ///
    /// # Panics
    /// If there is no such thread.
    pub fn end_all(&self, thread: usize) {
        (0..SLOTS).for_each(|slot| self.end(thread, slot));
    }

    /// Whether all that other threads have, and that came before packets of these `flows`, of which
    /// `first` is the first number, has been handed on, as far as it is of the same flows. They
    /// came to `thread` at the time `arrived`.
    #[inline]
    pub fn is_next(
        &self,
        readers: &Readers,
        thread: usize,
        arrived: u64,
        (first, flows): (u64, u32),
    ) -> bool {
        let others = readers.reads.iter().zip(&self.held).enumerate();
        let mut others = others.filter(|(other, _)| *other != thread);
        others.all(|(_, (read, held))| {
            // Acquire: what the other thread holds is seen below.
            let read = read.0.load(Ordering::Acquire);
            if (1..=arrived).contains(&read) {
                return false;
            }
            held.0.iter().all(|held| {
                // Acquire: what the other thread has handed on comes before this.
                let held = held.load(Ordering::Acquire);
                let is_later = ((held >> 32) as u32).wrapping_sub(first as u32) as i32 > 0;
                is_later || held as u32 & flows == 0
            })
        })
    }
}

impl std::fmt::Debug for Readers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Readers")
            .field("threads", &self.reads.len())
            .field("begun", &self.begun.0.load(Ordering::Relaxed))
            .finish()
    }
}

impl std::fmt::Debug for Turns {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Turns")
            .field("threads", &self.held.len())
            .finish()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Two threads and an SA.
    struct Rig {
        readers: Readers,
        turns: Turns,
    }

    impl Rig {
        fn new() -> Self {
            Rig {
                readers: Readers::new(2),
                turns: Turns::new(2),
            }
        }

        /// A thread reads a packet and holds it; when it came.
        fn read(&self, thread: usize, number: u64, flows: u32) -> u64 {
            self.readers.begin(thread);
            let arrived = self.readers.arrived();
            self.turns.hold(thread, 0, number, flows);
            self.readers.end(thread);
            arrived
        }

        fn is_next(&self, thread: usize, arrived: u64, number: u64, flows: u32) -> bool {
            let what = (number, flows);
            self.turns.is_next(&self.readers, thread, arrived, what)
        }
    }

    #[test]
    fn a_flow_waits_for_what_came_before_it_and_others_do_not() {
        let rig = Rig::new();
        rig.read(0, 1, 0b10);
        let same = rig.read(1, 2, 0b10);
        assert!(!rig.is_next(1, same, 2, 0b10));
        let other = rig.read(1, 2, 0b01);
        assert!(rig.is_next(1, other, 2, 0b01), "of another flow");
        let earlier = rig.read(1, 0, 0b10);
        assert!(rig.is_next(1, earlier, 0, 0b10));
        let same = rig.read(1, 2, 0b10);
        rig.turns.hold(0, 1, 3, 0b10);
        rig.turns.end(0, 0);
        assert!(rig.is_next(1, same, 2, 0b10), "3 is later");
        rig.turns.hold(0, 7, 1, 0b10);
        assert!(!rig.is_next(1, same, 2, 0b10), "in any slot");
        rig.turns.end_all(0);
        assert!(rig.is_next(1, same, 2, 0b10));
    }

    #[test]
    fn who_has_read_before_may_have_what_comes_before() {
        let rig = Rig::new();
        rig.readers.begin(0);
        let arrived = rig.read(1, 7, 1);
        assert!(!rig.is_next(1, arrived, 7, 1), "what has the other read?");
        rig.readers.end(0);
        assert!(rig.is_next(1, arrived, 7, 1), "nothing: 0 to 6 are lost");
        rig.readers.begin(0);
        assert!(rig.is_next(1, arrived, 7, 1), "what comes now is later");
    }

    #[test]
    fn numbers_are_compared_beyond_the_lower_half() {
        let rig = Rig::new();
        let first = rig.read(0, u64::from(u32::MAX), 1);
        let second = rig.read(1, 1 << 32, 1);
        assert!(rig.is_next(0, first, u64::from(u32::MAX), 1));
        assert!(!rig.is_next(1, second, 1 << 32, 1));
    }
}
