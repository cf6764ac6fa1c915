//! What the whole machine did meanwhile, from proc_stat(5).

use std::time::{Duration, Instant};

/// How often the machine's counters are read.
pub(super) const STAT_PACE: Duration = Duration::from_millis(100);

/// The machine's counters at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Stat {
    pub(super) interrupts: u64,
    pub(super) softirqs: u64,
    /// Switches between threads.
    pub(super) switches: u64,
    /// Time in which processors did something.
    pub(super) busy_ns: u64,
    pub(super) steal_ns: u64,
}

impl Stat {
    pub(super) fn now() -> Self {
        Self::parse(&std::fs::read_to_string("/proc/stat").unwrap_or_default())
    }

    fn parse(text: &str) -> Self {
        let first = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            let word = line.and_then(|line| line.split_whitespace().next());
            word.and_then(|word| word.parse().ok()).unwrap_or(0)
        };
        let cpu = text.lines().find_map(|line| line.strip_prefix("cpu "));
        // User, nice, system, idle, waiting for disks, interrupts, soft interrupts, steal, in ticks:
        // USER_HZ is 100 on every Linux of interest.
        let ns = |field: usize| {
            let word = cpu.and_then(|line| line.split_whitespace().nth(field));
            let ticks: u64 = word.and_then(|word| word.parse().ok()).unwrap_or(0);
            ticks.saturating_mul(10_000_000)
        };
        Self {
            interrupts: first("intr "),
            softirqs: first("softirq "),
            switches: first("ctxt "),
            busy_ns: [0, 1, 2, 5, 6]
                .map(ns)
                .iter()
                .fold(0, |sum: u64, ns| sum.saturating_add(*ns)),
            steal_ns: ns(7),
        }
    }

    pub(super) fn since(self, earlier: Self) -> Self {
        Self {
            interrupts: self.interrupts.saturating_sub(earlier.interrupts),
            softirqs: self.softirqs.saturating_sub(earlier.softirqs),
            switches: self.switches.saturating_sub(earlier.switches),
            busy_ns: self.busy_ns.saturating_sub(earlier.busy_ns),
            steal_ns: self.steal_ns.saturating_sub(earlier.steal_ns),
        }
    }
}

/// When the hypervisor took time, and how often the machine switches.
pub(super) struct Steal {
    pub(super) begin: Instant,
    pub(super) looked: Instant,
    pub(super) last: Stat,
    pub(super) seen: Vec<(u64, u64)>,
    /// Switches per second of all processors.
    pub(super) switches: f64,
}

impl Steal {
    pub(super) fn new(begin: Instant, last: Stat) -> Self {
        Self {
            begin,
            looked: begin,
            last,
            seen: Vec::new(),
            switches: 0.0,
        }
    }

    pub(super) fn look(&mut self) {
        if self.looked.elapsed() < STAT_PACE {
            return;
        }
        let passed = self.looked.elapsed().as_secs_f64();
        self.looked = Instant::now();
        let now = Stat::now();
        let meanwhile = now.since(self.last);
        let stolen = meanwhile.steal_ns;
        self.switches = meanwhile.switches as f64 / passed;
        self.last = now;
        if stolen > 0 {
            self.seen
                .push((self.begin.elapsed().as_nanos() as u64, stolen));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_the_machine() {
        let text = "cpu  1 2 3 4 5 6 7 8 0 0\nintr 100 1 2\nctxt 70\nsoftirq 50 3 4\n";
        let stat = Stat::parse(text);
        let expected = Stat {
            interrupts: 100,
            softirqs: 50,
            switches: 70,
            busy_ns: 190_000_000,
            steal_ns: 80_000_000,
        };
        assert_eq!(stat, expected);
        assert_eq!(Stat::parse("rubbish"), Stat::default());
        assert_eq!(stat.since(stat), Stat::default());
    }
}
