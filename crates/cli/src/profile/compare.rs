//! Two recordings as text.

use cipherlane_profile::diff::Diff;
use cipherlane_profile::recording::{Recording, Unit};

use super::summary::{clean, time};
use crate::output::{self, styled, table, wrap};

/// The comparison as text: what makes it doubtful first, then the table, then the verdict.
pub(super) fn text(a: &Recording, b: &Recording, diff: &Diff) -> String {
    let mut text = String::new();
    for warning in &diff.warnings {
        text += &wrap("", &clean(&format!("Note: {warning}.")));
    }
    for (name, of) in [("A", a), ("B", b)] {
        text += &wrap(
            "",
            &clean(&format!("{name}: {} ({})", of.what, of.machine.date)),
        );
    }
    let each = match diff.unit {
        Unit::Byte => "Times per byte of work",
        Unit::Operation => "Times per operation",
        Unit::Second => "Times per second of the run",
    };
    text += &wrap(
        "",
        &format!(
            "{each}; on the clock {} and {}, of processors {} and {}.",
            time(diff.totals.wall.0),
            time(diff.totals.wall.1),
            time(diff.totals.cpu.0),
            time(diff.totals.cpu.1)
        ),
    );
    let mut rows = table(
        &["phase", "A", "B", "difference", "95 % interval", ""],
        &[1, 2, 3, 4],
    );
    for row in &diff.phases {
        rows.add_row([
            row.title.clone(),
            time(row.a),
            time(row.b),
            signed(row.difference),
            format!("{} to {}", signed(row.ci_low), signed(row.ci_high)),
            if row.clear { "◀" } else { "" }.to_owned(),
        ]);
    }
    text += &format!("\n{}\n\n", rows.trim_fmt());
    text += &wrap("", &styled(output::STRONG, &diff.verdict));
    for advice in &diff.advice {
        text += &wrap("  ", advice);
    }
    text
}

fn signed(ns: f64) -> String {
    match ns {
        ns if ns > 0.0 => format!("+{}", time(ns)),
        ns if ns < 0.0 => format!("−{}", time(-ns)),
        _ => time(0.0),
    }
}
