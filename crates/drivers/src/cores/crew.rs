//! One pool a process, made at first use. A forked child has its parent's memory but not
//! its threads, so it makes a pool of its own.

use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::sync::{Arc, Once, PoisonError};

use super::fault::Fault;
use super::pool::Pool;
use super::settings::Settings;
use super::worker;

/// Forks between the first process and this one, counted by the C library's handler, so
/// that noticing a fork costs a load.
static FORKS: AtomicU32 = AtomicU32::new(0);

extern "C" fn in_child() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// The settings of the workers, and the pool once there is one.
pub(super) struct Crew {
    pub(super) settings: Settings,
    pub(super) fault: Fault,
    /// From `Arc::into_raw`. Replaced only in a child, where the parent's pool is left as
    /// it is: other threads of the parent were using it at the fork.
    pool: AtomicPtr<Pool>,
}

impl Crew {
    pub(super) fn new(settings: Settings, fault: Fault) -> Self {
        Crew {
            settings,
            fault,
            pool: AtomicPtr::default(),
        }
    }

    /// This process's pool, if it has been used.
    #[inline]
    pub(super) fn present(&self) -> Option<&Pool> {
        let pool = self.pool.load(Ordering::Acquire);
        // SAFETY: a pool lives as long as the crew, or for ever.
        let pool = unsafe { pool.as_ref() }?;
        (pool.generation == FORKS.load(Ordering::Relaxed)).then_some(pool)
    }

    /// This process's pool.
    #[inline]
    pub(super) fn pool(&self) -> &Pool {
        match self.present() {
            Some(pool) => pool,
            None => self.start(),
        }
    }

    /// Makes the pool without a lock, which another thread may have held at the fork.
    #[cold]
    fn start(&self) -> &Pool {
        static REGISTERED: Once = Once::new();
        REGISTERED.call_once(|| {
            // SAFETY: the handler only adds to an atomic.
            unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
        });
        let before = self.pool.load(Ordering::Acquire);
        if let Some(pool) = self.present() {
            return pool;
        }
        let generation = FORKS.load(Ordering::Relaxed);
        let pool = Arc::new(Pool::new(
            generation,
            self.settings.cores.len(),
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
        pool.beds.publish();
        pool.beds.wake(u32::MAX, pool.now());
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
