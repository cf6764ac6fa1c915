//! Time by phase, over the whole recording and in blocks of it.

use crate::recording::{Kind, Recording};
use crate::rules::Rules;

/// Blocks of a recording: enough for intervals, and each long enough to have many samples.
const BLOCKS: usize = 40;

/// Nanoseconds by phase.
#[derive(Clone, Debug, PartialEq)]
pub struct Phases {
    /// In the order of the rules: processor time, waits.
    pub totals: Vec<Time>,
    /// The same in blocks of equal length, in the order of time. Where waits were recorded in
    /// windows, those of a window stand in the blocks that it lies in.
    pub blocks: Vec<Vec<Time>>,
    /// For each block, the share of all time that the waits in it stand for.
    pub covered: Vec<f64>,
}

/// Time of one phase, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Time {
    /// With a processor.
    pub cpu: f64,
    /// Without.
    pub wait: f64,
}

impl Time {
    /// Both.
    pub fn sum(self) -> f64 {
        self.cpu + self.wait
    }
}

impl Phases {
    /// The phases of a recording.
    pub fn new(recording: &Recording, rules: &Rules) -> Self {
        Self::in_blocks(recording, rules, BLOCKS)
    }

    /// The same with a number of blocks.
    pub fn in_blocks(recording: &Recording, rules: &Rules, blocks: usize) -> Self {
        let assigned = rules.of(recording);
        let none = vec![Time::default(); rules.phases().len()];
        let mut phases = Self {
            totals: none.clone(),
            blocks: vec![none; blocks],
            covered: vec![1.0 / blocks as f64; blocks],
        };
        let windows = recording.coverage.as_ref().map(|of| &of.waits);
        let windows = windows.filter(|windows| !windows.is_whole());
        let weights = windows.map_or_else(Vec::new, |of| of.weights(recording.wall_ns));
        let weight = |at: u64| {
            windows
                .and_then(|of| of.at(at))
                .map_or(1.0, |at| weights[at])
        };
        let length = (recording.wall_ns as f64 / blocks as f64).max(1.0);
        for sample in &recording.samples {
            let phase = assigned.of(sample);
            match sample.kind {
                Kind::Cpu => {
                    let block = (sample.at_ns as f64 / length) as usize;
                    phases.blocks[block.min(blocks - 1)][phase].cpu += sample.ns as f64;
                }
                // A wait may be longer than a block. Several that began together may overlap no
                // other: they are of one thread.
                Kind::Wait | Kind::Ready => {
                    let waits = |block: usize, ns| phases.blocks[block][phase].wait += ns;
                    let from = sample.at_ns as f64 / length;
                    let weight = weight(sample.at_ns);
                    spread(blocks, from, sample.ns as f64, weight, length, waits);
                }
            }
        }
        for &(at, ns) in &recording.steal {
            let block = ((at as f64 / length) as usize).min(blocks - 1);
            phases.blocks[block][rules.steal()].wait += ns as f64;
        }
        if let Some(windows) = windows {
            phases.covered.fill(0.0);
            for (&(begin, end), weight) in windows.0.iter().zip(&weights) {
                let from = begin as f64 / length;
                let stands_for = (end - begin) as f64 * weight;
                let covered = |block: usize, ns| {
                    phases.covered[block] += ns / (length * blocks as f64);
                };
                spread(blocks, from, stands_for, *weight, length, covered);
            }
        }
        for block in &phases.blocks {
            for (total, time) in phases.totals.iter_mut().zip(block) {
                total.cpu += time.cpu;
                total.wait += time.wait;
            }
        }
        phases
    }

    /// Processor time together.
    pub fn cpu(&self) -> f64 {
        self.totals.iter().map(|time| time.cpu).sum()
    }

    /// Waits together, those of idle threads left out.
    pub fn waits(&self, rules: &Rules) -> f64 {
        let all: f64 = self.totals.iter().map(|time| time.wait).sum();
        all - self.totals[rules.idle()].wait
    }

    /// The share of processor time that no rule knows, 0 to 1.
    pub fn unknown(&self, rules: &Rules) -> f64 {
        match self.cpu() {
            0.0 => 0.0,
            cpu => self.totals[rules.other()].cpu / cpu,
        }
    }
}

/// Puts `ns` into the blocks from `from` on, by `add`. They are those of a time that is shorter by
/// `weight`.
fn spread(
    blocks: usize,
    from: f64,
    ns: f64,
    weight: f64,
    length: f64,
    mut add: impl FnMut(usize, f64),
) {
    let last = blocks - 1;
    let mut block = (from as usize).min(last);
    let mut room = ((block + 1) as f64 - from).max(0.0) * length * weight;
    let mut left = ns;
    while block < last && left > room {
        add(block, room);
        left -= room;
        block += 1;
        room = length * weight;
    }
    add(block, left);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::tests::recording;
    use crate::recording::{Coverage, Sample, Windows};

    #[test]
    fn nothing_is_lost_and_waits_are_spread() {
        let mut recording = recording(&[
            ("main;memcpy@libc.so.6", Kind::Cpu, 2_000_000),
            ("main;futex_wait@[kernel]", Kind::Wait, 3_000_000),
        ]);
        // One wait over the second half; as its twin in the first half it is too short to be idle.
        let last = recording.samples.len() - 1;
        recording.samples[last].at_ns = 2_000_000_000;
        recording.samples[last].ns = 2_000_000_000;
        recording.steal.push((1_000_000_000, 7_000_000));
        let rules = Rules::built_in();
        let phases = Phases::new(&recording, &rules);
        let samples = &recording.samples;
        let cpu: u64 = samples
            .iter()
            .filter(|s| s.kind == Kind::Cpu)
            .map(|s| s.ns)
            .sum();
        let wait: u64 = samples
            .iter()
            .filter(|s| s.kind == Kind::Wait)
            .map(|s| s.ns)
            .sum();
        assert!((phases.cpu() - cpu as f64).abs() < 1.0);
        assert!((phases.waits(&rules) - (wait + 7_000_000) as f64).abs() < 1.0);
        let lock = rules
            .phases()
            .iter()
            .position(|phase| phase.name == "lock")
            .unwrap();
        // 4 s in 40 blocks: 100 ms of the long wait and 10 of the short ones.
        let late = phases.blocks[30][lock].wait;
        assert!((late - 130_000_000.0).abs() < 1.0, "{late}");
        assert!((phases.covered.iter().sum::<f64>() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn waits_stand_in_the_blocks_of_their_window() {
        let mut recording = recording(&[]);
        // Of 4 s in 40 blocks: two blocks and a half at the begin, and a fifth of one later.
        let windows = Windows(vec![(0, 250_000_000), (2_000_000_000, 2_020_000_000)]);
        let weights = windows.weights(recording.wall_ns);
        recording.coverage = Some(Coverage {
            calls: Windows::default(),
            waits: windows,
        });
        for (at_ns, ns, weight) in [(0, 250e6, weights[0]), (2_000_000_000, 20e6, weights[1])] {
            recording.samples.push(Sample {
                at_ns,
                kind: Kind::Ready,
                thread: 0,
                stack: 0,
                count: 1,
                ns: (ns * weight) as u64,
            });
        }
        let rules = Rules::built_in();
        let phases = Phases::new(&recording, &rules);
        let waits = |block: usize| phases.blocks[block][rules.queue()].wait;
        // The thread waited all of the time, so in each block it did for what the block stands for.
        for block in 0..40 {
            let covered = phases.covered[block] * 4e9;
            assert!((waits(block) - covered).abs() < 10.0, "{block}: {covered}");
            assert_eq!(covered > 0.0, [0, 1, 2, 20].contains(&block), "{block}");
        }
        assert!((phases.waits(&rules) - 4e9).abs() < 100.0);
    }
}
