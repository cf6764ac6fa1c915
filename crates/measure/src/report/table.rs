//! Figures as tables: throughput of everything, and all figures of a case.

use super::html::escape;
use crate::record::{Case, Cell, CrossoverEntry, Ratio, Record};
use crate::units;

/// Heads of the columns.
const COLUMNS: [&str; 15] = [
    "Bytes",
    "Driver",
    "MB/s",
    "95 %",
    "× base",
    "95 %",
    "Load %",
    "User s/GB",
    "Kernel s/GB",
    "p50 ns",
    "p99 ns",
    "Waits",
    "Preempt.",
    "Faults",
    "Noise",
];

/// What the heads leave out.
pub(super) const LEGEND: &str = "In the tables, 95 % is the confidence interval of the figure \
    before it, × base the throughput as a multiple of the base driver's, s/GB processor time for \
    10<sup>9</sup> bytes; Waits, Preempt. and Faults are voluntary and involuntary context switches and \
    page faults a request.";

/// Throughput of everything that was measured: a row per case and driver, a column per size.
pub(super) fn overview(record: &Record, cases: &[Case]) -> String {
    let mut sizes: Vec<u64> = record.cells.iter().map(|cell| cell.size).collect();
    sizes.sort_unstable();
    sizes.dedup();
    if sizes.is_empty() {
        return String::new();
    }
    let head: String = sizes
        .iter()
        .map(|&size| format!("<th scope=col>{}", units::size(size)))
        .collect();
    let mut rows = String::new();
    for (number, case) in cases.iter().enumerate() {
        let of_case = || record.cells.iter().filter(|cell| cell.case() == *case);
        let mut drivers: Vec<&str> = Vec::new();
        for cell in of_case() {
            if !drivers.contains(&cell.driver.as_str()) {
                drivers.push(&cell.driver);
            }
        }
        for (index, driver) in drivers.into_iter().enumerate() {
            let (class, title) = match index {
                0 => (
                    " class=\"first\"",
                    format!("<a href=\"#case{number}\">{}</a>", escape(&case.title())),
                ),
                _ => ("", String::new()),
            };
            rows += &format!("<tr{class}><th>{title}<th>{}", escape(driver));
            for size in &sizes {
                let cell = of_case().find(|cell| cell.driver == driver && cell.size == *size);
                rows += &cell.map_or_else(
                    || "<td>".to_owned(),
                    |cell| {
                        let noisy = if cell.noisy { "~" } else { "" };
                        let rate = units::significant_kept(cell.bytes_per_second / 1e9, 3);
                        format!("<td>{rate}{noisy}")
                    },
                );
            }
            rows.push('\n');
        }
    }
    format!(
        "<section><h2>Throughput in GB/s</h2><p class=\"caption\">10<sup>9</sup> bytes of \
         payload per second of elapsed time, by bytes of a request. ~ is noisy.</p>\n\
         <div class=\"scroll\"><table class=\"overview\"><thead><tr><th><th>driver{head}</thead>\n\
         <tbody>\n{rows}</tbody></table></div></section>\n"
    )
}

/// A row per cell, in the order given.
pub(super) fn html(cells: &[&Cell], entries: &[&CrossoverEntry]) -> String {
    let head: String = COLUMNS
        .iter()
        .map(|name| format!("<th scope=col>{name}"))
        .collect();
    let mut last_size = None;
    let rows: String = cells
        .iter()
        .map(|cell| {
            let ratio = entries
                .iter()
                .find(|entry| entry.driver == cell.driver)
                .and_then(|entry| entry.ratios.iter().find(|ratio| ratio.size == cell.size));
            let first = last_size.replace(cell.size) != Some(cell.size);
            row(cell, ratio, first)
        })
        .collect();
    format!(
        "<div class=\"scroll\"><table class=\"figures\"><thead><tr>{head}</thead>\n\
         <tbody>\n{rows}</tbody></table></div>"
    )
}

/// End tags that HTML does not need are left out: there are many rows.
fn row(cell: &Cell, ratio: Option<&Ratio>, first_of_size: bool) -> String {
    let megabytes = |rate: f64| number(rate / 1e6);
    let (times, times_interval) = match ratio {
        None => (String::new(), String::new()),
        Some(ratio) => (
            number(ratio.ratio),
            match ratio.ci_high {
                Some(high) => interval(ratio.ci_low, high),
                None => "open".into(),
            },
        ),
    };
    let figures = [
        megabytes(cell.bytes_per_second),
        interval(cell.ci_low / 1e6, cell.ci_high / 1e6),
        times,
        times_interval,
        match cell.pause_us {
            None => number(cell.load() * 100.0),
            // Helpers work in the pauses too, which are not in the times.
            Some(_) => String::new(),
        },
        number(cell.user_seconds_per_gb),
        number(cell.system_seconds_per_gb),
        number(cell.ns_per_request_p50),
        number(cell.ns_per_request_p99),
        number(cell.voluntary_switches_per_request),
        number(cell.involuntary_switches_per_request),
        number(cell.page_faults_per_request),
        if cell.noisy { "noisy" } else { "" }.into(),
    ];
    format!(
        "<tr{}><th>{}<td>{}<td>{}\n",
        if first_of_size {
            " class=\"first\""
        } else {
            ""
        },
        cell.size,
        escape(&cell.driver),
        figures.join("<td>")
    )
}

fn interval(low: f64, high: f64) -> String {
    format!("{}–{}", number(low), number(high))
}

/// Three digits, four where the first is a 1, with a narrow space between thousands; powers of ten for the
/// very small.
fn number(value: f64) -> String {
    if value != 0.0 && value.abs() < 1e-3 {
        return format!("{value:.1e}");
    }
    let ones = value.abs() / 10f64.powf(value.abs().log10().floor()) < 2.0;
    let text = units::significant(value, if ones { 4 } else { 3 });
    let whole = text.split('.').next().unwrap_or_default().len();
    if whole < 5 {
        return text;
    }
    let mut grouped = String::with_capacity(text.len() + 9);
    for (index, character) in text.chars().enumerate() {
        if index > 0 && index < whole && (whole - index).is_multiple_of(3) {
            grouped.push('\u{202f}');
        }
        grouped.push(character);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::tests::record;

    #[test]
    fn numbers_have_three_digits_or_four_and_groups() {
        for (value, text) in [
            (0.0, "0"),
            (0.25, "0.25"),
            (1234.56, "1235"),
            (2346.0, "2350"),
            (12_346.0, "12\u{202f}350"),
            (1_234_567.0, "1\u{202f}235\u{202f}000"),
            (0.000_123, "1.2e-4"),
            (1.0, "1"),
        ] {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn every_row_fills_every_column() {
        let record = record();
        let cells: Vec<&Cell> = record.cells.iter().collect();
        let entries: Vec<&CrossoverEntry> = record.crossovers.iter().collect();
        let table = html(&cells, &entries);
        let rows: Vec<&str> = table.lines().filter(|line| line.contains("<th>")).collect();
        assert_eq!(rows.len(), 6);
        for row in rows {
            assert_eq!(row.matches("<td>").count() + 1, COLUMNS.len(), "{row}");
        }
        assert!(table.contains("<td>engine<td>0.205<td>0.205–0.205<td>0.5<td>0.5–0.5<td>"));
    }
}
