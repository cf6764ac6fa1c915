//! What is printed, the JSON, and the page.

use cipherlane_measure::record::Record;
use cipherlane_measure::report::{self, escape};
use cipherlane_measure::units;
use comfy_table::CellAlignment;
use serde::Serialize;

use super::device::Device;
use super::forecast::{Figures, Forecast, Row};
use crate::output::{self, wrap};

/// How to read the figures.
const LEGEND: &str = "This machine was measured; the device is simulated from its description, \
    behind the driver that would serve it, and the processor time of the driver's work is as the \
    description says. Software is measured in the way that is fastest here, whether it waits for \
    each call or submits. Times are those of a request. Load is in cores: 100 % is one. What is freed \
    is what software would need of a core for as much as the device does, less what the driver \
    needs.";

/// Of a core, what software has where nobody else works.
const QUIET: f64 = 0.8;

/// Everything, for JSON.
#[derive(Debug, Serialize)]
pub(super) struct Plan<'a> {
    /// Faults that the description orders, and that were left out.
    pub(super) ignored_faults: usize,
    /// As given to `--drivers`.
    pub(super) driver: &'a str,
    /// What the device is.
    pub(super) device: &'a str,
    /// Over all kinds of callers.
    pub(super) verdict: String,
    /// Kinds of callers.
    pub(super) forecasts: Vec<Forecast>,
    /// All figures, as `speed --json` writes them.
    #[serde(flatten)]
    pub(super) record: Record,
}

impl<'a> Plan<'a> {
    pub(super) fn new(
        device: &'a Device,
        forecasts: Vec<Forecast>,
        verdict: String,
        record: Record,
    ) -> Plan<'a> {
        Plan {
            ignored_faults: device.ignored_faults,
            driver: &device.driver,
            device: &device.settings.title,
            verdict,
            forecasts,
            record,
        }
    }

    pub(super) fn text(&self) -> String {
        let title = format!("{}: {}", self.driver, self.device);
        let beside = format!("Beside {}.", self.record.machine.headline());
        let mut text = wrap("", &title) + &wrap("", &beside) + &wrap("", LEGEND);
        if self.ignored_faults > 0 {
            text += &wrap("", &ignored(self.ignored_faults));
        }
        for forecast in &self.forecasts {
            text += &format!("\n{}\n{}\n", forecast.case.title(), table(forecast));
            for row in &forecast.rows {
                text += &wrap(
                    "  ",
                    &format!("{}: {}", units::size(row.size), row.sentence),
                );
            }
            text += &wrap("", &forecast.crossover);
            if let Some(mix) = &forecast.mix {
                text += &wrap("", &mix.sentence);
            }
            text += &wrap("", &output::styled(output::STRONG, &forecast.verdict));
        }
        if let Some(share) = self.had() {
            text += &wrap(
                "",
                &format!(
                    "This machine was busy: software had {:.0} % of a core at times. Ask again \
                     when it is quiet.",
                    share * 100.0
                ),
            );
        }
        text + "\n" + &wrap("", &format!("{}: {}", self.driver, self.verdict))
    }

    /// What software had of its core at the least, where others took a part worth telling.
    fn had(&self) -> Option<f64> {
        let rows = self.forecasts.iter().flat_map(|forecast| &forecast.rows);
        let least = rows.map(|row| row.software.load).fold(1.0, f64::min);
        (least < QUIET).then_some(least)
    }

    /// The page: verdicts and forecasts first, then the charts and tables of every report.
    pub(super) fn page(&self) -> String {
        let mut lead = format!(
            "<section class=\"summary\"><h2>Would it help?</h2>\n<p><b>{}: {}</b></p>\n<p>{}</p>\n\
             <p>{}</p>\n",
            escape(self.driver),
            escape(&self.verdict),
            escape(self.device),
            escape(LEGEND)
        );
        if self.ignored_faults > 0 {
            lead += &format!("<p>{}</p>\n", escape(&ignored(self.ignored_faults)));
        }
        for forecast in &self.forecasts {
            let sentences: String = forecast
                .rows
                .iter()
                .map(|row| {
                    let (size, sentence) = (units::size(row.size), escape(&row.sentence));
                    format!("<li>{size}: {sentence}</li>")
                })
                .collect();
            let mix = forecast.mix.as_ref().map_or("", |mix| &mix.sentence);
            lead += &format!(
                "<h3>{}</h3>\n<p>{} {}</p>\n<ul>{sentences}</ul>\n",
                escape(&forecast.case.title()),
                escape(&forecast.verdict),
                escape(mix)
            );
        }
        lead += "</section>\n";
        report::html_with(&self.record, "Would an accelerator help?", &lead, "")
    }
}

/// What a forecast says of faults that are ordered.
fn ignored(faults: usize) -> String {
    format!(
        "The description orders {faults} faults, which are ignored here: this is the device \
         while it works."
    )
}

/// A row per size and way.
fn table(forecast: &Forecast) -> String {
    let heads = [
        "size",
        "by",
        "rate",
        "times",
        "latency",
        "processor",
        "load",
        "frees",
    ];
    let numbers: Vec<usize> = (2..heads.len()).collect();
    let mut table = output::table(&heads, &numbers);
    if let Some(column) = table.column_mut(0) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    for row in &forecast.rows {
        table.add_row(line(units::size(row.size), "software", row.software, None));
        if let Some(cores) = row.cores {
            table.add_row(line(String::new(), "cores", cores, None));
        }
        if let Some(device) = row.device {
            table.add_row(line(String::new(), "device", device, Some(row)));
        }
    }
    table.trim_fmt()
}

fn line(size: String, by: &str, figures: Figures, compared: Option<&Row>) -> Vec<String> {
    let compared = compared.map(|row| {
        let freed = match row.frees_cores {
            cores if cores > 1.0 => format!("{cores:.1} cores"),
            cores => format!("{:.0} %", cores.max(0.0) * 100.0),
        };
        (format!("×{}", units::times(row.times)), freed)
    });
    let (times, freed) = compared.unwrap_or_default();
    vec![
        size,
        by.to_owned(),
        units::rate(figures.bytes_per_second),
        times,
        units::time(figures.latency_ns),
        units::time(figures.processor_ns),
        format!("{:.0} %", figures.load * 100.0),
        freed,
    ]
}
