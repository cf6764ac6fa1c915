//! One algorithm, or everything, with the figures.

use cipherlane_core::{Row, SelfTest};

use super::{by_driver, reasons};
use crate::output;
use crate::units;

/// What the numbers mean.
const LEGEND: &str =
    "fixed, GB/s: to encrypt one request with the shortest key, the caller waiting.";
const UNKNOWN: &str = "-: not measured yet; 'cipherlane calibrate' does it.";

/// Each algorithm, a row per driver.
pub(super) fn by_algorithm(rows: &[Row], algorithms: &[&str]) -> String {
    let mut text = String::new();
    for algorithm in algorithms {
        let of: Vec<&Row> = rows
            .iter()
            .filter(|row| row.algorithm == *algorithm)
            .collect();
        text += &format!("{}\n", output::styled(output::STRONG, algorithm));
        text += &table("driver", of.iter().map(|row| (row.driver.as_str(), *row)));
        for row in of {
            let said = reasons::of_driver(&[row]);
            if !said.is_empty() {
                text += &output::wrap("  ", &format!("{}: {}.", row.driver, said.join("; ")));
            }
        }
        text.push('\n');
    }
    text + &note(rows)
}

/// Each driver, a row an algorithm.
pub(super) fn by_driver_text(rows: &[Row]) -> String {
    let mut text = String::new();
    for group in by_driver(rows) {
        let first = group[0];
        text += &format!(
            "{}, priority {}, {}\n",
            output::styled(output::STRONG, &first.driver),
            first.priority,
            first.health
        );
        let shown = group.iter().filter(|row| row.self_test != SelfTest::NotRun);
        if shown.clone().next().is_some() {
            text += &table("algorithm", shown.map(|row| (row.algorithm, *row)));
        }
        for said in reasons::of_driver(&group) {
            text += &output::wrap("  ", &format!("{said}."));
        }
        text.push('\n');
    }
    text + &note(rows)
}

fn table<'r>(of: &str, rows: impl Iterator<Item = (&'r str, &'r Row)>) -> String {
    let header = [of, "self-test", "fixed", "GB/s"];
    let mut table = output::table(&header, &[2, 3]);
    for (name, row) in rows {
        table.add_row([
            name.to_owned(),
            self_test(row.self_test).to_owned(),
            row.fixed_ns.map_or("-".to_owned(), units::time),
            row.gigabytes_per_second
                .map_or("-".to_owned(), units::digits),
        ]);
    }
    format!("{}\n", table.trim_fmt())
}

fn note(rows: &[Row]) -> String {
    let missing = |row: &Row| row.self_test == SelfTest::Passed && row.fixed_ns.is_none();
    let mut note = output::wrap("", LEGEND);
    if rows.iter().any(missing) {
        note += &output::wrap("", UNKNOWN);
    }
    note
}

fn self_test(outcome: SelfTest) -> &'static str {
    match outcome {
        SelfTest::Passed => "passed",
        SelfTest::Failed => "failed",
        SelfTest::NotRun => "not run",
    }
}
