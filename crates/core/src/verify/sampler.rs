//! Which requests of a driver are verified: one in a number of them.

use std::sync::atomic::{AtomicI64, Ordering};

use crate::thread_number;

/// Threads of different shards do not write to one cache line.
const SHARDS: usize = 16;

/// Counts a driver's requests until one is to be verified.
#[derive(Debug)]
pub(crate) struct Sampler {
    /// One request in this many; 0 means none.
    every: i64,
    left: [Shard; SHARDS],
}

#[derive(Debug)]
#[repr(align(64))]
struct Shard(AtomicI64);

impl Sampler {
    pub(crate) fn new(every: u64) -> Self {
        let every = i64::try_from(every).unwrap_or(i64::MAX);
        Sampler {
            every,
            left: std::array::from_fn(|_| Shard(AtomicI64::new(every))),
        }
    }

    /// Whether every request is to be verified.
    pub(super) fn is_for_all(&self) -> bool {
        self.every == 1
    }

    /// The place of the request to be verified among the next `requests`, if one of them is. Of
    /// threads that ask at the same time, only one may be counted.
    #[inline]
    pub(crate) fn pick(&self, requests: usize) -> Option<usize> {
        let Shard(counter) = &self.left[thread_number().unwrap_or(0) % SHARDS];
        let left = counter.load(Ordering::Relaxed);
        let after = left.saturating_sub(requests as i64);
        if after > 0 || self.every == 0 {
            counter.store(after, Ordering::Relaxed);
            return None;
        }
        counter.store(self.every, Ordering::Relaxed);
        (requests > 0).then(|| (left.max(1) as usize - 1).min(requests - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_ten_requests_is_picked_and_only_in_its_batch() {
        let sampler = Sampler::new(10);
        let picks: Vec<_> = [4, 4, 4, 9, 1, 100].map(|n| sampler.pick(n)).into();
        assert_eq!(picks, [None, None, Some(1), None, Some(0), Some(9)]);
        let each = Sampler::new(1);
        assert_eq!([each.pick(1), each.pick(3)], [Some(0), Some(0)]);
        let never = Sampler::new(0);
        assert!((0..100).all(|_| never.pick(1000).is_none()));
    }
}
