//! The table of drivers and algorithms that users are shown.

use super::Framework;
use crate::health::Health;
use crate::stats::Totals;
use crate::{Algorithm, NotAdmitted, NotUsedBecause};

impl Framework {
    /// A row for each driver and algorithm, like `/proc/crypto`. Runs the self-tests that
    /// have not run yet.
    pub fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        for (index, entry) in self.shared.entries.iter().enumerate() {
            for algorithm in Algorithm::all() {
                let admission = entry.admit(algorithm, &self.shared.clock);
                let key_len = algorithm.key_lengths()[0];
                let learned = admission
                    .is_ok()
                    .then(|| self.dispatch(algorithm, key_len).models(index)[0][0].line())
                    .flatten();
                rows.push(Row {
                    algorithm: algorithm.name,
                    driver: entry.driver.name().to_owned(),
                    priority: entry.driver.priority(),
                    not_used_because: self.not_used(index, algorithm),
                    notes: entry.notes(),
                    self_test: match &admission {
                        Ok(_) => SelfTest::Passed,
                        Err(NotAdmitted::SelfTest(_)) => SelfTest::Failed,
                        Err(_) => SelfTest::NotRun,
                    },
                    health: entry.breaker.health(),
                    fixed_ns: learned.map(|l| l.0),
                    gigabytes_per_second: learned.map(|l| l.1),
                    totals: self.shared.stats.read(index, algorithm.index()),
                });
            }
        }
        rows
    }
}

/// One driver and algorithm, for listings.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Row {
    /// CryptoAPI name.
    pub algorithm: &'static str,
    /// Driver name.
    pub driver: String,
    /// As in the Linux CryptoAPI; only the tie-break.
    pub priority: i32,
    /// Outcome of the self-test.
    pub self_test: SelfTest,
    /// Health of the driver.
    pub health: Health,
    /// Learned fixed cost of a request in nanoseconds, encrypting, waiting.
    pub fixed_ns: Option<f32>,
    /// Learned rate on large requests in GB/s, encrypting, waiting.
    pub gigabytes_per_second: Option<f32>,
    /// Why `auto` does not use it; a sentence in JSON.
    pub not_used_because: Option<NotUsedBecause>,
    /// What else the user should know of the driver.
    pub notes: Vec<String>,
    /// Statistics.
    pub totals: Totals,
}

/// Outcome of a self-test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SelfTest {
    /// Admitted.
    Passed,
    /// Refused.
    Failed,
    /// Absent, disabled, or the driver does not offer the algorithm.
    NotRun,
}
