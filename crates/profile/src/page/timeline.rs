//! Processors in use over time, by phase.

use cipherlane_measure::report::escape;

use super::colour;
use crate::phases::Phases;
use crate::recording::Recording;
use crate::rules::Rules;

/// Columns.
const COLUMNS: usize = 120;
/// Height of the picture.
const HEIGHT: f64 = 150.0;

pub(super) fn svg(recording: &Recording, rules: &Rules) -> String {
    let phases = Phases::in_blocks(recording, rules, COLUMNS);
    let column = (recording.wall_ns as f64 / COLUMNS as f64).max(1.0);
    let load =
        |block: &Vec<crate::phases::Time>| block.iter().map(|time| time.cpu).sum::<f64>() / column;
    let most = phases.blocks.iter().map(load).fold(1.0, f64::max);
    let mut svg = format!(
        "<svg class=\"timeline\" viewBox=\"0 0 {} {}\" preserveAspectRatio=\"none\" role=\"img\">\n",
        COLUMNS * 10,
        HEIGHT
    );
    for (number, block) in phases.blocks.iter().enumerate() {
        let mut y = HEIGHT;
        for (phase, time) in rules.phases().iter().zip(block) {
            let height = time.cpu / column / most * HEIGHT;
            if height < 0.3 {
                continue;
            }
            y -= height;
            svg += &format!(
                "<rect class=\"{}\" x=\"{}\" y=\"{y:.1}\" width=\"10\" height=\"{height:.1}\">\
                 </rect>\n",
                colour(&phase.name),
                number * 10,
            );
        }
        let stolen = block[rules.steal()].wait / column;
        if stolen > 0.0 {
            svg += &format!(
                "<rect class=\"lost-bar\" x=\"{}\" y=\"0\" width=\"10\" height=\"4\"><title>{:.0} % \
                 taken by the hypervisor</title></rect>\n",
                number * 10,
                stolen * 100.0
            );
        }
    }
    let used = rules.phases().iter().zip(&phases.totals);
    let mut used: Vec<_> = used.filter(|(_, time)| time.cpu > 0.0).collect();
    used.sort_by(|(_, a), (_, b)| b.cpu.total_cmp(&a.cpu));
    // Phases that have one colour stand together.
    let mut legend: Vec<(&str, Vec<String>)> = Vec::new();
    for (phase, _) in used {
        let (class, title) = (colour(&phase.name), escape(&phase.title));
        match legend.iter_mut().find(|(of, _)| *of == class) {
            Some((_, titles)) => titles.push(title),
            None => legend.push((class, vec![title])),
        }
    }
    let legend: String = legend
        .iter()
        .map(|(class, titles)| {
            format!(
                "<span><i class=\"{class}\"></i>{}</span> ",
                titles.join(", ")
            )
        })
        .collect();
    svg + &format!(
        "</svg>\n<p class=\"note\">0 to {:.1} s, up to {most:.1} processors.</p>\n\
         <p class=\"note key\">{legend}</p>\n",
        recording.wall_ns as f64 / 1e9
    )
}
