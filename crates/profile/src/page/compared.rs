//! Two recordings as a page; the graphs by which any two are compared.

use cipherlane_measure::report::{self, escape};

use super::flame::{self, Extent};
use super::tree::Tree;
use super::{FLAME, SCRIPT, STYLE, bars, section, summary, timeline};
use crate::diff::Diff;
use crate::recording::{Kind, Recording, Unit};
use crate::rules::Rules;

/// The page of two recordings.
pub fn diff(a: &Recording, b: &Recording, diff: &Diff, rules: &Rules) -> String {
    let of = [("A", a), ("B", b)];
    let mut main = format!("<style>{STYLE}</style>\n{}", summary(&of, &diff.warnings));
    let advice: String = diff
        .advice
        .iter()
        .map(|advice| format!("<li>{}</li>", escape(advice)))
        .collect();
    main += &section(
        "What differs",
        "",
        &format!(
            "<p><b>{}</b></p>\n<ul>{advice}</ul>\n{}",
            escape(&diff.verdict),
            bars::pair(&diff.phases, ["A", "B"], bars::each(diff.unit))
        ),
    );
    for graph in graphs(of, diff.unit, Extent::LARGE, rules) {
        main += &section(&graph.title, &graph.note, &graph.drawn);
    }
    for (name, of) in of {
        main += &section(
            &format!("{name} over time"),
            "Processors in use, by phase.",
            &timeline::svg(of, rules),
        );
    }
    main += &format!("<script>{SCRIPT}</script>\n");
    report::page("What makes B differ from A", &b.machine, &main)
}

/// A flame graph with what stands above it.
pub(super) struct Graph {
    pub(super) title: String,
    pub(super) note: String,
    pub(super) drawn: String,
    /// Whether there is no such time.
    pub(super) is_empty: bool,
}

/// Processor time of the first of two with their names, and the second beside it: its processor time
/// and its waits.
pub(super) fn graphs(
    of: [(&str, &Recording); 2],
    unit: Unit,
    extent: Extent,
    rules: &Rules,
) -> [Graph; 3] {
    let [a, b] = of.map(|(name, _)| name);
    let trees = |kind| {
        of.map(|(_, recording)| {
            Tree::new(
                recording,
                rules,
                kind,
                recording.amount(unit).unwrap_or(1.0),
            )
        })
    };
    let [cpu_a, cpu_b] = trees(Kind::Cpu);
    let [wait_a, wait_b] = trees(Kind::Wait);
    let change = format!(
        "Boxes are those of {b}. What takes more time than in {a}, for the same work, is orange; \
         what takes less is blue; the stronger, the more."
    );
    let graph = |title: String, note: &str, tree: &Tree, before: Option<&Tree>| Graph {
        title,
        note: note.to_owned(),
        drawn: flame::svg(tree, before, extent, rules),
        is_empty: tree.is_empty(),
    };
    [
        graph(format!("Processor time of {a}"), FLAME, &cpu_a, None),
        graph(
            format!("Processor time of {b} against {a}"),
            &change,
            &cpu_b,
            Some(&cpu_a),
        ),
        graph(
            format!("Waits of {b} against {a}"),
            &change,
            &wait_b,
            Some(&wait_a),
        ),
    ]
}
