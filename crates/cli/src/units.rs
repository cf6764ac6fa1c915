//! Sizes and times as people write them.

/// Bytes: a number, with K, M or G for powers of 1024.
pub(crate) fn parse_size(text: &str) -> Result<usize, String> {
    let wrong = || "give bytes as a number, with K, M or G for powers of 1024, such as 1400 or 64K";
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let shift = match &text[digits.len()..] {
        "" => 0,
        "K" | "k" | "KiB" => 10,
        "M" | "m" | "MiB" => 20,
        "G" | "g" | "GiB" => 30,
        _ => return Err(wrong().to_owned()),
    };
    let number: usize = digits.parse().map_err(|_| wrong().to_owned())?;
    number
        .checked_mul(1 << shift)
        .ok_or_else(|| wrong().to_owned())
}

/// Bytes with the largest unit that leaves no fraction.
pub(crate) fn size(bytes: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    let exact = |&(shift, _): &(u32, &str)| bytes > 0 && bytes % (1 << shift) == 0;
    match units.into_iter().find(exact) {
        Some((shift, unit)) => format!("{} {unit}", bytes >> shift),
        None => format!("{bytes} B"),
    }
}

/// Nanoseconds with three digits that count.
pub(crate) fn time(nanoseconds: f32) -> String {
    let (value, unit) = match nanoseconds {
        n if n < 1e3 => (n, "ns"),
        n if n < 1e6 => (n / 1e3, "µs"),
        n if n < 1e9 => (n / 1e6, "ms"),
        n => (n / 1e9, "s"),
    };
    format!("{} {unit}", digits(value))
}

/// A number with three digits that count.
pub(crate) fn digits(value: f32) -> String {
    let places = match value.abs() {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.places$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_go_there_and_back() {
        for (text, bytes) in [
            ("16", 16),
            ("1400", 1400),
            ("64K", 65536),
            ("1M", 1 << 20),
            ("0", 0),
        ] {
            assert_eq!(parse_size(text), Ok(bytes));
        }
        for text in ["", "K", "-1", "1.5K", "16 bytes", "99999999999G", "1KK"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
        assert_eq!(size(1400), "1400 B");
        assert_eq!(size(65536), "64 KiB");
        assert_eq!(size(1 << 30), "1 GiB");
        assert_eq!(size(0), "0 B");
    }

    #[test]
    fn times_have_three_digits() {
        assert_eq!(time(7.123), "7.12 ns");
        assert_eq!(time(1234.0), "1.23 µs");
        assert_eq!(time(99_960.0), "100 µs");
        assert_eq!(time(12.3e6), "12.3 ms");
        assert_eq!(time(2e9), "2.00 s");
    }
}
