//! Two recordings compared: time by phase for the same work, with intervals, and a verdict.
//!
//! `drawing` makes the intervals. A phase is named in the verdict only where the difference is beyond
//! the interval for all phases together and at least some per cent of the whole: two runs of the
//! same program on a machine that others use differ by that much.

mod drawing;
mod verdict;

use serde::Serialize;

use self::drawing::{Side, quantile, resampled};
use crate::phases::Phases;
use crate::recording::{Recording, Unit};
use crate::rules::Rules;

/// The share of the whole that a difference must have to be named.
const LEAST_SHARE: f64 = 0.03;
/// Windows that a recording of waits needs at least, for an interval that can be believed.
const LEAST_WINDOWS: usize = 8;

/// What two recordings differ in.
#[derive(Clone, Debug, Serialize)]
pub struct Diff {
    /// What the times are divided by.
    pub unit: Unit,
    /// Phases with time in either recording, the largest difference first.
    pub phases: Vec<Row>,
    /// All phases together, processor time and waits apart.
    pub totals: Totals,
    /// What came out, in sentences.
    pub verdict: String,
    /// What to do, the most important first.
    pub advice: Vec<String>,
    /// What makes the comparison doubtful, such as two machines.
    pub warnings: Vec<String>,
}

/// One phase. Times are in nanoseconds per unit; of seconds, nanoseconds in each second.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The name of the phase.
    pub phase: String,
    /// Its name in text.
    pub title: String,
    /// Processor time and waits in the first recording.
    pub a: f64,
    /// In the second.
    pub b: f64,
    /// The second less the first.
    pub difference: f64,
    /// Lower end of the difference's 95 % interval.
    pub ci_low: f64,
    /// Its upper end.
    pub ci_high: f64,
    /// Processor time alone, in the first.
    pub a_cpu: f64,
    /// Processor time alone, in the second.
    pub b_cpu: f64,
    /// Whether the difference is beyond the noise.
    pub clear: bool,
}

/// Why B takes longer than A.
#[derive(Clone, Debug, PartialEq)]
pub struct Reason {
    /// The phase that grew most, by its name in text.
    pub title: String,
    /// That phase and the next ones with their times: the end of a sentence.
    pub text: String,
    /// What to do about the first one.
    pub advice: String,
}

/// Nanoseconds per unit of all phases together.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Totals {
    /// On the clock, first and second recording.
    pub wall: (f64, f64),
    /// Processor time.
    pub cpu: (f64, f64),
    /// Waits of all threads.
    pub wait: (f64, f64),
}

impl Diff {
    /// Compares `b` with `a`.
    pub fn new(a: &Recording, b: &Recording, rules: &Rules) -> Self {
        let (unit, notes) = unit(a, b);
        let mut warnings = verdict::doubts(a, b);
        warnings.extend(notes);
        let side = |recording: &Recording| Side {
            phases: Phases::new(recording, rules),
            amount: recording.amount(unit).expect("the unit is one of both"),
            wall: recording.wall_ns as f64,
            others: verdict::of_others(recording),
            few_waits: has_few_waits(recording),
            steal: rules.steal(),
        };
        let (a_side, b_side) = (side(a), side(b));
        let differences = resampled(&a_side, &b_side, rules.phases().len());
        // The noise of all phases together: each phase gets its part of 5 %.
        let seen = (0..rules.phases().len())
            .filter(|&at| a_side.phases.totals[at].sum() + b_side.phases.totals[at].sum() > 0.0)
            .count();
        let tail = 0.025 / seen.max(1) as f64;
        // Other programs come and go between two runs: waiting for them is no difference of these.
        let others = (a_side.others / a_side.amount).max(b_side.others / b_side.amount);
        let least = LEAST_SHARE * a_side.whole(rules).max(b_side.whole(rules));
        let mut rows: Vec<Row> = rules
            .phases()
            .iter()
            .enumerate()
            .filter_map(|(at, phase)| {
                let (a, b) = (a_side.of(at), b_side.of(at));
                if a.sum() + b.sum() == 0.0 {
                    return None;
                }
                let sorted = &differences[at];
                let difference = b.sum() - a.sum();
                let of_others = at == rules.queue() && difference.abs() <= others;
                // What is a matter of waits cannot be told from a few windows.
                let by_waits = (b.wait - a.wait).abs() > (difference / 2.0).abs();
                let is_unsure = by_waits && (a_side.few_waits || b_side.few_waits);
                let beyond = quantile(sorted, tail) > 0.0 || quantile(sorted, 1.0 - tail) < 0.0;
                Some(Row {
                    phase: phase.name.clone(),
                    title: phase.title.clone(),
                    a: a.sum(),
                    b: b.sum(),
                    difference,
                    ci_low: quantile(sorted, 0.025),
                    ci_high: quantile(sorted, 0.975),
                    a_cpu: a.cpu,
                    b_cpu: b.cpu,
                    clear: beyond
                        && difference.abs() >= least
                        && at != rules.idle()
                        && !of_others
                        && !is_unsure,
                })
            })
            .collect();
        rows.sort_by(|one, other| other.difference.abs().total_cmp(&one.difference.abs()));
        let totals = Totals {
            wall: (a_side.wall / a_side.amount, b_side.wall / b_side.amount),
            cpu: (
                a_side.phases.cpu() / a_side.amount,
                b_side.phases.cpu() / b_side.amount,
            ),
            wait: (
                a_side.phases.waits(rules) / a_side.amount,
                b_side.phases.waits(rules) / b_side.amount,
            ),
        };
        let (verdict, advice) = verdict::verdict(&rows, unit, &totals, rules);
        Self {
            unit,
            phases: rows,
            totals,
            verdict,
            advice,
            warnings,
        }
    }

    /// Why B takes longer than A; `None` where no phase has grown beyond the noise. `each` is what
    /// a unit is called, such as 'request'.
    pub fn reason(&self, each: &str, rules: &Rules) -> Option<Reason> {
        verdict::reason(&self.phases, each, rules)
    }
}

/// What both can be divided by, and what is to be said about that.
fn unit(a: &Recording, b: &Recording) -> (Unit, Vec<String>) {
    match (a.unit(), b.unit()) {
        (a, b) if a == b && a != Unit::Second => (a, Vec::new()),
        (Unit::Second, Unit::Second) => (
            Unit::Second,
            vec![
                "no work is known for these recordings, so times are per second of the run, and \
                 do not tell which one got more done; give --bytes or --operations when recording"
                    .to_owned(),
            ],
        ),
        _ => (
            Unit::Second,
            vec![
                "the work of the two is counted in different ways, so times are per second of \
                 the run; give --bytes or --operations when recording both"
                    .to_owned(),
            ],
        ),
    }
}

/// Whether waits were recorded in so few windows that nothing is to be said of their differences.
fn has_few_waits(recording: &Recording) -> bool {
    let coverage = recording.coverage.as_ref();
    coverage.is_some_and(|of| !of.waits.is_whole() && of.waits.0.len() < LEAST_WINDOWS)
}

#[cfg(test)]
mod tests {
    use cipherlane_measure::random::Random;

    use super::*;
    use crate::recording::tests::recording;
    use crate::recording::{Coverage, Kind, Windows, Work};

    fn bytes(mut recording: Recording, amount: u64) -> Recording {
        recording.work = Some(Work {
            amount,
            unit: Unit::Byte,
            source: "given".to_owned(),
        });
        recording
    }

    const CIPHER: (&str, Kind, u64) = ("main;aes_ctr", Kind::Cpu, 8_000_000);

    #[test]
    fn the_phase_that_grew_is_named_with_advice() {
        let a = bytes(recording(&[CIPHER]), 1 << 30);
        let copy = ("main;read;_copy_to_iter@[kernel]", Kind::Cpu, 3_000_000);
        let mut b = bytes(recording(&[CIPHER, copy]), 1 << 30);
        b.wall_ns += 400 * copy.2;
        let diff = Diff::new(&a, &b, &Rules::built_in());
        assert_eq!(diff.unit, Unit::Byte);
        assert_eq!(diff.phases[0].phase, "copy");
        assert!(diff.phases[0].clear && !diff.phases[1].clear);
        assert!(
            diff.verdict.contains("Copy between program and kernel"),
            "{}",
            diff.verdict
        );
        assert!(diff.advice[0].contains("cipherlane plan"));
        let back = Diff::new(&b, &a, &Rules::built_in());
        assert!(back.verdict.contains("faster"), "{}", back.verdict);
        assert!(back.advice.is_empty());
        let reason = diff.reason("request", &Rules::built_in()).unwrap();
        assert!(
            reason
                .text
                .starts_with("'Copy between program and kernel' takes 1.1")
                && reason.text.contains(" per request instead of nothing (+"),
            "{reason:?}"
        );
        assert!(reason.advice.contains("cipherlane plan"));
        assert_eq!(back.reason("request", &Rules::built_in()), None);
    }

    #[test]
    fn the_same_twice_differs_in_nothing() {
        let a = bytes(recording(&[CIPHER]), 1 << 30);
        let diff = Diff::new(&a, &a.clone(), &Rules::built_in());
        assert!(
            diff.phases
                .iter()
                .all(|row| !row.clear && row.difference == 0.0)
        );
        assert!(
            diff.verdict.contains("no difference beyond the noise"),
            "{}",
            diff.verdict
        );
        assert!(diff.advice.is_empty() && diff.warnings.is_empty());
    }

    #[test]
    fn other_machines_and_lost_samples_are_said() {
        let a = bytes(recording(&[CIPHER]), 1 << 30);
        let mut b = recording(&[CIPHER]);
        b.machine.cpu = "another one".to_owned();
        b.lost = 5;
        b.counters.machine_busy_ns = 10 * b.wall_ns;
        let diff = Diff::new(&a, &b, &Rules::built_in());
        assert_eq!(diff.unit, Unit::Second);
        assert!(
            diff.warnings[0].contains("another one"),
            "{:?}",
            diff.warnings
        );
        assert!(
            diff.warnings
                .iter()
                .any(|text| text.contains("other programs"))
        );
        assert!(diff.warnings.iter().any(|text| text.contains("lost")));
        assert!(diff.warnings.iter().any(|text| text.contains("--bytes")));
    }

    /// A program that waits for a timer for `wait` of each 10 ms, recorded in `count` windows of
    /// 10 ms at equal distances, whose waits are longer or shorter by `spread`.
    fn in_windows(count: u64, wait: u64, spread: u64) -> Recording {
        let timer = ("main;hrtimer_nanosleep@[kernel]", Kind::Wait, wait);
        let mut recording = bytes(recording(&[CIPHER, timer]), 1_000_000);
        if count == 0 {
            return recording;
        }
        let distance = recording.wall_ns / count;
        let windows: Vec<_> = (0..count).map(|of| of * distance).collect();
        let windows = Windows(windows.iter().map(|at| (*at, at + 10_000_000)).collect());
        let weights = windows.weights(recording.wall_ns);
        let mut random = Random::new(1);
        let signs: Vec<usize> = (0..count).map(|_| random.below(2)).collect();
        (recording.samples).retain(|of| of.kind == Kind::Cpu || of.at_ns % distance == 0);
        for sample in recording
            .samples
            .iter_mut()
            .filter(|of| of.kind == Kind::Wait)
        {
            let at = (sample.at_ns / distance) as usize;
            let differs = match signs[at] {
                0 => wait + spread,
                _ => wait - spread,
            };
            sample.ns = (differs as f64 * weights[at]) as u64;
        }
        recording.coverage = Some(Coverage {
            calls: Windows::default(),
            waits: windows,
        });
        recording
    }

    #[test]
    fn waits_in_windows_have_the_interval_of_the_windows() {
        let rules = Rules::built_in();
        let row = |a: &Recording, b: &Recording| {
            let diff = Diff::new(a, b, &rules);
            let row = diff.phases.iter().find(|row| row.phase == "timer");
            (row.unwrap().clone(), diff.warnings)
        };
        let whole = in_windows(0, 2_000_000, 0);
        let (exact, _) = row(&whole, &in_windows(0, 4_000_000, 0));
        let (sampled, warnings) = row(&whole, &in_windows(20, 4_000_000, 1_000_000));
        // 800 ms more in 4 s, for a million bytes.
        assert!(
            (exact.difference - 800.0).abs() < 1.0 && exact.clear,
            "{exact:?}"
        );
        assert!(
            (sampled.difference - 800.0).abs() < 300.0 && sampled.clear,
            "{sampled:?}"
        );
        let width = |row: &Row| row.ci_high - row.ci_low;
        assert!(width(&exact) < 1.0, "{exact:?}");
        // The mean of twenty windows with a deviation of a quarter: 5.6 % of 1600, twice each way.
        assert!((150.0..600.0).contains(&width(&sampled)), "{sampled:?}");
        assert!(
            warnings.iter().any(|text| text.contains("5 % of the time")),
            "{warnings:?}"
        );
        // From five windows nothing is told, whichever way they came out.
        let (few, warnings) = row(&whole, &in_windows(5, 4_000_000, 0));
        assert!(!few.clear && few.difference > 700.0, "{few:?}");
        assert!(
            warnings
                .iter()
                .any(|text| text.contains("record for longer")),
            "{warnings:?}"
        );
    }

    #[test]
    fn waiting_for_the_processors_of_others_is_no_difference() {
        let rules = Rules::built_in();
        let run = |ready| {
            let stacks = [
                ("main;aes_ctr", Kind::Cpu, 5_000_000),
                ("main;schedule@[kernel]", Kind::Ready, ready),
            ];
            let mut recording = bytes(recording(&stacks), 1_000_000);
            recording.counters.processor_ns = 2_000_000_000;
            recording
        };
        let (a, mut b) = (run(1_000_000), run(3_000_000));
        let is_clear = |b: &Recording| {
            let diff = Diff::new(&a, b, &rules);
            let queue = diff.phases.iter().find(|row| row.phase == "queue");
            (queue.unwrap().clear, diff.warnings.len())
        };
        // 800 ms of waiting more, while others had the processors for 600 ms and for 900 ms.
        assert_eq!(is_clear(&b), (true, 0));
        b.counters.machine_busy_ns = 2_600_000_000;
        assert_eq!(is_clear(&b), (true, 1));
        b.counters.machine_busy_ns = 2_900_000_000;
        assert_eq!(is_clear(&b), (false, 1));
    }
}
