//! The section of one case: verdicts by size, charts, table.

use super::html::escape;
use super::table;
use crate::crossover::Outcome;
use crate::record::{Case, Cell, CrossoverEntry, Ratio, Record};
use crate::units;

/// Colours and markers that the style and the script know; drivers beyond
/// these begin again.
const SERIES: usize = 8;

/// The section of `case`, the page's number `number`. `drivers` are those of
/// the whole page and give each its colour.
pub(super) fn html(record: &Record, case: &Case, number: usize, drivers: &[&str]) -> String {
    let mut cells: Vec<&Cell> = record
        .cells
        .iter()
        .filter(|cell| cell.case() == *case)
        .collect();
    let rank = |driver: &str| drivers.iter().position(|name| *name == driver);
    cells.sort_by_key(|cell| (cell.size, rank(&cell.driver)));
    let entries: Vec<&CrossoverEntry> = record
        .crossovers
        .iter()
        .filter(|entry| entry.case == *case)
        .collect();
    let base = entries.first().map(|entry| entry.base.as_str());

    let legend: String = drivers
        .iter()
        .enumerate()
        .filter(|(_, driver)| cells.iter().any(|cell| cell.driver == **driver))
        .map(|(index, driver)| {
            format!(
                "<li><button type=\"button\" aria-pressed=\"true\" data-series=\"{}\">{}</button></li>",
                index % SERIES,
                escape(driver)
            )
        })
        .collect();
    format!(
        "<section class=\"case\" id=\"case{number}\" data-base=\"{}\" data-crossings=\"{}\">\n\
         <h2>{}</h2>\n{}<ul class=\"legend\">{legend}</ul>\n<div class=\"charts\"></div>\n\
         <details><summary>All figures as a table</summary>{}</details>\n</section>\n",
        escape(base.unwrap_or_default()),
        escape(&crossings(&entries)),
        heading(case),
        verdicts(&entries, number),
        table::html(&cells, &entries),
    )
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

/// `[["engine",201.4],...]` for the script.
fn crossings(entries: &[&CrossoverEntry]) -> String {
    let crossings: Vec<(&str, f64)> = entries
        .iter()
        .flat_map(|entry| {
            let sizes = entry.crossings.iter();
            sizes.map(|crossing| (entry.driver.as_str(), crossing.size.round()))
        })
        .collect();
    serde_json::to_string(&crossings).unwrap_or_else(|_| "[]".into())
}

/// A table of ratios to the base: a row a driver, a column a size.
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
        assert!(section.contains("data-series=\"1\">engine</button>"));
        assert!(section.contains("id=\"case3\" data-base=\"software\""));
        assert!(section.contains("[[&quot;engine&quot;,"));
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
