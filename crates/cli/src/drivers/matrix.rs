//! Every algorithm by every driver, a word each.

use cipherlane_core::{Health, Row, SelfTest};
use comfy_table::Cell;

use super::{by_driver, reasons};
use crate::output;
use crate::units;

/// What the words mean.
const LEGEND: &str = "Numbers are GB/s of long requests, one at a time, encrypted with the \
    shortest key, as 'cipherlane calibrate' or use has shown. yes: it passed its self-test and \
    was not measured yet. refused: it failed its self-test. rests: it failed too often and is \
    tried again. wrong: it gave a wrong result and is not used any more. -: it does not offer \
    this. In detail: 'cipherlane drivers ALG'.";

pub(super) fn text(rows: &[Row]) -> String {
    let groups = by_driver(rows);
    // A driver without any algorithm has a line below, and no column.
    let serves = |group: &&Vec<&Row>| {
        let mut rows = group.iter();
        rows.any(|row| row.self_test != SelfTest::NotRun)
    };
    let columns: Vec<&Vec<&Row>> = groups.iter().filter(serves).collect();
    let mut header = vec!["algorithm".to_owned()];
    header.extend(columns.iter().map(|group| group[0].driver.clone()));
    let mut algorithms: Vec<&str> = rows.iter().map(|row| row.algorithm).collect();
    algorithms.dedup();
    let mut seen = Vec::new();
    algorithms.retain(|name| {
        let fresh = !seen.contains(name);
        seen.push(name);
        fresh
    });
    let lines: Vec<Vec<Cell>> = algorithms
        .iter()
        .map(|algorithm| {
            let mut line = vec![Cell::new(algorithm)];
            line.extend(columns.iter().map(|group| {
                let row = group.iter().find(|row| row.algorithm == *algorithm);
                row.map_or_else(|| Cell::new("-"), |row| word(row))
            }));
            line
        })
        .collect();
    let mut text = output::panels(&header, &lines, 1);
    text.push('\n');
    for group in &groups {
        let said = reasons::of_driver(group);
        if !said.is_empty() {
            text += &output::wrap("", &format!("{}: {}.", group[0].driver, said.join("; ")));
        }
    }
    text + "\n" + &output::wrap("", LEGEND)
}

fn word(row: &Row) -> Cell {
    match (row.self_test, &row.health) {
        (SelfTest::NotRun, _) => Cell::new("-"),
        (SelfTest::Failed, _) => output::bad("refused"),
        (_, Health::Quarantined { .. }) => output::bad("wrong"),
        (_, Health::Suspended { .. }) => output::bad("rests"),
        (_, Health::Working) => match row.gigabytes_per_second {
            Some(rate) => Cell::new(units::digits(rate)),
            None => Cell::new("yes"),
        },
    }
}
