//! `--profile`: drivers are recorded while they take turns, all by the same process and so with the
//! same instruction sets, and each is compared with the fastest one of its cell.

use cipherlane_measure::interleave::{Plan, Progress, measure, measure_watched};
use cipherlane_measure::run::Measurement;
use cipherlane_measure::subject::Candidate;
use cipherlane_measure::units::{size, times};

use super::work::Cell;
use crate::failure::Failure;
use crate::profile::reasons::{Pair, Profiler, Reasons};

/// Measures with a profiler, or without.
#[derive(Debug)]
pub(super) struct Reasoning {
    profiler: Option<Profiler>,
    /// The drivers of the cell that was measured last, with their numbers.
    drivers: Vec<(String, u32)>,
}

impl Reasoning {
    pub(super) fn start(is_wanted: bool) -> Result<Self, Failure> {
        Ok(Self {
            profiler: is_wanted.then(Profiler::of_this_process).transpose()?,
            drivers: Vec::new(),
        })
    }

    /// Measures a cell.
    pub(super) fn measure(
        &mut self,
        plan: &Plan,
        cell: &Cell,
        candidates: &[Candidate<'_>],
        progress: impl FnMut(Progress),
    ) -> Result<Measurement, Failure> {
        let failed = |error: cipherlane_measure::Error| Failure::Runtime(error.to_string());
        let Some(profiler) = &mut self.profiler else {
            return measure(plan, candidates, progress).map_err(failed);
        };
        let first = profiler.numbers(candidates.len());
        let watched = profiler.watch(first);
        let measured = measure_watched(plan, candidates, &watched, progress).map_err(failed)?;
        self.drivers.clear();
        for (run, number) in measured.runs.iter().zip(first..) {
            profiler.done(number, run.operations() * cell.work.batch as u64);
            self.drivers.push((run.name.clone(), number));
        }
        Ok(measured)
    }

    /// Asks why drivers are slower than the fastest one that the cell has figures of.
    pub(super) fn ask(&mut self, cell: &Cell, measured: &Measurement) {
        let Some(profiler) = &mut self.profiler else {
            return;
        };
        let rates = measured.runs.iter().filter_map(|run| {
            let number = self.drivers.iter().find(|(name, _)| *name == run.name)?;
            Some((number, run.rate()?.median))
        });
        let rates: Vec<_> = rates.collect();
        let Some((fastest, _)) = rates.iter().max_by(|a, b| a.1.total_cmp(&b.1)) else {
            return;
        };
        for (driver, _) in rates.iter().filter(|(driver, _)| driver != fastest) {
            let Some(ratio) = measured.ratio(&fastest.0, &driver.0) else {
                continue;
            };
            profiler.ask(Pair {
                case: cell.case().title(),
                comparison: format!(
                    "Why {} is {} times slower than {} at {}",
                    driver.0,
                    times(ratio.median),
                    fastest.0,
                    size(cell.size as u64)
                ),
                place: size(cell.size as u64),
                each: "request",
                slower: (*driver).clone(),
                faster: (*fastest).clone(),
                times: (ratio.low, ratio.median),
            });
        }
    }

    /// The reasons, if they were asked for.
    pub(super) fn finish(self) -> Result<Option<Reasons>, Failure> {
        self.profiler.map(Profiler::finish).transpose()
    }
}
