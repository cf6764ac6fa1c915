//! Whether others had the processor in the middle of a thread's work, and for how long.
//!
//! A count of context switches says too much: a kernel thread that wakes every few milliseconds
//! takes some microseconds, which no figure shows. The kernel also counts how long a thread was
//! ready to run and did not (proc_pid_schedstat(5)), so the time lost is known.

use std::time::Duration;

use crate::counters::{Scope, Snapshot};

/// Share of the elapsed time that a thread may lose to others before its figure suffers: half of
/// what a verdict within 2 % can bear.
const TOLERATED: f64 = 0.01;

/// What the calling thread has lost to others up to one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lost {
    snapshot: Snapshot,
    /// Ready to run, on a processor's queue. `None` where the kernel does not count it.
    waited: Option<Duration>,
}

impl Lost {
    /// Two system calls and the reading of a file: about 3 us.
    pub(crate) fn now() -> Self {
        Self {
            snapshot: Snapshot::now(Scope::Thread),
            waited: std::fs::read_to_string("/proc/thread-self/schedstat")
                .ok()
                .and_then(|text| parse(&text)),
        }
    }

    /// What the thread lost between `earlier` and this moment. A thread that gave its processor
    /// away by itself, as one that sleeps does, lost nothing to others.
    pub(crate) fn since(&self, earlier: &Self) -> Duration {
        let usage = self.snapshot.since(&earlier.snapshot);
        if usage.involuntary_switches == 0 {
            return Duration::ZERO;
        }
        match (self.waited, earlier.waited) {
            (Some(now), Some(before)) => now.saturating_sub(before),
            // Nothing is known but that it happened.
            _ => usage.wall,
        }
    }
}

/// Whether a figure of `elapsed` says little, `lost` of it having been others'.
pub(crate) fn matters(lost: Duration, elapsed: Duration) -> bool {
    lost.as_secs_f64() > TOLERATED * elapsed.as_secs_f64()
}

/// Nanoseconds on a processor, nanoseconds in a queue for one, and turns.
fn parse(schedstat: &str) -> Option<Duration> {
    let waited = schedstat.split_whitespace().nth(1)?;
    Some(Duration::from_nanos(waited.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_figure_is_the_time_in_a_queue() {
        assert_eq!(
            parse("1215871 80901 12\n"),
            Some(Duration::from_nanos(80_901))
        );
        assert_eq!(parse(""), None);
        assert_eq!(parse("1 many 2"), None);
    }

    #[test]
    fn microseconds_of_a_block_do_not_matter_and_milliseconds_do() {
        let block = Duration::from_millis(10);
        assert!(!matters(Duration::ZERO, block));
        assert!(!matters(Duration::from_micros(20), block));
        assert!(matters(Duration::from_millis(1), block));
        assert!(matters(Duration::from_nanos(1), Duration::ZERO));
    }

    #[test]
    fn a_sleep_is_no_loss() {
        let lost = |work: &dyn Fn()| {
            let before = Lost::now();
            work();
            Lost::now().since(&before)
        };
        // Where others interrupt it in spite of its brevity, the next one may be quiet.
        let quiet = (0..50)
            .any(|_| lost(&|| std::thread::sleep(Duration::from_micros(100))) == Duration::ZERO);
        assert!(quiet);
    }

    #[test]
    #[allow(unsafe_code)]
    fn two_threads_on_one_processor_take_it_from_each_other() {
        let spin = || {
            let before = Lost::now();
            let start = std::time::Instant::now();
            while start.elapsed() < Duration::from_millis(200) {}
            Lost::now().since(&before)
        };
        let pinned = std::thread::spawn(move || {
            // SAFETY: a cpu_set_t is plain bits, and the calls get its own size.
            unsafe {
                let mut set: libc::cpu_set_t = std::mem::zeroed();
                let size = std::mem::size_of_val(&set);
                assert_eq!(libc::sched_getaffinity(0, size, &raw mut set), 0);
                let one = (0..1024).find(|&cpu| libc::CPU_ISSET(cpu, &set)).unwrap();
                libc::CPU_ZERO(&mut set);
                libc::CPU_SET(one, &mut set);
                assert_eq!(libc::sched_setaffinity(0, size, &raw const set), 0);
            }
            // Threads inherit the processor they may run on.
            let other = std::thread::spawn(spin);
            (spin(), other.join().unwrap())
        });
        let (first, second) = pinned.join().unwrap();
        assert!(first + second > Duration::ZERO, "{first:?} {second:?}");
    }
}
