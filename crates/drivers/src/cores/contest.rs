//! Whether a worker has its core for itself.
//!
//! A worker that shares its core with another thread is worse than none: it is taken off
//! the core for milliseconds with a claimed piece in its hands, and the caller waits for
//! it; and while it looks for work it keeps the other thread, often a caller, from
//! working. The kernel tells by counting involuntary context switches, and by the time for which
//! the worker wanted its core and did not have it. A worker that sees much of both rests, twice
//! as long each time. Either alone is no sign of another thread that wants the core: housekeeping
//! threads of the kernel switch for microseconds, and a hypervisor takes the core away without a
//! switch.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Rounds of a worker between two looks.
const ROUNDS: u32 = 64;
/// The time over which switches are counted, at least.
const WINDOW: Duration = Duration::from_millis(4);
/// As many switches in a window are no accident...
const MANY: i64 = 2;
/// ...where this part of the time that the worker was awake went to others.
const LOST_PART: u32 = 8;
const FIRST_REST: Duration = Duration::from_millis(20);
const LONGEST_REST: Duration = Duration::from_secs(2);
/// After this time without contention the next rest is a short one again.
const FORGOTTEN: Duration = Duration::from_millis(500);

/// What one worker knows of its core.
pub(super) struct Contest {
    rounds: u32,
    switches: i64,
    since: Instant,
    /// Processor time of the worker by then.
    used: Duration,
    /// Time that it slept since then.
    slept: Duration,
    rest: Duration,
    last_rest: Instant,
}

impl Contest {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        Contest {
            rounds: 0,
            switches: involuntary_switches(),
            since: now,
            used: processor_time(),
            slept: Duration::ZERO,
            rest: FIRST_REST,
            last_rest: now,
        }
    }

    /// Called once per round of work or of looking for it: how long to rest, if the core
    /// turned out to be shared.
    #[inline]
    pub(super) fn look(&mut self) -> Option<Duration> {
        self.rounds += 1;
        match self.rounds.is_multiple_of(ROUNDS) {
            true => self.judge(Instant::now(), || {
                (involuntary_switches(), processor_time())
            }),
            false => None,
        }
    }

    /// The worker slept of its own will.
    pub(super) fn slept(&mut self, time: Duration) {
        self.slept += time;
    }

    fn judge(&mut self, now: Instant, look: impl FnOnce() -> (i64, Duration)) -> Option<Duration> {
        let awake = (now - self.since).saturating_sub(self.slept);
        if awake < WINDOW {
            return None;
        }
        let (switches, used) = look();
        let seen = switches - std::mem::replace(&mut self.switches, switches);
        let worked = used.saturating_sub(std::mem::replace(&mut self.used, used));
        (self.since, self.slept) = (now, Duration::ZERO);
        let lost = awake.saturating_sub(worked);
        if seen < MANY || lost * LOST_PART < awake {
            return None;
        }
        if now - self.last_rest > self.rest + FORGOTTEN {
            self.rest = FIRST_REST;
        }
        let rest = self.rest;
        self.rest = (rest * 2).min(LONGEST_REST);
        self.last_rest = now;
        // What passes while it rests counts neither way.
        self.slept += rest;
        Some(rest)
    }
}

/// Processor time of this thread.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Of this thread since it began.
fn involuntary_switches() -> i64 {
    // SAFETY: plain data, which the call fills.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &mut usage);
        usage.ru_nivcsw
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A worker whose time passes as a test wants it.
    struct Worker {
        contest: Contest,
        now: Instant,
        switches: i64,
        used: Duration,
    }

    impl Worker {
        fn new() -> Worker {
            let contest = Contest::new();
            Worker {
                now: contest.since,
                switches: contest.switches,
                used: contest.used,
                contest,
            }
        }

        /// The worker was awake for `awake` milliseconds, of which others had `others`, and was
        /// switched away `switches` times.
        fn step(&mut self, awake: u64, others: u64, switches: i64) -> Option<Duration> {
            self.now += Duration::from_millis(awake);
            self.used += Duration::from_millis(awake - others);
            self.switches += switches;
            let (switches, used) = (self.switches, self.used);
            let rest = self.contest.judge(self.now, || (switches, used));
            self.now += rest.unwrap_or_default();
            rest
        }
    }

    #[test]
    fn rests_grow_while_the_core_is_shared_and_shrink_when_it_is_not() {
        let mut worker = Worker::new();
        assert_eq!(worker.step(1, 1, 9), None, "too early to tell");
        assert_eq!(worker.step(4, 2, 0), Some(FIRST_REST));
        assert_eq!(worker.step(30, 15, 1), None);
        assert_eq!(worker.step(30, 15, 2), Some(2 * FIRST_REST));
        assert_eq!(worker.step(50, 25, 3), Some(4 * FIRST_REST));
        for _ in 0..9 {
            worker.step(30, 15, 5);
        }
        assert_eq!(worker.step(30, 15, 5), Some(LONGEST_REST));
        assert_eq!(worker.step(60_000, 1, 1), None);
        assert_eq!(worker.step(30, 15, 2), Some(FIRST_REST));
    }

    #[test]
    fn neither_housekeeping_nor_a_hypervisor_makes_it_rest() {
        let mut worker = Worker::new();
        for _ in 0..100 {
            assert_eq!(worker.step(10, 0, 40), None, "short switches");
            assert_eq!(worker.step(10, 8, 1), None, "stolen time");
        }
    }

    #[test]
    fn sleep_of_its_own_will_is_not_lost() {
        let mut worker = Worker::new();
        worker.contest.slept(Duration::from_millis(20));
        assert_eq!(worker.step(20 + 5, 20, 9), None);
        assert_eq!(worker.step(20, 10, 9), Some(FIRST_REST));
    }
}
