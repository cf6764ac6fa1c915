//! What is printed: a block a case with sizes across and drivers down, details on demand, and
//! the crossovers in words.

use cipherlane_measure::crossover::Outcome;
use cipherlane_measure::record::{Case, Cell, CrossoverEntry, Record};
use cipherlane_measure::units as human;
use comfy_table::{CellAlignment, ContentArrangement, Table};

use super::asked::Asked;
use super::auto::Promise;
use crate::output;
use crate::units;

/// How to read the table, and how it differs from what users know.
const LEGEND: &str = "\
GB/s of elapsed time, 10^9 bytes of payload: openssl speed -elapsed would print 1.00 as 1000000k.
It differs from openssl speed in that drivers take turns in short blocks, of which this is the
median, and every operation has a fresh IV. Below stands the multiple of BASE, = without a
verdict inside the noise. * is the best, ~ is noisy (disturbed, or spread over plus or minus 5 %).
";

/// Everything.
pub(super) fn text(record: &Record, asked: &Asked, promise: &Promise) -> String {
    let machine = &record.machine;
    let base = record.crossovers.first().map(|entry| entry.base.as_str());
    let mut text = format!(
        "{}, {} processors, {}, {}\n{}",
        machine.cpu,
        machine.cpus,
        machine.kernel,
        machine.date,
        LEGEND.replace("BASE", base.unwrap_or("the first driver"))
    );
    for cells in record.cells.chunk_by(|a, b| a.case() == b.case()) {
        let case = cells[0].case();
        text += &format!("\n{}\n{}\n", case.title(), block(record, &case, cells));
        if asked.verbose {
            text += &format!("\n{}\n", details(cells));
        }
    }
    for entries in record.crossovers.chunk_by(|a, b| a.case == b.case) {
        text += &format!("\n{}\n", entries[0].case.title());
        for entry in entries {
            text += &format!("  {}\n", entry.sentence);
        }
    }
    if let Some(kept) = promise.text() {
        text += &format!("\n{kept}");
    }
    if !asked.verbose {
        text += "\nLatency, processor time, context switches and page faults of every cell: \
                 --verbose, --json, --csv or --html.\n";
    }
    text
}

/// Throughput of one case.
fn block(record: &Record, case: &Case, cells: &[Cell]) -> String {
    let (mut sizes, mut drivers) = (Vec::new(), Vec::new());
    for cell in cells {
        if !sizes.contains(&cell.size) {
            sizes.push(cell.size);
        }
        if !drivers.contains(&cell.driver.as_str()) {
            drivers.push(&cell.driver);
        }
    }
    let heads = sizes.iter().map(|&size| human::size(size));
    let mut table = table(["GB/s".to_owned()].into_iter().chain(heads).collect());
    for driver in drivers {
        let entry = record
            .crossovers
            .iter()
            .find(|entry| entry.case == *case && entry.driver == driver);
        let figures = sizes.iter().map(|&size| {
            let at_size = cells.iter().filter(|cell| cell.size == size);
            let cell = at_size.clone().find(|cell| cell.driver == driver)?;
            let most = at_size.map(|c| c.bytes_per_second).fold(0.0, f64::max);
            Some(figure(cell, cell.bytes_per_second >= most, entry))
        });
        let figures: Vec<String> = figures.map(Option::unwrap_or_default).collect();
        table.add_row([driver.to_owned()].into_iter().chain(figures));
    }
    table.trim_fmt()
}

/// Throughput, its marks, and below it the multiple of the base.
fn figure(cell: &Cell, best: bool, entry: Option<&CrossoverEntry>) -> String {
    let noisy = if cell.noisy { "~" } else { "" };
    let best = if best { "*" } else { "" };
    let rate = gigabytes(cell.bytes_per_second);
    let ratios = entry.map(|entry| entry.ratios.iter());
    let ratio = ratios.and_then(|mut ratios| ratios.find(|ratio| ratio.size == cell.size));
    let multiple = match ratio {
        None => String::new(),
        Some(ratio) if ratio.outcome == Outcome::Open => "\n=".to_owned(),
        Some(ratio) => format!("\n×{}", units::digits(ratio.ratio as f32)),
    };
    format!("{rate}{best}{noisy}{multiple}")
}

/// GB/s with three digits that count, as far as four decimals go.
fn gigabytes(bytes_per_second: f64) -> String {
    let value = bytes_per_second / 1e9;
    let decimals = match value {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        v if v >= 0.9995 => 2,
        v if v >= 0.09995 => 3,
        _ => 4,
    };
    format!("{value:.decimals$}")
}

/// What else was measured, a row a cell.
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
    let mut table = table(heads.map(str::to_owned).to_vec());
    if let Some(column) = table.column_mut(1) {
        column.set_cell_alignment(CellAlignment::Left);
    }
    for cell in cells {
        table.add_row([
            human::size(cell.size),
            cell.driver.clone(),
            human::time(cell.ns_per_request_p50),
            human::time(cell.ns_per_request_p99),
            format!("{:.0} %", cell.load() * 100.0),
            format!("{:.3}", cell.user_seconds_per_gb),
            format!("{:.3}", cell.system_seconds_per_gb),
            events(cell.voluntary_switches_per_request),
            events(cell.involuntary_switches_per_request),
            events(cell.page_faults_per_request),
        ]);
    }
    format!(
        "{}\nTimes and events are those of one request; load is of the whole process, 100 % is a core.",
        table.trim_fmt()
    )
}

/// A number of events a request.
fn events(value: f64) -> String {
    match value {
        0.0 => "0".to_owned(),
        v if v < 0.001 => format!("{v:.0e}"),
        v => format!("{v:.3}"),
    }
}

/// A table whose columns keep their width, numbers to the right.
fn table(heads: Vec<String>) -> Table {
    let numbers: Vec<usize> = (1..heads.len()).collect();
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    let mut table = output::table(&heads, &numbers);
    table.set_content_arrangement(ContentArrangement::Disabled);
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_keep_three_digits() {
        for (rate, text) in [
            (123.4e9, "123"),
            (12.34e9, "12.3"),
            (1.234e9, "1.23"),
            (0.1234e9, "0.123"),
            (0.04567e9, "0.0457"),
            (0.9996e9, "1.00"),
        ] {
            assert_eq!(gigabytes(rate), text);
        }
        assert_eq!(events(0.0), "0");
        assert_eq!(events(0.000_012), "1e-5");
        assert_eq!(events(1.5), "1.500");
    }
}
