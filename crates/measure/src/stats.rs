//! Order statistics, bootstrap confidence intervals, and the verdict they allow.
//!
//! Everything is computed from blocks that were measured side by side, so a
//! ratio is taken block by block: what slowed the machine slowed both. Medians
//! rather than means, because noise on a shared machine only ever slows down.
//! The same samples always give the same interval: the random numbers have a
//! fixed seed.

use std::fmt;

use crate::random::Random;

/// Pairs needed for a verdict. That six fair coins fall alike has a chance of
/// 3 %, that five do has one of 6 %: with fewer pairs no 95 % interval exists.
pub const FEWEST_PAIRS: usize = 6;

/// Bootstrap resamples an interval is made from.
const RESAMPLES: usize = 2000;

/// Seed of the resampling.
const SEED: u64 = 0x6369_7068_6572;

/// A value with its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower end, the 2.5 % quantile of the resampled medians.
    pub low: f64,
    /// The median of the samples themselves.
    pub median: f64,
    /// Upper end, the 97.5 % quantile of the resampled medians.
    pub high: f64,
}

/// What a ratio's interval says about the candidate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// The whole interval lies above 1.
    Faster {
        /// Median ratio, above 1.
        times: f64,
        /// Half the interval's width.
        plus_minus: f64,
    },
    /// The whole interval lies below 1.
    Slower {
        /// How many times slower: the inverse of the median ratio, above 1.
        times: f64,
        /// Half the width of the inverse interval.
        plus_minus: f64,
    },
    /// The interval includes 1, or there were too few pairs for one.
    WithinNoise,
}

/// The `q` quantile (0 to 1) of `samples` in any order, interpolated between
/// the neighbouring ranks; `None` if there are none or one is not a number.
pub fn quantile(samples: &[f64], q: f64) -> Option<f64> {
    let mut sorted = samples.to_vec();
    sort(&mut sorted).then(|| quantile_of_sorted(&sorted, q))
}

/// The median of `samples` in any order; see [`quantile`].
pub fn median(samples: &[f64]) -> Option<f64> {
    quantile(samples, 0.5)
}

/// The median of `samples` with its bootstrap interval; see [`quantile`].
pub fn median_interval(samples: &[f64]) -> Option<Interval> {
    let mut sorted = samples.to_vec();
    if !sort(&mut sorted) {
        return None;
    }
    let mut random = Random::new(SEED);
    let mut ranks = vec![0; sorted.len()];
    let mut medians: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            ranks.fill_with(|| random.below(sorted.len()));
            median_of_ranks(&mut ranks, &sorted)
        })
        .collect();
    medians.sort_unstable_by(f64::total_cmp);
    Some(Interval {
        low: quantile_of_sorted(&medians, 0.025),
        median: quantile_of_sorted(&sorted, 0.5),
        high: quantile_of_sorted(&medians, 0.975),
    })
}

/// The median of `candidate[i] / base[i]` with its bootstrap interval; pairs
/// where either is not above zero are left out, surplus blocks of one side too.
/// `None` without a pair; with fewer than [`FEWEST_PAIRS`] the interval is
/// everything above zero.
pub fn paired_ratio(candidate: &[f64], base: &[f64]) -> Option<Interval> {
    let ratios: Vec<f64> = candidate
        .iter()
        .zip(base)
        .filter(|(candidate, base)| **candidate > 0.0 && **base > 0.0)
        .map(|(candidate, base)| candidate / base)
        .collect();
    if ratios.len() < FEWEST_PAIRS {
        return median(&ratios).map(|median| Interval {
            low: 0.0,
            median,
            high: f64::INFINITY,
        });
    }
    median_interval(&ratios)
}

/// Sorts, or says that there is nothing to sort or a value is not a number.
fn sort(samples: &mut [f64]) -> bool {
    samples.sort_unstable_by(f64::total_cmp);
    !samples.is_empty() && !samples.iter().any(|sample| sample.is_nan())
}

/// The median of the samples at `ranks`, which may repeat; linear in their number.
fn median_of_ranks(ranks: &mut [usize], sorted: &[f64]) -> f64 {
    let odd = !ranks.len().is_multiple_of(2);
    let (below, middle, _) = ranks.select_nth_unstable(ranks.len() / 2);
    let middle = sorted[*middle];
    match below.iter().max() {
        Some(below) if !odd => (sorted[*below] + middle) / 2.0,
        _ => middle,
    }
}

fn quantile_of_sorted(sorted: &[f64], q: f64) -> f64 {
    let rank = q.clamp(0.0, 1.0) * (sorted.len() - 1) as f64;
    let (below, above) = (sorted[rank.floor() as usize], sorted[rank.ceil() as usize]);
    below + (above - below) * rank.fract()
}

impl Interval {
    /// The verdict on a ratio with this interval.
    pub fn verdict(&self) -> Verdict {
        if self.low > 1.0 {
            Verdict::Faster {
                times: self.median,
                plus_minus: (self.high - self.low) / 2.0,
            }
        } else if self.high < 1.0 && self.low > 0.0 {
            Verdict::Slower {
                times: 1.0 / self.median,
                plus_minus: (1.0 / self.low - 1.0 / self.high) / 2.0,
            }
        } else {
            Verdict::WithinNoise
        }
    }

    /// Half the interval's width as a share of the median; infinite for a median of zero.
    pub fn relative_half_width(&self) -> f64 {
        if self.median == 0.0 {
            f64::INFINITY
        } else {
            (self.high - self.low) / 2.0 / self.median.abs()
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Faster { times, plus_minus } => {
                write!(f, "{times:.2} ± {plus_minus:.2} times faster")
            }
            Self::Slower { times, plus_minus } => {
                write!(f, "{times:.2} ± {plus_minus:.2} times slower")
            }
            Self::WithinNoise => f.write_str("no difference beyond the noise"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `count` samples around `centre`, spread evenly over plus or minus `spread` of it.
    fn samples(seed: u64, count: usize, centre: f64, spread: f64) -> Vec<f64> {
        let mut random = Random::new(seed);
        (0..count)
            .map(|_| centre * (1.0 + spread * (random.below(2001) as f64 / 1000.0 - 1.0)))
            .collect()
    }

    #[test]
    fn quantiles_interpolate() {
        let samples = [4.0, 1.0, 3.0, 2.0];
        assert_eq!(median(&samples), Some(2.5));
        assert_eq!(quantile(&samples, 0.0), Some(1.0));
        assert_eq!(quantile(&samples, 1.0), Some(4.0));
        assert_eq!(quantile(&samples, 1.0 / 3.0), Some(2.0));
        assert_eq!(median(&[7.0]), Some(7.0));
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[1.0, f64::NAN]), None);
    }

    #[test]
    fn medians_by_ranks_are_medians() {
        for count in 1..40 {
            let mut sorted = samples(count as u64, count, 10.0, 0.9);
            sorted.sort_unstable_by(f64::total_cmp);
            let mut random = Random::new(9);
            let mut ranks: Vec<usize> = (0..count).map(|_| random.below(count)).collect();
            let resample: Vec<f64> = ranks.iter().map(|rank| sorted[*rank]).collect();
            let (found, expected) = (median_of_ranks(&mut ranks, &sorted), median(&resample));
            assert!((found - expected.unwrap()).abs() < 1e-12);
        }
    }

    #[test]
    fn the_interval_holds_the_true_median_about_as_often_as_it_claims() {
        let held = (0..300)
            .filter(|seed| {
                let interval = median_interval(&samples(*seed, 41, 100.0, 0.2)).unwrap();
                interval.low <= 100.0 && 100.0 <= interval.high
            })
            .count();
        // 95 % of 300 is 285, with a standard deviation of about 4.
        assert!((270..=299).contains(&held), "{held} of 300");
    }

    #[test]
    fn the_same_samples_give_the_same_interval() {
        let samples = samples(1, 30, 10.0, 0.5);
        let mut shuffled = samples.clone();
        shuffled.reverse();
        assert_eq!(median_interval(&samples), median_interval(&shuffled));
    }

    #[test]
    fn pairing_sees_a_small_difference_through_large_common_noise() {
        let noise = samples(2, 40, 1.0, 0.4);
        let own = samples(3, 40, 1.05, 0.01);
        let candidate: Vec<f64> = noise.iter().zip(&own).map(|(a, b)| a * b).collect();
        let Verdict::Faster { times, plus_minus } =
            paired_ratio(&candidate, &noise).unwrap().verdict()
        else {
            panic!("5 % faster in every pair, yet no verdict");
        };
        assert!((times - 1.05).abs() < 0.01, "{times}");
        assert!(plus_minus < 0.01, "{plus_minus}");
        let unpaired = median_interval(&candidate).unwrap();
        assert!(unpaired.low < 1.0 && unpaired.high > 1.0);
    }

    #[test]
    fn no_verdict_where_the_interval_includes_one() {
        let candidate = samples(4, 40, 1.0, 0.2);
        let base = samples(5, 40, 1.0, 0.2);
        let ratio = paired_ratio(&candidate, &base).unwrap();
        assert_eq!(ratio.verdict(), Verdict::WithinNoise, "{ratio:?}");
    }

    #[test]
    fn no_verdict_from_too_few_pairs_however_clear() {
        let ratio = paired_ratio(&[9.0; 5], &[1.0; 5]).unwrap();
        assert_eq!(ratio.median, 9.0);
        assert_eq!(ratio.verdict(), Verdict::WithinNoise);
        let ratio = paired_ratio(&[9.0; 6], &[1.0; 6]).unwrap();
        assert_ne!(ratio.verdict(), Verdict::WithinNoise);
        assert_eq!(paired_ratio(&[0.0], &[1.0]), None);
    }

    #[test]
    fn verdicts_are_symmetric_and_readable() {
        let faster = Interval {
            low: 1.9,
            median: 2.0,
            high: 2.1,
        };
        assert_eq!(faster.verdict().to_string(), "2.00 ± 0.10 times faster");
        let slower = Interval {
            low: 0.4,
            median: 0.5,
            high: 0.5,
        };
        assert_eq!(slower.verdict().to_string(), "2.00 ± 0.25 times slower");
        assert_eq!(
            Verdict::WithinNoise.to_string(),
            "no difference beyond the noise"
        );
    }
}
