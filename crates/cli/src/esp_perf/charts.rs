//! The charts of a transform and direction as SVG, and the page that holds all of them.

use cipherlane_measure::report::{self, Chart, Guide, Labels, Line, Point, escape};

use super::cells::{Cell, Results};
use super::transforms;
use crate::profile::reasons::Reasons;
use crate::units::digits;

/// Packets per call at which threads are compared, or the most measured below that.
const USUAL: usize = 32;

/// Packets per call at which threads are compared.
fn usual(cells: &[Cell]) -> usize {
    let all = cells.iter().map(|cell| cell.multipacket);
    all.filter(|&multipacket| multipacket <= USUAL)
        .max()
        .unwrap_or(1)
}

/// Gbit/s over threads, a line per size.
pub(super) fn rates(cells: &[Cell]) -> Chart {
    let multipacket = usual(cells);
    Chart {
        title: "Throughput".to_owned(),
        note: format!(
            "{}: packets carried, {multipacket} packets per call. Band: 95 % confidence interval.",
            of(cells)
        ),
        across: "threads on one SA",
        labels: Labels {
            up: |gigabits| format!("{} Gbit/s", trimmed(gigabits)),
            ..Labels::default()
        },
        lines: lines(cells, |cell| {
            let gigabits = |bytes: f64| bytes * 8.0 / 1e9;
            let interval = (gigabits(cell.ci_low), gigabits(cell.ci_high));
            (cell.multipacket == multipacket).then(|| Point {
                interval: Some(interval),
                ..point(cell, cell.threads, gigabits(cell.bytes_per_second))
            })
        }),
        ..Chart::default()
    }
}

/// Effective threads over threads, a line per size.
pub(super) fn threads(cells: &[Cell]) -> Chart {
    let multipacket = usual(cells);
    Chart {
        title: "Effective threads".to_owned(),
        note: format!(
            "{}: how many times as much as one thread alone, {multipacket} packets per call. The \
             dotted line is as many as there are.",
            of(cells)
        ),
        across: "threads on one SA",
        even: true,
        guide: Guide::Diagonal,
        labels: Labels {
            up: trimmed,
            ..Labels::default()
        },
        lines: lines(cells, |cell| {
            (cell.multipacket == multipacket)
                .then(|| point(cell, cell.threads, cell.effective_threads))
        }),
        ..Chart::default()
    }
}

/// Efficiency over packets per call, a line per size.
pub(super) fn multipackets(cells: &[Cell]) -> Chart {
    Chart {
        title: "Efficiency of multipackets".to_owned(),
        note: format!(
            "{}: how many times as much as with one packet per call, one thread",
            of(cells)
        ),
        across: "packets per call",
        doublings: true,
        even: true,
        labels: Labels {
            up: |times| format!("×{}", trimmed(times)),
            ..Labels::default()
        },
        lines: lines(cells, |cell| {
            (cell.threads == 1).then(|| point(cell, cell.multipacket, cell.multipacket_efficiency))
        }),
        ..Chart::default()
    }
}

fn point(cell: &Cell, x: usize, y: f64) -> Point {
    Point {
        x: x as f64,
        y,
        noisy: cell.noisy,
        told: format!(
            "{} Gbit/s{}",
            digits((cell.bytes_per_second * 8.0 / 1e9) as f32),
            if cell.noisy { ", noisy" } else { "" }
        ),
        interval: None,
    }
}

fn of(cells: &[Cell]) -> String {
    cells.first().map_or_else(String::new, |cell| {
        let title = transforms::find(cell.transform).map_or(cell.transform, |entry| entry.title);
        format!("{title}, {}", cell.direction)
    })
}

fn lines(cells: &[Cell], point: impl Fn(&Cell) -> Option<Point>) -> Vec<Line> {
    let mut lines: Vec<(&str, Line)> = Vec::new();
    for cell in cells {
        let Some(point) = point(cell) else { continue };
        match lines.iter_mut().find(|(size, _)| *size == cell.size) {
            Some((_, line)) => line.points.push(point),
            None => {
                let line = Line {
                    name: name(&cell.size),
                    series: lines.len(),
                    second: false,
                    points: vec![point],
                };
                lines.push((&cell.size, line));
            }
        }
    }
    lines.into_iter().map(|(_, line)| line).collect()
}

/// For the legend: sizes with their unit.
fn name(size: &str) -> String {
    match size.parse::<u64>() {
        Ok(_) => format!("{size} bytes"),
        Err(_) => size.to_owned(),
    }
}

/// Without zeros that say nothing.
fn trimmed(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The page with all charts and figures.
pub(super) fn page(results: &Results) -> String {
    let why = results.profile.as_ref().map(Reasons::html);
    let why = why.unwrap_or_default();
    let mut main = why.short;
    for group in results.groups() {
        let charts = [rates(group), threads(group), multipackets(group)];
        let charts: String = charts.iter().map(Chart::figure).collect();
        main += &format!(
            "<section><h2>{}</h2><div class=\"charts\">{charts}</div>\
             <details><summary>All figures as a table</summary>{}</details></section>\n",
            escape(&of(group)),
            figures(group)
        );
    }
    main += &why.long;
    main += &format!(
        "<section class=\"method\"><h2>How this was measured</h2><p>{METHOD}</p></section>\n"
    );
    report::page("One ESP SA on many threads", &results.machine, &main)
}

/// What a reader has to know to believe the figures.
const METHOD: &str = "All threads seal or open packets of one SA at once, in tunnel mode, with \
    extended sequence numbers and, opening, a replay window of 65536. All numbers of threads and \
    of packets per call take turns in blocks of at most 20 ms, in random order. Packets lie in \
    256 KiB per thread and are put back before every pass, which is not timed; before every pass of \
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
    fn every_line_and_point_is_drawn_and_named_with_its_unit() {
        let cells: Vec<Cell> = [1, 2, 4]
            .into_iter()
            .flat_map(|n| ["64", "imix"].map(|size| cell(n, 1, size, 0.9 * n as f64)))
            .collect();
        let chart = threads(&cells);
        let names: Vec<&str> = chart.lines.iter().map(|line| line.name.as_str()).collect();
        assert_eq!(names, ["64 bytes", "imix"]);
        assert!(chart.lines.iter().all(|line| line.points.len() == 3));
        // Of the legend, and of the points.
        assert_eq!(chart.alone().matches("class=\"mark").count(), 2 + 6);
        assert!(rates(&cells).alone().contains(" Gbit/s</text>"));
    }

    #[test]
    fn one_cell_alone_has_a_chart() {
        let svg = multipackets(&[cell(1, 1, "64", 1.0)]).alone();
        assert!(
            svg.contains("class=\"mark") && !svg.contains("NaN"),
            "{svg}"
        );
    }
}
