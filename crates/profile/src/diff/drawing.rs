//! Differences of two recordings, drawn anew over and over, for their intervals.
//!
//! The times of a recording are cut into blocks, and blocks that follow one another are drawn
//! together (a moving-block bootstrap), so that slow changes of the machine's speed widen the
//! intervals as they should.
//!
//! Where waits were recorded in windows, a block has the waits of the windows in it, and none where
//! no window was. The waits of the blocks that are drawn are divided by the time that these windows
//! stand for: a drawing with few windows is as uncertain as it is, and one without any says nothing.

use cipherlane_measure::random::Random;

use crate::phases::{Phases, Time};
use crate::rules::Rules;

/// Resamples that the intervals are made from.
const RESAMPLES: usize = 1000;
/// Blocks that are drawn together.
const RUN: usize = 4;
/// Seed of the resampling: the same recordings give the same intervals.
const SEED: u64 = 0x0070_726f_6669_6c65;

/// One recording, cut into blocks.
pub(super) struct Side {
    pub(super) phases: Phases,
    pub(super) amount: f64,
    pub(super) wall: f64,
    /// Processor time of other programs, where it is known.
    pub(super) others: f64,
    /// Its waits were seen too seldom.
    pub(super) few_waits: bool,
    /// The phase of what the hypervisor takes, which is known for all of the time.
    pub(super) steal: usize,
}

impl Side {
    /// Time of a phase per unit.
    pub(super) fn of(&self, phase: usize) -> Time {
        let total = self.phases.totals[phase];
        Time {
            cpu: total.cpu / self.amount,
            wait: total.wait / self.amount,
        }
    }

    /// Time of all phases per unit, idle threads left out.
    pub(super) fn whole(&self, rules: &Rules) -> f64 {
        (self.phases.cpu() + self.phases.waits(rules)) / self.amount
    }
}

/// For each phase, differences of resampled recordings, in order.
pub(super) fn resampled(a: &Side, b: &Side, phases: usize) -> Vec<Vec<f64>> {
    let mut random = Random::new(SEED);
    let mut differences = vec![Vec::with_capacity(RESAMPLES); phases];
    for _ in 0..RESAMPLES {
        let (a, b) = (draw(a, phases, &mut random), draw(b, phases, &mut random));
        for (phase, differences) in differences.iter_mut().enumerate() {
            differences.push(b[phase] - a[phase]);
        }
    }
    for differences in &mut differences {
        differences.sort_unstable_by(f64::total_cmp);
    }
    differences
}

/// Time by phase per unit, of as many blocks as there are, drawn in runs.
fn draw(side: &Side, phases: usize, random: &mut Random) -> Vec<f64> {
    let blocks = &side.phases.blocks;
    let mut sums = vec![Time::default(); phases];
    let mut covered = 0.0;
    for _ in 0..blocks.len().div_ceil(RUN) {
        let first = random.below(blocks.len());
        for offset in 0..RUN {
            let number = (first + offset) % blocks.len();
            covered += side.phases.covered[number];
            for (sum, time) in sums.iter_mut().zip(&blocks[number]) {
                sum.cpu += time.cpu;
                sum.wait += time.wait;
            }
        }
    }
    let drawn = (blocks.len().div_ceil(RUN) * RUN) as f64 / blocks.len() as f64;
    let totals = side.phases.totals.iter();
    let per_unit = sums.iter().zip(totals).enumerate();
    let per_unit = per_unit.map(|(phase, (sum, total))| {
        let wait = match covered > 0.0 {
            _ if phase == side.steal => sum.wait / drawn,
            true => sum.wait / covered,
            false => total.wait,
        };
        (sum.cpu / drawn + wait) / side.amount
    });
    per_unit.collect()
}

/// The value below which the share `q` of them lies.
pub(super) fn quantile(sorted: &[f64], q: f64) -> f64 {
    let rank = (q.clamp(0.0, 1.0) * (sorted.len() - 1) as f64).round();
    sorted[rank as usize]
}
