//! Two recordings as one picture for a document: phases as bars, in light and in dark.

use cipherlane_measure::report::{self, escape};

use super::bars::{each, told};
use crate::diff::{Diff, Row};
use crate::rules::IDLE;

/// Phases that are drawn, those that take most of either.
const SHOWN: usize = 8;
/// Width of the picture, where bars begin and end, and the height of a phase, in pixels.
const WIDTH: usize = 760;
const LEFT: f64 = 268.0;
const RIGHT: f64 = 670.0;
const ROW: usize = 40;
/// Above the first phase, and below the last one.
const HEAD: usize = 74;
const FOOT: usize = 34;

const STYLE: &str = "svg { font: 13px system-ui, -apple-system, \"Segoe UI\", Roboto, \
    \"Liberation Sans\", \"DejaVu Sans\", sans-serif; }\n\
    svg text { fill: var(--soft); font-variant-numeric: tabular-nums; }\n\
    svg .title { fill: var(--ink); font-size: 16px; font-weight: 600; }\n\
    svg .phase { fill: var(--ink); text-anchor: end; }\n\
    .paper { fill: var(--card); }\n.a { fill: var(--s0); }\n.b { fill: var(--s2); }\n";

/// Which times are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Times {
    /// Those with a processor, and waits.
    All,
    /// Those with a processor: in a chain of programs each waits for the slowest.
    Processor,
}

impl Times {
    fn of(self, row: &Row) -> [f64; 2] {
        match self {
            Self::All => [row.a, row.b],
            Self::Processor => [row.a_cpu, row.b_cpu],
        }
    }
}

/// The picture. `names` are what A and B are called; `note` stands below: the machine and the day.
pub fn figure(diff: &Diff, times: Times, title: &str, names: [&str; 2], note: &str) -> String {
    let most = |row: &Row| times.of(row)[0].max(times.of(row)[1]);
    // Who has nothing to do says nothing about the work.
    let mut rows: Vec<_> = diff.phases.iter().filter(|row| row.phase != IDLE).collect();
    rows.sort_by(|x, y| most(y).total_cmp(&most(x)));
    rows.truncate(SHOWN);
    let longest = rows.iter().map(|row| most(row)).fold(0.0, f64::max);
    let height = HEAD + rows.len() * ROW + FOOT;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
         aria-label=\"{title}\">\n<style>\n{}</style>\n\
         <rect class=\"paper\" width=\"{WIDTH}\" height=\"{height}\" rx=\"8\"/>\n\
         <text class=\"title\" x=\"20\" y=\"30\">{title}</text>\n",
        report::literal(STYLE),
        title = escape(title),
    );
    let mut x = 20.0;
    for (class, name) in ["a", "b"].into_iter().zip(names) {
        svg += &format!(
            "<rect class=\"{class}\" x=\"{x:.0}\" y=\"43\" width=\"12\" height=\"12\" rx=\"3\"/>\
             <text x=\"{:.0}\" y=\"54\">{}</text>\n",
            x + 18.0,
            escape(name)
        );
        // A letter is about seven pixels wide.
        x += 46.0 + 7.0 * name.chars().count() as f64;
    }
    svg += &format!(
        "<text x=\"{}\" y=\"54\" text-anchor=\"end\">{} {}, all threads</text>\n",
        WIDTH - 20,
        match times {
            Times::All => "time",
            Times::Processor => "processor time",
        },
        each(diff.unit)
    );
    for (number, row) in rows.iter().enumerate() {
        let y = HEAD + number * ROW;
        svg += &format!(
            "<text class=\"phase\" x=\"{}\" y=\"{}\">{}</text>\n",
            LEFT - 12.0,
            y + 19,
            escape(&row.title)
        );
        let [a, b] = times.of(row);
        for (class, time, y) in [("a", a, y), ("b", b, y + 15)] {
            let width = match longest > 0.0 {
                true => time / longest * (RIGHT - LEFT),
                false => 0.0,
            };
            let text = told(time);
            svg += &format!(
                "<rect class=\"{class}\" x=\"{LEFT}\" y=\"{y}\" width=\"{width:.1}\" \
                 height=\"13\" rx=\"2\"/><text x=\"{:.1}\" y=\"{}\">{text}</text>\n",
                LEFT + width + 7.0,
                y + 11,
            );
        }
    }
    svg + &format!(
        "<text x=\"20\" y=\"{}\">{}</text>\n</svg>\n",
        height - 14,
        escape(note)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::Kind;
    use crate::recording::tests::recording;
    use crate::rules::Rules;

    #[test]
    fn the_longest_bar_ends_within_the_picture_and_text_stays_text() {
        let a = recording(&[("main;aes_ctr", Kind::Cpu, 5_000_000)]);
        let b = recording(&[
            ("main;aes_ctr", Kind::Cpu, 5_000_000),
            ("main;hrtimer_nanosleep@[kernel]", Kind::Wait, 4_000_000),
        ]);
        let diff = Diff::new(&a, &b, &Rules::built_in());
        let svg = figure(&diff, Times::All, "Why <B>", ["a & b", "c"], "here");
        assert!(svg.contains("Why &lt;B&gt;") && svg.contains("a &amp; b"));
        assert!(svg.contains("Waiting for a timer") && svg.ends_with("</svg>\n"));
        let widths = svg.split("width=\"").skip(3).filter_map(|rest| {
            let (number, _) = rest.split_once('"')?;
            number.parse::<f64>().ok()
        });
        let longest = widths.fold(0.0, f64::max);
        assert!((longest - (RIGHT - LEFT)).abs() < 0.1, "{longest}");
        assert!(!svg.contains("var(--"), "{svg}");
        let svg = figure(&diff, Times::Processor, "Why", ["a", "b"], "here");
        let of = |text: &str| svg.matches(text).count();
        assert_eq!((of(">–<"), of("all threads")), (2, 1), "{svg}");
    }
}
