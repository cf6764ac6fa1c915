//! What is inside a chart's frame: the lines over their scales, the axes and the legend.

use super::chart::{CHARACTER, Chart, Guide, Line, SERIES, WIDTH};
use super::html::escape;
use super::mark::mark;
use super::scale::{Scale, even_ticks, power_ticks};

/// Height of a plot with its axis, in the units of SVG, and its margins.
const PLOT_HEIGHT: f64 = 280.0;
const RIGHT: f64 = 16.0;
const BOTTOM: f64 = 42.0;
/// Room of a line of the legend.
const LEGEND_LINE: f64 = 20.0;

/// Where values lie.
struct Plot {
    left: f64,
    top: f64,
    bottom: f64,
    x: Scale,
    y: Scale,
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
    /// What is drawn, and its height.
    pub(super) fn body(&self) -> (String, f64) {
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
