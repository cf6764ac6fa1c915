//! A record as one self-contained page: curves, crossovers, tables.
//!
//! The page works offline and asks nobody for anything: its content security
//! policy allows nothing but its own style and script. Charts are SVG in the page
//! ([`Chart`]), so that they are there on paper and without scripts; the script
//! hides drivers and switches colours.

mod chart;
mod chart_section;
mod html;
mod mark;
mod palette;
mod plot;
mod scale;
mod table;

use crate::machine::Machine;
use crate::record::{Case, Record};
use crate::units;
pub use chart::{Chart, Guide, Labels, Line, Point};
pub use html::escape;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The page for `record`. `title` stands at its head.
pub fn html(record: &Record, title: &str) -> String {
    html_with(record, title, "", "")
}

/// The same page, with `lead` above all else and `more` below the charts: both are HTML in `section`
/// elements of its own.
pub fn html_with(record: &Record, title: &str, lead: &str, more: &str) -> String {
    let cases = cases(record);
    let drivers = drivers(record);
    let mut main = lead.to_owned() + &table::overview(record, &cases) + &summary(record, &cases);
    for (number, case) in cases.iter().enumerate() {
        main += &chart_section::html(record, case, number, &drivers);
    }
    main += more;
    main += &format!(
        "<section class=\"method\"><h2>How this was measured</h2>\n<p>{METHOD}</p>\n<p>{}</p>\
         </section>\n",
        table::LEGEND
    );
    page(title, &record.machine, &main)
}

/// Throughput by size in one case of `record`, a line per driver.
pub fn throughput(record: &Record, case: &Case) -> Chart {
    chart_section::throughput(record, case, &drivers(record))
}

/// Style rules for a picture outside of a page: `var(--NAME)` becomes the colour of that name, the
/// light one, and the dark one for readers who want it.
pub fn literal(rules: &str) -> String {
    palette::literal(rules)
}

/// A page with the look of all reports, for figures of another kind: `title` and the machine
/// at its head, and below them `main`, which is HTML and takes its own `section` elements.
pub fn page(title: &str, of: &Machine, main: &str) -> String {
    let title = escape(title);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'; \
         form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{title}</title>\n<style>\n{charts}{STYLE}</style>\n</head>\n<body>\n\
         <header>\n<div class=\"head\"><h1>{title}</h1>\
         <button id=\"theme\" type=\"button\" hidden>Dark</button></div>\n{}</header>\n<main>\n\
         {main}</main>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n",
        machine(of),
        charts = palette::variables() + chart::STYLE
    )
}

/// What a reader has to know to believe the figures.
const METHOD: &str = "All drivers of a cell run by turns in blocks of some tens of milliseconds, \
    in random order, so that whatever slows a shared machine slows all of them. Throughput is the \
    median of the blocks on the wall clock; bands and ranges are 95 % bootstrap confidence \
    intervals. Ratios are taken between blocks of the same round, and where their interval \
    includes 1 there is no verdict. Processor time, context switches and page faults are those of \
    the whole process, helper threads included; 100 % is one core. Latency is the time of a call, \
    divided by its requests where a call has several. Noisy cells had time stolen by the \
    hypervisor, or lost their processor to others, in a quarter of their blocks or more, or have \
    an interval wider than plus or minus 5 %. MB and GB are powers of ten, KiB and MiB powers of \
    two.";

/// Distinct cases in the order measured.
fn cases(record: &Record) -> Vec<Case> {
    let mut cases = Vec::new();
    for cell in &record.cells {
        let case = cell.case();
        if !cases.contains(&case) {
            cases.push(case);
        }
    }
    cases
}

/// Distinct drivers, the base first, then in the order measured: a driver has
/// the same colour and marker on the whole page.
fn drivers(record: &Record) -> Vec<&str> {
    let base = record.crossovers.first().map(|entry| entry.base.as_str());
    let measured = record.cells.iter().map(|cell| cell.driver.as_str());
    let mut drivers = Vec::new();
    for driver in base.into_iter().chain(measured) {
        if !drivers.contains(&driver) {
            drivers.push(driver);
        }
    }
    drivers
}

fn machine(machine: &Machine) -> String {
    let mut facts = vec![
        ("Processor", machine.cpu.clone()),
        ("Cores", cores(machine)),
    ];
    if let Some(bytes) = machine.memory_bytes {
        facts.push(("Memory", units::about_size(bytes as f64)));
    }
    facts.push((
        "System",
        format!("{}, {}", machine.kernel, machine.architecture),
    ));
    if let Some(governor) = &machine.governor {
        facts.push(("Governor", governor.clone()));
    }
    facts.push((
        "Measured",
        machine.date.replace('T', " ").replace('Z', " UTC"),
    ));
    let used = &machine.instructions;
    if !used.is_empty() {
        facts.push(("Instructions used", used.join(" ")));
    } else if !machine.features.is_empty() {
        facts.push(("Instructions", machine.features.join(" ")));
    }
    if let Some(others) = machine.others {
        facts.push(("Others meanwhile", others.to_string()));
    }
    let facts: String = facts
        .into_iter()
        .map(|(name, value)| format!("<div><dt>{name}</dt><dd>{}</dd></div>", escape(&value)))
        .collect();
    format!("<dl class=\"machine\">{facts}</dl>\n")
}

fn cores(machine: &Machine) -> String {
    let mut text = match (machine.cpus, machine.cores) {
        (cpus, Some(cores)) if cores != cpus => format!("{cpus} processors, {cores} cores"),
        (cpus, _) => cpus.to_string(),
    };
    if machine.virtual_machine {
        text += ", virtual machine";
    }
    text
}

/// The crossover sentences, by case.
fn summary(record: &Record, cases: &[Case]) -> String {
    let mut summary = String::from("<section class=\"summary\"><h2>In short</h2>\n");
    if cases.is_empty() {
        summary += "<p>Nothing was measured.</p>\n";
    }
    for (number, case) in cases.iter().enumerate() {
        let sentences: String = record
            .crossovers
            .iter()
            .filter(|entry| entry.case == *case)
            .map(|entry| format!("<li>{}</li>", escape(&entry.sentence)))
            .collect();
        let sentences = if sentences.is_empty() {
            "<li>Only one driver was measured.</li>"
        } else {
            &sentences
        };
        summary += &format!(
            "<h3><a href=\"#case{number}\">{}</a></h3>\n<ul>{sentences}</ul>\n",
            escape(&case.title())
        );
    }
    summary + "</section>\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::tests::record;

    #[test]
    fn the_page_is_whole_and_asks_nobody() {
        let record = record();
        let page = html(&record, "Speed");
        assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));
        assert!(page.contains("default-src 'none'"));
        for outside in ["http://", "https://", "src=", "@import", "url("] {
            assert!(!page.contains(outside), "{outside}");
        }
        for entry in &record.crossovers {
            assert!(page.contains(&escape(&entry.sentence)));
        }
        assert!(page.contains(&escape(&record.machine.kernel)));
    }

    #[test]
    fn names_cannot_break_out_of_the_text() {
        let mut record = record();
        let name = "</script><img src=x onerror=\"alert('1')\">";
        record.machine.cpu = name.into();
        for cell in &mut record.cells {
            cell.algorithm = name.into();
            cell.driver = name.into();
        }
        for entry in &mut record.crossovers {
            entry.case.algorithm = name.into();
            entry.driver = name.into();
            entry.base = name.into();
            entry.sentence = name.into();
        }
        let page = html(&record, name);
        assert!(!page.contains("<img") && !page.contains("onerror=\""));
        assert_eq!(page.matches("</script>").count(), 1);
    }

    #[test]
    fn a_full_run_stays_small() {
        let mut record = record();
        let cells = std::mem::take(&mut record.cells);
        // 20 cases of 9 sizes and 3 drivers.
        for number in 0..20 {
            for cell in cells.iter().cycle().take(27) {
                let mut cell = cell.clone();
                cell.keybits = number;
                cell.bytes_per_second = 123_456_789.0;
                record.cells.push(cell);
            }
        }
        let page = html(&record, "Speed");
        assert_eq!(page.matches("<section class=\"case\"").count(), 20);
        assert!(page.len() < 500_000, "{} bytes", page.len());
    }

    #[test]
    fn the_base_comes_first_and_no_case_or_driver_is_lost() {
        let record = record();
        assert_eq!(drivers(&record), ["software", "engine"]);
        assert_eq!(cases(&record).len(), 1);
        let mut nothing = record;
        nothing.cells.clear();
        nothing.crossovers.clear();
        assert!(html(&nothing, "Nothing").contains("Nothing was measured"));
    }
}
