//! What others take of the processors while something is measured: other programs, and other
//! machines on the same hardware.

use std::fmt;
use std::fs;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::clock::process_cpu;

/// Ticks of `/proc/stat` per second (`USER_HZ`, which Linux keeps at 100 for programs).
const TICKS: f64 = 100.0;
/// Steal, and work of others in processors, from which on a machine is called busy.
const BUSY_STEAL: f64 = 0.02;
const BUSY_PROCESSORS: f64 = 0.2;

/// What others took of all processors.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Others {
    /// Share of the processors' time that the hypervisor gave to other machines.
    pub steal: f64,
    /// Processors that other programs of this machine kept busy, on average.
    pub processors: f64,
    /// Load average of the last minute, this program included (`/proc/loadavg`).
    pub load: f64,
}

/// The beginning of a measurement.
#[derive(Clone, Copy, Debug)]
pub struct Watch(Option<Moment>);

/// What the kernel has counted so far, in seconds of all processors together.
#[derive(Clone, Copy, Debug)]
struct Moment {
    at: Instant,
    busy: f64,
    idle: f64,
    steal: f64,
    own: f64,
}

impl Watch {
    /// Begins now.
    pub fn start() -> Watch {
        let text = fs::read_to_string("/proc/stat").unwrap_or_default();
        Watch(Moment::parse(&text, process_cpu().as_secs_f64()))
    }

    /// What others took since then; `None` where the kernel does not tell, or after less than a
    /// tenth of a second, in which it counts too little.
    pub fn finish(self) -> Option<Others> {
        let (start, end) = (self.0?, Watch::start().0?);
        let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let load = load.split(' ').next().and_then(|load| load.parse().ok());
        start.until(end, load.unwrap_or(0.0))
    }
}

impl Moment {
    /// From the first line of `/proc/stat` (proc_stat(5)).
    fn parse(stat: &str, own: f64) -> Option<Moment> {
        let line = stat.lines().next()?.strip_prefix("cpu ")?;
        let ticks: Vec<f64> = line
            .split_whitespace()
            .map(|ticks| ticks.parse().ok())
            .collect::<Option<_>>()?;
        let [user, nice, system, idle, iowait, irq, softirq, steal, ..] = ticks[..] else {
            return None;
        };
        Some(Moment {
            at: Instant::now(),
            busy: (user + nice + system + irq + softirq) / TICKS,
            idle: (idle + iowait) / TICKS,
            steal: steal / TICKS,
            own,
        })
    }

    fn until(self, end: Moment, load: f64) -> Option<Others> {
        let busy = end.busy - self.busy;
        let steal = end.steal - self.steal;
        let all = busy + steal + end.idle - self.idle;
        let seconds = end.at.duration_since(self.at).as_secs_f64();
        if seconds < 0.1 || all <= 0.0 {
            return None;
        }
        let others = busy - (end.own - self.own);
        Some(Others {
            steal: (steal / all).max(0.0),
            processors: (others / seconds).max(0.0),
            load,
        })
    }
}

impl Others {
    /// Whether they took enough to be seen in figures.
    pub fn are_busy(&self) -> bool {
        self.steal >= BUSY_STEAL || self.processors >= BUSY_PROCESSORS
    }
}

impl fmt::Display for Others {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "this machine was busy: other programs kept {:.1} processors, steal {:.0} %, load {:.1}",
            self.processors,
            self.steal * 100.0,
            self.load
        )
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_others_took_is_told_apart_from_own_work() {
        let start = "cpu  1000 0 100 9000 0 0 0 50 0 0\ncpu0 1 2 3";
        let end = "cpu  1700 0 200 9100 0 0 0 150 0 0\ncpu0 1 2 3";
        let start = Moment::parse(start, 1.0).unwrap();
        let end = Moment {
            at: start.at + Duration::from_secs(5),
            ..Moment::parse(end, 5.0).unwrap()
        };
        // 8 s of work, 4 of them its own, 1 s stolen, 1 s idle: 5 s of two processors.
        let others = start.until(end, 1.0).unwrap();
        assert!((others.steal - 0.1).abs() < 1e-9, "{others:?}");
        assert!((others.processors - 0.8).abs() < 1e-9, "{others:?}");
        assert!(others.are_busy());
        assert!(start.until(start, 1.0).is_none(), "no time has passed");
    }

    #[test]
    fn what_is_no_stat_tells_nothing() {
        for text in [
            "",
            "cpu",
            "cpu  1 2 3",
            "cpu  a b c d e f g h",
            "intr 1 2 3",
        ] {
            assert!(Moment::parse(text, 0.0).is_none(), "{text}");
        }
    }
}
