//! The section of one case: verdicts by size, charts, table.

use super::chart::{Chart, Guide, Labels, Line, Point, SERIES};
use super::html::escape;
use super::table;
use crate::crossover::Outcome;
use crate::record::{Case, Cell, CrossoverEntry, Ratio, Record};
use crate::units;

/// The section of `case`, the page's number `number`. `drivers` are those of
/// the whole page and give each its colour.
pub(super) fn html(record: &Record, case: &Case, number: usize, drivers: &[&str]) -> String {
    let (cells, entries) = of_case(record, case, drivers);
    let legend: String = shown(&cells, drivers)
        .map(|(index, driver)| {
            format!(
                "<li><button type=\"button\" aria-pressed=\"true\" data-series=\"{}\" hidden>{}</button></li>",
                index % SERIES,
                escape(driver)
            )
        })
        .collect();
    let charts: String = charts(&cells, &entries, drivers)
        .iter()
        .map(Chart::figure)
        .collect();
    format!(
        "<section class=\"case\" id=\"case{number}\">\n\
         <h2>{}</h2>\n{}<ul class=\"legend\">{legend}</ul>\n<div class=\"charts\">{charts}</div>\n\
         <details><summary>All figures as a table</summary>{}</details>\n</section>\n",
        heading(case),
        verdicts(&entries, number),
        table::html(&cells, &entries),
    )
}

/// The cells of a case by size and driver, and its comparisons.
fn of_case<'r>(
    record: &'r Record,
    case: &Case,
    drivers: &[&str],
) -> (Vec<&'r Cell>, Vec<&'r CrossoverEntry>) {
    let cells = record.cells.iter().filter(|cell| cell.case() == *case);
    let mut cells: Vec<&Cell> = cells.collect();
    let rank = |driver: &str| drivers.iter().position(|name| *name == driver);
    cells.sort_by_key(|cell| (cell.size, rank(&cell.driver)));
    let entries = record.crossovers.iter();
    (cells, entries.filter(|entry| entry.case == *case).collect())
}

/// The chart of throughput of one case.
pub(super) fn throughput(record: &Record, case: &Case, drivers: &[&str]) -> Chart {
    let (cells, entries) = of_case(record, case, drivers);
    charts(&cells, &entries, drivers).swap_remove(0)
}

/// The drivers of these cells, each with its place among those of the whole page.
fn shown<'d>(cells: &'d [&Cell], drivers: &'d [&str]) -> impl Iterator<Item = (usize, &'d str)> {
    let of_cells = |driver: &str| cells.iter().any(|cell| cell.driver == driver);
    let all = drivers.iter().copied().enumerate();
    all.filter(move |(_, driver)| of_cells(driver))
}

/// Throughput, its multiple of the base, latency and load.
fn charts(cells: &[&Cell], entries: &[&CrossoverEntry], drivers: &[&str]) -> Vec<Chart> {
    let lines = |second: bool, point: &dyn Fn(&Cell) -> Point| -> Vec<Line> {
        shown(cells, drivers)
            .map(|(series, driver)| Line {
                name: driver.to_owned(),
                series,
                second,
                points: cells
                    .iter()
                    .filter(|cell| cell.driver == driver)
                    .map(|cell| point(cell))
                    .collect(),
            })
            .collect()
    };
    let at = |cell: &Cell, y: f64| Point {
        x: cell.size as f64,
        y,
        noisy: cell.noisy,
        told: if cell.noisy {
            "noisy".to_owned()
        } else {
            String::new()
        },
        interval: None,
    };
    let uprights = entries.iter().flat_map(|entry| {
        let series = drivers.iter().position(|driver| *driver == entry.driver);
        let crossings = entry.crossings.iter();
        crossings.filter_map(move |crossing| {
            let about = format!("≈ {}", units::about_size(crossing.size));
            Some((series?, crossing.size, about))
        })
    });
    let uprights: Vec<(usize, f64, String)> = uprights.collect();
    let by_size = |up: fn(f64) -> String| Chart {
        across: "bytes of a request",
        doublings: true,
        labels: Labels {
            across: |size| units::size(size as u64),
            up,
        },
        ..Chart::default()
    };
    let mut charts = vec![Chart {
        title: "Throughput by size".to_owned(),
        note: match uprights.is_empty() {
            true => "Band: 95 % confidence interval. Hollow marks: noisy.".to_owned(),
            false => "Band: 95 % confidence interval. Hollow marks: noisy. Dashed uprights: \
                      crossovers."
                .to_owned(),
        },
        uprights: uprights.clone(),
        lines: lines(false, &|cell| Point {
            interval: Some((cell.ci_low, cell.ci_high)),
            ..at(cell, cell.bytes_per_second)
        }),
        ..by_size(units::rate)
    }];
    if let Some(first) = entries.first() {
        charts.push(Chart {
            title: format!("Times as fast as {}", first.base),
            note: format!(
                "The dotted line is {} itself. Band: 95 % confidence interval.",
                first.base
            ),
            guide: Guide::One,
            uprights,
            lines: ratios(entries, drivers),
            ..by_size(|times| format!("×{}", units::times(times)))
        });
    }
    let mut latency = lines(false, &|cell| at(cell, cell.ns_per_request_p50));
    latency.extend(lines(true, &|cell| at(cell, cell.ns_per_request_p99)));
    charts.push(Chart {
        title: "Latency by size".to_owned(),
        note: "Solid: median (p50). Dashed, small marks: 99th percentile (p99).".to_owned(),
        lines: latency,
        ..by_size(units::time)
    });
    // Helpers work in pauses too, which are not in the times.
    if cells.iter().any(|cell| cell.pause_us.is_some()) {
        return charts;
    }
    charts.push(Chart {
        title: "Processor load by size".to_owned(),
        note: "Whole process, helpers included; 100 % is one core.".to_owned(),
        even: true,
        lines: lines(false, &|cell| at(cell, cell.load() * 100.0)),
        ..by_size(|load| format!("{load:.0} %"))
    });
    charts
}

/// A line for each driver that is compared with the base.
fn ratios(entries: &[&CrossoverEntry], drivers: &[&str]) -> Vec<Line> {
    let line = |entry: &&CrossoverEntry| {
        let series = drivers.iter().position(|driver| *driver == entry.driver)?;
        let points = entry.ratios.iter().map(|ratio| Point {
            x: ratio.size as f64,
            y: ratio.ratio,
            interval: ratio.ci_high.map(|high| (ratio.ci_low, high)),
            noisy: ratio.outcome == Outcome::Open,
            told: match ratio.outcome {
                Outcome::Open => "no verdict".to_owned(),
                Outcome::Won | Outcome::Lost => String::new(),
            },
        });
        Some(Line {
            name: entry.driver.clone(),
            series,
            second: false,
            points: points.collect(),
        })
    };
    entries.iter().filter_map(line).collect()
}

/// The algorithm, and what goes with it in a lighter voice.
fn heading(case: &Case) -> String {
    let title = escape(&case.title());
    let algorithm = escape(&case.algorithm);
    match title.strip_prefix(&algorithm) {
        Some(rest) => format!("{algorithm}<small>{}</small>", rest.trim_start_matches(',')),
        None => title,
    }
}

/// A table of ratios to the base: a row per driver, a column per size.
fn verdicts(entries: &[&CrossoverEntry], number: usize) -> String {
    let Some(first) = entries.first() else {
        return String::new();
    };
    let mut sizes: Vec<u64> = entries
        .iter()
        .flat_map(|entry| entry.ratios.iter().map(|ratio| ratio.size))
        .collect();
    sizes.sort_unstable();
    sizes.dedup();
    let head: String = sizes
        .iter()
        .map(|size| format!("<th scope=col>{}", short_size(*size)))
        .collect();
    let rows: String = entries
        .iter()
        .map(|entry| {
            let cells: String = sizes
                .iter()
                .map(|size| entry.ratios.iter().find(|ratio| ratio.size == *size))
                .map(|ratio| ratio.map_or_else(|| "<td>".into(), verdict))
                .collect();
            format!("<tr><th scope=row>{}{cells}", escape(&entry.driver))
        })
        .collect();
    format!(
        "<p class=\"caption\" id=\"verdicts{number}\">Throughput as a multiple of {}: <span class=\"won\">▲ faster</span> \
         <span class=\"lost\">▼ slower</span> <span class=\"open\">≈ no verdict inside the \
         noise</span></p>\n<div class=\"scroll\">\
         <table class=\"verdicts\" aria-labelledby=\"verdicts{number}\"><thead><tr><th scope=col>bytes{head}</thead>\
         <tbody>{rows}</tbody></table></div>\n",
        escape(&first.base)
    )
}

/// End tags that HTML does not need are left out: there are many cells.
fn verdict(ratio: &Ratio) -> String {
    let (class, sign) = match ratio.outcome {
        Outcome::Won => ("won", '▲'),
        Outcome::Lost => ("lost", '▼'),
        Outcome::Open => ("open", '≈'),
    };
    let digits = if ratio.ratio < 0.995 { 2 } else { 3 };
    let times = units::significant_kept(ratio.ratio, digits);
    format!("<td class={class}>{sign}\u{a0}{times}")
}

/// `64`, `1400`, `8 Ki`: for the head of a column of bytes.
fn short_size(bytes: u64) -> String {
    let text = units::size(bytes);
    let text = text.strip_suffix('B').unwrap_or(&text);
    text.trim_end_matches(" bytes")
        .trim_end_matches(" byte")
        .replace(' ', "\u{a0}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::tests::record;

    #[test]
    fn verdicts_are_in_words_and_signs_not_only_in_colour() {
        let record = record();
        let section = html(&record, &record.cells[0].case(), 3, &["software", "engine"]);
        assert!(section.contains("<td class=lost>▼\u{a0}0.10"), "{section}");
        assert!(section.contains("<td class=won>▲\u{a0}2.00"));
        assert!(section.contains("data-series=\"1\" hidden>engine</button>"));
        assert!(section.contains("id=\"case3\""));
        assert_eq!(
            section.matches("<svg").count(),
            4,
            "charts are there without a script"
        );
        assert!(section.contains("class=\"cross l1"), "{section}");
        assert_eq!(section.matches("<tr").count(), 2 + 1 + 6);
    }

    #[test]
    fn column_heads() {
        for (bytes, text) in [
            (16, "16"),
            (1400, "1400"),
            (8192, "8\u{a0}Ki"),
            (1 << 20, "1\u{a0}Mi"),
        ] {
            assert_eq!(short_size(bytes), text);
        }
    }
}
