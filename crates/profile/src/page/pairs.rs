//! Pairs of those who took turns in a measurement, and why one is slower: parts of the page that
//! shows what was measured.
//!
//! There may be hundreds of pairs, and a page has to stay small. So each has its sentence, the larger
//! differences have bars by phase too, and the largest ones flame graphs.

use cipherlane_measure::report::escape;

use super::compared::{Graph, graphs};
use super::flame::Extent;
use super::{SCRIPT, STYLE, bars, wakers};
use crate::diff::Row;
use crate::recording::{Recording, Unit};
use crate::rules::Rules;

/// Bytes that all bars may take, and all flame graphs.
const BARS: usize = 150_000;
const GRAPHS: usize = 300_000;

/// Why one of two is slower than the other.
#[derive(Clone, Copy, Debug)]
pub struct Pair<'p> {
    /// What was measured, such as `gcm(aes), encrypt`.
    pub case: &'p str,
    /// Where in it, such as `64 bytes`.
    pub place: &'p str,
    /// What the faster one and the slower one are called.
    pub names: [&'p str; 2],
    /// What was recorded of them; the work is counted in operations.
    pub recordings: [&'p Recording; 2],
    /// How many times as slow the slower one is.
    pub times: f64,
    /// What an operation is called, such as `request`.
    pub each: &'p str,
    /// The difference by phase: A is the faster one.
    pub phases: &'p [Row],
    /// Why, in a sentence.
    pub sentence: &'p str,
    /// What to do about the phase that grew most, whose name stands first.
    pub advice: &'p str,
}

/// The parts of a page that tell why: HTML in `section` elements of its own.
#[derive(Clone, Debug, Default)]
pub struct Pairs {
    /// The sentences, for the head of the page.
    pub short: String,
    /// Phases and flame graphs, for its end.
    pub long: String,
}

/// The parts for `pairs`, those of one case side by side. `notes` are what else there is to say.
pub fn pairs(pairs: &[Pair<'_>], notes: &[String], rules: &Rules) -> Pairs {
    let mut largest: Vec<usize> = (0..pairs.len()).collect();
    largest.sort_by(|a, b| pairs[*b].times.total_cmp(&pairs[*a].times));
    let phases = as_many_as_fit(&largest, BARS, |number| by_phase(&pairs[number]));
    let graphs = as_many_as_fit(&largest, GRAPHS, |number| flames(&pairs[number], rules));
    let mut long = String::new();
    for (number, (phases, graphs)) in phases.iter().zip(&graphs).enumerate() {
        if let Some(phases) = phases {
            let graphs = graphs.as_deref().unwrap_or_default();
            long += &format!("<section id=\"why{number}\">{phases}{graphs}</section>\n");
        }
    }
    if !long.is_empty() {
        long = format!("<style>{STYLE}</style>\n{long}<script>{SCRIPT}</script>\n");
    }
    let short = short(pairs, notes, &phases, &graphs);
    Pairs { short, long }
}

/// What `of` gives for each number, in the order of the numbers; of those that stand first in
/// `order` as many as fit into `bytes`.
fn as_many_as_fit(
    order: &[usize],
    bytes: usize,
    of: impl Fn(usize) -> String,
) -> Vec<Option<String>> {
    let mut parts = vec![None; order.len()];
    let mut room = bytes;
    for &number in order {
        let part = of(number);
        match room.checked_sub(part.len()) {
            Some(rest) => room = rest,
            None => break,
        }
        parts[number] = Some(part);
    }
    parts
}

/// The sentences by case, with links to what is told below.
fn short(
    pairs: &[Pair<'_>],
    notes: &[String],
    phases: &[Option<String>],
    graphs: &[Option<String>],
) -> String {
    let mut short = "<section class=\"summary\"><h2>Why</h2>\n".to_owned();
    let mut number = 0;
    for of_case in pairs.chunk_by(|a, b| a.case == b.case) {
        short += &format!("<h3>{}</h3>\n<ul>", escape(of_case[0].case));
        for pair in of_case {
            let sentence = escape(pair.sentence);
            short += &match phases[number] {
                Some(_) => format!("<li>{sentence} <a href=\"#why{number}\">All phases</a></li>\n"),
                None => format!("<li>{sentence}</li>\n"),
            };
            number += 1;
        }
        short += "</ul>\n";
    }
    let count = |parts: &[Option<String>]| parts.iter().flatten().count();
    let (with_phases, with_graphs) = (count(phases), count(graphs));
    if with_graphs < pairs.len() {
        short += &format!(
            "<p class=\"note\">Of these {} differences the page has the phases of the {with_phases} \
             largest and flame graphs of the {with_graphs} largest: it would become too large. \
             Measure fewer cells to see the others.</p>\n",
            pairs.len()
        );
    }
    for note in notes {
        short += &format!("<p class=\"note\">{}</p>\n", escape(note));
    }
    short + "</section>\n"
}

/// What differs, by phase.
fn by_phase(pair: &Pair<'_>) -> String {
    let [faster, slower] = pair.names;
    let case = match pair.case == pair.place {
        true => String::new(),
        false => format!("; {}", escape(pair.case)),
    };
    format!(
        "<h2>{} and {}<small> {}{case}</small></h2>\n<p><b>{}</b></p>\n<ul><li>{}</li></ul>\n{}",
        escape(slower),
        escape(faster),
        escape(pair.place),
        escape(pair.sentence),
        escape(pair.advice),
        bars::pair(pair.phases, pair.names, &format!("per {}", pair.each)),
    )
}

/// Both as flame graphs.
fn flames(pair: &Pair<'_>, rules: &Rules) -> String {
    let of = [0, 1].map(|at| (pair.names[at], pair.recordings[at]));
    let graphs = graphs(of, Unit::Operation, Extent::SMALL, rules);
    let told = |graph: &Graph| {
        format!(
            "<h3>{}</h3>\n<p class=\"note\">{}</p>\n{}",
            escape(&graph.title),
            escape(&graph.note),
            graph.drawn
        )
    };
    // Of some measurements no waits are recorded.
    let graphs = graphs.iter().filter(|graph| !graph.is_empty);
    graphs.map(told).collect::<String>() + &who_ends_waits(pair, rules)
}

/// Who ends the waits of the slower one, where that is known.
fn who_ends_waits(pair: &Pair<'_>, rules: &Rules) -> String {
    let slower = pair.recordings[1];
    let unit = slower.amount(Unit::Operation).unwrap_or(1.0);
    let Some((note, drawn)) = wakers(slower, rules, unit, Extent::SMALL) else {
        return String::new();
    };
    format!(
        "<h3>Who ends the waits of {}</h3>\n<p class=\"note\">{}</p>\n{drawn}",
        escape(pair.names[1]),
        escape(&note),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::Diff;
    use crate::recording::tests::recording;
    use crate::recording::{Kind, Wake, Work};

    fn requests(stacks: &[(&str, Kind, u64)]) -> Recording {
        let mut recording = recording(stacks);
        recording.work = Some(Work {
            amount: 1000,
            unit: Unit::Operation,
            source: "a test".to_owned(),
        });
        recording
    }

    /// A driver that copies beside one that does not, `count` times, each time in a case of its own.
    fn told(count: usize, stacks: &[(&str, Kind, u64)], name: &str) -> Pairs {
        let rules = Rules::built_in();
        let copy = ("main;_copy_to_iter@[kernel]", Kind::Cpu, 4_000_000);
        let a = requests(stacks);
        let b = requests(&[stacks, &[copy]].concat());
        let diff = Diff::new(&a, &b, &rules);
        let cases: Vec<String> = (0..count).map(|number| format!("case {number}")).collect();
        let list: Vec<Pair<'_>> = cases
            .iter()
            .enumerate()
            .map(|(number, case)| Pair {
                case,
                place: "64 bytes",
                names: ["software", name],
                recordings: [&a, &b],
                times: 2.0 + number as f64,
                each: "request",
                phases: &diff.phases,
                sentence: "Why it is slower: for this reason.",
                advice: "Copy: do not.",
            })
            .collect();
        pairs(&list, &["A note.".to_owned()], &rules)
    }

    #[test]
    fn both_are_named_with_their_phases_and_functions() {
        let stacks = [("main;aes_ctr", Kind::Cpu, 5_000_000)];
        let of = told(1, &stacks, "engine");
        assert!(of.short.contains("href=\"#why0\"") && of.short.contains("A note."));
        for part in [
            "id=\"why0\"><h2>engine and software<",
            "<th>software</th><th>engine</th>",
            "Copy between program and kernel",
            "Copy: do not.",
            "Times are per request.",
            "Processor time of software",
            "Processor time of engine against software",
            "_copy_to_iter",
        ] {
            assert!(of.long.contains(part), "{part}: {}", of.long);
        }
        // Nobody waited.
        assert!(!of.long.contains("Waits of"), "{}", of.long);
        let nothing = pairs(&[], &["No reason.".to_owned()], &Rules::built_in());
        assert!(nothing.short.contains("No reason.") && nothing.long.is_empty());
    }

    #[test]
    fn who_ends_the_waits_of_the_slower_one_is_drawn() {
        let rules = Rules::built_in();
        let wait = ("main;asks;schedule@[kernel]", Kind::Wait, 5_000_000);
        let answer = ("main;answers;try_to_wake_up@[kernel]", Kind::Cpu, 1_000_000);
        let a = requests(&[answer]);
        let mut b = requests(&[answer, wait]);
        let stack_of = |kind| b.samples.iter().find(|of| of.kind == kind).unwrap().stack;
        let stacks = (stack_of(Kind::Wait), stack_of(Kind::Cpu));
        b.wakes = vec![Wake::from((0, stacks.0, 1, stacks.1, 9, 5_000_000))];
        let diff = Diff::new(&a, &b, &rules);
        let pair = Pair {
            case: "case",
            place: "64 bytes",
            names: ["software", "engine"],
            recordings: [&a, &b],
            times: 2.0,
            each: "request",
            phases: &diff.phases,
            sentence: "Why it is slower.",
            advice: "Wait less.",
        };
        let told = pairs(&[pair], &[], &rules).long;
        let drawn = told
            .find("Who ends the waits of engine")
            .map(|at| &told[at..]);
        assert!(
            drawn.is_some_and(|drawn| drawn.contains("answers")),
            "{told}"
        );
    }

    #[test]
    fn names_cannot_break_out_of_the_text() {
        let name = "</script><img src=x onerror=\"alert('1')\">";
        let stacks = [("main;aes_ctr", Kind::Cpu, 5_000_000)];
        let of = told(1, &stacks, name);
        assert!(!of.long.contains("<img") && !of.short.contains("<img"));
        assert_eq!(of.long.matches("</script>").count(), 1);
    }

    #[test]
    fn many_pairs_make_a_small_page_with_the_largest_differences() {
        let names: Vec<String> = (0..100)
            .map(|number| {
                format!("main;a_function_with_a_long_name_{number};called_{number}_times")
            })
            .collect();
        let stacks: Vec<_> = names
            .iter()
            .map(|name| (name.as_str(), Kind::Cpu, 1_000_000))
            .collect();
        let of = told(300, &stacks, "engine");
        assert_eq!(of.short.matches("Why it is slower").count(), 300);
        let links = of.short.matches("href=\"#why").count();
        assert!(0 < links && links < 300, "{links}");
        assert_eq!(of.long.matches("<section id=\"why").count(), links);
        // The last one differs most.
        assert!(of.long.contains("id=\"why299\"") && !of.long.contains("id=\"why0\""));
        let graphs = of.long.matches("<h3>Processor time of software").count();
        assert!(0 < graphs && graphs < links, "{graphs} of {links}");
        let told =
            format!("phases of the {links} largest and flame graphs of the {graphs} largest");
        assert!(of.short.contains(&told), "{}", of.short);
        let size = of.short.len() + of.long.len();
        assert!(size < 500_000, "{size} bytes");
    }
}
