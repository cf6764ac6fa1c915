//! Threads that sleep until it is their turn to write, and are woken by whoever has written before
//! them.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::wait::take_wake;

/// The longest sleep: whoever waits looks again whether it has waited for long enough.
pub(crate) const LONGEST: Duration = Duration::from_millis(1);

/// Who sleeps.
pub(crate) struct Sleepers {
    count: AtomicUsize,
    are_asleep: Box<[AtomicBool]>,
    wakes: OnceLock<Box<[Arc<OwnedFd>]>>,
}

impl Sleepers {
    pub(crate) fn new(threads: usize) -> Self {
        Sleepers {
            count: AtomicUsize::new(0),
            are_asleep: (0..threads).map(|_| AtomicBool::new(false)).collect(),
            wakes: OnceLock::new(),
        }
    }

    /// What wakes each thread; told once.
    pub(crate) fn set_wakes(&self, wakes: impl Iterator<Item = Arc<OwnedFd>>) {
        let _ = self.wakes.set(wakes.collect());
    }

    /// `thread` will sleep by `sleep`, unless `is_over` says that there is no reason any more.
    #[cold]
    pub(crate) fn sleep(
        &self,
        thread: usize,
        is_over: impl FnOnce() -> bool,
        sleep: impl FnOnce(),
    ) {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.are_asleep[thread].store(true, Ordering::Relaxed);
        // Either this thread sees below what another has written before its own fence, or the
        // other one sees that this thread sleeps.
        fence(Ordering::SeqCst);
        if !is_over() {
            sleep();
        }
        if self.are_asleep[thread].swap(false, Ordering::Relaxed) {
            self.count.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Wakes all that sleep: something was written.
    #[inline]
    pub(crate) fn wake_all(&self) {
        // See `sleep`.
        fence(Ordering::SeqCst);
        if self.count.load(Ordering::Relaxed) > 0 {
            self.wake_each();
        }
    }

    #[cold]
    fn wake_each(&self) {
        let wakes = self.wakes.get().into_iter().flatten();
        for (is_asleep, wake) in self.are_asleep.iter().zip(wakes) {
            if is_asleep.load(Ordering::Relaxed) && is_asleep.swap(false, Ordering::Relaxed) {
                self.count.fetch_sub(1, Ordering::Relaxed);
                // It can only fail where the thread is woken already.
                let _ = rustix::io::write(wake, &1u64.to_ne_bytes());
            }
        }
    }
}

/// Sleeps until `wake` is written to, and no longer than [`LONGEST`].
#[cold]
pub(super) fn sleep_alone(wake: &OwnedFd) {
    let limit = Timespec::try_from(LONGEST).ok();
    let mut files = [PollFd::new(wake, PollFlags::IN)];
    if poll(&mut files, limit.as_ref()).is_ok_and(|ready| ready > 0) {
        take_wake(wake);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use rustix::event::{EventfdFlags, eventfd};

    use super::*;

    #[test]
    fn who_sleeps_is_woken_and_who_has_no_reason_does_not_sleep() {
        let sleepers = Arc::new(Sleepers::new(2));
        let wakes = [0, 1].map(|_| Arc::new(eventfd(0, EventfdFlags::NONBLOCK).unwrap()));
        sleepers.set_wakes(wakes.iter().cloned());
        sleepers.sleep(0, || true, || panic!("it has no reason"));
        sleepers.wake_all();
        let is_written = |wake: &OwnedFd| rustix::io::read(wake, &mut [0; 8]).is_ok();
        assert!(!wakes.iter().any(|wake| is_written(wake)), "nobody sleeps");
        let (asks, is_asked) = channel();
        let thread = {
            let (sleepers, wake) = (sleepers.clone(), wakes[1].clone());
            std::thread::spawn(move || {
                let is_over = || {
                    asks.send(()).unwrap();
                    false
                };
                sleepers.sleep(1, is_over, || {
                    poll(&mut [PollFd::new(&wake, PollFlags::IN)], None).unwrap();
                });
            })
        };
        // From here on it has said that it sleeps.
        is_asked.recv().unwrap();
        sleepers.wake_all();
        thread.join().unwrap();
        assert!(is_written(&wakes[1]) && !is_written(&wakes[0]));
        assert_eq!(sleepers.count.load(Ordering::Relaxed), 0);
    }
}
