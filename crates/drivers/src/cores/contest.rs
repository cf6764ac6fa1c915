//! Whether a worker has its core for itself.
//!
//! A worker that shares its core with another thread is worse than none: it is taken off
//! the core for milliseconds with a claimed piece in its hands, and the caller waits for
//! it; and while it looks for work it keeps the other thread, often a caller, from
//! working. The kernel tells by counting involuntary context switches. A worker that
//! sees some rests, twice as long each time.

use std::time::{Duration, Instant};

/// Rounds of a worker between two looks.
const ROUNDS: u32 = 64;
/// The time over which switches are counted, at least.
const WINDOW: Duration = Duration::from_millis(4);
/// So many in a window are no accident.
const MANY: i64 = 2;
const FIRST_REST: Duration = Duration::from_millis(20);
const LONGEST_REST: Duration = Duration::from_secs(2);
/// After so long without trouble the next rest is a short one again.
const FORGOTTEN: Duration = Duration::from_millis(500);

/// What one worker knows of its core.
pub(super) struct Contest {
    rounds: u32,
    switches: i64,
    since: Instant,
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
            rest: FIRST_REST,
            last_rest: now,
        }
    }

    /// Called once a round of work or of looking for it: how long to rest, if the core
    /// turned out to be shared.
    #[inline]
    pub(super) fn look(&mut self) -> Option<Duration> {
        self.rounds += 1;
        match self.rounds.is_multiple_of(ROUNDS) {
            true => self.judge(Instant::now(), involuntary_switches),
            false => None,
        }
    }

    fn judge(&mut self, now: Instant, switches: impl FnOnce() -> i64) -> Option<Duration> {
        if now - self.since < WINDOW {
            return None;
        }
        let switches = switches();
        let seen = switches - std::mem::replace(&mut self.switches, switches);
        self.since = now;
        if seen < MANY {
            return None;
        }
        if now - self.last_rest > self.rest + FORGOTTEN {
            self.rest = FIRST_REST;
        }
        let rest = self.rest;
        self.rest = (rest * 2).min(LONGEST_REST);
        self.last_rest = now;
        Some(rest)
    }
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

    #[test]
    fn rests_grow_while_the_core_is_shared_and_shrink_when_it_is_not() {
        let mut contest = Contest::new();
        let (mut now, mut switches) = (contest.since, contest.switches);
        let mut step = |contest: &mut Contest, time: Duration, more: i64| {
            (now, switches) = (now + time, switches + more);
            contest.judge(now, || switches)
        };
        let ms = Duration::from_millis;
        assert_eq!(step(&mut contest, ms(1), 9), None, "too early to tell");
        assert_eq!(step(&mut contest, ms(4), 0), Some(FIRST_REST));
        assert_eq!(step(&mut contest, ms(30), 1), None);
        assert_eq!(step(&mut contest, ms(30), 2), Some(2 * FIRST_REST));
        assert_eq!(step(&mut contest, ms(50), 3), Some(4 * FIRST_REST));
        for _ in 0..9 {
            step(&mut contest, ms(30), 5);
        }
        assert_eq!(step(&mut contest, ms(30), 5), Some(LONGEST_REST));
        assert_eq!(step(&mut contest, ms(60_000), 1), None);
        assert_eq!(step(&mut contest, ms(30), 2), Some(FIRST_REST));
    }
}
