//! In what figures are told: GB/s, cycles per byte, or nanoseconds per request.

use cipherlane_measure::record::Cell;
use clap::ValueEnum;

/// What a figure counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Unit {
    /// 10^9 bytes of payload per second
    #[default]
    #[value(name = "gbs")]
    Gigabytes,
    /// Cycles per byte at the nominal frequency
    #[value(name = "cpb")]
    Cycles,
    /// Nanoseconds per request
    #[value(name = "ns")]
    Nanoseconds,
}

impl Unit {
    /// For the head of a table.
    pub(super) fn head(self) -> &'static str {
        match self {
            Unit::Gigabytes => "GB/s",
            Unit::Cycles => "cycles/byte",
            Unit::Nanoseconds => "ns/request",
        }
    }

    /// The figure of a cell.
    pub(super) fn figure(self, cell: &Cell) -> String {
        let seconds_per_byte = 1.0 / cell.bytes_per_second;
        digits(match self {
            Unit::Gigabytes => cell.bytes_per_second / 1e9,
            Unit::Cycles => seconds_per_byte * cipherlane_measure::clock::cycles_per_second(),
            Unit::Nanoseconds => seconds_per_byte * 1e9 * cell.size as f64,
        })
    }
}

/// Three digits that count, as far as four decimals go.
fn digits(value: f64) -> String {
    let decimals = match value {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        v if v >= 0.9995 => 2,
        v if v >= 0.09995 => 3,
        _ => 4,
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_keep_three_digits() {
        for (value, text) in [
            (123.4, "123"),
            (12.34, "12.3"),
            (1.234, "1.23"),
            (0.1234, "0.123"),
            (0.04567, "0.0457"),
            (0.9996, "1.00"),
        ] {
            assert_eq!(digits(value), text);
        }
    }
}
