//! Callers that wait, beside workers that may sleep, rest or lose their cores: `auto` reaches
//! 97 % of the better of software and `cores`, also for callers that pause between calls.

use std::fmt;
use std::time::Duration;

use cipherlane_core::Goal;

use crate::callers::Way;
use crate::cells::{Bench, Cell};
use crate::model::{Price, ns};
use crate::summary::REACH;
use crate::workers::{Nature, Workers};

/// A processor of 2024: AES-CTR at 40 GB/s.
const FAST: Price = Price {
    call: 10.0,
    request: 15.0,
    byte: 0.025,
};
/// One algorithm of it that no vectors help.
const SLOW: Price = Price {
    call: 10.0,
    request: 15.0,
    byte: 1.0,
};

const NATURE: Nature = Nature {
    name: "fast software",
    software: FAST,
    wake: 55e3,
    call: 4e3,
    share: 300.0,
    other: None,
    rest: 0.0,
};

/// Each kind of worker.
pub(crate) const NATURES: [Nature; 4] = [
    NATURE,
    Nature {
        name: "slow software",
        software: SLOW,
        ..NATURE
    },
    Nature {
        name: "quick wake-up",
        wake: 6e3,
        call: 1e3,
        ..NATURE
    },
    Nature {
        name: "a core that does other work too",
        other: Some((60e6, 4e6)),
        rest: 20e6,
        ..NATURE
    },
];

/// Bytes, microseconds of pause, callers.
pub(crate) type Places = (&'static [usize], &'static [u64], &'static [usize]);

/// What came of one place, in nanoseconds per call without the pause.
pub(crate) struct Outcome {
    name: &'static str,
    size: usize,
    pause: u64,
    callers: usize,
    software: f64,
    cores: f64,
    auto: f64,
    /// Processor time of callers and worker per call: with `cores`, with `auto`.
    processor: [f64; 2],
}

impl Outcome {
    /// Share of the better one's pace that `auto` reached.
    pub(crate) fn reached(&self) -> f64 {
        self.software.min(self.cores) / self.auto
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}, {} B, pause {} us, {} callers: ns per call software {:.0}, cores {:.0}, \
             auto {:.0}: {:.3}; processor time per call cores {:.0}, auto {:.0}",
            self.name,
            self.size,
            self.pause,
            self.callers,
            self.software,
            self.cores,
            self.auto,
            self.reached(),
            self.processor[0],
            self.processor[1],
        )
    }
}

fn measure(bench: &Bench<Workers>, (size, pause, callers): (usize, u64, usize)) -> Outcome {
    let nature = &bench.device.nature;
    let software = nature.software.of(1, size);
    let between = Duration::from_micros(pause);
    let cell = Cell {
        device: nature.name,
        size,
        way: Way::Pause { pause: between },
        sessions: callers,
        goal: Goal::Latency,
    };
    // Learning is by work done: callers that pause need more time for as much of it.
    let calls = (60e6 / software).clamp(400.0, 4000.0);
    let learning = Duration::from_millis(60).max((ns(software) + between).mul_f64(calls));
    // Neither learning nor measuring may depend on where other work happens to fall.
    let periods = nature.other.map_or(0.0, |(every, _)| 100.0 * every);
    let learning = learning.max(ns(periods)) * callers as u32;
    let run = |driver: Option<&str>| {
        let mut callers = bench.callers(driver, &cell);
        callers.run_until(learning, |_| {});
        let (before, used) = (callers.mark(), bench.device.used());
        callers.run_until(2 * learning, |_| {});
        let mark = callers.mark().since(before);
        let used = bench.device.used() - used;
        callers.finish();
        let pace = mark.pace() - between.as_nanos() as f64;
        (pace, (mark.worked + used) / mark.done)
    };
    let (cores, auto) = (run(Some("cores")), run(None));
    Outcome {
        name: nature.name,
        size,
        pause,
        callers,
        software,
        cores: cores.0,
        auto: auto.0,
        processor: [cores.1, auto.1],
    }
}

/// Every place with one kind of worker.
pub(crate) fn all(nature: Nature, (sizes, pauses, callers): Places) -> Vec<Outcome> {
    let bench = Bench::workers(nature);
    // Callers take turns in virtual time: one that is ahead would tell the others too early that
    // the worker has lost its core.
    let callers = match nature.other {
        Some(_) => &callers[..1],
        None => callers,
    };
    let mut outcomes = Vec::new();
    for &callers in callers {
        for &size in sizes {
            for &pause in pauses {
                outcomes.push(measure(&bench, (size, pause, callers)));
            }
        }
    }
    outcomes
}

/// One line on many outcomes, and the worst.
pub(crate) fn summary(outcomes: &[Outcome]) -> String {
    let worst = outcomes
        .iter()
        .min_by(|a, b| a.reached().total_cmp(&b.reached()))
        .expect("an outcome");
    let below = outcomes.iter().filter(|o| o.reached() < REACH).count();
    format!(
        "{:5} cells beside cores: below {REACH} of the better one: {below}; worst: {worst}",
        outcomes.len()
    )
}
