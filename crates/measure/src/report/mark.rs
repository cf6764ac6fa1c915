//! The marks of a chart's points: a shape for each series.

use super::html::escape;

/// A mark by series, so that nobody has to tell colours apart.
pub(super) fn mark(series: usize, x: f64, y: f64, r: f64, hollow: bool, told: &str) -> String {
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
