//! What a measurement gives back: for each candidate its blocks and latencies.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::counters::Usage;
use crate::latency::Latency;
use crate::stats::{self, Interval};

/// Share of disturbed blocks from which on a run is called noisy.
const NOISY_SHARE: f64 = 0.25;

/// Half width of the interval, as a share of the median, from which on a run is
/// called noisy.
const NOISY_HALF_WIDTH: f64 = 0.05;

/// The candidates of one cell, measured side by side.
#[derive(Clone, Debug)]
pub struct Measurement {
    /// One run per candidate, in the order given.
    pub runs: Vec<Run>,
}

/// One candidate's part of a measurement. Another process may have measured it.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Run {
    /// The candidate's name.
    pub name: String,
    /// One block a round, in order.
    pub blocks: Vec<Block>,
    /// Latencies of the operations that were timed singly, of all caller threads.
    pub latency: Latency,
}

/// Some tens of milliseconds of one candidate, all caller threads together.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct Block {
    /// Operations finished.
    pub operations: u64,
    /// Operations per second, the sum over the caller threads.
    pub rate: f64,
    /// What the block cost.
    pub resources: ResourceUse,
    /// Time was stolen, or others had the processor of a caller thread for more than a hundredth.
    pub disturbed: bool,
}

/// The cost of a block, that of helper threads included.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub struct ResourceUse {
    /// Of the whole process.
    pub usage: Usage,
    /// Time the hypervisor took from this machine, in steps of 10 ms.
    pub steal: Duration,
}

impl Measurement {
    /// The run of the candidate with that name.
    pub fn run(&self, name: &str) -> Option<&Run> {
        self.runs.iter().find(|run| run.name == name)
    }

    /// Leaves out the rounds in which others had a processor for a while, if enough are left
    /// for a verdict.
    pub fn leave_out_disturbed(&mut self) {
        let rounds = self.runs.iter().map(|run| run.blocks.len()).min();
        let quiet: Vec<usize> = (0..rounds.unwrap_or(0))
            .filter(|&round| self.runs.iter().all(|run| !run.blocks[round].disturbed))
            .collect();
        if quiet.len() >= stats::FEWEST_PAIRS {
            for run in &mut self.runs {
                run.blocks = quiet.iter().map(|&round| run.blocks[round]).collect();
            }
        }
    }

    /// How many times as fast as `base` the candidate was, paired by round;
    /// `None` if either was not measured.
    pub fn ratio(&self, candidate: &str, base: &str) -> Option<Interval> {
        let (candidate, base) = (self.run(candidate)?, self.run(base)?);
        stats::paired_ratio(&candidate.rates(), &base.rates())
    }
}

impl Run {
    /// Adds the blocks of a later turn of the same candidate.
    pub fn append(&mut self, later: Run) {
        self.blocks.extend(later.blocks);
        self.latency.merge(&later.latency);
    }

    /// Operations per second, block by block.
    pub fn rates(&self) -> Vec<f64> {
        self.blocks.iter().map(|block| block.rate).collect()
    }

    /// The median of [`Self::rates`] with its confidence interval; `None`
    /// without blocks.
    pub fn rate(&self) -> Option<Interval> {
        stats::median_interval(&self.rates())
    }

    /// Operations finished in all blocks.
    pub fn operations(&self) -> u64 {
        self.blocks.iter().map(|block| block.operations).sum()
    }

    /// What all blocks have used together.
    pub fn usage(&self) -> Usage {
        sum(&self.blocks)
    }

    /// Operations and usage of the middle half of the blocks by rate, the
    /// companions of the median rate: what the operations cost when nothing
    /// unusual happened.
    pub fn typical_usage(&self) -> (u64, Usage) {
        let mut blocks = self.blocks.clone();
        blocks.sort_by(|a, b| a.rate.total_cmp(&b.rate));
        let quarter = blocks.len() / 4;
        let middle = &blocks[quarter..blocks.len() - quarter];
        let operations = middle.iter().map(|block| block.operations).sum();
        (operations, sum(middle))
    }

    /// Whether a quarter of the blocks or more were disturbed, or the interval
    /// of the rate is wider than plus or minus 5 %.
    pub fn noisy(&self) -> bool {
        let disturbed = self.blocks.iter().filter(|block| block.disturbed).count();
        disturbed as f64 >= NOISY_SHARE * self.blocks.len() as f64
            || self
                .rate()
                .is_none_or(|rate| rate.relative_half_width() > NOISY_HALF_WIDTH)
    }
}

fn sum(blocks: &[Block]) -> Usage {
    blocks
        .iter()
        .fold(Usage::default(), |sum, block| sum + block.resources.usage)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(name: &str, rates: &[f64], disturbed: usize) -> Run {
        let blocks = rates.iter().enumerate().map(|(index, rate)| Block {
            operations: 10,
            rate: *rate,
            resources: ResourceUse {
                usage: Usage {
                    user: Duration::from_millis(20),
                    page_faults: 1,
                    ..Usage::default()
                },
                steal: Duration::ZERO,
            },
            disturbed: index < disturbed,
        });
        Run {
            name: name.into(),
            blocks: blocks.collect(),
            latency: Latency::default(),
        }
    }

    #[test]
    fn sums_and_medians() {
        let run = run("one", &[90.0, 100.0, 110.0], 0);
        assert_eq!(run.operations(), 30);
        assert_eq!(run.usage().user, Duration::from_millis(60));
        assert_eq!(run.usage().page_faults, 3);
        assert_eq!(run.rate().unwrap().median, 100.0);
    }

    #[test]
    fn typical_usage_leaves_out_the_fastest_and_the_slowest_quarter() {
        let mut run = run(
            "one",
            &[1.0, 100.0, 101.0, 99.0, 102.0, 98.0, 500.0, 2.0],
            0,
        );
        for block in &mut run.blocks {
            if !(90.0..110.0).contains(&block.rate) {
                block.resources.usage.user = Duration::from_secs(1);
            }
        }
        // Left out: 1 and 2, 102 and 500.
        let (operations, usage) = run.typical_usage();
        assert_eq!(operations, 40);
        assert_eq!(usage.user, Duration::from_millis(80));
        run.blocks.clear();
        assert_eq!(run.typical_usage(), (0, Usage::default()));
    }

    #[test]
    fn noisy_by_disturbance_or_by_spread() {
        let steady = [100.0; 8];
        assert!(!run("steady", &steady, 1).noisy());
        assert!(run("disturbed", &steady, 2).noisy());
        let wide = [50.0, 150.0, 50.0, 150.0, 50.0, 150.0, 50.0, 150.0];
        assert!(run("wide", &wide, 0).noisy());
        assert!(run("empty", &[], 0).noisy());
    }

    #[test]
    fn ratios_are_taken_by_round() {
        let base = [100.0, 50.0, 200.0, 100.0, 80.0, 120.0];
        let twice = base.map(|rate| rate * 2.0);
        let measurement = Measurement {
            runs: vec![run("base", &base, 0), run("twice", &twice, 0)],
        };
        let ratio = measurement.ratio("twice", "base").unwrap();
        assert_eq!((ratio.low, ratio.median, ratio.high), (2.0, 2.0, 2.0));
        assert!(measurement.ratio("twice", "none").is_none());
    }
}
