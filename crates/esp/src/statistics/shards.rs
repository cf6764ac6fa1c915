//! A cache line per thread for what every batch counts.
//!
//! The first thread that uses an SA has its counters in the SA itself. When a second one
//! comes, a table with a line for each thread that the machine runs at once is allocated: 64
//! bytes a processor, for those SAs only. A line has one writer, so an addition is a load
//! and a store, and no other core's cache is asked. Threads beyond the table's size share a
//! last line, by atomic additions. Refusals are rare, or an attack that costs more than
//! their counting: they are atomic additions too, one a batch and reason.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use cipherlane_core::thread_number;

use super::{Statistics, Tally};
use crate::Refusal;

/// What one thread counts.
#[derive(Default)]
#[repr(align(64))]
struct Shard {
    packets: AtomicU64,
    bytes: AtomicU64,
}

impl Shard {
    /// By the one thread that writes this shard.
    #[inline]
    fn add_alone(&self, tally: &Tally) {
        for (counter, more) in [(&self.packets, tally.packets), (&self.bytes, tally.bytes)] {
            let sum = counter.load(Ordering::Relaxed).wrapping_add(more);
            counter.store(sum, Ordering::Relaxed);
        }
    }

    /// By any of several.
    fn add_shared(&self, tally: &Tally) {
        self.packets.fetch_add(tally.packets, Ordering::Relaxed);
        self.bytes.fetch_add(tally.bytes, Ordering::Relaxed);
    }
}

/// The counters of one SA.
#[derive(Default)]
pub(crate) struct Shards {
    first: Shard,
    /// Number of the thread that has `first`, and 1; 0 while there is none.
    owner: AtomicUsize,
    /// By the number of the thread; the last is shared.
    others: OnceLock<Box<[Shard]>>,
    refused: [AtomicU64; Refusal::COUNT],
}

impl Shards {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds what a batch came to.
    #[inline]
    pub(crate) fn add(&self, tally: &Tally) {
        match thread_number() {
            Some(number) if self.is_first(number) => self.first.add_alone(tally),
            number => self.add_to_others(number, tally),
        }
        if tally.refusals > 0 {
            self.add_refusals(tally);
        }
    }

    #[cold]
    fn add_refusals(&self, tally: &Tally) {
        for (counter, &more) in self.refused.iter().zip(&tally.refused) {
            if more > 0 {
                counter.fetch_add(more.into(), Ordering::Relaxed);
            }
        }
    }

    /// Whether this is the first thread, or takes its place now.
    #[inline]
    fn is_first(&self, number: usize) -> bool {
        let owner = self.owner.load(Ordering::Relaxed);
        owner == number + 1 || owner == 0 && self.become_first(number)
    }

    #[cold]
    fn become_first(&self, number: usize) -> bool {
        self.owner
            .compare_exchange(0, number + 1, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
    }

    fn add_to_others(&self, number: Option<usize>, tally: &Tally) {
        let others = self.others.get_or_init(|| {
            let own = std::thread::available_parallelism().map_or(1, usize::from);
            (0..=own).map(|_| Shard::default()).collect()
        });
        let (shared, own) = others.split_last().expect("at least the shared one");
        match number.and_then(|number| own.get(number)) {
            Some(shard) => shard.add_alone(tally),
            None => shared.add_shared(tally),
        }
    }

    /// All shards together; of what is added meanwhile any part.
    pub(crate) fn sum(&self) -> Statistics {
        let others = self.others.get().map_or(&[][..], |others| others);
        let shards = || std::iter::once(&self.first).chain(others);
        let total = |counter: fn(&Shard) -> &AtomicU64| {
            shards()
                .map(|shard| counter(shard).load(Ordering::Relaxed))
                .fold(0, u64::wrapping_add)
        };
        Statistics {
            packets: total(|shard| &shard.packets),
            bytes: total(|shard| &shard.bytes),
            lost: 0,
            refused: std::array::from_fn(|i| self.refused[i].load(Ordering::Relaxed)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(packets: u64, bytes: u64) -> Tally {
        Tally {
            packets,
            bytes,
            ..Tally::default()
        }
    }

    #[test]
    fn one_thread_needs_no_table() {
        let shards = Shards::new();
        shards.add(&tally(3, 300));
        shards.add(&tally(u64::MAX, 1));
        assert!(shards.others.get().is_none());
        assert_eq!((shards.sum().packets, shards.sum().bytes), (2, 301));
    }

    #[test]
    fn the_memory_of_a_million_is_that_of_their_first_lines() {
        // A line for the first thread, 8 bytes a reason, an owner, and a table not allocated.
        let bytes = 64 + 8 * Refusal::COUNT + 8 + 24;
        assert_eq!(size_of::<Shards>(), bytes.next_multiple_of(64));
    }

    #[test]
    fn nothing_is_lost_with_more_threads_than_shards() {
        let (threads, rounds) = if cfg!(miri) { (4, 20) } else { (24, 5000) };
        let shards = Shards::new();
        let refusals = [Refusal::Replayed, Refusal::BadIcv];
        // Twice, so that numbers of threads are used again.
        for _ in 0..2 {
            std::thread::scope(|scope| {
                for _ in 0..threads {
                    scope.spawn(|| {
                        for round in 0..rounds {
                            let mut tally = tally(2, 100);
                            tally.refuse(refusals[round % 2]);
                            shards.add(&tally);
                        }
                    });
                }
            });
        }
        let sum = shards.sum();
        let batches = (2 * threads * rounds) as u64;
        assert_eq!((sum.packets, sum.bytes), (2 * batches, 100 * batches));
        for refusal in refusals {
            assert_eq!(sum.refused[refusal.index()], batches / 2);
        }
    }
}
