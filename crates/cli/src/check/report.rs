//! Counts of passed, failed and skipped vectors by driver and algorithm, as a table and as JSON.

use std::fmt;

use comfy_table::{Cell, CellAlignment, Table, presets};
use serde::Serialize;

use crate::output;

use super::case::{Case, Skipped};

/// How many failures of one driver and algorithm are named; the rest is only counted.
const NAMED: usize = 5;
/// Stands for the driver of vectors that none was asked to run.
const NO_DRIVER: &str = "none";

/// What running vectors on drivers gave.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Report {
    files: Vec<FileRow>,
    results: Vec<Row>,
}

/// One file that was read.
#[derive(Debug, Serialize)]
struct FileRow {
    file: String,
    format: &'static str,
    vectors: usize,
}

/// One driver and algorithm.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    driver: String,
    algorithm: String,
    passed: usize,
    failed: usize,
    skipped: Vec<Reason>,
    /// Requests that the driver gave up and software finished.
    by_software: u64,
    /// The first ones.
    failures: Vec<Failure>,
}

#[derive(Debug, Serialize)]
struct Reason {
    reason: String,
    count: usize,
}

#[derive(Debug, Serialize)]
struct Failure {
    file: String,
    line: usize,
    id: String,
    key_bits: usize,
    flags: Vec<String>,
    what: String,
}

impl Report {
    /// Notes a file that was read, and what of it is not run on any driver.
    pub(crate) fn file(&mut self, file: &str, format: &'static str, vectors: usize) {
        self.files.push(FileRow {
            file: file.to_owned(),
            format,
            vectors,
        });
    }

    /// Counts vectors that no driver is asked to run.
    pub(crate) fn skipped(&mut self, skipped: &Skipped) {
        self.row(NO_DRIVER, &skipped.algorithm)
            .skip(&skipped.reason, skipped.count);
    }

    /// The counts of a driver and algorithm.
    pub(crate) fn row(&mut self, driver: &str, algorithm: &str) -> &mut Row {
        let known = self
            .results
            .iter()
            .position(|r| r.driver == driver && r.algorithm == algorithm);
        let index = known.unwrap_or_else(|| {
            self.results.push(Row {
                driver: driver.to_owned(),
                algorithm: algorithm.to_owned(),
                passed: 0,
                failed: 0,
                skipped: Vec::new(),
                by_software: 0,
                failures: Vec::new(),
            });
            self.results.len() - 1
        });
        &mut self.results[index]
    }

    /// Whether any vector failed on any driver.
    pub(crate) fn failed(&self) -> bool {
        self.results.iter().any(|r| r.failed > 0)
    }
}

impl Row {
    /// Counts a vector that came out as it must, every way it was run.
    pub(crate) fn pass(&mut self) {
        self.passed += 1;
    }

    /// Counts a vector that did not, and names it if it is among the first.
    pub(crate) fn fail(&mut self, case: &Case, what: String) {
        self.failed += 1;
        if self.failures.len() < NAMED {
            self.failures.push(Failure {
                file: case.file.to_string(),
                line: case.line,
                id: case.id.clone(),
                key_bits: case.key_bits(),
                flags: case.flags.clone(),
                what,
            });
        }
    }

    /// Counts requests that the driver gave up and software finished: their answers are not its own.
    pub(crate) fn by_software(&mut self, requests: u64) {
        self.by_software += requests;
    }

    /// Counts vectors that were not run.
    pub(crate) fn skip(&mut self, reason: &str, count: usize) {
        match self.skipped.iter_mut().find(|s| s.reason == reason) {
            Some(known) => known.count += count,
            None => self.skipped.push(Reason {
                reason: reason.to_owned(),
                count,
            }),
        }
    }
}

impl Report {
    /// One line for each driver and reason, with all algorithms it holds for.
    fn write_skipped(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut groups: Vec<(&str, &str, Vec<String>)> = Vec::new();
        for row in &self.results {
            for Reason { reason, count } in &row.skipped {
                let what = format!("{count} of {}", row.algorithm);
                let known = groups
                    .iter_mut()
                    .find(|g| (g.0, g.1) == (&row.driver, reason));
                match known {
                    Some(group) => group.2.push(what),
                    None => groups.push((&row.driver, reason, vec![what])),
                }
            }
        }
        for (driver, reason, what) in groups {
            let on = match driver {
                NO_DRIVER => String::new(),
                driver => format!(" on {driver}"),
            };
            let said = format!("not run{on}: {reason}: {}", what.join(", "));
            write!(f, "{}", output::wrap("", &said))?;
        }
        Ok(())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.set_header(["driver", "algorithm", "passed", "failed", "skipped"]);
        for column in 2..5 {
            if let Some(column) = table.column_mut(column) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        let run = || self.results.iter().filter(|r| r.driver != NO_DRIVER);
        for row in run() {
            let skipped: usize = row.skipped.iter().map(|s| s.count).sum();
            table.add_row([
                Cell::new(&row.driver),
                Cell::new(&row.algorithm),
                Cell::new(row.passed),
                Cell::new(row.failed),
                Cell::new(skipped),
            ]);
        }
        if run().next().is_some() {
            writeln!(f, "{}", table.trim_fmt())?;
        }
        self.write_skipped(f)?;
        for row in self.results.iter().filter(|r| r.by_software > 0) {
            writeln!(
                f,
                "not its own: {} gave up {} requests of {}, which software finished",
                row.driver, row.by_software, row.algorithm
            )?;
        }
        for row in &self.results {
            for failure in &row.failures {
                write!(
                    f,
                    "FAILED: {}:{}: {}",
                    failure.file, failure.line, failure.id
                )?;
                if !failure.flags.is_empty() {
                    write!(f, " [{}]", failure.flags.join(", "))?;
                }
                writeln!(
                    f,
                    ": {} with a key of {} bits on {}: {}",
                    row.algorithm, failure.key_bits, row.driver, failure.what
                )?;
            }
            let unnamed = row.failed - row.failures.len();
            if unnamed > 0 {
                writeln!(
                    f,
                    "FAILED: {unnamed} more of {} on {}",
                    row.algorithm, row.driver
                )?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn names_the_first_failures_and_counts_the_rest() {
        let mut report = Report::default();
        report.row("software", "cbc(aes)").pass();
        assert!(!report.failed());
        for n in 1..=7 {
            let mut case = Case::new(&Arc::from("f.rsp"), n, format!("Count {n}"), "cbc(aes)");
            case.flags = vec!["BadPadding".into()];
            case.key = vec![0; 24];
            report
                .row("software", "cbc(aes)")
                .fail(&case, "wrong ciphertext".into());
        }
        report.skipped(&Skipped {
            algorithm: "AES-CCM".into(),
            reason: "no driver".into(),
            count: 3,
        });
        report.skipped(&Skipped {
            algorithm: "AES-SIV".into(),
            reason: "no driver".into(),
            count: 1,
        });
        assert!(report.failed());
        let text = report.to_string();
        assert!(text.contains(
            "FAILED: f.rsp:5: Count 5 [BadPadding]: cbc(aes) with a key of 192 bits on software: \
             wrong ciphertext"
        ));
        assert!(!text.contains("Count 6"));
        assert!(text.contains("FAILED: 2 more of cbc(aes) on software"));
        assert!(
            text.contains("not run: no driver: 3 of AES-CCM, 1 of AES-SIV\n"),
            "{text}"
        );
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["results"][0]["failed"], 7);
        assert_eq!(json["results"][0]["failures"][4]["line"], 5);
        assert_eq!(json["results"][1]["skipped"][0]["count"], 3);
    }
}
