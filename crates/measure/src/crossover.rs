//! From which size on a candidate beats the base, and how to say it.
//!
//! Given is the ratio of throughputs at each size, with its confidence
//! interval. A size counts as won or lost only where the interval leaves no
//! doubt. Between a size lost and the next size won lies a crossover; it is
//! placed where the ratio passes 1, interpolated on logarithmic scales.

use serde::{Deserialize, Serialize};

use crate::stats::{Interval, Verdict};

/// The ratio of candidate to base at one size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Bytes per request.
    pub size: u64,
    /// Throughput of the candidate divided by that of the base.
    pub ratio: Interval,
    /// One of the two is noisy: no verdict, since others may have made the difference.
    pub noisy: bool,
}

/// The verdict at one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The candidate is faster.
    Won,
    /// The candidate is slower.
    Lost,
    /// No verdict inside the noise.
    Open,
}

/// A change of the faster side.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Crossing {
    /// Where the ratio passes 1, in bytes, interpolated.
    pub size: f64,
    /// The last size with a verdict before it.
    pub after: u64,
    /// The first size with a verdict behind it.
    pub before: u64,
    /// Whether the candidate wins behind it (or, if not, before it).
    pub gains: bool,
}

/// The whole shape of a candidate's curve against the base's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// No size had a verdict.
    NoVerdict,
    /// Lost wherever there is a verdict.
    NeverWins,
    /// Won wherever there is a verdict.
    AlwaysWins,
    /// Lost below one crossover, won from there on.
    WinsFrom,
    /// Won below one crossover, lost from there on.
    WinsUpTo,
    /// Won between two crossovers only.
    WinsBetween,
    /// Any other alternation.
    Mixed,
}

/// What a curve comes to.
#[derive(Clone, Debug, PartialEq)]
pub struct Crossover {
    /// The shape, without figures.
    pub shape: Shape,
    /// The crossovers, by size.
    pub crossings: Vec<Crossing>,
    points: Vec<(Point, Outcome)>,
}

impl Point {
    /// The verdict at this size.
    pub fn outcome(&self) -> Outcome {
        match self.ratio.verdict() {
            _ if self.noisy => Outcome::Open,
            Verdict::Faster { .. } => Outcome::Won,
            Verdict::Slower { .. } => Outcome::Lost,
            Verdict::WithinNoise => Outcome::Open,
        }
    }
}

impl Crossover {
    /// Finds the crossovers in `points`, given in any order.
    pub fn find(points: &[Point]) -> Self {
        let mut points: Vec<_> = points.iter().map(|at| (*at, at.outcome())).collect();
        points.sort_by_key(|(point, _)| point.size);
        let decided: Vec<usize> = (0..points.len())
            .filter(|index| points[*index].1 != Outcome::Open)
            .collect();
        let crossings: Vec<Crossing> = decided
            .windows(2)
            .filter(|pair| points[pair[0]].1 != points[pair[1]].1)
            .map(|pair| {
                let between: Vec<Point> = points[pair[0]..=pair[1]].iter().map(|at| at.0).collect();
                Crossing {
                    size: passes_one(&between),
                    after: points[pair[0]].0.size,
                    before: points[pair[1]].0.size,
                    gains: points[pair[1]].1 == Outcome::Won,
                }
            })
            .collect();
        let begins = decided.first().map(|index| points[*index].1);
        let shape = match (begins, crossings.len()) {
            (None, _) => Shape::NoVerdict,
            (Some(Outcome::Won), 0) => Shape::AlwaysWins,
            (Some(_), 0) => Shape::NeverWins,
            (Some(Outcome::Won), 1) => Shape::WinsUpTo,
            (Some(_), 1) => Shape::WinsFrom,
            (Some(Outcome::Lost), 2) => Shape::WinsBetween,
            (Some(_), _) => Shape::Mixed,
        };
        Self {
            shape,
            crossings,
            points,
        }
    }

    /// The points by size, each with its verdict.
    pub fn points(&self) -> impl Iterator<Item = (&Point, Outcome)> {
        self.points.iter().map(|(point, outcome)| (point, *outcome))
    }

    /// The size with the highest ratio among those won.
    pub fn best(&self) -> Option<&Point> {
        self.with(Outcome::Won)
            .max_by(|a, b| a.ratio.median.total_cmp(&b.ratio.median))
    }

    /// The size with the lowest ratio among those lost.
    pub fn worst(&self) -> Option<&Point> {
        self.with(Outcome::Lost)
            .min_by(|a, b| a.ratio.median.total_cmp(&b.ratio.median))
    }

    pub(crate) fn with(&self, outcome: Outcome) -> impl Iterator<Item = &Point> {
        self.points()
            .filter(move |(_, found)| *found == outcome)
            .map(|(point, _)| point)
    }

    pub(crate) fn lone(&self) -> Option<u64> {
        match self.points.as_slice() {
            [(point, _)] => Some(point.size),
            _ => None,
        }
    }
}

/// Where the ratio first passes from one side of 1 to that of the last point,
/// for good: the last change of side, linear in the logarithms. `points` begin
/// and end on different sides; in between are points without a verdict.
fn passes_one(points: &[Point]) -> f64 {
    let logs: Vec<(f64, f64)> = points
        .iter()
        .map(|point| ((point.size.max(1) as f64).ln(), point.ratio.median.ln()))
        .collect();
    let last_side = logs[logs.len() - 1].1 > 0.0;
    let step = logs
        .windows(2)
        .rfind(|step| (step[0].1 > 0.0) != last_side)
        .unwrap_or(&logs[..2]);
    let ((x0, y0), (x1, y1)) = (step[0], step[1]);
    (x0 - y0 * (x1 - x0) / (y1 - y0)).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ratios of two curves, each known to plus or minus `noise` of itself.
    pub(crate) fn points(sizes: &[u64], ratios: &[f64], noise: f64) -> Vec<Point> {
        let interval = |ratio: f64| Interval {
            low: ratio * (1.0 - noise),
            median: ratio,
            high: ratio * (1.0 + noise),
        };
        sizes
            .iter()
            .zip(ratios)
            .map(|(size, ratio)| Point {
                size: *size,
                noisy: false,
                ratio: interval(*ratio),
            })
            .collect()
    }

    fn ratios(candidate: &[f64], base: &[f64]) -> Vec<f64> {
        candidate.iter().zip(base).map(|(a, b)| a / b).collect()
    }

    const OPENSSL_SIZES: [u64; 5] = [16, 64, 256, 1024, 8192];

    #[test]
    fn geode_engine_crosses_between_64_and_256() {
        let software = [4741.0, 5309.0, 5494.0, 5535.0, 5561.0];
        let engine = [500.0, 1939.0, 6783.0, 18173.0, 30275.0];
        let points = points(&OPENSSL_SIZES, &ratios(&engine, &software), 0.02);
        let found = Crossover::find(&points);
        assert_eq!(found.shape, Shape::WinsFrom);
        let [crossing] = found.crossings[..] else {
            panic!("{:?}", found.crossings);
        };
        assert_eq!((crossing.after, crossing.before), (64, 256));
        assert!((195.0..207.0).contains(&crossing.size), "{}", crossing.size);
        assert!(crossing.gains);
        let (best, worst) = (found.best().unwrap(), found.worst().unwrap());
        assert_eq!((best.size, worst.size), (8192, 16));
        assert!((best.ratio.median - 5.44).abs() < 0.01);
        assert!((1.0 / worst.ratio.median - 9.48).abs() < 0.01);
    }

    #[test]
    fn alix_engine_crosses_between_16_and_64() {
        let software = [3583.0, 3931.0, 4037.0, 8113.0, 8205.0];
        let engine = [1200.0, 4470.0, 11729.0, 17328.0, 34006.0];
        let points = points(&OPENSSL_SIZES, &ratios(&engine, &software), 0.02);
        let found = Crossover::find(&points);
        assert_eq!(found.shape, Shape::WinsFrom);
        let crossing = found.crossings[0];
        assert_eq!((crossing.after, crossing.before), (16, 64));
        assert!(crossing.size > 50.0 && crossing.size < 64.0);
    }

    #[test]
    fn a_power_law_is_hit_exactly() {
        // Ratio = (size / 1000)^0.5 is a straight line on logarithmic scales.
        let sizes = [16, 64, 256, 4096, 65536];
        let curve: Vec<f64> = sizes
            .iter()
            .map(|size| (*size as f64 / 1000.0).sqrt())
            .collect();
        let found = Crossover::find(&points(&sizes, &curve, 0.01));
        assert!((found.crossings[0].size - 1000.0).abs() < 1e-6);
        let mut reversed = points(&sizes, &curve, 0.01);
        reversed.reverse();
        assert_eq!(Crossover::find(&reversed), found);
    }

    #[test]
    fn every_shape() {
        let sizes = [16, 64, 256, 1024, 4096];
        for (curve, shape, crossings) in [
            ([0.9, 0.8, 0.7, 0.6, 0.5], Shape::NeverWins, 0),
            ([1.5, 1.4, 1.3, 1.2, 1.1], Shape::AlwaysWins, 0),
            ([0.5, 0.6, 1.2, 1.5, 2.0], Shape::WinsFrom, 1),
            ([2.0, 1.5, 1.2, 0.8, 0.5], Shape::WinsUpTo, 1),
            ([0.5, 1.5, 1.5, 1.5, 0.5], Shape::WinsBetween, 2),
            ([1.5, 0.5, 0.5, 0.5, 1.5], Shape::Mixed, 2),
            ([0.5, 1.5, 0.5, 1.5, 0.5], Shape::Mixed, 4),
            ([1.0, 0.99, 1.01, 1.0, 1.0], Shape::NoVerdict, 0),
            ([1.0, 0.5, 1.0, 0.5, 1.0], Shape::NeverWins, 0),
        ] {
            let found = Crossover::find(&points(&sizes, &curve, 0.02));
            assert_eq!(found.shape, shape, "{curve:?}");
            assert_eq!(found.crossings.len(), crossings, "{curve:?}");
        }
        assert_eq!(Crossover::find(&[]).shape, Shape::NoVerdict);
    }

    #[test]
    fn sizes_without_a_verdict_widen_the_crossover() {
        let sizes = [16, 64, 256, 1024, 4096];
        let found = Crossover::find(&points(&sizes, &[0.5, 0.99, 1.005, 0.995, 2.0], 0.02));
        let crossing = found.crossings[0];
        assert_eq!((crossing.after, crossing.before), (16, 4096));
        assert!((1024.0..1100.0).contains(&crossing.size), "{crossing:?}");
        let open: Vec<u64> = found.with(Outcome::Open).map(|at| at.size).collect();
        assert_eq!(open, [64, 256, 1024]);
    }
}
