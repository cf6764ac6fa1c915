//! The difference in words, and what makes it doubtful.

use super::{Reason, Row, Totals};
use crate::recording::{Recording, Unit};
use crate::rules::Rules;

/// Samples that may be lost, as a share of all, before it is said.
const LOST: f64 = 0.001;
/// Processors that others may keep before it is said.
const BUSY: f64 = 0.1;
/// Phases that the verdict names.
const NAMED: usize = 3;

/// What came out, and what to do.
pub(super) fn verdict(
    rows: &[Row],
    unit: Unit,
    totals: &Totals,
    rules: &Rules,
) -> (String, Vec<String>) {
    let clear: Vec<&Row> = rows.iter().filter(|row| row.clear).collect();
    let Some(first) = clear.first() else {
        return (
            "There is no difference beyond the noise in any phase.".to_owned(),
            Vec::new(),
        );
    };
    let sum: f64 = clear.iter().map(|row| row.difference).sum();
    let mut text = match (unit, totals.wall) {
        (Unit::Second, _) => String::new(),
        (_, (a, b)) if b > a * 1.03 => {
            format!("B is {} times slower per {}. ", times(b / a), word(unit))
        }
        (_, (a, b)) if a > b * 1.03 => {
            format!("B is {} times faster per {}. ", times(a / b), word(unit))
        }
        _ => format!("A and B take about the same time per {}. ", word(unit)),
    };
    text += &format!(
        "What changed most is '{}': {} per {} in A, {} in B ({}).",
        first.title,
        amount(first.a),
        word(unit),
        amount(first.b),
        change(first)
    );
    let others: Vec<String> = clear
        .iter()
        .skip(1)
        .take(NAMED - 1)
        .map(|row| format!("'{}' ({})", row.title, change(row)))
        .collect();
    if !others.is_empty() {
        text += &format!(" Then {}.", others.join(" and "));
    }
    if clear.len() > 1 && sum.abs() > 0.0 {
        let share = first.difference / sum * 100.0;
        if (10.0..=100.0).contains(&share) {
            text += &format!(" The first alone is {share:.0} % of the difference.");
        }
    }
    let advice = clear
        .iter()
        .filter(|row| row.difference > 0.0)
        .take(NAMED)
        .filter_map(|row| {
            let phase = rules
                .phases()
                .iter()
                .find(|phase| phase.name == row.phase)?;
            Some(format!("{}: {}", phase.title, phase.advice))
        })
        .collect();
    (text, advice)
}

/// Why B takes longer: the phases that grew, the largest first.
pub(super) fn reason(rows: &[Row], each: &str, rules: &Rules) -> Option<Reason> {
    let mut grown = rows.iter().filter(|row| row.clear && row.difference > 0.0);
    let first = grown.next()?;
    let mut text = format!(
        "'{}' takes {} per {each} instead of {} ({})",
        first.title,
        amount(first.b),
        amount(first.a),
        change(first)
    );
    let others: Vec<String> = grown
        .take(NAMED - 1)
        .map(|row| format!("'{}' ({})", row.title, change(row)))
        .collect();
    if !others.is_empty() {
        text += &format!(", then {}", others.join(" and "));
    }
    let phase = rules
        .phases()
        .iter()
        .find(|phase| phase.name == first.phase)?;
    Some(Reason {
        title: phase.title.clone(),
        text,
        advice: phase.advice.clone(),
    })
}

/// Processor time that other programs had meanwhile, in nanoseconds; 0 where it is not known.
pub(super) fn of_others(recording: &Recording) -> f64 {
    let of = &recording.counters;
    let own = of.processor_ns.saturating_add(of.kernel_threads_ns);
    of.machine_busy_ns.saturating_sub(own) as f64
}

/// What makes the comparison of two recordings doubtful; two machines first.
pub(super) fn doubts(a: &Recording, b: &Recording) -> Vec<String> {
    let mut doubts = Vec::new();
    let (of_a, of_b) = (&a.machine, &b.machine);
    if (&of_a.cpu, of_a.cpus, &of_a.architecture) != (&of_b.cpu, of_b.cpus, &of_b.architecture) {
        doubts.push(format!(
            "these are two machines: A is {} with {} processors, B is {} with {}; differences are \
             of the machines as well",
            of_a.cpu, of_a.cpus, of_b.cpu, of_b.cpus
        ));
    } else if of_a.kernel != of_b.kernel {
        doubts.push(format!(
            "the kernels differ: {} and {}",
            of_a.kernel, of_b.kernel
        ));
    }
    let processors = |of: &Recording| of_others(of) / of.wall_ns.max(1) as f64;
    if processors(a).max(processors(b)) > BUSY {
        doubts.push(format!(
            "other programs kept {:.1} processors during A and {:.1} during B: waiting for a \
             processor is a difference only where it is more than that",
            processors(a),
            processors(b)
        ));
    }
    for (name, of) in [("A", a), ("B", b)] {
        let samples: u64 = of.samples.iter().map(|sample| sample.count).sum();
        if of.lost as f64 > LOST * samples as f64 {
            doubts.push(format!(
                "{name} has lost {} of {} samples: the rings were full",
                of.lost,
                samples.saturating_add(of.lost)
            ));
        }
        if let Some(sampled) = of.sampled() {
            let few = match super::has_few_waits(of) {
                true => "; too few times for a comparison of waits: record for longer",
                false => "",
            };
            doubts.push(format!("{name}: {sampled}{few}"));
        }
        if of.status.is_some_and(|status| status != 0) {
            doubts.push(format!(
                "the command of {name} ended with status {}",
                of.status.unwrap_or(0)
            ));
        }
    }
    let what_is_missing = |of: &Recording| of.missing.iter().any(|text| text.contains("kernel's"));
    if what_is_missing(a) != what_is_missing(b) {
        doubts.push("one of the two has no samples of the kernel; record both as root".to_owned());
    }
    if let (Some(of_a), Some(of_b)) = (&a.work, &b.work) {
        // What stands behind the semicolon says how exact it is.
        let [of_a, of_b] = [of_a, of_b].map(|of| of.source.split(';').next().unwrap_or_default());
        if of_a != of_b {
            doubts.push(format!(
                "work was counted in two ways, A by {of_a}, B by {of_b}; --bytes says it for both"
            ));
        }
    }
    doubts
}

/// 'byte', 'operation', 'second'.
pub(super) fn word(unit: Unit) -> &'static str {
    match unit {
        Unit::Byte => "byte",
        Unit::Operation => "operation",
        Unit::Second => "second",
    }
}

/// A time with its unit.
fn amount(ns: f64) -> String {
    match ns.abs() {
        0.0 => "nothing".to_owned(),
        of if of < 0.001 => format!("{:.2} ps", ns * 1e3),
        of if of < 1.0 => format!("{ns:.3} ns"),
        of if of < 1e3 => format!("{ns:.2} ns"),
        of if of < 1e6 => format!("{:.2} µs", ns / 1e3),
        of if of < 1e9 => format!("{:.1} ms", ns / 1e6),
        _ => format!("{:.2} s", ns / 1e9),
    }
}

fn change(row: &Row) -> String {
    let half = (row.ci_high - row.ci_low) / 2.0;
    let sign = if row.difference > 0.0 { '+' } else { '−' };
    format!("{sign}{} ± {}", amount(row.difference.abs()), amount(half))
}

fn times(ratio: f64) -> String {
    match ratio {
        ratio if ratio < 10.0 => format!("{ratio:.2}"),
        ratio => format!("{ratio:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::tests::recording;
    use crate::recording::{Kind, Unit, Work};

    #[test]
    fn work_that_was_counted_in_two_ways_is_said() {
        let of = |source: &str| {
            let mut of = recording(&[("main", Kind::Cpu, 8_000_000)]);
            of.work = Some(Work {
                amount: 1 << 30,
                unit: Unit::Byte,
                source: source.to_owned(),
            });
            of
        };
        let said = doubts(&of("those read"), &of("those counted"));
        assert!(
            said[0].contains("A by those read, B by those counted"),
            "{said:?}"
        );
        assert!(doubts(&of("those read"), &of("those read; estimated")).is_empty());
    }
}
