//! Counters per driver and algorithm, sharded by thread and summed on read.
//!
//! A thread writes only its own shard, with plain loads and stores: no locked
//! instruction and no shared cache line on the path of a request. When a thread ends, its
//! counters are added to those of the threads that ended before, and its shard is freed.

use std::array;
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use serde::Serialize;

use crate::algorithm::COUNT;

/// Drivers in one framework at most.
pub(crate) const MAX_DRIVERS: usize = 16;
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

    fn all(&self) -> impl Iterator<Item = &AtomicU64> {
        [&self.requests, &self.bytes, &self.errors, &self.retries]
            .into_iter()
            .chain(&self.latency)
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

/// Counters that one thread writes at a time, allocated driver by driver as they are used.
struct Shard {
    slots: [AtomicPtr<Counters>; MAX_DRIVERS * COUNT],
}

impl Shard {
    fn new() -> Self {
        Shard {
            slots: array::from_fn(|_| AtomicPtr::default()),
        }
    }

    #[inline]
    fn slot(&self, driver: usize, algorithm: usize) -> &Counters {
        let slot = &self.slots[driver * COUNT + algorithm];
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

    /// The counters in each slot; none where nobody counted.
    fn used(&self, slot: usize) -> Option<&Counters> {
        let counters = self.slots[slot].load(Ordering::Acquire);
        // SAFETY: as in `slot`.
        unsafe { counters.as_ref() }
    }

    /// Adds the counters of another shard, which nobody writes any more.
    fn add(&self, other: &Shard) {
        for slot in 0..MAX_DRIVERS * COUNT {
            let Some(from) = other.used(slot) else {
                continue;
            };
            let to = self.slot(slot / COUNT, slot % COUNT);
            for (to, from) in to.all().zip(from.all()) {
                add(to, from.load(Ordering::Relaxed));
            }
        }
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
    shards: Arc<Shards>,
}

/// The shards of one framework, which the threads that have one know too.
struct Shards(Mutex<State>);

struct State {
    /// Of the threads that run.
    living: Vec<Arc<Shard>>,
    /// The sum of the threads that have ended. Written under the lock.
    ended: Shard,
}

impl Shards {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The thread of a shard ends.
    fn retire(&self, shard: &Arc<Shard>) {
        let mut state = self.lock();
        state.living.retain(|living| !Arc::ptr_eq(living, shard));
        state.ended.add(shard);
    }
}

/// A thread's shard of one framework.
struct Own {
    id: u64,
    shard: Arc<Shard>,
    shards: Weak<Shards>,
}

/// The shards of one thread.
struct Owned(Vec<Own>);

impl Drop for Owned {
    /// The thread ends.
    fn drop(&mut self) {
        // Locals that are dropped after this one may count as well: they find no shard.
        CURRENT.set((0, std::ptr::null()));
        for own in self.0.drain(..) {
            if let Some(shards) = own.shards.upgrade() {
                shards.retire(&own.shard);
            }
        }
    }
}

thread_local! {
    /// The shard this thread used last, and the id of its framework.
    static CURRENT: Cell<(u64, *const Shard)> = const { Cell::new((0, std::ptr::null())) };
    static OWNED: RefCell<Owned> = const { RefCell::new(Owned(Vec::new())) };
}

impl Statistics {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        Statistics {
            id,
            shards: Arc::new(Shards(Mutex::new(State {
                living: Vec::new(),
                ended: Shard::new(),
            }))),
        }
    }

    #[inline]
    fn slot(&self, driver: usize, algorithm: usize, f: impl Fn(&Counters)) {
        let (id, shard) = CURRENT.get();
        if id == self.id {
            // SAFETY: no other framework has this id, so `enter` set it, to a shard of this
            // thread's `OWNED`. That keeps the shard as long as there is a `Statistics` of this
            // id, or until the thread ends, when `CURRENT` is cleared first.
            return f(unsafe { &*shard }.slot(driver, algorithm));
        }
        self.enter(driver, algorithm, f);
    }

    /// Counts in a thread that counted for another framework before, or for none.
    #[cold]
    fn enter(&self, driver: usize, algorithm: usize, f: impl Fn(&Counters)) {
        let counted = OWNED.try_with(|owned| {
            let list = &mut owned.borrow_mut().0;
            let shard = match list.iter().find(|own| own.id == self.id) {
                Some(own) => &own.shard,
                None => {
                    // A thread does not keep shards of frameworks that are gone.
                    list.retain(|own| own.shards.strong_count() > 0);
                    let shard = Arc::new(Shard::new());
                    self.shards.lock().living.push(shard.clone());
                    let shards = Arc::downgrade(&self.shards);
                    let id = self.id;
                    list.push(Own { id, shard, shards });
                    &list[list.len() - 1].shard
                }
            };
            CURRENT.set((self.id, Arc::as_ptr(shard)));
            f(shard.slot(driver, algorithm));
        });
        if counted.is_err() {
            // The thread is ending, and its shard is gone.
            f(self.shards.lock().ended.slot(driver, algorithm));
        }
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
        let state = self.shards.lock();
        let shards = state.living.iter().map(|shard| &**shard);
        let slot = driver * COUNT + algorithm;
        for c in shards
            .chain([&state.ended])
            .filter_map(|shard| shard.used(slot))
        {
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

    /// A thread's last words.
    struct Last(Arc<Statistics>);

    impl Drop for Last {
        fn drop(&mut self) {
            self.0.count(2, 3, 1, 10);
        }
    }

    #[test]
    fn shards_are_freed_with_their_threads_and_nothing_is_lost() {
        thread_local! {
            static LAST: RefCell<Option<Last>> = const { RefCell::new(None) };
        }
        let statistics = Arc::new(Statistics::new());
        let threads: u64 = if cfg!(miri) { 4 } else { 1000 };
        for i in 0..threads {
            let statistics = statistics.clone();
            let thread = std::thread::spawn(move || {
                // Locals are dropped in the order of their first use, or the other way round:
                // one half of the threads counts before its last words, the other after.
                if i % 2 == 0 {
                    statistics.count(2, 3, 1, 10);
                }
                LAST.set(Some(Last(statistics.clone())));
                statistics.count(2, 3, 1, 10);
                statistics.time(2, 3, 100);
            });
            thread.join().unwrap();
        }
        statistics.count(2, 3, 1, 10);
        let totals = statistics.read(2, 3);
        let requests = threads * 5 / 2 + 1;
        assert_eq!((totals.requests, totals.bytes), (requests, 10 * requests));
        assert_eq!(totals.latency.iter().sum::<u64>(), threads);
        assert_eq!(statistics.shards.lock().living.len(), 1);
    }

    #[test]
    fn a_thread_keeps_no_shards_of_frameworks_that_are_gone() {
        let frameworks = if cfg!(miri) { 3 } else { 100 };
        let kept = std::thread::spawn(move || {
            for _ in 0..frameworks {
                let statistics = Statistics::new();
                statistics.count(0, 0, 1, 1);
                assert_eq!(statistics.read(0, 0).requests, 1);
            }
            OWNED.with_borrow(|owned| owned.0.len())
        });
        assert_eq!(kept.join().unwrap(), 1);
    }

    #[test]
    fn threads_are_summed_even_after_they_ended() {
        let (one, two) = (Arc::new(Statistics::new()), Statistics::new());
        let rounds = if cfg!(miri) { 10 } else { 1000 };
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let one = one.clone();
                std::thread::spawn(move || {
                    for _ in 0..rounds {
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
            (12 * rounds + 1, 400 * rounds + 7, 4)
        );
        assert_eq!(totals.latency_ns(0.5), Some(floor(bucket(1000))));
        assert_eq!(two.read(1, 2).requests, 2);
        assert_eq!(one.read(0, 2).latency_ns(0.5), None);
    }
}
