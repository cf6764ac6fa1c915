//! A chart as SVG: lines with bands and marks over a scale, with its legend and units. It is
//! drawn here and not in the reader's browser, so that it is there on paper and without scripts.
//!
//! The classes are those of `chart.css`, which a page has once and a chart that stands alone
//! brings along with the colours of `palette`; both follow the reader's choice of light or dark.

use super::html::escape;
use super::palette;

/// The classes that charts use.
pub(super) const STYLE: &str = include_str!("chart.css");
/// Colours and marks that the style knows; series beyond these begin again.
pub(super) const SERIES: usize = 8;

/// Width of a chart, in the units of SVG.
pub(super) const WIDTH: f64 = 600.0;
/// Room of a character of text, on average.
pub(super) const CHARACTER: f64 = 6.6;
/// The same of a title, and room of a line of it.
const STRONG_CHARACTER: f64 = 9.2;
const TITLE_LINE: f64 = 20.0;

/// A chart.
#[derive(Clone, Debug, Default)]
pub struct Chart {
    /// What it shows.
    pub title: String,
    /// How to read it.
    pub note: String,
    /// What runs across, with its unit.
    pub across: &'static str,
    /// Across by powers: every doubling is as wide as another.
    pub doublings: bool,
    /// Upwards from 0 in even steps, and not by powers.
    pub even: bool,
    /// Figures across and upwards as a reader knows them, with their units.
    pub labels: Labels,
    /// A dotted line to compare with.
    pub guide: Guide,
    /// Where something changes: series, the place across, and what is written there.
    pub uprights: Vec<(usize, f64, String)>,
    /// What is drawn.
    pub lines: Vec<Line>,
}

/// How figures are written.
#[derive(Clone, Copy, Debug)]
pub struct Labels {
    /// Those across.
    pub across: fn(f64) -> String,
    /// Those upwards.
    pub up: fn(f64) -> String,
}

impl Default for Labels {
    fn default() -> Self {
        let plain = |value: f64| value.to_string();
        Labels {
            across: plain,
            up: plain,
        }
    }
}

/// A line to compare with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Guide {
    /// None.
    #[default]
    None,
    /// At 1, whatever is across.
    One,
    /// As much upwards as across.
    Diagonal,
}

/// A line of a chart.
#[derive(Clone, Debug, Default)]
pub struct Line {
    /// In the legend, with a unit where the name is a figure.
    pub name: String,
    /// Its colour and mark.
    pub series: usize,
    /// It goes with another line of its series, and is dashed and not in the legend.
    pub second: bool,
    /// From left to right.
    pub points: Vec<Point>,
}

/// A point of a line.
#[derive(Clone, Debug, Default)]
pub struct Point {
    /// Across.
    pub x: f64,
    /// Upwards.
    pub y: f64,
    /// The interval in which it lies.
    pub interval: Option<(f64, f64)>,
    /// Its mark is hollow.
    pub noisy: bool,
    /// What a reader who points at it is told besides its figures.
    pub told: String,
}

impl Chart {
    /// As a file of its own, title and note inside the frame.
    pub fn alone(&self) -> String {
        let note = lines_of(&self.note, ((WIDTH - 24.0) / CHARACTER) as usize);
        let title = lines_of(&self.title, ((WIDTH - 24.0) / STRONG_CHARACTER) as usize);
        let below = 2.0 + TITLE_LINE * title.len() as f64;
        let head = below + 8.0 + 16.0 * note.len() as f64;
        let (body, height) = self.body();
        let mut text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"alone\" \
             viewBox=\"0 0 {WIDTH} {:.0}\" role=\"img\" aria-label=\"{}\">\n<style>\n{}</style>\n<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n\
             ",
            head + height,
            escape(&self.title),
            palette::literal(STYLE),
        );
        for (index, line) in title.iter().enumerate() {
            let (y, line) = (22.0 + TITLE_LINE * index as f64, escape(line));
            text += &format!("<text class=\"title\" x=\"12\" y=\"{y}\">{line}</text>");
        }
        for (index, line) in note.iter().enumerate() {
            let y = below + 16.0 + 16.0 * index as f64;
            text += &format!("<text x=\"12\" y=\"{y}\">{}</text>", escape(line));
        }
        text + &format!("\n<g transform=\"translate(0 {head})\">{body}</g>\n</svg>\n")
    }

    /// As a figure of a page.
    pub fn figure(&self) -> String {
        let (body, height) = self.body();
        format!(
            "<figure class=\"chart\"><figcaption><b>{}</b>{}</figcaption><svg \
             viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\" aria-label=\"{}\">{body}</svg>\
             </figure>\n",
            escape(&self.title),
            escape(&self.note),
            escape(&self.title)
        )
    }
}

/// Text in lines of at most `most` characters, where its words allow that.
fn lines_of(text: &str, most: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= most => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(even: bool) -> Chart {
        let point = |x: f64, y: f64| Point {
            x,
            y,
            interval: Some((y * 0.9, y * 1.1)),
            ..Point::default()
        };
        let line = |series: usize| Line {
            name: format!("line {series}"),
            series,
            points: [1.0, 2.0, 4.0, 1024.0]
                .map(|x| point(x, x * (series + 1) as f64))
                .to_vec(),
            ..Line::default()
        };
        Chart {
            title: "A <title>".to_owned(),
            note: "words ".repeat(40),
            across: "bytes",
            doublings: true,
            even,
            uprights: vec![(1, 3.0, "3".to_owned()), (9, 1e9, "far".to_owned())],
            lines: (0..9).map(line).collect(),
            ..Chart::default()
        }
    }

    /// Coordinates after `M` and `L` of all paths.
    fn places(svg: &str) -> Vec<(f64, f64)> {
        let paths = svg
            .split(" d=\"")
            .skip(1)
            .map(|rest| rest.split('"').next().unwrap());
        let places = paths.flat_map(|path| path.split(['M', 'L']).skip(1));
        let place = |text: &str| {
            let text = text
                .split(|c: char| c.is_ascii_alphabetic())
                .next()
                .unwrap();
            let mut numbers = text.split(' ').map(|number| number.parse().unwrap());
            Some((numbers.next()?, numbers.next()?))
        };
        places.filter_map(place).collect()
    }

    #[test]
    fn everything_is_drawn_within_the_frame() {
        for even in [false, true] {
            let svg = chart(even).alone();
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
            let frame = svg.split("viewBox=\"0 0 ").nth(1).unwrap();
            let mut sides = frame.split('"').next().unwrap().split(' ');
            let mut side = || sides.next().unwrap().parse::<f64>().unwrap();
            let (width, height) = (side(), side());
            assert_eq!(svg.matches("class=\"curve").count(), 2 * 9);
            assert_eq!(svg.matches("<title>").count(), 4 * 9);
            for (x, y) in places(&svg) {
                assert!(
                    (0.0..=width).contains(&x) && (0.0..=height).contains(&y),
                    "{x} {y}"
                );
            }
            assert!(svg.contains("A &lt;title&gt;") && svg.contains("prefers-color-scheme: dark"));
        }
    }

    #[test]
    fn little_is_a_chart_too() {
        let mut chart = chart(true);
        chart.lines.truncate(1);
        chart.lines[0].points.truncate(1);
        assert!(!chart.figure().contains("NaN"));
        chart.lines.clear();
        assert!(chart.figure().contains("Nothing to draw"));
    }
}
