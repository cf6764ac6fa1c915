//! Counters per driver and algorithm, sharded by thread and summed on read.
//!
//! A thread writes only its own shard, with plain loads and stores: no locked
//! instruction and no shared cache line on the path of a request.

use std::array;
use std::cell::Cell;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;

use crate::Algorithm;

/// Drivers in one framework at most.
pub(crate) const MAX_DRIVERS: usize = 16;
const MAX_ALGORITHMS: usize = 32;
/// Four buckets an octave, from 16 ns to half a minute.
const BUCKETS: usize = 128;

/// What one thread did with one driver and algorithm.
struct Counters {
    requests: AtomicU64,
    bytes: AtomicU64,
    errors: AtomicU64,
    retries: AtomicU64,
    latency: [AtomicU64; BUCKETS],
}

impl Counters {
    fn new() -> Self {
        Counters {
            requests: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            retries: AtomicU64::new(0),
            latency: array::from_fn(|_| AtomicU64::new(0)),
        }
    }
}

/// Adds without a locked instruction: only the owning thread writes.
#[inline]
fn add(counter: &AtomicU64, n: u64) {
    counter.store(
        counter.load(Ordering::Relaxed).wrapping_add(n),
        Ordering::Relaxed,
    );
}

/// One thread's counters, allocated driver by driver as they are used.
struct Shard {
    slots: [AtomicPtr<Counters>; MAX_DRIVERS * MAX_ALGORITHMS],
}

impl Shard {
    fn new() -> Self {
        Shard {
            slots: array::from_fn(|_| AtomicPtr::default()),
        }
    }

    #[inline]
    fn slot(&self, driver: usize, algorithm: usize) -> &Counters {
        let slot = &self.slots[driver * MAX_ALGORITHMS + algorithm];
        let mut counters = slot.load(Ordering::Acquire);
        if counters.is_null() {
            counters = Self::fill(slot);
        }
        // SAFETY: a slot is set once, to a leaked box that is freed only with the shard.
        unsafe { &*counters }
    }

    #[cold]
    fn fill(slot: &AtomicPtr<Counters>) -> *mut Counters {
        let counters = Box::into_raw(Box::new(Counters::new()));
        // Release: readers that see the pointer see the zeros.
        slot.store(counters, Ordering::Release);
        counters
    }
}

impl Drop for Shard {
    fn drop(&mut self) {
        for slot in &mut self.slots {
            let counters = *slot.get_mut();
            if !counters.is_null() {
                // SAFETY: made by `Box::into_raw` in `fill`, freed nowhere else.
                drop(unsafe { Box::from_raw(counters) });
            }
        }
    }
}

/// All threads' counters of one framework.
pub(crate) struct Statistics {
    id: u64,
    shards: Mutex<Vec<Arc<Shard>>>,
}

thread_local! {
    /// The shard this thread used last, and the id of its framework.
    static CURRENT: Cell<(u64, *const Shard)> = const { Cell::new((0, std::ptr::null())) };
    /// Every shard of this thread, by framework.
    static SHARDS: std::cell::RefCell<Vec<(u64, Arc<Shard>)>> = const { std::cell::RefCell::new(Vec::new()) };
}

impl Statistics {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        assert!(Algorithm::all().len() <= MAX_ALGORITHMS);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        Statistics {
            id,
            shards: Mutex::default(),
        }
    }

    #[inline]
    fn slot<R>(&self, driver: usize, algorithm: usize, f: impl FnOnce(&Counters) -> R) -> R {
        let (id, shard) = CURRENT.get();
        let shard = if id == self.id { shard } else { self.enter() };
        // SAFETY: the shard belongs to this thread's `SHARDS` and to `self.shards`; the
        // latter lives as long as `self`, whose id no other framework has.
        f(unsafe { &*shard }.slot(driver, algorithm))
    }

    #[cold]
    fn enter(&self) -> *const Shard {
        let found = SHARDS.try_with(|shards| {
            let shards = shards.borrow();
            shards
                .iter()
                .find(|(id, _)| *id == self.id)
                .map(|(_, shard)| Arc::as_ptr(shard))
        });
        let shard = found.ok().flatten().unwrap_or_else(|| {
            let shard = Arc::new(Shard::new());
            let pointer = Arc::as_ptr(&shard);
            self.shards
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(shard.clone());
            // A thread that is ending has no locals any more; the shard is then used once.
            let _ = SHARDS.try_with(|shards| shards.borrow_mut().push((self.id, shard)));
            pointer
        });
        CURRENT.set((self.id, shard));
        shard
    }

    /// Counts requests that a driver finished.
    #[inline]
    pub(crate) fn count(&self, driver: usize, algorithm: usize, requests: u64, bytes: u64) {
        self.slot(driver, algorithm, |c| {
            add(&c.requests, requests);
            add(&c.bytes, bytes);
        });
    }

    /// Counts requests that ended in an error.
    #[cold]
    pub(crate) fn count_errors(&self, driver: usize, algorithm: usize, errors: u64) {
        self.slot(driver, algorithm, |c| add(&c.errors, errors));
    }

    /// Counts requests that were finished in software after a driver gave up on them.
    #[cold]
    pub(crate) fn count_retries(&self, driver: usize, algorithm: usize, retries: u64) {
        self.slot(driver, algorithm, |c| add(&c.retries, retries));
    }

    /// Notes the time of a batch, one in some.
    pub(crate) fn time(&self, driver: usize, algorithm: usize, nanoseconds: u64) {
        self.slot(driver, algorithm, |c| {
            add(&c.latency[bucket(nanoseconds)], 1)
        });
    }

    /// The sum over all threads.
    pub(crate) fn read(&self, driver: usize, algorithm: usize) -> Totals {
        let mut totals = Totals::default();
        for shard in self
            .shards
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
        {
            let counters = shard.slots[driver * MAX_ALGORITHMS + algorithm].load(Ordering::Acquire);
            // SAFETY: as in `Shard::slot`; null where the thread never used it.
            let Some(c) = (unsafe { counters.as_ref() }) else {
                continue;
            };
            totals.requests += c.requests.load(Ordering::Relaxed);
            totals.bytes += c.bytes.load(Ordering::Relaxed);
            totals.errors += c.errors.load(Ordering::Relaxed);
            totals.retries += c.retries.load(Ordering::Relaxed);
            for (sum, bucket) in totals.latency.iter_mut().zip(&c.latency) {
                *sum += bucket.load(Ordering::Relaxed);
            }
        }
        totals
    }
}

/// Log-scale bucket: the octave and the two bits below its leading one.
fn bucket(nanoseconds: u64) -> usize {
    let n = nanoseconds.max(16);
    let octave = n.ilog2();
    (((octave - 4) as usize) * 4 + ((n >> (octave - 2)) & 3) as usize).min(BUCKETS - 1)
}

/// The least time in nanoseconds of a bucket.
fn floor(bucket: usize) -> u64 {
    (4 + (bucket as u64 & 3)) << (bucket / 4 + 2)
}

/// Counters of one driver and algorithm over all threads.
#[derive(Clone, Debug, Serialize)]
pub struct Totals {
    /// Requests finished, those that ended in an error included.
    pub requests: u64,
    /// Bytes of payload.
    pub bytes: u64,
    /// Requests that ended in an error (bad tag, or lost by the driver).
    pub errors: u64,
    /// Requests that the driver gave up and software finished.
    pub retries: u64,
    #[serde(skip)]
    latency: [u64; BUCKETS],
}

impl Default for Totals {
    fn default() -> Self {
        Totals {
            requests: 0,
            bytes: 0,
            errors: 0,
            retries: 0,
            latency: [0; BUCKETS],
        }
    }
}

impl Totals {
    /// A quantile (0 to 1) of the sampled batch times, in nanoseconds, to within a quarter
    /// of an octave; `None` without samples.
    pub fn latency_ns(&self, quantile: f64) -> Option<u64> {
        let samples: u64 = self.latency.iter().sum();
        let rank = (samples as f64 * quantile.clamp(0.0, 1.0)).ceil().max(1.0) as u64;
        let mut seen = 0;
        self.latency.iter().enumerate().find_map(|(i, &n)| {
            seen += n;
            (samples > 0 && seen >= rank).then(|| floor(i))
        })
    }

    /// The histogram of sampled batch times: `(from nanoseconds, batches)`, without empty buckets.
    pub fn histogram(&self) -> Vec<(u64, u64)> {
        let full = self.latency.iter().enumerate().filter(|&(_, &n)| n > 0);
        full.map(|(i, &n)| (floor(i), n)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_and_floors_agree() {
        for i in 0..BUCKETS {
            assert_eq!(bucket(floor(i)), i);
            assert_eq!(bucket(floor(i + 1) - 1), i);
        }
        assert_eq!(bucket(0), 0);
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn threads_are_summed_even_after_they_ended() {
        let (one, two) = (Arc::new(Statistics::new()), Statistics::new());
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let one = one.clone();
                std::thread::spawn(move || {
                    for _ in 0..1000 {
                        one.count(1, 2, 3, 100);
                    }
                    one.time(1, 2, 1000);
                    one.count_errors(1, 2, 1);
                })
            })
            .collect();
        two.count(1, 2, 1, 1);
        threads.into_iter().for_each(|t| t.join().unwrap());
        one.count(1, 2, 1, 7);
        two.count(1, 2, 1, 1);
        let totals = one.read(1, 2);
        assert_eq!(
            (totals.requests, totals.bytes, totals.errors),
            (12001, 400_007, 4)
        );
        assert_eq!(totals.latency_ns(0.5), Some(floor(bucket(1000))));
        assert_eq!(two.read(1, 2).requests, 2);
        assert_eq!(one.read(0, 2).latency_ns(0.5), None);
    }
}
