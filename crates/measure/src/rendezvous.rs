//! Where the caller threads meet before and after every block. A thread that
//! fails or panics aborts the meeting, so that nobody waits for it for ever.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

/// Turns of busy waiting before the processor is offered to others.
const SPINS: u32 = 2000;

/// The meeting was aborted by another thread.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Aborted;

/// A reusable meeting point of a fixed number of threads.
pub(crate) struct Rendezvous {
    threads: usize,
    state: Mutex<State>,
    changed: Condvar,
    aborted: AtomicBool,
    /// Arrivals at [`Self::spin`], counted on and on.
    spinning: AtomicUsize,
}

struct State {
    arrived: usize,
    meeting: u64,
}

impl Rendezvous {
    pub(crate) fn new(threads: usize) -> Self {
        Self {
            threads,
            state: Mutex::new(State {
                arrived: 0,
                meeting: 0,
            }),
            changed: Condvar::new(),
            aborted: AtomicBool::new(false),
            spinning: AtomicUsize::new(0),
        }
    }

    /// Sleeps until all threads are here.
    pub(crate) fn wait(&self) -> Result<(), Aborted> {
        if self.threads == 1 {
            return Ok(());
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let meeting = state.meeting;
        state.arrived += 1;
        if state.arrived == self.threads {
            state.arrived = 0;
            state.meeting += 1;
            self.changed.notify_all();
        }
        while state.meeting == meeting && !self.is_aborted() {
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        self.check()
    }

    /// Waits busily until all threads are here: no context switch, and all
    /// leave within about a microsecond, where every thread has a processor.
    pub(crate) fn spin(&self) -> Result<(), Aborted> {
        if self.threads == 1 {
            return Ok(());
        }
        let arrival = self.spinning.fetch_add(1, Ordering::AcqRel);
        let full = (arrival / self.threads + 1) * self.threads;
        let mut turns = 0;
        while self.spinning.load(Ordering::Acquire) < full {
            self.check()?;
            turns += 1;
            if turns < SPINS {
                std::hint::spin_loop();
            } else {
                std::thread::yield_now();
            }
        }
        self.check()
    }

    /// Sends everyone home, those that have yet to arrive too.
    pub(crate) fn abort(&self) {
        let _state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.aborted.store(true, Ordering::Release);
        self.changed.notify_all();
    }

    /// A guard that aborts the meeting if it is dropped by a panic.
    pub(crate) fn abort_on_panic(&self) -> AbortOnPanic<'_> {
        AbortOnPanic(self)
    }

    fn is_aborted(&self) -> bool {
        self.aborted.load(Ordering::Acquire)
    }

    fn check(&self) -> Result<(), Aborted> {
        if self.is_aborted() {
            Err(Aborted)
        } else {
            Ok(())
        }
    }
}

pub(crate) struct AbortOnPanic<'a>(&'a Rendezvous);

impl Drop for AbortOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_leaves_before_all_have_come() {
        for threads in [1, 2, 5] {
            let (rendezvous, arrived) = (Rendezvous::new(threads), AtomicUsize::new(0));
            std::thread::scope(|scope| {
                for _ in 0..threads {
                    scope.spawn(|| {
                        for meeting in 1..=50 {
                            arrived.fetch_add(1, Ordering::Relaxed);
                            if meeting % 2 == 0 {
                                rendezvous.wait().unwrap();
                            } else {
                                rendezvous.spin().unwrap();
                            }
                            assert!(arrived.load(Ordering::Relaxed) >= meeting * threads);
                        }
                    });
                }
            });
        }
    }

    #[test]
    fn an_abort_frees_those_who_wait_and_those_who_come_later() {
        let rendezvous = Rendezvous::new(3);
        std::thread::scope(|scope| {
            let sleeper = scope.spawn(|| rendezvous.wait());
            let spinner = scope.spawn(|| rendezvous.spin());
            let panicked = scope
                .spawn(|| {
                    let _guard = rendezvous.abort_on_panic();
                    panic!("expected by this test");
                })
                .join();
            assert!(panicked.is_err());
            assert_eq!(sleeper.join().unwrap(), Err(Aborted));
            assert_eq!(spinner.join().unwrap(), Err(Aborted));
        });
        assert_eq!(rendezvous.wait(), Err(Aborted));
    }
}
