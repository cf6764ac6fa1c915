//! `cipherlane drivers`: what there is, like /proc/crypto.

use cipherlane_core::{Framework, Row, SelfTest};
use clap::Args;

use crate::failure::Failure;
use crate::output::{self, JsonFlag};
use crate::units;

/// List drivers and algorithms: admission, health, learned cost, and why one is not used
#[derive(Args, Debug)]
pub(crate) struct DriversArgs {
    #[command(flatten)]
    json: JsonFlag,
}

pub(crate) fn run(args: &DriversArgs, framework: &Framework) -> Result<(), Failure> {
    let rows = framework.rows();
    if args.json.json {
        return output::json(&rows);
    }
    let groups: Vec<String> = rows
        .chunk_by(|a, b| a.driver == b.driver)
        .map(group)
        .collect();
    output::print(&format!("{}\n{}", groups.join("\n"), note(&rows)))
}

/// What the numbers mean, and how to get those that are missing.
fn note(rows: &[Row]) -> &'static str {
    let missing = |row: &Row| row.self_test == SelfTest::Passed && row.fixed_ns.is_none();
    match rows.iter().any(missing) {
        true => {
            "fixed, GB/s: to encrypt one request with the shortest key, the caller waiting.\n\
             -: not measured yet; 'cipherlane calibrate' does it.\n"
        }
        false => "fixed, GB/s: to encrypt one request with the shortest key, the caller waiting.\n",
    }
}

/// One driver.
fn group(rows: &[Row]) -> String {
    let first = &rows[0];
    let mut text = format!(
        "{}: priority {}, {}\n",
        first.driver, first.priority, first.health
    );
    let common = rows
        .iter()
        .all(|row| row.not_used_because == first.not_used_because);
    match &first.not_used_because {
        Some(reason) if common => {
            text.push_str(&output::wrap("  ", &format!("not used because: {reason}")))
        }
        _ => {}
    }
    for note in &first.notes {
        text.push_str(&output::wrap("  ", note));
    }
    if common && rows.iter().all(|row| row.self_test == SelfTest::NotRun) {
        return text;
    }
    let mut header = vec![
        "algorithm",
        "self-test",
        "fixed",
        "GB/s",
        "requests",
        "bytes",
    ];
    if !common {
        header.push("not used because");
    }
    let mut table = output::table(&header, &[2, 3, 4, 5]);
    for row in rows {
        let mut cells = vec![
            row.algorithm.to_owned(),
            self_test(row.self_test).to_owned(),
            row.fixed_ns.map_or("-".to_owned(), units::time),
            row.gigabytes_per_second
                .map_or("-".to_owned(), units::digits),
            row.totals.requests.to_string(),
            units::size(row.totals.bytes),
        ];
        if !common {
            cells.push(row.not_used_because.clone().unwrap_or_default());
        }
        table.add_row(cells);
    }
    text.push_str(&format!("{}\n", table.trim_fmt()));
    text
}

fn self_test(outcome: SelfTest) -> &'static str {
    match outcome {
        SelfTest::Passed => "passed",
        SelfTest::Failed => "failed",
        SelfTest::NotRun => "not run",
    }
}
