//! What one driver costs: a grid of learned times over batch length and request size.
//!
//! Between nodes the cost is interpolated linearly in both, which is exact for the model
//! `fixed + per_request * n + per_byte * bytes` and follows kinks (a cache that overflows,
//! a request that becomes worth splitting) at the nodes.

use arrayvec::ArrayVec;
use serde::{Deserialize, Serialize};

use super::change::{ChangeDetector, Outliers};

/// Requests in a batch, at the nodes.
pub(crate) const COUNTS: [u32; 4] = [1, 4, 16, 64];
/// Bytes of a request, at the nodes: powers of four from 16 B to 16 MiB.
pub(crate) const SIZES: [u32; 11] = {
    let mut sizes = [0; 11];
    let mut i = 0;
    while i < 11 {
        sizes[i] = 16 << (2 * i);
        i += 1;
    }
    sizes
};

/// The n-th sample moves a node by 1/n of the difference, and at least by this share of the
/// difference: a node is a mean over about the last hundred samples.
const MIN_STEP: f32 = 1.0 / 64.0;
/// The least share of the difference by which a sample moves the period of a device. The period
/// follows fast, since only a device that is given more batches shows how many it serves at once.
const MIN_DEVICE_PERIOD_STEP: f32 = 1.0 / 4.0;
/// The index of the period among the parts of a cost.
const PERIOD: usize = 1;
/// A sample that is more than this many times the estimate counts as this many times the estimate.
const MAX_RATIO: f32 = 16.0;

/// The most that a batch can take, in nanoseconds: thirty years.
const MAX_COST: f32 = 1e18;

/// The cost of a batch in nanoseconds, seen in three ways.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Cost {
    /// From the call to the results.
    pub(crate) latency: f32,
    /// Between the ends of batches when the caller keeps several under way.
    pub(crate) period: f32,
    /// Processor time of the caller; 0 in a sample that did not measure it.
    pub(crate) cpu: f32,
}

impl Cost {
    /// The cost of a batch that occupies its caller from start to end: all three are the same.
    pub(crate) fn inline(nanoseconds: f32) -> Self {
        Cost {
            latency: nanoseconds,
            period: nanoseconds,
            cpu: nanoseconds,
        }
    }

    fn parts(&mut self) -> [&mut f32; 3] {
        [&mut self.latency, &mut self.period, &mut self.cpu]
    }

    fn map(self, other: Cost, f: impl Fn(f32, f32) -> f32) -> Cost {
        Cost {
            latency: f(self.latency, other.latency),
            period: f(self.period, other.period),
            cpu: f(self.cpu, other.cpu),
        }
    }
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Node {
    cost: Cost,
    samples: u32,
    /// The number of samples at the last change.
    #[serde(skip)]
    changed_at: u32,
    /// For latency, period and processor time.
    #[serde(skip)]
    detectors: [ChangeDetector; 3],
}

/// The learned cost of one driver for one algorithm, key length, direction and caller mode.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Model {
    nodes: [[Node; SIZES.len()]; COUNTS.len()],
}

/// A place in the grid: on each axis the node below, and the part of the way to the next node.
struct Place {
    count: usize,
    size: usize,
    along_count: f32,
    along_size: f32,
}

impl Place {
    fn of(n: usize, size: f32) -> Place {
        let count = COUNTS
            .partition_point(|&c| c as usize <= n)
            .clamp(1, COUNTS.len() - 1)
            - 1;
        let (c0, c1) = (COUNTS[count] as f32, COUNTS[count + 1] as f32);
        let at = SIZES
            .partition_point(|&s| s as f32 <= size)
            .clamp(1, SIZES.len() - 1)
            - 1;
        let (s0, s1) = (SIZES[at] as f32, SIZES[at + 1] as f32);
        Place {
            count,
            size: at,
            along_count: ((n as f32 - c0) / (c1 - c0)).max(0.0),
            // Fewer than 16 bytes cost as much as 16 bytes. Beyond the grid the last slope continues.
            along_size: ((size - s0) / (s1 - s0)).max(0.0),
        }
    }

    /// The nodes around, with their weights; the weights sum to 1.
    fn corners(&self) -> [(usize, usize, f32); 4] {
        let (c, s, x, y) = (self.count, self.size, self.along_count, self.along_size);
        [
            (c, s, (1.0 - x) * (1.0 - y)),
            (c + 1, s, x * (1.0 - y)),
            (c, s + 1, (1.0 - x) * y),
            (c + 1, s + 1, x * y),
        ]
    }
}

impl Model {
    /// Whether anything was ever measured.
    pub(crate) fn is_empty(&self) -> bool {
        self.nodes.iter().flatten().all(|n| n.samples == 0)
    }

    /// Whether all costs are positive and finite. Learning moves a cost by a part of itself, so
    /// that a cost of zero, infinity or less than zero would stay for ever.
    pub(crate) fn is_sound(&self) -> bool {
        self.nodes.iter().flatten().all(|node| {
            let Cost {
                latency,
                period,
                cpu,
            } = node.cost;
            let possible = [latency, period, cpu]
                .iter()
                .all(|part| (0.0..=MAX_COST).contains(part));
            possible && (node.samples == 0 || latency > 0.0)
        })
    }

    /// The expected cost of `n` requests of `size` bytes on average; `None` if nothing is known.
    pub(crate) fn estimate(&self, n: usize, size: f32) -> Option<Cost> {
        let place = Place::of(n, size);
        let mut sum = Cost::default();
        for (c, s, weight) in place.corners() {
            let node = &self.nodes[c][s];
            if node.cost == Cost::default() {
                return None;
            }
            sum = sum.map(node.cost, |a, b| a + b * weight);
        }
        // Beyond the grid a falling slope could lead below zero.
        Some(sum.map(self.nodes[place.count][place.size].cost, |a, b| {
            a.max(b * 0.5)
        }))
    }

    /// Samples seen near a place.
    pub(crate) fn samples(&self, n: usize, size: f32) -> u32 {
        let corners = Place::of(n, size).corners();
        let near = corners.iter().filter(|&&(_, _, weight)| weight > 0.2);
        near.map(|&(c, s, _)| self.nodes[c][s].samples)
            .max()
            .unwrap_or(0)
    }

    /// Sets a node to the result of a careful measurement.
    pub(crate) fn set(&mut self, count: usize, size: usize, cost: Cost, samples: u32) {
        self.nodes[count][size] = Node {
            cost,
            samples,
            ..Node::default()
        };
        self.fill();
    }

    /// Learns from one batch; a part of the cost that was not measured is 0. Returns the relative
    /// change of the estimate there.
    pub(crate) fn learn(&mut self, n: usize, size: f32, seen: Cost, outliers: Outliers) -> f32 {
        let place = Place::of(n, size);
        let corners = place.corners();
        let Some(mut expected) = self.estimate(n, size) else {
            let nearest = corners.into_iter().max_by(|a, b| a.2.total_cmp(&b.2));
            let (c, s, _) = nearest.expect("four corners");
            let scale = COUNTS[c] as f32 * SIZES[s] as f32 / (n as f32 * size.max(16.0));
            let or_latency = |part: f32| if part > 0.0 { part } else { seen.latency };
            let seen = Cost {
                latency: seen.latency,
                period: or_latency(seen.period),
                cpu: or_latency(seen.cpu),
            };
            if seen.latency <= 0.0 {
                return 0.0;
            }
            self.set(c, s, seen.map(seen, |a, _| a * scale.max(1.0)), 1);
            return f32::INFINITY;
        };
        let mut seen = seen;
        let ratios: [Option<f32>; 3] = {
            let (seen, expected) = (seen.parts(), expected.parts());
            std::array::from_fn(|part| {
                let ratio = *seen[part] / *expected[part];
                (*seen[part] > 0.0).then(|| ratio.clamp(1.0 / MAX_RATIO, MAX_RATIO))
            })
        };
        // Divided by this, the moves of all corners together move the estimate by the whole step.
        let norm: f32 = corners.iter().map(|c| c.2.clamp(0.0, 1.0).powi(2)).sum();
        let (mut change, mut first) = (0.0f32, false);
        for (c, s, weight) in corners {
            let weight = weight.clamp(0.0, 1.0);
            let node = &mut self.nodes[c][s];
            if weight < 0.05 {
                continue;
            }
            first |= node.samples == 0;
            let recent = node.samples - node.changed_at.min(node.samples);
            // The first sample replaces the node's value, which was a guess.
            let step = (1.0 / recent.max(1) as f32).max(MIN_STEP);
            node.samples = node.samples.saturating_add(1);
            for (part, cost) in node.cost.parts().into_iter().enumerate() {
                let Some(ratio) = ratios[part] else { continue };
                let step = if part == PERIOD && outliers == Outliers::Count {
                    step.max(MIN_DEVICE_PERIOD_STEP)
                } else {
                    step
                };
                let (share, changed) = node.detectors[part].judge(ratio, step, outliers);
                let share = (share * weight / norm).max(1.0 / MAX_RATIO - 1.0);
                if changed && part != PERIOD {
                    // The samples before the change say nothing about the cost now.
                    node.changed_at = node.samples - 1;
                }
                *cost *= 1.0 + share;
                change = change.max(share.abs());
            }
        }
        if first {
            self.fill();
        }
        change
    }

    /// A node that was never measured takes the cost of the nearest measured node, multiplied by
    /// the ratio of their bytes where the node has more bytes: an estimate that is rather too
    /// high.
    fn fill(&mut self) {
        let mut measured: ArrayVec<_, { COUNTS.len() * SIZES.len() }> = ArrayVec::new();
        for (c, row) in self.nodes.iter().enumerate() {
            let seen = row.iter().enumerate().filter(|(_, node)| node.samples > 0);
            measured.extend(seen.map(|(s, node)| (c, s, node.cost)));
        }
        if measured.is_full() {
            return;
        }
        for (c, row) in self.nodes.iter_mut().enumerate() {
            for (s, node) in row.iter_mut().enumerate().filter(|(_, n)| n.samples == 0) {
                let near = measured
                    .iter()
                    .min_by_key(|m| m.0.abs_diff(c) + m.1.abs_diff(s));
                let Some(&(mc, ms, cost)) = near else { return };
                let volume = |c: usize, s: usize| COUNTS[c] as f32 * SIZES[s] as f32;
                let scale = (volume(c, s) / volume(mc, ms)).max(1.0);
                node.cost = cost.map(cost, |a, _| a * scale);
            }
        }
    }

    /// The least-squares line over measured nodes of one request:
    /// `(fixed nanoseconds, bytes per nanosecond)`; `None` with fewer than two nodes.
    pub(crate) fn line(&self) -> Option<(f32, f32)> {
        let points: Vec<(f32, f32)> = (0..SIZES.len())
            .filter(|&s| self.nodes[0][s].samples > 0)
            .map(|s| (SIZES[s] as f32, self.nodes[0][s].cost.latency))
            .collect();
        let (mut w, mut wx, mut wy, mut wxx, mut wxy) = (0.0, 0.0, 0.0, 0.0, 0.0);
        for &(x, y) in &points {
            // Relative errors count: weigh by 1 / y².
            let weight = 1.0 / (y * y);
            w += weight;
            wx += weight * x;
            wy += weight * y;
            wxx += weight * x * x;
            wxy += weight * x * y;
        }
        let slope = (w * wxy - wx * wy) / (w * wxx - wx * wx);
        let fixed = (wy - slope * wx) / w;
        (points.len() >= 2 && slope > 0.0).then_some((fixed.max(0.0), 1.0 / slope))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn linear(n: usize, size: f32) -> Cost {
        Cost::inline(500.0 + 20.0 * n as f32 + 0.25 * n as f32 * size)
    }

    fn trained() -> Model {
        let mut model = Model::default();
        for (c, &count) in COUNTS.iter().enumerate() {
            for (s, &size) in SIZES.iter().enumerate() {
                model.set(c, s, linear(count as usize, size as f32), 5);
            }
        }
        model
    }

    #[test]
    fn a_linear_cost_is_met_exactly_everywhere() {
        let model = trained();
        for n in [1, 2, 3, 7, 16, 40, 64, 200] {
            for size in [16.0, 20.0, 100.0, 1400.0, 9000.0, 1e6, 3e7] {
                let (found, want) = (model.estimate(n, size).unwrap(), linear(n, size));
                assert!(
                    (found.period / want.period - 1.0).abs() < 1e-3,
                    "{n} x {size}"
                );
            }
        }
    }

    #[test]
    fn the_line_gives_fixed_cost_and_rate_back() {
        let (fixed, rate) = trained().line().unwrap();
        assert!(
            (fixed - 520.0).abs() < 5.0 && (rate - 4.0).abs() < 0.05,
            "{fixed} {rate}"
        );
        assert!(Model::default().line().is_none());
    }

    #[test]
    fn one_outlier_is_ignored_and_a_lasting_change_is_followed() {
        let mut model = trained();
        let before = model.estimate(1, 1024.0).unwrap().period;
        let mut now = 0;
        let mut learn = |model: &mut Model, cost| {
            now += 1_000_000;
            model.learn(1, 1024.0, Cost::inline(cost), Outliers::Noise(now))
        };
        assert_eq!(learn(&mut model, before * 10.0), 0.0);
        assert_eq!(model.estimate(1, 1024.0).unwrap().period, before);
        learn(&mut model, before);
        for _ in 0..6 {
            learn(&mut model, before * 10.0);
        }
        let after = model.estimate(1, 1024.0).unwrap().period;
        assert!(after > before * 7.0, "{after} {before}");
        for _ in 0..30 {
            learn(&mut model, before);
        }
        let back = model.estimate(1, 1024.0).unwrap().period;
        assert!(back < before * 1.1, "{back} {before}");
    }

    #[test]
    fn what_makes_everything_slower_for_half_a_millisecond_again_and_again_is_no_change() {
        let mut model = trained();
        let calm = model.estimate(1, 1024.0).unwrap().period;
        for sample in 0..400 {
            // Half a millisecond of every four.
            let slow = if sample % 20 > 16 { 1.4 } else { 1.0 };
            model.learn(
                1,
                1024.0,
                Cost::inline(calm * slow),
                Outliers::Noise(sample * 200_000),
            );
            let known = model.estimate(1, 1024.0).unwrap().period;
            assert!(known < calm * 1.15, "{sample}: {known} {calm}");
        }
    }

    #[test]
    fn a_jittery_device_is_judged_by_its_mean() {
        let mut model = trained();
        let calm = model.estimate(1, 1024.0).unwrap().latency;
        let mut sum = 0.0;
        for i in 0..2000 {
            let slow = if i % 10 == 7 { 10.0 } else { 1.0 };
            model.learn(1, 1024.0, Cost::inline(calm * slow), Outliers::Count);
            sum += model.estimate(1, 1024.0).unwrap().latency / calm;
        }
        let mean = sum / 2000.0;
        assert!((1.7..2.1).contains(&mean), "{mean}");
    }

    #[test]
    fn one_sample_gives_a_first_idea_of_the_whole_grid() {
        let mut model = Model::default();
        assert!(model.estimate(1, 16.0).is_none() && model.is_empty());
        model.learn(1, 1000.0, Cost::inline(750.0), Outliers::Noise(0));
        let small = model.estimate(1, 16.0).unwrap().period;
        let large = model.estimate(1, 65536.0).unwrap().period;
        assert!(small <= 800.0 && large >= 65536.0 * 0.6, "{small} {large}");
    }
}
