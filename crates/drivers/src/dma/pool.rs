//! Bounce buffers: extents of the arena's pool.

/// A part of the pool, by offset in the arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) start: usize,
    pub(super) len: usize,
}

/// Extents begin at multiples of this many bytes: a cache line, and any engine's alignment
/// up to it.
const GRANULE: usize = 64;

/// What is free of the pool, sorted, neighbours joined.
#[derive(Debug)]
pub(super) struct Pool {
    free: Vec<Extent>,
    granule: usize,
}

impl Pool {
    /// `alignment` is that of the engine.
    pub(super) fn new(start: usize, len: usize, alignment: usize) -> Self {
        Pool {
            free: vec![Extent { start, len }],
            granule: alignment.max(GRANULE),
        }
    }

    /// The first that is large enough, lowest address first: what was used last is in the
    /// cache.
    pub(super) fn take(&mut self, len: usize) -> Option<Extent> {
        let len = len.checked_next_multiple_of(self.granule)?;
        let place = self.free.iter().position(|extent| extent.len >= len)?;
        let extent = &mut self.free[place];
        let taken = Extent {
            start: extent.start,
            len,
        };
        (extent.start, extent.len) = (extent.start + len, extent.len - len);
        if extent.len == 0 {
            self.free.remove(place);
        }
        Some(taken)
    }

    pub(super) fn give(&mut self, extent: Extent) {
        let place = self.free.partition_point(|e| e.start < extent.start);
        self.free.insert(place, extent);
        if let Some(next) = self.free.get(place + 1).copied()
            && extent.start + extent.len == next.start
        {
            self.free[place].len += next.len;
            self.free.remove(place + 1);
        }
        if place > 0 && self.free[place - 1].start + self.free[place - 1].len == extent.start {
            self.free[place - 1].len += self.free[place].len;
            self.free.remove(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_given_back_is_whole_again() {
        let mut pool = Pool::new(4096, 64 * 100, 16);
        let taken: Vec<_> = (0..10).map(|i| pool.take(i * 64 + 1).unwrap()).collect();
        assert!(taken.is_sorted_by(|a, b| a.start + a.len <= b.start));
        assert_eq!(pool.take(64 * 46), None);
        assert_eq!(pool.take(usize::MAX), None);
        for i in [3, 1, 2, 9, 0, 8, 5, 7, 6, 4] {
            pool.give(taken[i]);
        }
        let whole = pool.take(6400).unwrap();
        assert_eq!((whole.start, whole.len), (4096, 6400));
        assert_eq!(pool.take(1), None);
    }
}
