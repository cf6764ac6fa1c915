//! What is printed: a block per case with sizes across and drivers down, details on demand, and
//! the crossovers in words.

use std::fmt::Write as _;

use cipherlane_measure::crossover::Outcome;
use cipherlane_measure::record::{Case, Cell, CrossoverEntry, Record};
use cipherlane_measure::units as human;

use super::asked::{Asked, Unit};
use super::auto::Promise;
use crate::output::{self, wrap};
use crate::units;

/// Everything.
pub(super) fn text(record: &Record, asked: &Asked, promise: &Promise) -> String {
    let base = record.crossovers.first().map(|entry| entry.base.as_str());
    let mut text = output::headline(&record.machine);
    text += &wrap("", &legend(asked.unit, base));
    for cells in record.cells.chunk_by(|a, b| a.case() == b.case()) {
        let case = cells[0].case();
        let title = output::styled(output::STRONG, &case.title());
        text += &format!("\n{title}\n{}", block(record, &case, cells, asked.unit));
        if asked.verbose {
            text += &format!("\n{}\n", details(cells));
        }
    }
    for entries in record.crossovers.chunk_by(|a, b| a.case == b.case) {
        text += &format!("\n{}\n", entries[0].case.title());
        for entry in entries {
            text += &wrap("  ", &entry.sentence);
        }
    }
    if let Some(kept) = promise.text() {
        text.push('\n');
        for line in kept.lines() {
            let rest = line.trim_start();
            text += &wrap(&line[..line.len() - rest.len()], rest);
        }
    }
    if !asked.verbose {
        text.push('\n');
        text += &wrap(
            "",
            "Latency, processor time, context switches and page faults of every cell: --verbose, \
             --json, --csv or --html.",
        );
    }
    text
}

/// How to read the table, and how it differs from what users know.
fn legend(unit: Unit, base: Option<&str>) -> String {
    let unit = match unit {
        Unit::Gigabytes => {
            "GB/s of elapsed time, 10^9 bytes of payload: openssl speed -elapsed would print 1.00 \
             as 1000000k."
        }
        Unit::Cycles => {
            "Cycles per byte, counted by the processor's time stamp counter, which runs at its \
             nominal frequency."
        }
        Unit::Nanoseconds => "Nanoseconds per request, of elapsed time.",
    };
    let below = base.map_or_else(String::new, |base| {
        format!("Below stands how many times as fast as {base}, = where they differ by no more than the noise. ")
    });
    format!(
        "{unit} It differs from openssl speed in that drivers take turns in short blocks, of \
         which this is the median, and every operation has a fresh IV. {below}* is the best, ~ \
         is noisy (others had the processor, or it spreads over plus or minus 5 %) and gets no verdict."
    )
}

/// One case.
fn block(record: &Record, case: &Case, cells: &[Cell], unit: Unit) -> String {
    let (sizes, drivers) = (sizes(cells), drivers(cells));
    let mut header = vec![unit.head().to_owned()];
    header.extend(sizes.iter().map(|&size| human::size(size)));
    let rows = drivers.iter().map(|&driver| {
        let entry = record
            .crossovers
            .iter()
            .find(|entry| entry.case == *case && entry.driver == driver);
        let mut row = vec![comfy_table::Cell::new(driver)];
        row.extend(sizes.iter().map(|&size| {
            let at_size = cells.iter().filter(|cell| cell.size == size);
            let cell = at_size.clone().find(|cell| cell.driver == driver);
            cell.map_or_else(
                || comfy_table::Cell::new(""),
                |cell| {
                    let of_base = |c: &&Cell| entry.is_some_and(|entry| c.driver == entry.base);
                    let noisy =
                        cell.noisy || at_size.clone().find(of_base).is_some_and(|c| c.noisy);
                    figure(cell, is_best(cell, at_size), entry, noisy, unit)
                },
            )
        }));
        row
    });
    output::panels(&header, &rows.collect::<Vec<_>>(), 1)
}

/// Sizes in the order measured.
pub(super) fn sizes(cells: &[Cell]) -> Vec<u64> {
    let mut sizes = Vec::new();
    for cell in cells {
        if !sizes.contains(&cell.size) {
            sizes.push(cell.size);
        }
    }
    sizes
}

/// Drivers in the order measured.
pub(super) fn drivers(cells: &[Cell]) -> Vec<&str> {
    let mut drivers = Vec::new();
    for cell in cells {
        if !drivers.contains(&cell.driver.as_str()) {
            drivers.push(&cell.driver);
        }
    }
    drivers
}

/// Whether a cell is the best of those of its case and size. A noisy one never is.
pub(super) fn is_best<'c>(cell: &Cell, of: impl Iterator<Item = &'c Cell>) -> bool {
    let of: Vec<&Cell> = of.collect();
    let most = of.iter().map(|c| c.bytes_per_second).fold(0.0, f64::max);
    of.len() > 1 && !cell.noisy && cell.bytes_per_second >= most
}

/// The figure, its marks, and below it the multiple of the base.
fn figure(
    cell: &Cell,
    best: bool,
    entry: Option<&CrossoverEntry>,
    either_noisy: bool,
    unit: Unit,
) -> comfy_table::Cell {
    let noisy = if cell.noisy { "~" } else { "" };
    let mark = if best { "*" } else { "" };
    let ratios = entry.map(|entry| entry.ratios.iter());
    let ratio = ratios.and_then(|mut ratios| ratios.find(|ratio| ratio.size == cell.size));
    let multiple = match ratio {
        None => String::new(),
        Some(ratio) if ratio.outcome == Outcome::Open && either_noisy => "\n".to_owned(),
        Some(ratio) if ratio.outcome == Outcome::Open => "\n=".to_owned(),
        Some(ratio) => format!("\n×{}", units::digits(ratio.ratio as f32)),
    };
    let text = format!("{}{mark}{noisy}{multiple}", unit.figure(cell));
    match best {
        true => output::good(text),
        false => comfy_table::Cell::new(text),
    }
}

/// What else was measured, a row per cell.
fn details(cells: &[Cell]) -> String {
    let heads = [
        "size",
        "driver",
        "p50",
        "p99",
        "load",
        "user s/GB",
        "kernel s/GB",
        "waits",
        "preempted",
        "faults",
    ];
    let rows = cells.iter().map(|cell| {
        let row = [
            human::size(cell.size),
            cell.driver.clone(),
            human::time(cell.ns_per_request_p50),
            human::time(cell.ns_per_request_p99),
            match cell.pause_us {
                None => format!("{:.0} %", cell.load() * 100.0),
                // Helpers work in the pauses too, which are not in the times.
                Some(_) => String::new(),
            },
            format!("{:.3}", cell.user_seconds_per_gb),
            format!("{:.3}", cell.system_seconds_per_gb),
            events(cell.voluntary_switches_per_request),
            events(cell.involuntary_switches_per_request),
            events(cell.page_faults_per_request),
        ];
        row.map(comfy_table::Cell::new).to_vec()
    });
    let rows: Vec<Vec<comfy_table::Cell>> = rows.collect();
    let mut text = output::panels(&heads.map(str::to_owned), &rows, 2);
    let _ = write!(
        text,
        "{}",
        wrap(
            "",
            "Times and events are those of one request; load is of the whole process, 100 % is \
             a core."
        )
    );
    text.trim_end().to_owned()
}

/// A number of events per request.
fn events(value: f64) -> String {
    match value {
        0.0 => "0".to_owned(),
        v if v < 0.001 => format!("{v:.0e}"),
        v => format!("{v:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_short() {
        assert_eq!(events(0.0), "0");
        assert_eq!(events(0.000_012), "1e-5");
        assert_eq!(events(1.5), "1.500");
    }
}
