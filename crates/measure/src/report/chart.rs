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

/// Size of a chart, in the units of SVG, and the margins of its plot.
const WIDTH: f64 = 600.0;
const PLOT_HEIGHT: f64 = 280.0;
const RIGHT: f64 = 16.0;
const BOTTOM: f64 = 42.0;
/// Room of a character of text, on average, and of a line of the legend.
const CHARACTER: f64 = 6.6;
const LEGEND_LINE: f64 = 20.0;
/// The same of a title.
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

/// Where values lie.
struct Plot {
    left: f64,
    top: f64,
    bottom: f64,
    x: Scale,
    y: Scale,
}

/// From values to shares of a length.
#[derive(Clone, Copy)]
struct Scale {
    low: f64,
    high: f64,
    powers: bool,
}

impl Scale {
    fn share(self, value: f64) -> f64 {
        let at = |value: f64| if self.powers { value.ln() } else { value };
        match at(self.high) - at(self.low) {
            span if span > 0.0 => (at(value) - at(self.low)) / span,
            _ => 0.5,
        }
    }

    fn holds(self, value: f64) -> bool {
        value.is_finite() && (self.low..=self.high).contains(&value)
    }
}

impl Plot {
    fn x(&self, value: f64) -> f64 {
        let inset = self.left + 12.0;
        inset + self.x.share(value) * (WIDTH - RIGHT - 12.0 - inset)
    }

    fn y(&self, value: f64) -> f64 {
        self.bottom - self.y.share(value) * (self.bottom - self.top)
    }

    fn path<'p>(&self, points: impl Iterator<Item = (f64, f64)> + 'p) -> String {
        let points = points.map(|(x, y)| format!("{:.1} {:.1}", self.x(x), self.y(y)));
        points.collect::<Vec<_>>().join("L")
    }
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

    /// What is drawn, and its height.
    fn body(&self) -> (String, f64) {
        let (legend, top) = self.legend();
        let top = if self.uprights.is_empty() {
            top
        } else {
            top + 16.0
        };
        let height = top + PLOT_HEIGHT;
        let Some((x, y, ticks)) = self.scales() else {
            return (
                "<text x=\"12\" y=\"24\">Nothing to draw.</text>".to_owned(),
                40.0,
            );
        };
        let labels: Vec<String> = ticks.iter().map(|&tick| (self.labels.up)(tick)).collect();
        let widest = labels.iter().map(|label| label.chars().count()).max();
        let plot = Plot {
            left: 14.0 + CHARACTER * widest.unwrap_or(0) as f64,
            top,
            bottom: height - BOTTOM,
            x,
            y,
        };
        let mut body = legend;
        for (tick, label) in ticks.iter().zip(&labels) {
            let y = plot.y(*tick);
            body += &format!(
                "<path class=\"grid\" d=\"M{:.1} {y:.1}H{:.1}\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                plot.left,
                WIDTH - RIGHT,
                plot.left - 6.0,
                y + 4.0,
                escape(label)
            );
        }
        body += &self.across(&plot);
        body += &self.guides(&plot);
        for line in &self.lines {
            body += &line.draw(&plot, self);
        }
        (body, height)
    }

    /// Both scales, and the ticks upwards; `None` without a point.
    fn scales(&self) -> Option<(Scale, Scale, Vec<f64>)> {
        let points = || self.lines.iter().flat_map(|line| &line.points);
        let least = |values: &mut dyn Iterator<Item = f64>| values.fold(f64::INFINITY, f64::min);
        let most = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, f64::max);
        let x = Scale {
            low: least(&mut points().map(|point| point.x)),
            high: most(&mut points().map(|point| point.x)),
            powers: self.doublings,
        };
        let guide = match self.guide {
            Guide::None => None,
            Guide::One => Some(1.0),
            Guide::Diagonal => Some(x.high),
        };
        let values = || {
            let ends = points().flat_map(|point| {
                let (low, high) = point.interval.unwrap_or((point.y, point.y));
                [point.y, low, high]
            });
            let drawn = |value: &f64| value.is_finite() && (self.even || *value > 0.0);
            ends.chain(guide).filter(drawn)
        };
        values().next()?;
        let (low, high) = (least(&mut values()), most(&mut values()));
        let (y, ticks) = match self.even {
            true => {
                let ticks = even_ticks(high.max(f64::MIN_POSITIVE));
                let high = ticks.last().copied().unwrap_or(high);
                (
                    Scale {
                        low: 0.0,
                        high,
                        powers: false,
                    },
                    ticks,
                )
            }
            false => {
                let room = (high / low).powf(0.05).max(1.06);
                let (low, high) = (low / room, high * room);
                (
                    Scale {
                        low,
                        high,
                        powers: true,
                    },
                    power_ticks(low, high),
                )
            }
        };
        Some((x, y, ticks))
    }

    /// The axis across: of labels that would touch, the round ones stay.
    fn across(&self, plot: &Plot) -> String {
        let points = self.lines.iter().flat_map(|line| &line.points);
        let mut places: Vec<f64> = points.map(|point| point.x).collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        let mut text = format!(
            "<path class=\"axis\" d=\"M{:.1} {:.1}H{:.1}\"/>",
            plot.left,
            plot.bottom,
            WIDTH - RIGHT
        );
        let round = |place: f64| place.log2().fract() == 0.0;
        let mut order = places.clone();
        order.sort_by_key(|&place| !round(place));
        let mut taken: Vec<(f64, f64)> = Vec::new();
        for place in order {
            let (x, label) = (plot.x(place), (self.labels.across)(place));
            let half = CHARACTER * label.chars().count() as f64 / 2.0 + 4.0;
            text += &format!("<path class=\"axis\" d=\"M{x:.1} {:.1}v4\"/>", plot.bottom);
            if taken
                .iter()
                .all(|(other, room)| (other - x).abs() >= room + half)
            {
                taken.push((x, half));
                text += &format!(
                    "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                    plot.bottom + 17.0,
                    escape(&label)
                );
            }
        }
        text + &format!(
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            (plot.left + WIDTH - RIGHT) / 2.0,
            plot.bottom + 35.0,
            escape(self.across)
        )
    }

    /// The line to compare with, and the uprights.
    fn guides(&self, plot: &Plot) -> String {
        let mut text = match self.guide {
            Guide::One if plot.y.holds(1.0) => {
                let ends = [(plot.x.low, 1.0), (plot.x.high, 1.0)];
                format!(
                    "<path class=\"one\" d=\"M{}\"/>",
                    plot.path(ends.into_iter())
                )
            }
            Guide::Diagonal => {
                let ends = [plot.x.low, plot.x.high].map(|end| (end, end));
                format!(
                    "<path class=\"one\" d=\"M{}\"/>",
                    plot.path(ends.into_iter())
                )
            }
            _ => String::new(),
        };
        let mut uprights: Vec<&(usize, f64, String)> = self.uprights.iter().collect();
        uprights.retain(|(_, place, _)| plot.x.holds(*place));
        uprights.sort_by(|a, b| a.1.total_cmp(&b.1));
        let mut free = 0.0;
        for (series, place, label) in uprights {
            let x = plot.x(*place);
            let series = series % SERIES;
            text += &format!(
                "<path class=\"cross l{series} s{series}\" d=\"M{x:.1} {:.1}V{:.1}\"/>",
                plot.top - 2.0,
                plot.bottom
            );
            let half = CHARACTER * label.chars().count() as f64 / 2.0;
            if x - half > free {
                free = x + half + 4.0;
                text += &format!(
                    "<text class=\"f{series} s{series}\" x=\"{x:.1}\" y=\"{:.1}\" \
                     text-anchor=\"middle\">{}</text>",
                    plot.top - 6.0,
                    escape(label)
                );
            }
        }
        text
    }

    /// Marks and names above the plot, and the height that they take.
    fn legend(&self) -> (String, f64) {
        let (mut text, mut x, mut y) = (String::new(), 14.0, 14.0);
        for line in self.lines.iter().filter(|line| !line.second) {
            let width = 34.0 + CHARACTER * line.name.chars().count() as f64;
            if x + width > WIDTH && x > 14.0 {
                (x, y) = (14.0, y + LEGEND_LINE);
            }
            let series = line.series % SERIES;
            text += &format!(
                "<g class=\"s{series}\"><path class=\"curve l{series}\" d=\"M{x:.1} {y:.1}h22\"/>\
                 {}<text x=\"{:.1}\" y=\"{:.1}\">{}</text></g>",
                mark(series, x + 11.0, y, 4.0, false, ""),
                x + 28.0,
                y + 4.0,
                escape(&line.name)
            );
            x += width + 10.0;
        }
        (text, y + LEGEND_LINE)
    }
}

impl Line {
    fn draw(&self, plot: &Plot, chart: &Chart) -> String {
        let series = self.series % SERIES;
        let fits = |y: f64| plot.y.holds(y);
        let points = || self.points.iter().filter(|point| fits(point.y));
        let mut text = format!("<g class=\"s{series}\">");
        let banded = || {
            let bands = points().filter_map(|point| Some((point.x, point.interval?)));
            bands.filter(|(_, (low, high))| fits(*low) && fits(*high))
        };
        if banded().count() > 1 && !self.second {
            let upper = banded().map(|(x, (_, high))| (x, high));
            let lower: Vec<_> = banded().map(|(x, (low, _))| (x, low)).collect();
            text += &format!(
                "<path class=\"band f{series}\" d=\"M{}z\"/>",
                plot.path(upper.chain(lower.into_iter().rev()))
            );
        }
        text += &format!(
            "<path class=\"curve l{series}{}\" d=\"M{}\"/>",
            if self.second { " second" } else { "" },
            plot.path(points().map(|point| (point.x, point.y)))
        );
        for point in points() {
            let (across, up) = ((chart.labels.across)(point.x), (chart.labels.up)(point.y));
            let told = match point.told.is_empty() {
                true => String::new(),
                false => format!(", {}", point.told),
            };
            text += &mark(
                series,
                plot.x(point.x),
                plot.y(point.y),
                if self.second { 2.5 } else { 4.0 },
                point.noisy && !self.second,
                &format!("{}, {across}: {up}{told}", self.name),
            );
        }
        text + "</g>"
    }
}

/// A mark by series, so that nobody has to tell colours apart.
fn mark(series: usize, x: f64, y: f64, r: f64, hollow: bool, told: &str) -> String {
    let (wide, high) = (r * 1.3, r * 1.15);
    let shape = match series {
        0 => format!(
            "M{:.1} {y:.1}a{r} {r} 0 1 0 {d} 0a{r} {r} 0 1 0 -{d} 0z",
            x - r,
            d = 2.0 * r
        ),
        1 => format!(
            "M{:.1} {:.1}h{s:.1}v{s:.1}h-{s:.1}z",
            x - r * 0.9,
            y - r * 0.9,
            s = r * 1.8
        ),
        2 => format!(
            "M{x:.1} {:.1}l{high:.1} {d:.1}h-{w:.1}z",
            y - r * 1.2,
            d = r * 2.0,
            w = high * 2.0
        ),
        3 => format!(
            "M{x:.1} {:.1}l{wide:.1} {wide:.1}l-{wide:.1} {wide:.1}l-{wide:.1} -{wide:.1}z",
            y - wide
        ),
        4 => format!(
            "M{x:.1} {:.1}l{high:.1} -{d:.1}h-{w:.1}z",
            y + r * 1.2,
            d = r * 2.0,
            w = high * 2.0
        ),
        5 => format!(
            "M{:.1} {y:.1}l{h:.1} -{r:.1}h{w:.1}l{h:.1} {r:.1}l-{h:.1} {r:.1}h-{w:.1}z",
            x - r * 1.2,
            h = r * 0.6,
            w = r * 1.2
        ),
        6 => format!(
            "M{:.1} {y:.1}h{w:.1}M{x:.1} {:.1}v{w:.1}",
            x - wide,
            y - wide,
            w = 2.0 * wide
        ),
        _ => format!(
            "M{:.1} {:.1}l{w:.1} {w:.1}m0 -{w:.1}l-{w:.1} {w:.1}",
            x - r,
            y - r,
            w = 2.0 * r
        ),
    };
    // The last two are strokes.
    let class = match (series >= 6, hollow) {
        (true, _) => format!("stroke l{series}"),
        (false, true) => format!("mark hollow l{series}"),
        (false, false) => format!("mark f{series}"),
    };
    match told.is_empty() {
        true => format!("<path class=\"{class}\" d=\"{shape}\"/>"),
        false => format!(
            "<path class=\"{class}\" d=\"{shape}\"><title>{}</title></path>",
            escape(told)
        ),
    }
}

/// Four to nine ticks between two powers.
fn power_ticks(low: f64, high: f64) -> Vec<f64> {
    let all = |steps: &[f64]| {
        let powers = low.log10().floor() as i32..=high.log10().floor() as i32;
        let ticks = powers.flat_map(|power| steps.iter().map(move |step| step * 10f64.powi(power)));
        let within = |tick: &f64| (low * 0.999..=high * 1.001).contains(tick);
        ticks.filter(within).collect::<Vec<f64>>()
    };
    let choices: [&[f64]; 4] = [
        &[1.0],
        &[1.0, 3.0],
        &[1.0, 2.0, 5.0],
        &[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0],
    ];
    let mut ticks = choices.into_iter().map(all).find(|ticks| ticks.len() >= 4);
    if let Some(ticks) = ticks.as_mut().filter(|ticks| ticks.len() > 9) {
        let mut index = 0;
        ticks.retain(|_| {
            index += 1;
            index % 2 == 1
        });
    }
    ticks.unwrap_or_else(|| vec![low, (low * high).sqrt(), high])
}

/// Steps of 1, 2 or 5 times a power of ten, from 0 to `highest` or just above.
fn even_ticks(highest: f64) -> Vec<f64> {
    let rough = highest / 5.0;
    let power = 10f64.powf(rough.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
    let step = steps.into_iter().find(|&step| step >= rough * 0.999);
    let step = step.unwrap_or(10.0 * power);
    let count = (highest / step - 1e-9).ceil() as usize;
    (0..=count.clamp(1, 10))
        .map(|index| index as f64 * step)
        .collect()
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

    #[test]
    fn ticks_are_round() {
        assert_eq!(
            even_ticks(1.0),
            [0.0, 0.2, 0.4, 0.6000000000000001, 0.8, 1.0]
        );
        assert_eq!(even_ticks(4.2), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(even_ticks(90.0).last(), Some(&100.0));
        assert_eq!(power_ticks(1.0, 1000.0), [1.0, 10.0, 100.0, 1000.0]);
        assert!(power_ticks(1.0, 1.2).len() >= 3);
    }
}
