//! Phases side by side, as bars in a table.

use cipherlane_measure::report::escape;
use cipherlane_measure::units;

use super::colour;
use crate::diff::Row;
use crate::phases::Phases;
use crate::recording::{Recording, Unit};
use crate::rules::Rules;

/// Bars of one recording: processor time and waits.
pub(super) fn html(recording: &Recording, phases: &Phases, rules: &Rules) -> String {
    let amount = recording.amount(recording.unit()).unwrap_or(1.0);
    let longest = phases
        .totals
        .iter()
        .map(|time| time.cpu.max(time.wait))
        .fold(1.0, f64::max);
    let mut rows: Vec<_> = rules.phases().iter().zip(&phases.totals).collect();
    rows.retain(|(_, time)| time.sum() > 0.0);
    rows.sort_by(|(_, a), (_, b)| b.cpu.total_cmp(&a.cpu));
    let mut table = head(&["Phase", "Processor", "Waiting", each(recording.unit())]);
    for (phase, time) in rows {
        table += &format!(
            "<tr><th>{}</th><td>{}</td><td>{}</td><td>{}</td></tr>\n",
            escape(&phase.title),
            bar(time.cpu, longest, colour(&phase.name)),
            bar(time.wait, longest, "p0"),
            told(time.sum() / amount),
        );
    }
    table + "</tbody></table></div>\n"
}

/// Bars of two recordings that are called `names`, the largest difference first. `times` tells what
/// times are divided by.
pub(super) fn pair(phases: &[Row], names: [&str; 2], times: &str) -> String {
    let longest = phases
        .iter()
        .map(|row| row.a.max(row.b))
        .fold(0.0, f64::max);
    let [a, b] = names;
    let mut table = head(&["Phase", a, b, "Difference", "95 % interval"]);
    for row in phases {
        let class = match (row.clear, row.difference > 0.0) {
            (false, _) => "open",
            (true, true) => "lost",
            (true, false) => "won",
        };
        table += &format!(
            "<tr><th>{}</th><td>{}</td><td>{}</td><td class=\"{class}\">{}</td>\
             <td class=\"open\">{} to {}</td></tr>\n",
            escape(&row.title),
            bar(row.a, longest, colour(&row.phase)),
            bar(row.b, longest, colour(&row.phase)),
            signed(row.difference),
            signed(row.ci_low),
            signed(row.ci_high),
        );
    }
    table
        + &format!(
            "</tbody></table></div>\n<p class=\"note\">Times are {}.</p>\n",
            escape(times)
        )
}

fn head(heads: &[&str]) -> String {
    let heads: String = heads
        .iter()
        .map(|head| format!("<th>{}</th>", escape(head)))
        .collect();
    format!("<div class=\"scroll\"><table class=\"bars\"><thead><tr>{heads}</tr></thead><tbody>\n")
}

fn bar(value: f64, longest: f64, class: &str) -> String {
    let text = told(value);
    if value <= 0.0 || longest <= 0.0 {
        return format!("<span>{text}</span>");
    }
    let width = value / longest * 100.0;
    format!("<span>{text}</span><i class=\"{class}\" style=\"width:{width:.1}%\"></i>")
}

/// A time; nothing is a dash.
pub(super) fn told(ns: f64) -> String {
    match ns {
        0.0 => "–".to_owned(),
        ns if ns < 0.01 => format!("{:.1} ps", ns * 1e3),
        ns => units::time(ns),
    }
}

fn signed(ns: f64) -> String {
    match ns {
        0.0 => "0".to_owned(),
        ns if ns < 0.0 => format!("−{}", units::time(-ns)),
        ns => format!("+{}", units::time(ns)),
    }
}

/// What times are divided by, in words.
pub(super) fn each(unit: Unit) -> &'static str {
    match unit {
        Unit::Byte => "per byte",
        Unit::Operation => "per operation",
        Unit::Second => "per second",
    }
}
