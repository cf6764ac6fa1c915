//! What the target has used, by the clocks of its processes and proc_pid_stat(5).
//!
//! The kernel's counters for this would be events of the target's threads. As long as a thread has an
//! event, even one that is switched off, each of its switches takes longer: two processes that hand
//! each other a byte took 4.3 microseconds per round without, and 26 % more with three counters of one
//! of them (Zen 5).
//!
//! Of a process that has ended, what is known is in the figures of the one that has waited for it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::share::processor_clock;
use super::target::field;

/// The time since the last look is at least this many times what that took; before, what is known already
/// is told.
const LOOKS_APART: u32 = 200;

/// What processes have used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Used {
    pub(super) processor_ns: u64,
    pub(super) faults: u64,
}

/// What a process tells of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Told {
    parent: u32,
    own: Used,
    /// What those had used that it has waited for.
    waited: Used,
}

/// The target's processes.
#[derive(Debug)]
pub(super) struct Usage {
    /// What each had told at the begin, zeros for those that began later, and what it tells now.
    each: BTreeMap<u32, (Told, Told)>,
    /// What was used by those that have ended and that nobody of the target has waited for.
    gone: Used,
    /// Whether those count that the target starts.
    children: bool,
    looked: Instant,
    took: Duration,
}

impl Usage {
    /// From now on.
    pub(super) fn begin(processes: impl Iterator<Item = u32>, children: bool) -> Self {
        let told = processes.filter_map(|pid| Some((pid, tell(pid)?)));
        Self {
            each: told.map(|(pid, told)| (pid, (told, told))).collect(),
            gone: Used::default(),
            children,
            looked: Instant::now(),
            took: Duration::ZERO,
        }
    }

    /// What these processes, those before them, and their children have used so far, unless it was told
    /// just before.
    pub(super) fn look(&mut self, processes: impl Iterator<Item = u32>) -> Used {
        if self.looked.elapsed() >= self.took * LOOKS_APART {
            self.look_at_all(processes);
        }
        self.sum()
    }

    /// The same, however long it takes.
    pub(super) fn look_at_all(&mut self, processes: impl Iterator<Item = u32>) -> Used {
        let begin = Instant::now();
        for pid in processes {
            self.each.entry(pid).or_default();
        }
        let mut ended = Vec::new();
        for (&pid, (_, last)) in &mut self.each {
            match tell(pid) {
                Some(told) => *last = told,
                None => ended.push(pid),
            }
        }
        self.forget(&ended);
        (self.looked, self.took) = (Instant::now(), begin.elapsed());
        self.sum()
    }

    /// Processes that are no more. The parent has waited for one, where it is there; what the first ones
    /// had used was never a child's.
    fn forget(&mut self, ended: &[u32]) {
        let is_waited_for = |pid: u32| {
            let mut parent = self.each.get(&pid).map(|(_, last)| last.parent);
            while let Some(of) = parent.filter(|of| ended.contains(of)) {
                parent = self.each.get(&of).map(|(_, last)| last.parent);
            }
            self.children && parent.is_some_and(|of| self.each.contains_key(&of))
        };
        let lost: Vec<u32> = ended
            .iter()
            .copied()
            .filter(|pid| !is_waited_for(*pid))
            .collect();
        for pid in lost {
            let used = self.each.get(&pid).map(|of| self.since(of));
            self.gone = sum([self.gone, used.unwrap_or_default()]);
        }
        self.each.retain(|pid, _| !ended.contains(pid));
    }

    fn since(&self, (first, last): &(Told, Told)) -> Used {
        match self.children {
            true => sum([since(first.own, last.own), since(first.waited, last.waited)]),
            false => since(first.own, last.own),
        }
    }

    fn sum(&self) -> Used {
        let living = self.each.values().map(|of| self.since(of));
        sum(living.chain([self.gone]))
    }
}

fn sum(all: impl IntoIterator<Item = Used>) -> Used {
    all.into_iter().fold(Used::default(), |sum, of| Used {
        processor_ns: sum.processor_ns.saturating_add(of.processor_ns),
        faults: sum.faults.saturating_add(of.faults),
    })
}

fn since(first: Used, last: Used) -> Used {
    Used {
        processor_ns: last.processor_ns.saturating_sub(first.processor_ns),
        faults: last.faults.saturating_sub(first.faults),
    }
}

/// What a process has used until now, with its threads that have ended; `None` once it has been waited for.
fn tell(pid: u32) -> Option<Told> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut told = parse(&stat)?;
    told.own.processor_ns = processor_clock(pid).ok()?;
    Some(told)
}

/// What proc_pid_stat(5) says; its processor time, in ticks, is left out.
fn parse(stat: &str) -> Option<Told> {
    /// Nanoseconds of a tick: USER_HZ is 100 on every Linux of interest.
    const TICK: u64 = 10_000_000;
    let field = |number| field(stat, number);
    Some(Told {
        parent: field(4)? as u32,
        own: Used {
            processor_ns: 0,
            faults: field(10)?.saturating_add(field(12)?),
        },
        waited: Used {
            processor_ns: field(16)?.saturating_add(field(17)?).saturating_mul(TICK),
            faults: field(11)?.saturating_add(field(13)?),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(processor_ns: u64) -> Used {
        Used {
            processor_ns,
            faults: 0,
        }
    }

    fn told(parent: u32, own: u64, waited: u64) -> Told {
        Told {
            parent,
            own: used(own),
            waited: used(waited),
        }
    }

    fn usage(children: bool) -> Usage {
        let mut usage = Usage::begin(std::iter::empty(), children);
        usage.each = BTreeMap::from([
            (1, (told(0, 100, 1000), told(0, 150, 1000))),
            (2, (Told::default(), told(1, 20, 0))),
            (3, (Told::default(), told(2, 3, 0))),
        ]);
        usage
    }

    #[test]
    fn who_has_ended_is_counted_once() {
        let mut all = usage(true);
        assert_eq!(all.sum(), used(73));
        // The second has waited for the third, and the first for the second.
        all.each.get_mut(&2).unwrap().1.waited = used(3);
        all.forget(&[3]);
        assert_eq!(all.sum(), used(73));
        all.each.get_mut(&1).unwrap().1.waited = used(1023);
        all.forget(&[2]);
        assert_eq!(all.sum(), used(73));
        all.forget(&[1]);
        assert_eq!((all.sum(), all.each.len()), (used(73), 0));
        // Both at once: the first has the figures of the third by the second.
        let mut all = usage(true);
        all.each.get_mut(&1).unwrap().1.waited = used(1023);
        all.forget(&[2, 3]);
        assert_eq!(all.sum(), used(73));
        // Nobody has waited for one whose parent has ended before.
        let mut all = usage(true);
        all.each.get_mut(&3).unwrap().1.parent = 9;
        all.forget(&[3]);
        assert_eq!(all.sum(), used(73));
        let mut own = usage(false);
        own.each.retain(|pid, _| *pid == 1);
        own.each.get_mut(&1).unwrap().1.waited = used(5000);
        assert_eq!(own.sum(), used(50));
        own.forget(&[1]);
        assert_eq!(own.sum(), used(50));
    }

    #[test]
    fn a_process_tells_of_itself() {
        let stat = "7 (a) b) R 5 7 7 0 -1 4194560 11 13 17 19 1 2 3 4 20 0 1 0";
        let expected = Told {
            parent: 5,
            own: Used {
                processor_ns: 0,
                faults: 28,
            },
            waited: Used {
                processor_ns: 70_000_000,
                faults: 32,
            },
        };
        assert_eq!(parse(stat), Some(expected));
        for rubbish in ["", "7 (a", "7 (a) R", "7 (a) R x"] {
            assert_eq!(parse(rubbish), None);
        }
        let own = std::process::id();
        let mut usage = Usage::begin([own, u32::MAX >> 1].into_iter(), false);
        std::hint::black_box((0..3_000_000u64).fold(1, |a, b| std::hint::black_box(a ^ b)));
        let first = usage.look_at_all(std::iter::empty());
        assert!(first.processor_ns > 100_000, "{first:?}");
        // Children count once they were waited for.
        let mut usage = Usage::begin([own].into_iter(), true);
        let words = ["-c", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"];
        let child = std::process::Command::new("/bin/sh").args(words).spawn();
        let mut child = child.unwrap();
        assert!(child.wait().unwrap().success());
        let both = usage.look_at_all(std::iter::empty());
        assert!(
            both.processor_ns >= 10_000_000 && both.faults > 50,
            "{both:?}"
        );
    }
}
