//! Sizes, rates and times as people read them.

/// `64 bytes`, `1400 bytes`, `8 KiB`, `1 MiB`: binary units where they are exact.
pub fn size(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match UNITS
        .iter()
        .find(|(unit, _)| bytes >= *unit && bytes.is_multiple_of(*unit))
    {
        Some((unit, name)) => format!("{} {name}", bytes / unit),
        None if bytes == 1 => "1 byte".into(),
        None => format!("{bytes} bytes"),
    }
}

/// A size that was not measured but worked out: two significant digits,
/// `200 bytes`, `1.5 KiB`, `12 KiB`.
pub fn about_size(bytes: f64) -> String {
    const UNITS: [(f64, &str); 4] = [
        (1_073_741_824.0, "GiB"),
        (1_048_576.0, "MiB"),
        (1024.0, "KiB"),
        (1.0, "bytes"),
    ];
    let (unit, name) = UNITS
        .into_iter()
        .find(|(unit, _)| bytes >= *unit)
        .unwrap_or((1.0, "bytes"));
    format!("{} {name}", significant(bytes / unit, 2))
}

/// Bytes per second in decimal units: `4.74 MB/s`, `1.25 GB/s`.
pub fn rate(bytes_per_second: f64) -> String {
    const UNITS: [(f64, &str); 3] = [(1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s")];
    scaled(bytes_per_second, &UNITS, "B/s")
}

/// Nanoseconds in the unit that fits: `12 ns`, `1.25 µs`, `3.40 ms`, `2.00 s`.
pub fn time(nanoseconds: f64) -> String {
    const UNITS: [(f64, &str); 3] = [(1e9, "s"), (1e6, "ms"), (1e3, "µs")];
    scaled(nanoseconds, &UNITS, "ns")
}

/// How many times: `1.05`, `5.4`, `31`.
pub fn times(ratio: f64) -> String {
    if ratio < 1.995 {
        format!("{ratio:.2}")
    } else {
        significant(ratio, 2)
    }
}

fn scaled(value: f64, units: &[(f64, &str)], smallest: &str) -> String {
    match units.iter().find(|(unit, _)| value >= 0.9995 * unit) {
        Some((unit, name)) => format!("{} {name}", significant_kept(value / unit, 3)),
        None => format!("{} {smallest}", significant(value, 3)),
    }
}

/// Rounded to that number of digits, with trailing zeros: `1.50`.
pub(crate) fn significant_kept(value: f64, digits: usize) -> String {
    if value <= 0.0 || !value.is_finite() {
        return format!("{value:.0}");
    }
    // Rounding first: 9.999 has two digits before the point, once rounded.
    let rounded: f64 = format!("{value:.*e}", digits - 1).parse().unwrap_or(value);
    let whole = rounded.log10().floor() as i32 + 1;
    let decimals = usize::try_from(digits as i32 - whole).unwrap_or(0);
    format!("{rounded:.decimals$}")
}

/// Rounded to that number of digits, without trailing zeros behind the point: `1.5`.
pub(crate) fn significant(value: f64, digits: usize) -> String {
    let text = significant_kept(value, digits);
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').into()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        for (bytes, text) in [
            (1, "1 byte"),
            (0, "0 bytes"),
            (64, "64 bytes"),
            (1024, "1 KiB"),
            (1400, "1400 bytes"),
            (65536, "64 KiB"),
            (1 << 20, "1 MiB"),
            (3 << 30, "3 GiB"),
        ] {
            assert_eq!(size(bytes), text);
        }
        for (bytes, text) in [
            (201.4, "200 bytes"),
            (16.0, "16 bytes"),
            (1536.0, "1.5 KiB"),
            (12_345.0, "12 KiB"),
            (700_000.0, "680 KiB"),
        ] {
            assert_eq!(about_size(bytes), text);
        }
    }

    #[test]
    fn rates_times_and_ratios() {
        assert_eq!(rate(4_741_000.0), "4.74 MB/s");
        assert_eq!(rate(1.25e9), "1.25 GB/s");
        assert_eq!(rate(123.4e9), "123 GB/s");
        assert_eq!(rate(999_900.0), "1.00 MB/s");
        assert_eq!(rate(12.0), "12 B/s");
        assert_eq!(time(12.0), "12 ns");
        assert_eq!(time(1250.0), "1.25 µs");
        assert_eq!(time(2e9), "2.00 s");
        assert_eq!(times(1.046), "1.05");
        assert_eq!(times(5.44), "5.4");
        assert_eq!(times(2.0), "2");
        assert_eq!(times(31.4), "31");
        assert_eq!(times(944.0), "940");
    }
}
