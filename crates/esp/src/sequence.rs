//! The sequence numbers of an outbound SA: taken a batch at a time, never twice.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::sync::Line;

/// The numbers that are left.
pub(crate) struct Counter {
    /// Written by every batch of every thread.
    next: Line<AtomicU64>,
    last: u64,
}

impl Counter {
    /// The last number of an SA: 2^32 - 1, or with ESN 2^64 - 2^32, so that what many threads
    /// take in vain at the end, before they know of it, cannot wrap.
    pub(crate) const fn last(esn: bool) -> u64 {
        match esn {
            true => u64::MAX << 32,
            false => u32::MAX as u64,
        }
    }

    pub(crate) fn new(first: u64, esn: bool) -> Self {
        Counter {
            next: Line(AtomicU64::new(first)),
            last: Self::last(esn),
        }
    }

    /// Takes `count` numbers; the first of them. Numbers that are not
    /// [usable](Self::is_usable) must not be sent, and whoever sees one must take no more.
    ///
    /// A single addition: to look first would fetch the line twice where threads contend.
    #[inline]
    pub(crate) fn take(&self, count: usize) -> u64 {
        self.next.0.fetch_add(count as u64, Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn is_usable(&self, number: u64) -> bool {
        number <= self.last
    }

    /// The next number that will be taken.
    pub(crate) fn next(&self) -> u64 {
        self.next.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stop_before_they_wrap() {
        for esn in [false, true] {
            let last = Counter::last(esn);
            let counter = Counter::new(last - 5, esn);
            let mut used = Vec::new();
            for _ in 0..5 {
                let first = counter.take(4);
                used.extend((first..first + 4).filter(|&n| counter.is_usable(n)));
            }
            assert_eq!(used, (last - 5..=last).collect::<Vec<_>>(), "ESN {esn}");
        }
    }

    #[test]
    fn threads_take_no_number_twice() {
        let counter = Counter::new(1, true);
        let mut taken: Vec<u64> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| scope.spawn(|| (0..50).map(|_| counter.take(3)).collect::<Vec<_>>()))
                .collect();
            let taken = threads.into_iter().flat_map(|t| t.join().unwrap());
            taken.collect()
        });
        taken.sort_unstable();
        let expected: Vec<u64> = (0..200).map(|batch| 1 + 3 * batch).collect();
        assert_eq!(taken, expected);
    }
}
