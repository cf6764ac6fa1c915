//! A figure with both providers, and figures as text.

use cipherlane_measure::stats::{Verdict, median, paired_ratio};
use cipherlane_measure::units;
use serde::Serialize;

use crate::place::From;

/// One thing measured in turns.
#[derive(Serialize)]
pub(crate) struct Figure {
    /// Such as `openssl speed -evp aes-128-gcm`.
    what: String,
    /// Bytes of an operation, where there are several.
    size: Option<u64>,
    /// Such as GB/s.
    unit: &'static str,
    /// Medians of the turns.
    default: f64,
    cipherlane: f64,
    /// The median of cipherlane over default, turn by turn.
    ratio: f64,
    /// Its 95 % interval; none of too few turns.
    interval: Option<[f64; 2]>,
    /// Whether the interval includes 1 or is not there.
    open: bool,
}

/// Who is first in a round.
pub(crate) fn turns(round: usize) -> [From; 2] {
    match round % 2 {
        0 => [From::Default, From::Cipherlane],
        _ => [From::Cipherlane, From::Default],
    }
}

/// What the turns gave, by provider.
#[derive(Default)]
pub(crate) struct Turns {
    default: Vec<f64>,
    cipherlane: Vec<f64>,
}

impl Turns {
    pub(crate) fn add(&mut self, from: From, value: f64) {
        match from {
            From::Default => self.default.push(value),
            From::Cipherlane => self.cipherlane.push(value),
        }
    }

    /// `None` without a turn of both.
    pub(crate) fn figure(
        &self,
        what: &str,
        size: Option<u64>,
        unit: &'static str,
    ) -> Option<Figure> {
        let ratio = paired_ratio(&self.cipherlane, &self.default)?;
        Some(Figure {
            what: what.to_owned(),
            size,
            unit,
            default: median(&self.default)?,
            cipherlane: median(&self.cipherlane)?,
            ratio: ratio.median,
            interval: ratio.high.is_finite().then_some([ratio.low, ratio.high]),
            open: ratio.verdict() == Verdict::WithinNoise,
        })
    }
}

/// A block for each thing, sizes across.
pub(crate) fn text(figures: &[Figure]) -> String {
    let mut text = String::new();
    for block in figures.chunk_by(|a, b| a.what == b.what && a.unit == b.unit) {
        text += &format!("\n{}, {}\n", block[0].what, block[0].unit);
        let mut row = |name: &str, cell: &dyn Fn(&Figure) -> String| {
            text += &format!("{name:10}");
            for figure in block {
                text += &format!("{:>16}", cell(figure));
            }
            text += "\n";
        };
        if block[0].size.is_some() {
            row("", &|figure| units::size(figure.size.unwrap_or(0)));
        }
        row("default", &|figure| format!("{:.3}", figure.default));
        row("cipherlane", &|figure| format!("{:.3}", figure.cipherlane));
        row("x", &|figure| {
            let open = if figure.open { "= " } else { "" };
            format!("{open}{:.2}", figure.ratio)
        });
        row("", &|figure| match figure.interval {
            Some([low, high]) => format!("{low:.2} to {high:.2}"),
            None => "too few turns".to_owned(),
        });
    }
    text + &behind(figures)
}

/// Where the provider loses in `openssl speed`, in one look. Other figures have no size, and
/// for some of them less is better.
fn behind(figures: &[Figure]) -> String {
    let mut text = String::new();
    if figures.iter().any(|figure| figure.size.is_some()) {
        text += "\nBehind the default provider by 2 % or more, beyond the noise:\n";
    }
    for figure in figures.iter().filter(|figure| !figure.open) {
        if let (Some(size), ..=0.98) = (figure.size, figure.ratio) {
            let size = units::size(size);
            text += &format!("  {}, {size}: {:.2}\n", figure.what, figure.ratio);
        }
    }
    text
}
