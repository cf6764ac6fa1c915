//! `--profile` of the commands that measure: what takes turns is recorded meanwhile, and of each
//! pair of results that differ it is told why.

use std::collections::BTreeMap;

use cipherlane_measure::watcher::Watcher;
use cipherlane_profile::diff::Diff;
use cipherlane_profile::record::turns::{Turns, Whose};
use cipherlane_profile::recording::{Kind, Recording, Unit, Work};
use cipherlane_profile::rules::Rules;

use super::told::Reason;
pub(crate) use super::told::Reasons;
use crate::failure::Failure;

/// A result that is slower by this many times or more, beyond its noise, is given a reason.
const LEAST_TIMES: f64 = 1.03;

/// Records while others measure.
#[derive(Debug)]
pub(crate) struct Profiler {
    turns: Turns,
    /// Of each number: how much was done in its turns.
    work: Vec<u64>,
    pairs: Vec<Pair>,
    time: Time,
}

/// Which time is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Time {
    /// That of processors, and that of waits.
    All,
    /// That of processors alone.
    Processor,
}

/// Two results, one of which is slower.
#[derive(Clone, Debug)]
pub(crate) struct Pair {
    /// What was measured, such as `gcm(aes), 128-bit key, encrypt`.
    pub(crate) case: String,
    /// Where in it, such as `64 bytes`.
    pub(crate) place: String,
    /// What times are divided by, such as `request`.
    pub(crate) each: &'static str,
    /// Its name and its number.
    pub(crate) slower: (String, u32),
    pub(crate) faster: (String, u32),
    /// How many times as slow it is, at least, and in the median.
    pub(crate) times: (f64, f64),
    /// How the sentence begins: who is how many times slower than whom.
    pub(crate) comparison: String,
}

/// The turns of the candidates of one measurement.
#[derive(Debug)]
pub(crate) struct Watched<'p> {
    turns: &'p Turns,
    first: u32,
}

impl Profiler {
    /// Records this process.
    pub(crate) fn of_this_process() -> Result<Self, Failure> {
        Self::start(Whose::Own, Time::All)
    }

    /// Records the processes that this thread starts from now on, and compares their processor
    /// time: who works in a chain waits for the others.
    pub(crate) fn of_started_processes() -> Result<Self, Failure> {
        Self::start(Whose::Started, Time::Processor)
    }

    fn start(whose: Whose, time: Time) -> Result<Self, Failure> {
        Ok(Self {
            turns: Turns::start(whose)?,
            work: Vec::new(),
            pairs: Vec::new(),
            time,
        })
    }

    /// The first of `count` numbers that nobody has yet.
    pub(crate) fn numbers(&mut self, count: usize) -> u32 {
        let first = self.work.len();
        self.work.resize(first + count, 0);
        first as u32
    }

    /// For a measurement whose candidates have the numbers from `first` on.
    pub(crate) fn watch(&self, first: u32) -> Watched<'_> {
        Watched {
            turns: &self.turns,
            first,
        }
    }

    /// So much was done by the one with that number, in all its turns since the last call.
    pub(crate) fn done(&mut self, number: u32, amount: u64) {
        self.work[number as usize] += amount;
    }

    /// Asks for a reason, unless the difference is within the noise.
    pub(crate) fn ask(&mut self, pair: Pair) {
        if pair.times.0 >= LEAST_TIMES {
            self.pairs.push(pair);
        }
    }

    /// Ends the recording, and finds the reasons.
    pub(crate) fn finish(self) -> Result<Reasons, Failure> {
        let rules = Rules::built_in();
        let mut recorded = self.turns.finish()?;
        let any = recorded.values().next();
        let mut reasons = Reasons {
            event: any.map_or_else(String::new, |recording| recording.event.clone()),
            lost: any.map_or(0, |recording| recording.lost),
            missing: any.map_or_else(Vec::new, |recording| recording.missing.clone()),
            reasons: Vec::new(),
            recorded: BTreeMap::new(),
        };
        for (number, recording) in &mut recorded {
            recording.work = Some(self.work[*number as usize])
                .filter(|amount| *amount > 0)
                .map(|amount| Work {
                    amount,
                    unit: Unit::Operation,
                    source: "measured".to_owned(),
                });
            if self.time == Time::Processor {
                recording.samples.retain(|sample| sample.kind == Kind::Cpu);
            }
        }
        let known = |number: u32| {
            let recording = recorded.get(&number);
            recording.filter(|recording| recording.work.is_some())
        };
        for pair in self.pairs {
            if let (Some(faster), Some(slower)) = (known(pair.faster.1), known(pair.slower.1)) {
                reasons.reasons.extend(pair.reason(faster, slower, &rules));
            }
        }
        reasons.recorded = recorded;
        Ok(reasons)
    }
}

impl Watcher for Watched<'_> {
    fn begins(&self, number: usize) {
        self.turns.begin(self.first + number as u32);
    }

    fn ended(&self) {
        self.turns.end();
    }

    fn joins(&self) {
        self.turns.join();
    }
}

impl Pair {
    /// `None` where no phase differs beyond the noise.
    fn reason(self, faster: &Recording, slower: &Recording, rules: &Rules) -> Option<Reason> {
        let diff = match is_starved(faster, slower) {
            true => Diff::new(faster, slower, rules),
            false => Diff::new(&fed(faster), &fed(slower), rules),
        };
        let found = diff.reason(self.each, rules)?;
        let sentence = format!("{}: {}.", self.comparison, found.text);
        Some(Reason {
            case: self.case,
            place: self.place,
            slower: self.slower.0,
            faster: self.faster.0,
            numbers: [self.faster.1, self.slower.1],
            times: self.times.1,
            each: self.each,
            sentence,
            title: found.title,
            advice: found.advice,
            phases: diff.phases,
        })
    }
}

/// Whether the slower one waits for a processor more than other programs explain: these take the
/// same part of the time from all who take turns, and so more of it per request from the slower.
fn is_starved(faster: &Recording, slower: &Recording) -> bool {
    let part = |of: &Recording| {
        let sum = |is_ready: bool| -> u64 {
            let samples = of.samples.iter();
            let samples = samples.filter(|sample| (sample.kind == Kind::Ready) == is_ready);
            samples.map(|sample| sample.ns).sum()
        };
        sum(true) as f64 / sum(false).max(1) as f64
    };
    part(slower) > 1.5 * part(faster) + 0.05
}

/// A recording without the time in which threads had no processor.
fn fed(recording: &Recording) -> Recording {
    let mut fed = recording.clone();
    fed.samples.retain(|sample| sample.kind != Kind::Ready);
    fed
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use cipherlane_profile::recording::Sample;

    use super::*;

    fn kept(name: &str) -> Recording {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join("../profile/tests/recordings")
            .join(format!("{name}.json"));
        let mut recording = Recording::open(&path).unwrap();
        recording.work = Some(Work {
            amount: 1000,
            unit: Unit::Operation,
            source: "a test".to_owned(),
        });
        recording
    }

    fn pair(least: f64) -> Pair {
        Pair {
            case: "gcm(aes), encrypt".to_owned(),
            place: "64 bytes".to_owned(),
            each: "request",
            slower: ("b".to_owned(), 1),
            faster: ("a".to_owned(), 0),
            times: (least, least + 0.5),
            comparison: "Why b is 2 times slower than a at 64 bytes".to_owned(),
        }
    }

    #[test]
    fn a_reason_names_the_phase_and_says_what_to_do() {
        let rules = Rules::built_in();
        let reason = pair(2.0).reason(&kept("openssl-speed"), &kept("wireguard-go"), &rules);
        let reason = reason.unwrap();
        assert!(
            reason
                .sentence
                .starts_with("Why b is 2 times slower than a at 64 bytes: '")
                && reason.sentence.contains(" per request instead of "),
            "{}",
            reason.sentence
        );
        assert!(reason.sentence.contains(&format!("'{}'", reason.title)));
        let again = pair(2.0).reason(&kept("openssl-speed"), &kept("wireguard-go"), &rules);
        let reasons = Reasons {
            event: "cpu-clock".to_owned(),
            lost: 0,
            missing: Vec::new(),
            reasons: vec![reason, again.unwrap()],
            recorded: BTreeMap::from([(0, kept("openssl-speed")), (1, kept("wireguard-go"))]),
        };
        let text = reasons.text();
        assert_eq!(text.matches("gcm(aes), encrypt").count(), 1, "{text}");
        let advice = format!("{}: ", reasons.reasons[0].title);
        assert_eq!(text.matches(&advice).count(), 1, "{text}");
        let page = reasons.html();
        assert_eq!(
            page.short.matches("href=\"#why").count(),
            2,
            "{}",
            page.short
        );
        assert_eq!(
            page.long
                .matches("<h3>Processor time of b against a<")
                .count(),
            2
        );
        assert_eq!(page.long.matches(&advice).count(), 2);
    }

    #[test]
    fn processors_that_others_have_are_the_reason_only_where_they_take_a_larger_part() {
        // Each sample of processor time, and `part` times as long without a processor.
        let with = |part: u64, times: u64| {
            let mut recording = fed(&kept("openssl-speed"));
            for sample in &mut recording.samples {
                (sample.at_ns, sample.ns) = (sample.at_ns * times, sample.ns * times);
            }
            let cpu = recording.samples.iter().filter(|of| of.kind == Kind::Cpu);
            let cpu: Vec<_> = cpu.map(|of| (of.at_ns, of.ns)).collect();
            recording.wall_ns *= times;
            recording
                .samples
                .extend(cpu.into_iter().map(|(at_ns, ns)| Sample {
                    at_ns,
                    kind: Kind::Ready,
                    thread: 0,
                    stack: 0,
                    count: 1,
                    ns: ns * part,
                }));
            recording
        };
        assert!(!is_starved(&with(2, 1), &with(2, 3)));
        assert!(is_starved(&with(0, 1), &with(2, 1)));
        let fed = fed(&with(2, 1));
        assert_eq!(
            fed.samples,
            with(0, 1)
                .samples
                .into_iter()
                .filter(|of| of.kind != Kind::Ready)
                .collect::<Vec<_>>()
        );
    }

    #[test]
    fn nothing_is_said_inside_the_noise() {
        let rules = Rules::built_in();
        let same = pair(2.0).reason(&kept("pipe"), &kept("pipe"), &rules);
        assert!(same.is_none());
        let Ok(mut profiler) = Profiler::of_this_process() else {
            eprintln!("SKIPPED: performance events are refused here");
            return;
        };
        profiler.ask(pair(1.01));
        assert!(profiler.pairs.is_empty());
        profiler.ask(pair(1.1));
        assert_eq!(profiler.pairs.len(), 1);
        // Of what had no turn nothing is known.
        assert!(profiler.finish().unwrap().reasons.is_empty());
    }
}
