//! What work has cost besides time: processor time by user and system, context
//! switches and page faults, of a thread or of the whole process, and the time
//! that the hypervisor took away.
//!
//! The process-wide figures hold the helper threads of an offload too, so their
//! sum is complete. The kernel keeps the sum of user and system time exactly,
//! but splits it by what its timer tick finds running: the split of a few
//! milliseconds says little, that of a second is good to a per cent or so.

use std::ops::{Add, AddAssign};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// Whose counters are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The calling thread (`RUSAGE_THREAD`).
    Thread,
    /// All threads of the process, those that have ended included (`RUSAGE_SELF`).
    Process,
}

/// The counters at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Snapshot {
    at: Instant,
    totals: Usage,
}

/// The difference of two snapshots, or a sum of such differences.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Usage {
    /// Time on the wall clock.
    pub wall: Duration,
    /// Processor time in user mode.
    pub user: Duration,
    /// Processor time in the kernel.
    pub system: Duration,
    /// Context switches because a thread had to wait.
    pub voluntary_switches: u64,
    /// Context switches because a thread was made to yield its processor.
    pub involuntary_switches: u64,
    /// Page faults, with or without input from a disk.
    pub page_faults: u64,
}

/// [`Usage`] divided by a number of operations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PerOperation {
    /// Seconds on the wall clock.
    pub wall_seconds: f64,
    /// Seconds of processor time in user mode.
    pub user_seconds: f64,
    /// Seconds of processor time in the kernel.
    pub system_seconds: f64,
    /// Voluntary context switches.
    pub voluntary_switches: f64,
    /// Involuntary context switches.
    pub involuntary_switches: f64,
    /// Page faults.
    pub page_faults: f64,
}

impl Snapshot {
    /// Reads the counters; one system call, about half a microsecond.
    pub fn now(scope: Scope) -> Self {
        let who = match scope {
            Scope::Thread => libc::RUSAGE_THREAD,
            Scope::Process => libc::RUSAGE_SELF,
        };
        // SAFETY: rusage is plain integers, for which all-zero is a value.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: `usage` is a valid, writable rusage that outlives the call.
        let status = unsafe { libc::getrusage(who, &raw mut usage) };
        // It fails only for an unknown `who` or a bad pointer.
        assert_eq!(status, 0, "getrusage refused a scope that Linux has");
        Self {
            at: Instant::now(),
            totals: Usage {
                wall: Duration::ZERO,
                user: duration(usage.ru_utime),
                system: duration(usage.ru_stime),
                voluntary_switches: count(usage.ru_nvcsw),
                involuntary_switches: count(usage.ru_nivcsw),
                page_faults: count(usage.ru_minflt) + count(usage.ru_majflt),
            },
        }
    }

    /// What was used between `earlier` and this snapshot of the same scope.
    pub fn since(&self, earlier: &Self) -> Usage {
        Usage {
            wall: self.at.saturating_duration_since(earlier.at),
            ..self.totals.without(earlier.totals)
        }
    }
}

fn duration(time: libc::timeval) -> Duration {
    Duration::from_secs(time.tv_sec.try_into().unwrap_or(0))
        + Duration::from_micros(time.tv_usec.try_into().unwrap_or(0))
}

fn count(value: libc::c_long) -> u64 {
    value.try_into().unwrap_or(0)
}

impl Usage {
    /// Processor time, user and system together.
    pub fn cpu(&self) -> Duration {
        self.user + self.system
    }

    /// Without what `part` used at the same time; never below zero.
    pub fn without(&self, part: Self) -> Self {
        Self {
            wall: self.wall,
            user: self.user.saturating_sub(part.user),
            system: self.system.saturating_sub(part.system),
            voluntary_switches: self
                .voluntary_switches
                .saturating_sub(part.voluntary_switches),
            involuntary_switches: self
                .involuntary_switches
                .saturating_sub(part.involuntary_switches),
            page_faults: self.page_faults.saturating_sub(part.page_faults),
        }
    }

    /// Processors kept busy on average: 1.0 is one whole core; 0 if no time passed.
    pub fn load(&self) -> f64 {
        let wall = self.wall.as_secs_f64();
        if wall > 0.0 {
            self.cpu().as_secs_f64() / wall
        } else {
            0.0
        }
    }

    /// The share of one of `operations`; all zero for no operations.
    pub fn per_operation(&self, operations: u64) -> PerOperation {
        let share = |total: f64| {
            if operations == 0 {
                0.0
            } else {
                total / operations as f64
            }
        };
        PerOperation {
            wall_seconds: share(self.wall.as_secs_f64()),
            user_seconds: share(self.user.as_secs_f64()),
            system_seconds: share(self.system.as_secs_f64()),
            voluntary_switches: share(self.voluntary_switches as f64),
            involuntary_switches: share(self.involuntary_switches as f64),
            page_faults: share(self.page_faults as f64),
        }
    }
}

impl Add for Usage {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            wall: self.wall + other.wall,
            user: self.user + other.user,
            system: self.system + other.system,
            voluntary_switches: self.voluntary_switches + other.voluntary_switches,
            involuntary_switches: self.involuntary_switches + other.involuntary_switches,
            page_faults: self.page_faults + other.page_faults,
        }
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

/// Time that the hypervisor gave to others while this machine had work, summed
/// over its processors since boot, in steps of 10 ms. `None` where
/// `/proc/stat` cannot be read; always zero on a machine that does not count it.
pub fn steal() -> Option<Duration> {
    parse_steal(&std::fs::read_to_string("/proc/stat").ok()?)
}

/// Steal is the eighth figure of the line `cpu`, in hundredths of a second
/// (proc_stat(5): USER_HZ is 100 on every Linux of interest).
fn parse_steal(stat: &str) -> Option<Duration> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let hundredths: u64 = line.split_whitespace().nth(7)?.parse().ok()?;
    Some(Duration::from_millis(hundredths.checked_mul(10)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeping_is_a_voluntary_switch() {
        let start = Snapshot::now(Scope::Thread);
        for _ in 0..3 {
            std::thread::sleep(Duration::from_millis(10));
        }
        let used = Snapshot::now(Scope::Thread).since(&start);
        assert!(used.voluntary_switches >= 3, "{used:?}");
        assert!(used.wall >= Duration::from_millis(30), "{used:?}");
    }

    #[test]
    fn the_process_pays_for_its_helper_threads() {
        let (process, thread) = (Snapshot::now(Scope::Process), Snapshot::now(Scope::Thread));
        std::thread::spawn(|| {
            let start = crate::clock::thread_cpu();
            while crate::clock::thread_cpu() - start < Duration::from_millis(50) {}
        })
        .join()
        .unwrap();
        let process = Snapshot::now(Scope::Process).since(&process);
        let thread = Snapshot::now(Scope::Thread).since(&thread);
        assert!(process.cpu() >= Duration::from_millis(50), "{process:?}");
        assert!(thread.cpu() + Duration::from_millis(30) < process.cpu());
    }

    #[test]
    fn touching_fresh_memory_is_counted_as_page_faults() {
        let start = Snapshot::now(Scope::Thread);
        // Large enough for its own mapping, small pages or huge ones.
        let memory = std::hint::black_box(vec![1u8; 64 << 20]);
        let used = Snapshot::now(Scope::Thread).since(&start);
        assert!(used.page_faults >= 8, "{used:?} for {} bytes", memory.len());
    }

    #[test]
    fn shares_and_sums() {
        let one = Usage {
            wall: Duration::from_secs(2),
            user: Duration::from_secs(1),
            system: Duration::from_secs(2),
            voluntary_switches: 10,
            involuntary_switches: 5,
            page_faults: 1,
        };
        let mut both = one;
        both += one;
        let share = both.per_operation(20);
        assert_eq!(share.user_seconds, 0.1);
        assert_eq!(share.voluntary_switches, 1.0);
        assert_eq!(share.page_faults, 0.1);
        assert_eq!(both.load(), 1.5);
        assert_eq!(
            both.without(one),
            Usage {
                wall: both.wall,
                ..one
            }
        );
        assert_eq!(one.without(both).cpu(), Duration::ZERO);
        assert_eq!(both.per_operation(0).wall_seconds, 0.0);
        assert_eq!(Usage::default().load(), 0.0);
    }

    #[test]
    fn steal_is_the_eighth_figure() {
        let stat = "cpu  10 20 30 40 50 60 70 123 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n";
        assert_eq!(parse_steal(stat), Some(Duration::from_millis(1230)));
        for broken in [
            "",
            "cpu  1 2 3\n",
            "cpu  1 2 3 4 5 6 7 x\n",
            "cpu0 1 2 3 4 5 6 7 8",
        ] {
            assert_eq!(parse_steal(broken), None, "{broken:?}");
        }
    }
}
