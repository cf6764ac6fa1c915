//! Sleeping and waking without a lost wake-up.
//!
//! A worker that goes to sleep says so in a word and then looks for work once more; who
//! publishes work looks at that word afterwards. A sequentially consistent fence stands
//! between the two steps on either side, so at least one of them sees the other.

use std::sync::OnceLock;
use std::sync::atomic::AtomicU64 as StdAtomicU64;

use super::sync::{AtomicU64, Ordering, Thread, current, fence, park};

/// Where the workers of a pool sleep.
pub(super) struct Sleepers {
    /// A bit for each worker that sleeps, or is about to.
    asleep: AtomicU64,
    sleepers: Box<[Sleeper]>,
}

#[derive(Default)]
struct Sleeper {
    thread: OnceLock<Thread>,
    /// When the sleeper was last called, in the caller's unit. Only for measuring.
    called: StdAtomicU64,
}

impl Sleepers {
    /// For this number of workers, at most 64.
    pub(super) fn new(workers: usize) -> Self {
        assert!(workers <= 64);
        Sleepers {
            asleep: AtomicU64::new(0),
            sleepers: (0..workers).map(|_| Sleeper::default()).collect(),
        }
    }

    /// Sleeps until called, unless `work` finds something to do. Returns the time given
    /// by who called, or `None` where there was work at once.
    pub(super) fn sleep(&self, worker: usize, work: impl Fn() -> bool) -> Option<u64> {
        let (sleeper, bit) = (&self.sleepers[worker], 1 << worker);
        sleeper.thread.get_or_init(current);
        self.asleep.fetch_or(bit, Ordering::Release);
        fence(Ordering::SeqCst);
        if work() {
            // Somebody may have called meanwhile: the next `park` then returns at once,
            // and its loop parks again.
            self.asleep.fetch_and(!bit, Ordering::Relaxed);
            return None;
        }
        while self.asleep.load(Ordering::Acquire) & bit != 0 {
            park();
        }
        Some(sleeper.called.load(Ordering::Relaxed))
    }

    /// How many sleep. A hint: without [`publish`](Self::publish) before it, it may be old.
    #[inline]
    pub(super) fn asleep(&self) -> u32 {
        self.asleep.load(Ordering::Relaxed).count_ones()
    }

    /// To be called between publishing work that nobody else will do and
    /// [`asleep`](Self::asleep) or [`wake`](Self::wake): whoever is not asleep then finds it.
    #[inline]
    pub(super) fn publish(&self) {
        fence(Ordering::SeqCst);
    }

    /// Calls up to `most` sleepers; `now` is handed to them.
    pub(super) fn wake(&self, most: u32, now: u64) -> u32 {
        let mut woken = 0;
        while woken < most {
            let asleep = self.asleep.load(Ordering::Relaxed);
            if asleep == 0 {
                break;
            }
            let worker = asleep.trailing_zeros() as usize;
            let sleeper = &self.sleepers[worker];
            sleeper.called.store(now, Ordering::Relaxed);
            // Acquire: the thread in the sleeper is seen. Release: the sleeper sees `called`.
            let before = self.asleep.fetch_and(!(1 << worker), Ordering::AcqRel);
            if before & 1 << worker != 0 {
                sleeper.thread.get().expect("set before its bit").unpark();
                woken += 1;
            }
        }
        woken
    }
}
