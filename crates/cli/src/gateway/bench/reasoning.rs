//! `--profile`: the processes of each VPN and those that send through it are recorded while a test
//! sends, and the gateway is compared with each other VPN by the processor time of all of them.

use cipherlane_measure::units::times;
use cipherlane_measure::watcher::{Unwatched, Watcher};

use super::measure::{Found, Sample, Test};
use super::peers::{Peer, Subject};
use super::report;
use crate::failure::Failure;
use crate::profile::reasons::{Pair, Profiler, Reasons};

/// Bytes of a kilobyte, by which times are told.
const KILOBYTE: f64 = 1000.0;

/// A recording of all tests of all VPNs.
pub(crate) struct Reasoning {
    profiler: Option<Profiler>,
    /// What was recorded; its place here is its number.
    rows: Vec<Row>,
}

/// A VPN in a test.
#[derive(Clone, Debug, PartialEq)]
struct Row {
    of: Subject,
    test: Test,
}

/// Whose turn it is while a test sends.
#[derive(Clone, Copy)]
pub(crate) struct Turn<'t> {
    watcher: &'t dyn Watcher,
}

impl Turn<'_> {
    /// Nobody records.
    pub(crate) const NONE: Turn<'static> = Turn {
        watcher: &Unwatched,
    };

    /// `send` is recorded.
    pub(crate) fn of<R>(self, send: impl FnOnce() -> R) -> R {
        self.watcher.begins(0);
        let result = send();
        self.watcher.ended();
        result
    }
}

impl Reasoning {
    /// Begins before the first program is started.
    pub(crate) fn start(is_wanted: bool) -> Result<Self, Failure> {
        let profiler = is_wanted.then(Profiler::of_started_processes);
        Ok(Self {
            profiler: profiler.transpose()?,
            rows: Vec::new(),
        })
    }

    /// Runs a test of a VPN.
    pub(crate) fn record(
        &mut self,
        peer: &Peer,
        test: Test,
        run: impl FnOnce(Turn<'_>) -> Result<Found, Failure>,
    ) -> Result<Found, Failure> {
        let Some(profiler) = &mut self.profiler else {
            return run(Turn::NONE);
        };
        let row = Row {
            of: Subject::of(peer),
            test,
        };
        let number = match self.rows.iter().position(|known| *known == row) {
            Some(number) => number as u32,
            None => {
                self.rows.push(row);
                profiler.numbers(1)
            }
        };
        let watched = profiler.watch(number);
        let found = run(Turn { watcher: &watched })?;
        profiler.done(number, (found.bytes / KILOBYTE) as u64);
        Ok(found)
    }

    /// The reasons, if they were asked for.
    pub(crate) fn finish(self, samples: &[Sample]) -> Result<Option<Reasons>, Failure> {
        let Self { profiler, rows } = self;
        let Some(mut profiler) = profiler else {
            return Ok(None);
        };
        let is_own = |row: &&Row| row.of.peer == "cipherlane";
        for own in rows.iter().filter(is_own) {
            let others = rows
                .iter()
                .filter(|other| other.test == own.test && !is_own(other));
            for other in others {
                ask(&mut profiler, &rows, samples, own, other);
            }
        }
        profiler.finish().map(Some)
    }
}

/// Asks why one of the two is slower.
fn ask(profiler: &mut Profiler, rows: &[Row], samples: &[Sample], one: &Row, other: &Row) {
    let rates = |of: &Row| -> Vec<f64> {
        let of = samples
            .iter()
            .filter(|sample| (&sample.of, sample.test) == (&of.of, of.test));
        let mut rates: Vec<f64> = of.filter_map(|sample| rate(&sample.found)).collect();
        rates.sort_by(f64::total_cmp);
        rates
    };
    let (of_one, of_other) = (rates(one), rates(other));
    let median = |rates: &[f64]| rates.get(rates.len() / 2).copied();
    let (Some(a), Some(b)) = (median(&of_one), median(&of_other)) else {
        return;
    };
    let (slower, faster, slow, fast) = match a < b {
        true => (one, other, of_one, of_other),
        false => (other, one, of_other, of_one),
    };
    // The rounds differ: the difference is as small as they allow.
    let least = fast[0] / slow[slow.len() - 1];
    let ratio = a.max(b) / a.min(b);
    let named = |row: &Row| {
        let number = rows.iter().position(|known| known == row).unwrap_or(0);
        (row.of.name(), number as u32)
    };
    let (slower, faster) = (named(slower), named(faster));
    let place = report::title(one.test);
    profiler.ask(Pair {
        case: place.clone(),
        comparison: format!(
            "Why {} is {} times slower than {}, by processor time",
            slower.0,
            times(ratio),
            faster.0
        ),
        place,
        each: "KB",
        slower,
        faster,
        times: (least, ratio),
    });
}

/// What a test sends by, if it sends as much as it can.
fn rate(found: &Found) -> Option<f64> {
    (found.bits_per_second > 0.0).then_some(found.bits_per_second)
}
