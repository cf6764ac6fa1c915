//! One or two recordings as a page to look at, with the look of the other reports.
//!
//! | file | what it holds |
//! |---|---|
//! | `tree`, `flame` | stacks as one tree; the tree as a flame graph |
//! | `bars`, `timeline` | phases side by side; phases over time |
//! | `compared` | two recordings as a page |
//! | `pairs` | many pairs of recordings as parts of a page of figures |
//! | `figure` | two recordings as a picture for a document |
//!
//! Everything is in the page: it works offline, and without scripts all but zooming does.

mod bars;
mod compared;
mod figure;
mod flame;
mod pairs;
mod timeline;
mod tree;

use cipherlane_measure::report::{self, escape};

pub use self::compared::diff;
pub use self::figure::{Times, figure};
use self::flame::Extent;
pub use self::pairs::{Pair, Pairs, pairs};
use self::tree::Tree;
use crate::phases::Phases;
use crate::recording::{Kind, Recording};
use crate::rules::Rules;
use crate::wakers;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// What a flame graph is, for readers who have not seen one.
const FLAME: &str = "Each box is a function, as wide as the time in it and in those it calls, \
    which stand below it. Colours are phases. Click a box to see it larger; click the first row \
    to go back.";

/// The page of one recording.
pub fn html(recording: &Recording, rules: &Rules) -> String {
    let phases = Phases::new(recording, rules);
    let mut main = format!(
        "<style>{STYLE}</style>\n{}",
        summary(&[("", recording)], &[])
    );
    main += &section("Phases", "", &bars::html(recording, &phases, rules));
    main += &section(
        "Over time",
        "Processors in use, by phase.",
        &timeline::svg(recording, rules),
    );
    let unit = recording.amount(recording.unit()).unwrap_or(1.0);
    let graph = |kind, title: &str, note: &str| {
        let tree = Tree::new(recording, rules, kind, unit);
        section(title, note, &flame::svg(&tree, None, Extent::LARGE, rules))
    };
    main += &graph(Kind::Cpu, "Processor time", FLAME);
    main += &graph(
        Kind::Wait,
        "Waits",
        "The same for the time in which threads waited, by what they had called.",
    );
    if let Some((note, drawn)) = wakers(recording, rules, unit, Extent::LARGE) {
        main += &section("Who ends the waits", &note, &drawn);
    }
    main += &format!("<script>{SCRIPT}</script>\n");
    report::page(&title(&recording.what), &recording.machine, &main)
}

/// Who ends the waits, where that is known: a note and the graph. Times are divided by `unit`.
fn wakers(
    recording: &Recording,
    rules: &Rules,
    unit: f64,
    extent: Extent,
) -> Option<(String, String)> {
    if recording.wakes.is_empty() {
        return None;
    }
    let note = format!(
        "Below the function that a thread waits in stands who woke it, with that one's functions. It \
         is known for {:.0} % of the time that was waited.",
        wakers::known(recording) * 100.0
    );
    let tree = Tree::of_wakes(recording, rules, unit);
    Some((note, flame::svg(&tree, None, extent, rules)))
}

fn title(what: &str) -> String {
    const LONGEST: usize = 60;
    match what.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &what[..end]),
        None => what.to_owned(),
    }
}

fn section(title: &str, note: &str, content: &str) -> String {
    let note = match note {
        "" => String::new(),
        note => format!("<p class=\"note\">{}</p>\n", escape(note)),
    };
    format!(
        "<section><h2>{}</h2>\n{note}{content}</section>\n",
        escape(title)
    )
}

/// What was recorded, and what makes it doubtful.
fn summary(of: &[(&str, &Recording)], notes: &[String]) -> String {
    let mut list = String::new();
    for note in notes {
        list += &format!("<li><b>{}</b></li>\n", escape(note));
    }
    let mut told = Vec::new();
    for (name, recording) in of {
        let name = match *name {
            "" => String::new(),
            name => format!("<b>{name}</b>: "),
        };
        list += &format!(
            "<li>{name}<code>{}</code>, {:.2} s on the clock, {:.2} s of processors</li>\n",
            escape(&recording.what),
            recording.wall_ns as f64 / 1e9,
            recording.counters.processor_ns as f64 / 1e9
        );
        if let Some(sampled) = recording.sampled() {
            list += &format!("<li>{}</li>\n", escape(&sampled));
        }
        if recording.lost > 0 {
            list += &format!("<li><b>{} samples were lost</b></li>\n", recording.lost);
        }
        for missing in &recording.missing {
            // Both recordings of one machine lack the same.
            if told.contains(&missing) {
                continue;
            }
            told.push(missing);
            list += &format!("<li>Missing: {}</li>\n", escape(missing));
        }
    }
    format!("<section class=\"summary\"><h2>Recorded</h2>\n<ul>{list}</ul></section>\n")
}

/// The colour of a phase, as a class of the page.
fn colour(phase: &str) -> &'static str {
    match phase {
        "cipher" => "p3",
        "digest" => "p5",
        "copy" => "p2",
        "memory" => "p6",
        "syscall" => "p4",
        "scheduling" | "queue" => "p1",
        "network" | "tun" | "peer" => "p7",
        "lock" | "timer" | "device" => "p8",
        _ => "p0",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::Diff;
    use crate::recording::tests::recording;

    #[test]
    fn pages_are_whole_and_ask_nobody() {
        let a = recording(&[("main;aes_ctr", Kind::Cpu, 5_000_000)]);
        let b = recording(&[
            ("main;aes_ctr", Kind::Cpu, 5_000_000),
            ("main;_copy_to_iter@[kernel]", Kind::Cpu, 4_000_000),
            ("main;hrtimer_nanosleep@[kernel]", Kind::Wait, 1_000_000),
        ]);
        let rules = Rules::built_in();
        let compared = Diff::new(&a, &b, &rules);
        for page in [html(&b, &rules), diff(&a, &b, &compared, &rules)] {
            assert!(page.ends_with("</html>\n") && page.contains("_copy_to_iter"));
            for outside in ["http://", "https://", "src=", "@import", "url("] {
                assert!(!page.contains(outside), "{outside}");
            }
        }
    }

    #[test]
    fn names_cannot_break_out_of_the_text() {
        let name = "</script><img src=x onerror=\"alert('1')\">";
        let mut a = recording(&[("main;aes_ctr", Kind::Cpu, 5_000_000)]);
        for frame in &mut a.frames {
            frame.name = name.to_owned();
            frame.module = name.to_owned();
        }
        a.what = name.to_owned();
        a.missing.push(name.to_owned());
        let rules = Rules::built_in();
        let compared = Diff::new(&a, &a.clone(), &rules);
        for page in [html(&a, &rules), diff(&a, &a.clone(), &compared, &rules)] {
            assert!(!page.contains("<img") && !page.contains("onerror=\""));
            assert_eq!(page.matches("</script>").count(), 2);
        }
    }

    #[test]
    fn a_recording_with_many_functions_makes_a_small_page() {
        let names: Vec<String> = (0..3000)
            .map(|number| {
                let (a, b) = (number % 17, number % 311);
                format!("main;a_function_{a};with_a_long_name_{b};called_{number}_times")
            })
            .collect();
        let stacks: Vec<(&str, Kind, u64)> = names
            .iter()
            .map(|name| (name.as_str(), Kind::Cpu, 1000))
            .collect();
        let mut a = recording(&stacks[..1]);
        let many = recording_of(&stacks);
        a.frames = many.frames;
        a.stacks = many.stacks;
        a.samples = many.samples;
        let rules = Rules::built_in();
        let compared = Diff::new(&a, &a.clone(), &rules);
        let page = diff(&a, &a.clone(), &compared, &rules);
        assert!(page.len() < 1_000_000, "{} bytes", page.len());
    }

    /// Each stack once.
    fn recording_of(stacks: &[(&str, Kind, u64)]) -> Recording {
        let mut recording = recording(&stacks[..1]);
        recording.samples.clear();
        for part in stacks.chunks(100) {
            let mut of = crate::recording::tests::recording(part);
            of.samples.truncate(part.len());
            let (frames, known) = (recording.frames.len(), recording.stacks.len());
            recording.frames.extend(of.frames);
            for (caller, frame) in of.stacks {
                let caller = if caller == 0 {
                    0
                } else {
                    caller + known as u32
                };
                recording.stacks.push((caller, frame + frames as u32));
            }
            for sample in &mut of.samples {
                sample.stack += known as u32;
            }
            recording.samples.extend(of.samples);
        }
        recording
    }
}
