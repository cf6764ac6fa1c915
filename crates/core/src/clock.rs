//! Where times come from: this machine's clocks, or a simulation that moves its own.
//!
//! Dispatch, sessions, flights and health ask a [`Clock`] what time it is. Under
//! [`VirtualTime`] nothing takes time but what a simulated driver says it takes, so that a
//! run over simulated devices is exact, repeatable and far faster than the real thing.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// What real times are counted from.
static ORIGIN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// A monotonic clock, and a clock of the calling thread's processor time. The default reads
/// this machine's.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    simulated: Option<Arc<Simulated>>,
}

#[derive(Debug, Default)]
struct Simulated {
    /// Nanoseconds.
    now: AtomicU64,
    /// Nanoseconds of it that the caller's core worked.
    worked: AtomicU64,
}

impl Clock {
    /// Time since some fixed moment in the past.
    #[inline]
    pub fn now(&self) -> Duration {
        match &self.simulated {
            None => ORIGIN.elapsed(),
            Some(simulated) => Duration::from_nanos(simulated.now.load(Ordering::Relaxed)),
        }
    }

    /// Time since some other fixed moment in the past, to some milliseconds, for a quarter of
    /// what [`now`](Self::now) costs. Not while the machine is suspended.
    #[inline]
    pub fn coarse(&self) -> Duration {
        match &self.simulated {
            None => {
                // The C library's, which works under valgrind too.
                let mut time = libc::timespec {
                    tv_sec: 0,
                    tv_nsec: 0,
                };
                // SAFETY: writes to a local of the right type.
                unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, &raw mut time) };
                Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
            }
            Some(simulated) => Duration::from_nanos(simulated.now.load(Ordering::Relaxed)),
        }
    }

    /// Whether this is the time of a simulation.
    pub(crate) fn is_simulated(&self) -> bool {
        self.simulated.is_some()
    }

    /// Processor time that the calling thread has used. A system call where time is real.
    pub fn processor(&self) -> Duration {
        match &self.simulated {
            // Miri has no clock of threads.
            None if cfg!(miri) => self.now(),
            None => {
                let time = clock_gettime(ClockId::ThreadCPUTime);
                Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
            }
            Some(simulated) => Duration::from_nanos(simulated.worked.load(Ordering::Relaxed)),
        }
    }
}

/// Time that stands still until it is moved: by a driver for the time that its call takes, by a
/// device that a caller waits for, by a simulation that turns to another caller.
///
/// It is meant for one thread that plays all parts; clones are one time.
#[derive(Clone, Debug, Default)]
pub struct VirtualTime {
    simulated: Arc<Simulated>,
}

impl VirtualTime {
    /// Time zero.
    pub fn new() -> Self {
        VirtualTime::default()
    }

    /// The clock to read it by, for [`FrameworkBuilder::clock`](crate::FrameworkBuilder::clock).
    pub fn clock(&self) -> Clock {
        Clock {
            simulated: Some(self.simulated.clone()),
        }
    }

    /// Time since zero.
    pub fn now(&self) -> Duration {
        Duration::from_nanos(self.simulated.now.load(Ordering::Relaxed))
    }

    /// The caller's core works for this long.
    pub fn work(&self, time: Duration) {
        let nanoseconds = time.as_nanos() as u64;
        self.simulated.now.fetch_add(nanoseconds, Ordering::Relaxed);
        self.simulated
            .worked
            .fetch_add(nanoseconds, Ordering::Relaxed);
    }

    /// The caller sleeps until then, if that is not past.
    pub fn sleep_until(&self, moment: Duration) {
        let moment = moment.as_nanos() as u64;
        self.simulated.now.fetch_max(moment, Ordering::Relaxed);
    }

    /// The simulation turns to a caller whose time is `moment`, which may lie before the last one.
    pub fn turn_to(&self, moment: Duration) {
        let moment = moment.as_nanos() as u64;
        self.simulated.now.store(moment, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn real_clocks_do_not_run_backwards() {
        let clock = Clock::default();
        let before = (clock.now(), clock.processor(), clock.coarse());
        let after = (clock.now(), clock.processor(), clock.coarse());
        assert!(after.0 >= before.0 && after.1 >= before.1 && after.2 >= before.2);
    }

    #[test]
    fn virtual_time_moves_only_when_it_is_moved() {
        let time = VirtualTime::new();
        let clock = time.clock();
        let us = Duration::from_micros;
        time.work(us(3));
        time.sleep_until(us(10));
        time.sleep_until(us(5));
        assert_eq!((clock.now(), clock.processor()), (us(10), us(3)));
        assert_eq!(clock.coarse(), us(10));
        time.turn_to(us(7));
        time.work(us(1));
        assert_eq!((clock.now(), clock.processor()), (us(8), us(4)));
    }
}
