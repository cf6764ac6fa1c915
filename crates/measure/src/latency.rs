//! Latencies of single operations, on a logarithmic scale.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// A histogram of latencies in nanoseconds: three significant digits from
/// 1 ns to 100 s, longer ones counted as 100 s. Adding one allocates nothing. Between processes it
/// goes as pairs of nanoseconds and how often.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(from = "Vec<(u64, u64)>", into = "Vec<(u64, u64)>")]
pub struct Latency {
    histogram: Histogram<u64>,
}

/// The longest latency told apart, in nanoseconds.
const LONGEST: u64 = 100_000_000_000;

impl Default for Latency {
    fn default() -> Self {
        let histogram = Histogram::new_with_bounds(1, LONGEST, 3);
        Self {
            histogram: histogram.expect("bounds from 1, with 1 to 5 digits, are valid"),
        }
    }
}

impl From<Latency> for Vec<(u64, u64)> {
    fn from(latency: Latency) -> Self {
        let recorded = latency.histogram.iter_recorded();
        recorded
            .map(|at| (at.value_iterated_to(), at.count_at_value()))
            .collect()
    }
}

impl From<Vec<(u64, u64)>> for Latency {
    fn from(pairs: Vec<(u64, u64)>) -> Self {
        let mut latency = Self::default();
        for (nanoseconds, count) in pairs {
            latency
                .histogram
                .saturating_record_n(nanoseconds.clamp(1, LONGEST), count);
        }
        latency
    }
}

impl Latency {
    /// Counts one operation.
    pub fn record(&mut self, latency: Duration) {
        let nanoseconds = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        self.histogram.saturating_record(nanoseconds);
    }

    /// Adds what another thread has counted.
    pub fn merge(&mut self, other: &Self) {
        self.histogram += &other.histogram;
    }

    /// Operations counted.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Nanoseconds that a share `q` (0 to 1) of the operations did not exceed;
    /// `None` if none was counted.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        (self.count() > 0).then(|| self.histogram.value_at_quantile(q) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_good_to_three_digits() {
        let mut latency = Latency::default();
        assert_eq!(latency.quantile(0.5), None);
        for nanoseconds in 1..=100_000 {
            latency.record(Duration::from_nanos(nanoseconds));
        }
        for (q, expected) in [(0.5, 50_000.0), (0.99, 99_000.0), (0.999, 99_900.0)] {
            let found = latency.quantile(q).unwrap();
            assert!((found / expected - 1.0).abs() < 2e-3, "{q}: {found}");
        }
    }

    #[test]
    fn another_process_reads_what_one_has_counted() {
        let mut latency = Latency::default();
        for nanoseconds in 1..=10_000 {
            latency.record(Duration::from_nanos(nanoseconds));
        }
        let text = serde_json::to_string(&latency).unwrap();
        let read: Latency = serde_json::from_str(&text).unwrap();
        assert_eq!(read.count(), latency.count());
        for q in [0.01, 0.5, 0.99, 1.0] {
            assert_eq!(read.quantile(q), latency.quantile(q));
        }
        let hostile: Latency = serde_json::from_str("[[0, 3], [18446744073709551615, 1]]").unwrap();
        assert_eq!(hostile.count(), 4);
    }

    #[test]
    fn merging_counts_both_and_extremes_do_not_fail() {
        let (mut one, mut other) = (Latency::default(), Latency::default());
        one.record(Duration::ZERO);
        other.record(Duration::from_secs(1_000_000));
        one.merge(&other);
        assert_eq!(one.count(), 2);
        assert!(one.quantile(1.0).unwrap() > 0.99e11);
        assert!(one.quantile(0.0).unwrap() <= 1.0);
    }
}
