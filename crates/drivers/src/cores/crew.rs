//! One pool a process, made at first use. A forked child has its parent's memory but not
//! its threads, so it makes a pool of its own.

use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, PoisonError};

use cipherlane_core::Process;

use super::fault::Fault;
use super::first::Firsts;
use super::pool::Pool;
use super::settings::Settings;
use super::worker;

/// The settings of the workers, and the pool once there is one.
pub(super) struct Crew {
    pub(super) settings: Settings,
    pub(super) fault: Fault,
    pub(super) firsts: Firsts,
    /// From `Arc::into_raw`. Replaced only in a child, where the parent's pool is never
    /// freed: threads of the parent were using it at the fork.
    pool: AtomicPtr<Pool>,
}

impl Crew {
    pub(super) fn new(settings: Settings, fault: Fault) -> Self {
        Crew {
            settings,
            fault,
            firsts: Firsts::default(),
            pool: AtomicPtr::default(),
        }
    }

    /// This process's pool, if it has been used.
    #[inline]
    pub(super) fn present(&self) -> Option<&Pool> {
        let pool = self.pool.load(Ordering::Acquire);
        // SAFETY: a pool lives as long as the crew, or for ever.
        let pool = unsafe { pool.as_ref() }?;
        pool.process.is_current().then_some(pool)
    }

    /// Whether a worker looks for work at this moment, or does some.
    #[inline]
    pub(super) fn is_awake(&self) -> bool {
        self.present().is_some_and(|pool| {
            let workers = pool.worker_count();
            workers > 0 && pool.wakes.delay_now(workers) == 0
        })
    }

    /// This process's pool.
    #[inline]
    pub(super) fn pool(&self) -> &Pool {
        match self.present() {
            Some(pool) => pool,
            None => self.start(),
        }
    }

    /// A caller waits for work under way: in a child that may be the parent's, which the
    /// start of the child's own pool puts an end to.
    pub(super) fn awaited(&self) -> Option<&Pool> {
        let used = !self.pool.load(Ordering::Relaxed).is_null();
        used.then(|| self.pool())
    }

    /// Makes the pool without a lock, which another thread may have held at the fork.
    #[cold]
    fn start(&self) -> &Pool {
        let before = self.pool.load(Ordering::Acquire);
        if let Some(pool) = self.present() {
            return pool;
        }
        let pool = Arc::new(Pool::new(
            Process::current(),
            self.settings.cores.len(),
            self.settings.spin,
            self.fault.clone(),
        ));
        let raw = Arc::into_raw(pool.clone()).cast_mut();
        let swapped = self
            .pool
            .compare_exchange(before, raw, Ordering::AcqRel, Ordering::Acquire);
        match swapped {
            Ok(_) => {
                worker::start(&pool, &self.settings);
                // SAFETY: as in `present`.
                if let Some(parents) = unsafe { before.as_ref() } {
                    // SAFETY: it was made before a fork, and only one swap succeeds.
                    unsafe { parents.abandon() };
                }
                // SAFETY: as in `present`.
                unsafe { &*raw }
            }
            Err(winner) => {
                // SAFETY: just made by `into_raw`, and nobody else has it.
                drop(unsafe { Arc::from_raw(raw) });
                // SAFETY: as in `present`; only this process swaps now.
                unsafe { &*winner }
            }
        }
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        let Some(pool) = self.present() else { return };
        pool.stop.store(true, Ordering::Relaxed);
        pool.wakes.wake_all();
        let threads =
            std::mem::take(&mut *pool.threads.lock().unwrap_or_else(PoisonError::into_inner));
        // The last flight of the last session may end the crew on a worker.
        let me = std::thread::current().id();
        for thread in threads.into_iter().filter(|t| t.thread().id() != me) {
            // A worker catches its own panics.
            let _ = thread.join();
        }
        // SAFETY: from `into_raw`, and nobody borrows from a crew that is dropped.
        drop(unsafe { Arc::from_raw(*self.pool.get_mut()) });
    }
}
