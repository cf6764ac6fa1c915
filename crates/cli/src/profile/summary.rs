//! One recording as text and as JSON.

use std::collections::HashMap;

use cipherlane_profile::calls::{self, Call};
use cipherlane_profile::phases::Phases;
use cipherlane_profile::recording::{Counters, Coverage, Kind, Recording, Unit, Windows};
use cipherlane_profile::rules::Rules;
use cipherlane_profile::wakers::{self, Ended};
use serde::Serialize;

use crate::output::{self, headline, styled, table, wrap};
use crate::units;

/// Functions and system calls that are shown.
const SHOWN: usize = 12;

/// A recording, added up.
#[derive(Debug, Serialize)]
pub(super) struct Summary<'r> {
    /// The command, or which processes.
    what: &'r str,
    /// How the command ended.
    status: Option<i32>,
    /// The kernel's event for processor time.
    event: &'r str,
    wall_ns: u64,
    /// What times are divided by, how much of it there was, and where that is from.
    unit: Unit,
    amount: f64,
    work_source: Option<&'r str>,
    phases: Vec<PhaseRow<'r>>,
    functions: Vec<Function<'r>>,
    wakers: Vec<Ended<'r>>,
    /// The share of all waiting whose end is known.
    wakers_known: f64,
    system_calls: Vec<Call<'r>>,
    counters: &'r Counters,
    /// Samples that were lost.
    lost: u64,
    /// Processor time of the recorder.
    recorder_ns: u64,
    /// The share of processor time that no rule knows.
    unknown: f64,
    /// The shares of the time in which system calls and waits were recorded.
    recorded: Recorded,
    missing: &'r [String],
}

/// Where a share is below 1, counts, times and bytes are multiplied up.
#[derive(Debug, Serialize)]
struct Recorded {
    system_calls: f64,
    waits: f64,
}

/// One phase, in nanoseconds altogether.
#[derive(Debug, Serialize)]
struct PhaseRow<'r> {
    phase: &'r str,
    title: &'r str,
    cpu_ns: f64,
    wait_ns: f64,
    /// Both, for one unit.
    per_unit: f64,
}

/// One function, by the processor time in it and not in those it calls.
#[derive(Debug, Serialize)]
struct Function<'r> {
    function: &'r str,
    module: &'r str,
    cpu_ns: u64,
    share: f64,
}

impl<'r> Summary<'r> {
    pub(super) fn new(recording: &'r Recording, rules: &'r Rules) -> Self {
        let times = Phases::new(recording, rules);
        let unit = recording.unit();
        let amount = recording.amount(unit).expect("it is its own unit");
        let mut phases: Vec<PhaseRow<'_>> = rules
            .phases()
            .iter()
            .zip(&times.totals)
            .filter(|(_, time)| time.sum() > 0.0)
            .map(|(phase, time)| PhaseRow {
                phase: &phase.name,
                title: &phase.title,
                cpu_ns: time.cpu,
                wait_ns: time.wait,
                per_unit: time.sum() / amount,
            })
            .collect();
        phases.sort_by(|a, b| {
            (b.cpu_ns, b.wait_ns)
                .partial_cmp(&(a.cpu_ns, a.wait_ns))
                .expect("times are numbers")
        });
        Summary {
            what: &recording.what,
            status: recording.status,
            event: &recording.event,
            wall_ns: recording.wall_ns,
            unit,
            amount,
            work_source: recording.work.as_ref().map(|work| work.source.as_str()),
            phases,
            functions: functions(recording),
            wakers: wakers(recording),
            wakers_known: wakers::known(recording),
            system_calls: calls::of(recording),
            counters: &recording.counters,
            lost: recording.lost,
            recorder_ns: recording.recorder_ns,
            unknown: times.unknown(rules),
            recorded: recorded(recording),
            missing: &recording.missing,
        }
    }
}

fn recorded(recording: &Recording) -> Recorded {
    let coverage = recording.coverage.as_ref();
    let share = |of: fn(&Coverage) -> &Windows| {
        coverage.map_or(1.0, |coverage| of(coverage).share(recording.wall_ns))
    };
    Recorded {
        system_calls: share(|of| &of.calls),
        waits: share(|of| &of.waits),
    }
}

/// Functions by their own processor time, the most first.
fn functions(recording: &Recording) -> Vec<Function<'_>> {
    let mut times: HashMap<(&str, &str), u64> = HashMap::new();
    let mut total = 0;
    for sample in recording
        .samples
        .iter()
        .filter(|sample| sample.kind == Kind::Cpu)
    {
        total += sample.ns;
        if let Some(frame) = recording.frames_of(sample.stack).next() {
            *times.entry((&frame.name, &frame.module)).or_default() += sample.ns;
        }
    }
    let mut functions: Vec<Function<'_>> = times
        .into_iter()
        .map(|((function, module), cpu_ns)| Function {
            function,
            module,
            cpu_ns,
            share: cpu_ns as f64 / total.max(1) as f64,
        })
        .collect();
    functions.sort_by_key(|function| (std::cmp::Reverse(function.cpu_ns), function.function));
    functions.truncate(100);
    functions
}

/// Who ends waits, the longest first.
fn wakers(recording: &Recording) -> Vec<Ended<'_>> {
    let mut wakers = wakers::of(recording);
    wakers.truncate(100);
    wakers
}

/// The recording as text.
pub(super) fn text(recording: &Recording, rules: &Rules) -> String {
    let summary = Summary::new(recording, rules);
    let counters = summary.counters;
    let mut text = headline(&recording.machine) + &wrap("", &clean(summary.what));
    text += &wrap("", &facts(&summary));
    let cpu: f64 = summary.phases.iter().map(|phase| phase.cpu_ns).sum();
    let each = match summary.unit {
        Unit::Byte => "per byte",
        Unit::Operation => "per op.",
        Unit::Second => "per s",
    };
    let mut phases = table(
        &["phase", "processor", "share", "waiting", each],
        &[1, 2, 3, 4],
    );
    for phase in &summary.phases {
        phases.add_row([
            phase.title.to_owned(),
            time(phase.cpu_ns),
            format!("{:.1} %", phase.cpu_ns / cpu.max(1.0) * 100.0),
            time(phase.wait_ns),
            time(phase.per_unit),
        ]);
    }
    text += &format!("\n{}\n", phases.trim_fmt());
    let mut functions = table(&["function", "in", "share"], &[2]);
    for function in summary.functions.iter().take(SHOWN) {
        functions.add_row([
            cut(&clean(function.function), 46),
            cut(&clean(function.module), 20),
            format!("{:.1} %", function.share * 100.0),
        ]);
    }
    text += &format!("\n{}\n", functions.trim_fmt());
    if !summary.wakers.is_empty() {
        let mut wakers = table(&["waits in", "woken by", "of", "times", "time"], &[3, 4]);
        for waker in summary.wakers.iter().take(SHOWN) {
            wakers.add_row([
                tail(&clean(waker.waits_in), 24),
                tail(&clean(waker.woken_by.unwrap_or("unknown")), 24),
                clean(waker.waker.unwrap_or("an interrupt")),
                waker.count.to_string(),
                time(waker.wait_ns as f64),
            ]);
        }
        text += &format!("\n{}\n", wakers.trim_fmt());
        let known = summary.wakers_known * 100.0;
        text += &wrap(
            "",
            &format!("Who ended a wait is known for {known:.0} % of the time that was waited."),
        );
    }
    if !summary.system_calls.is_empty() {
        let header = ["system call", "times", "bytes", "processor", "waiting"];
        let mut calls = table(&header, &[1, 2, 3, 4]);
        for call in summary.system_calls.iter().take(SHOWN) {
            let about = if call.exact { "" } else { "about " };
            let (times, bytes) = match call.count {
                Some(count) => (format!("{about}{count}"), call.bytes.to_string()),
                None => Default::default(),
            };
            let [processor, waiting] = [call.cpu_ns, call.wait_ns].map(|ns| time(ns as f64));
            calls.add_row([clean(call.name), times, bytes, processor, waiting]);
        }
        text += &format!("\n{}\n", calls.trim_fmt());
    }
    text += "\n";
    let about = if summary.recorded.waits < 1.0 {
        "about "
    } else {
        ""
    };
    text += &wrap(
        "",
        &format!(
            "{about}{} waits, {about}{} preemptions, {about}{} migrations, {} page faults. The machine meanwhile: {} \
             interrupts, {} soft interrupts, {} taken by the hypervisor.",
            counters.waits,
            counters.preemptions,
            counters.migrations,
            counters.page_faults,
            counters.machine_interrupts,
            counters.machine_softirqs,
            time(counters.machine_steal_ns as f64),
        ),
    );
    text += &wrap(
        "",
        &format!(
            "The recorder itself used {} of a processor, {:.2} % of one.",
            time(summary.recorder_ns as f64),
            summary.recorder_ns as f64 / summary.wall_ns.max(1) as f64 * 100.0
        ),
    );
    if let Some(sampled) = recording.sampled() {
        text += &wrap("", &format!("{sampled}."));
    }
    if summary.lost > 0 {
        let lost = format!(
            "{} samples were LOST: the rings were full. Figures are too small; use a lower --rate.",
            summary.lost
        );
        text += &wrap("", &styled(output::STRONG, &lost));
    }
    for missing in summary.missing {
        text += &wrap("", &clean(&format!("Missing: {missing}.")));
    }
    text
}

fn facts(summary: &Summary<'_>) -> String {
    let mut text = format!(
        "{} on the clock, {} of processors, sampled by {}",
        time(summary.wall_ns as f64),
        time(summary.counters.processor_ns as f64),
        clean(summary.event)
    );
    if summary.counters.kernel_threads_ns > 0 {
        text += &format!(
            "; beside that {} of kernel threads that worked for it, which is in the tables",
            time(summary.counters.kernel_threads_ns as f64)
        );
    }
    text += &match (summary.unit, summary.work_source) {
        (Unit::Byte, Some(source)) => format!(
            "; {} of work ({})",
            units::size(summary.amount as u64),
            clean(source)
        ),
        (Unit::Operation, _) => format!("; {} operations", summary.amount),
        _ => "; how much work was done is not known (--bytes, --operations)".to_owned(),
    };
    text + "."
}

/// Nanoseconds as people read them; nothing is a dash.
pub(super) fn time(ns: f64) -> String {
    match ns {
        0.0 => "–".to_owned(),
        ns if ns < 0.01 => format!("{:.2} ps", ns * 1e3),
        ns => units::time(ns as f32),
    }
}

/// Text of a recording, which may be a stranger's, fit for a terminal.
pub(super) fn clean(text: &str) -> String {
    text.replace(char::is_control, "?")
}

/// The end of a name, which has the function behind its modules.
fn tail(text: &str, most: usize) -> String {
    match text.chars().count().checked_sub(most) {
        None | Some(0) => text.to_owned(),
        Some(over) => "…".to_owned() + &text.chars().skip(over + 1).collect::<String>(),
    }
}

fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some(_) => text.chars().take(most - 1).collect::<String>() + "…",
        None => text.to_owned(),
    }
}
