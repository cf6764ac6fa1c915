//! The two charts of a transform and direction as SVG, and the page that holds all of them.

use cipherlane_measure::report::{self, escape};

use super::cells::{Cell, Results};
use super::transforms;
use crate::units::digits;

/// Size of a chart, and of the plot in it, in the units of SVG.
const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 360.0;
const LEFT: f64 = 46.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 44.0;
/// Colours that the style of the page has.
const COLOURS: usize = 8;
/// Packets a call at which threads are compared, or the most measured below that.
const USUAL: usize = 32;

/// The style of a chart that stands alone: the classes of the page's style.
const STYLE: &str = "svg{background:#fff;font:12px system-ui,sans-serif}text{fill:#565b66}\
    .grid{stroke:#ecece7}.axis{stroke:#dcdcd6}.one{stroke:#565b66;stroke-dasharray:2 3;fill:none}\
    .curve{fill:none;stroke-width:2;stroke-linejoin:round}\
    .l0{stroke:#4b5160}.l1{stroke:#1f6fd0}.l2{stroke:#c8501b}.l3{stroke:#0c7d5a}\
    .l4{stroke:#7d4fc4}.l5{stroke:#b5387e}.l6{stroke:#8a6d00}.l7{stroke:#0b7285}\
    .f0{fill:#4b5160}.f1{fill:#1f6fd0}.f2{fill:#c8501b}.f3{fill:#0c7d5a}\
    .f4{fill:#7d4fc4}.f5{fill:#b5387e}.f6{fill:#8a6d00}.f7{fill:#0b7285}";

/// Lines over a number of threads or of packets a call.
pub(super) struct Chart {
    title: String,
    subtitle: String,
    across: &'static str,
    /// Whether each doubling is as wide as another.
    doublings: bool,
    /// What it would be at best: as much as there are.
    ideal: bool,
    lines: Vec<(String, Vec<(f64, f64)>)>,
}

/// Effective threads over threads, a line a size.
pub(super) fn threads(cells: &[Cell]) -> Chart {
    let multipacket = cells
        .iter()
        .map(|cell| cell.multipacket)
        .filter(|&multipacket| multipacket <= USUAL)
        .max()
        .unwrap_or(1);
    Chart {
        title: "Effective threads".to_owned(),
        subtitle: format!(
            "{}: times what one thread does alone, {multipacket} packets a call",
            of(cells)
        ),
        across: "threads on one SA",
        doublings: false,
        ideal: true,
        lines: lines(cells, |cell| {
            (cell.multipacket == multipacket)
                .then_some((cell.threads as f64, cell.effective_threads))
        }),
    }
}

/// Efficiency over packets a call, a line a size.
pub(super) fn multipackets(cells: &[Cell]) -> Chart {
    Chart {
        title: "Efficiency of multipackets".to_owned(),
        subtitle: format!(
            "{}: times what one packet a call gives, one thread",
            of(cells)
        ),
        across: "packets a call",
        doublings: true,
        ideal: false,
        lines: lines(cells, |cell| {
            (cell.threads == 1).then_some((cell.multipacket as f64, cell.multipacket_efficiency))
        }),
    }
}

fn of(cells: &[Cell]) -> String {
    cells.first().map_or_else(String::new, |cell| {
        let title = transforms::find(cell.transform).map_or(cell.transform, |entry| entry.title);
        format!("{title}, {}", cell.direction)
    })
}

fn lines(
    cells: &[Cell],
    point: impl Fn(&Cell) -> Option<(f64, f64)>,
) -> Vec<(String, Vec<(f64, f64)>)> {
    let mut lines: Vec<(String, Vec<(f64, f64)>)> = Vec::new();
    for cell in cells {
        let Some(point) = point(cell) else { continue };
        match lines.iter_mut().find(|(name, _)| *name == cell.size) {
            Some((_, points)) => points.push(point),
            None => lines.push((cell.size.clone(), vec![point])),
        }
    }
    lines
}

impl Chart {
    /// As a file of its own.
    pub(super) fn alone(&self) -> String {
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 -24 {WIDTH} {}\" \
             role=\"img\"><style>{STYLE}</style><text x=\"0\" y=\"-6\">{}. {}</text>{}</svg>\n",
            HEIGHT + 24.0,
            escape(&self.title),
            escape(&self.subtitle),
            self.body()
        )
    }

    /// As a figure in a page.
    fn figure(&self) -> String {
        format!(
            "<figure class=\"chart\"><figcaption><b>{}</b>{}</figcaption><div class=\"plot\">\
             <svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{0}\">{}</svg></div>\
             </figure>\n",
            escape(&self.title),
            escape(&self.subtitle),
            self.body()
        )
    }

    fn body(&self) -> String {
        let points = || self.lines.iter().flat_map(|(_, points)| points);
        let widest = points().map(|point| point.0).fold(1.0, f64::max);
        let ideal = if self.ideal { widest } else { 1.0 };
        let step = step(points().map(|point| point.1).fold(ideal, f64::max));
        let highest = step * (points().map(|point| point.1).fold(ideal, f64::max) / step).ceil();
        let plot = Plot {
            widest,
            highest,
            doublings: self.doublings,
        };
        let mut body = self.legend();
        let mut level = 0.0;
        while level <= highest + step / 2.0 {
            let y = plot.y(level);
            body += &format!(
                "<line class=\"{}\" x1=\"{LEFT}\" x2=\"{}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
                 <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                if level == 0.0 { "axis" } else { "grid" },
                WIDTH - RIGHT,
                LEFT - 8.0,
                y + 4.0,
                trimmed(level),
            );
            level += step;
        }
        let mut places: Vec<f64> = points().map(|point| point.0).collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        for &place in &places {
            body += &format!(
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{place}</text>",
                plot.x(place),
                HEIGHT - BOTTOM + 18.0
            );
        }
        body += &format!(
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            (LEFT + WIDTH - RIGHT) / 2.0,
            HEIGHT - 6.0,
            self.across
        );
        if self.ideal {
            let ends = [(1.0, 1.0), (widest, widest)];
            body += &format!("<polyline class=\"one\" points=\"{}\"/>", plot.path(&ends));
        }
        for (index, (_, points)) in self.lines.iter().enumerate() {
            let colour = index % COLOURS;
            body += &format!(
                "<polyline class=\"curve l{colour}\" points=\"{}\"/>",
                plot.path(points)
            );
            for &(x, y) in points {
                body += &format!(
                    "<circle class=\"f{colour}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"3.5\">\
                     <title>{x}: {}</title></circle>",
                    plot.x(x),
                    plot.y(y),
                    digits(y as f32)
                );
            }
        }
        body
    }

    fn legend(&self) -> String {
        let width = (WIDTH - LEFT - RIGHT) / self.lines.len().max(1) as f64;
        let entries = self.lines.iter().enumerate().map(|(index, (name, _))| {
            let x = LEFT + width.min(90.0) * index as f64;
            format!(
                "<circle class=\"f{}\" cx=\"{:.1}\" cy=\"14\" r=\"4\"/>\
                 <text x=\"{:.1}\" y=\"18\">{}</text>",
                index % COLOURS,
                x + 4.0,
                x + 12.0,
                escape(name)
            )
        });
        entries.collect()
    }
}

/// Where values lie.
struct Plot {
    widest: f64,
    highest: f64,
    doublings: bool,
}

impl Plot {
    fn x(&self, value: f64) -> f64 {
        let share = match (self.widest > 1.0, self.doublings) {
            (false, _) => 0.5,
            (true, true) => value.ln() / self.widest.ln(),
            (true, false) => (value - 1.0) / (self.widest - 1.0),
        };
        LEFT + 14.0 + share * (WIDTH - LEFT - RIGHT - 28.0)
    }

    fn y(&self, value: f64) -> f64 {
        HEIGHT - BOTTOM - value / self.highest * (HEIGHT - TOP - BOTTOM)
    }

    fn path(&self, points: &[(f64, f64)]) -> String {
        let points = points.iter();
        let points = points.map(|&(x, y)| format!("{:.1},{:.1}", self.x(x), self.y(y)));
        points.collect::<Vec<_>>().join(" ")
    }
}

/// A step of 1, 2 or 5 times a power of ten, four to ten of which reach `highest`.
fn step(highest: f64) -> f64 {
    let rough = highest / 5.0;
    let power = 10f64.powf(rough.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
    steps
        .into_iter()
        .find(|&step| step >= rough)
        .unwrap_or(10.0 * power)
}

/// Without zeros that say nothing.
fn trimmed(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The page with all charts and figures.
pub(super) fn page(results: &Results) -> String {
    let mut main = String::new();
    for group in results.groups() {
        main += &format!(
            "<section><h2>{}</h2><div class=\"charts\">{}{}</div>\
             <details><summary>All figures as a table</summary>{}</details></section>\n",
            escape(&of(group)),
            threads(group).figure(),
            multipackets(group).figure(),
            figures(group)
        );
    }
    main += &format!(
        "<section class=\"method\"><h2>How this was measured</h2><p>{METHOD}</p></section>\n"
    );
    report::page("One ESP SA on many threads", &results.machine, &main)
}

/// What a reader has to know to believe the figures.
const METHOD: &str = "All threads seal or open packets of one SA at once, in tunnel mode, with \
    extended sequence numbers and, opening, a replay window of 65536. All numbers of threads and \
    of packets a call take turns in blocks of at most 20 ms, in random order. Packets lie in \
    256 KiB a thread and are put back before every pass, which is not timed; before every pass of \
    opening the inbound SA is made anew with the same keys, so that every number is accepted \
    once. The first 64 packets of a thread bring the SA into its cache and do not count. Rates are medians of the blocks, of the packets carried; effective threads and \
    efficiency are medians of ratios within rounds; 95 % is the bootstrap interval of the rate. \
    IMIX is 40, 576 and 1500 bytes at 7 to 4 to 1.";

fn figures(cells: &[Cell]) -> String {
    let heads = [
        "Bytes",
        "Threads",
        "Packets",
        "Mpps",
        "Gbit/s",
        "95 %",
        "Eff. threads",
        "Eff. packets",
        "",
    ];
    let head: String = heads
        .iter()
        .map(|head| format!("<th scope=col>{head}"))
        .collect();
    let rows: String = cells
        .iter()
        .map(|cell| {
            let gigabits = |bytes: f64| digits((bytes * 8.0 / 1e9) as f32);
            format!(
                "<tr><th>{}<td>{}<td>{}<td>{}<td>{}<td>{}–{}<td>{}<td>{}<td>{}\n",
                escape(&cell.size),
                cell.threads,
                cell.multipacket,
                digits((cell.packets_per_second / 1e6) as f32),
                gigabits(cell.bytes_per_second),
                gigabits(cell.ci_low),
                gigabits(cell.ci_high),
                digits(cell.effective_threads as f32),
                digits(cell.multipacket_efficiency as f32),
                if cell.noisy { "noisy" } else { "" }
            )
        })
        .collect();
    format!(
        "<div class=\"scroll\"><table class=\"figures\"><thead><tr>{head}</thead>\n<tbody>\n\
         {rows}</tbody></table></div>"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(threads: usize, multipacket: usize, size: &str, value: f64) -> Cell {
        Cell {
            transform: "gcm-128",
            direction: "seal",
            threads,
            multipacket,
            size: size.to_owned(),
            packets_per_second: 1e6,
            bytes_per_second: 1e9,
            effective_threads: value,
            multipacket_efficiency: value,
            ci_low: 0.9e9,
            ci_high: 1.1e9,
            noisy: false,
        }
    }

    #[test]
    fn every_line_and_point_is_drawn_within_the_plot() {
        let cells: Vec<Cell> = [1, 2, 4]
            .into_iter()
            .flat_map(|n| ["64", "imix"].map(|size| cell(n, 1, size, 0.9 * n as f64)))
            .collect();
        let svg = threads(&cells).alone();
        assert_eq!(svg.matches("class=\"curve").count(), 2);
        assert_eq!(svg.matches("r=\"3.5\"").count(), 6);
        for coordinate in svg.split("cx=\"").skip(1) {
            let x: f64 = coordinate.split('"').next().unwrap().parse().unwrap();
            assert!((0.0..=WIDTH).contains(&x), "{x}");
        }
        for coordinate in svg.split("cy=\"").skip(1) {
            let y: f64 = coordinate.split('"').next().unwrap().parse().unwrap();
            assert!((0.0..=HEIGHT).contains(&y), "{y}");
        }
    }

    #[test]
    fn one_cell_alone_has_a_chart() {
        let svg = multipackets(&[cell(1, 1, "64", 1.0)]).alone();
        assert!(svg.contains("<circle") && !svg.contains("NaN"), "{svg}");
    }

    #[test]
    fn steps_are_round() {
        for (highest, expected) in [
            (1.0, 0.2),
            (2.0, 0.5),
            (4.2, 1.0),
            (16.0, 5.0),
            (90.0, 20.0),
        ] {
            assert!((step(highest) - expected).abs() < 1e-9, "{highest}");
        }
        assert_eq!(trimmed(0.5), "0.5");
        assert_eq!(trimmed(10.0), "10");
    }
}
