//! A range of addresses as prefixes: IKE has ranges, routes and the table of tunnels have prefixes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::selector::Prefix;

/// The fewest prefixes that hold the addresses from `from` to `to` and no other; at most 254. None
/// where the two are not a range.
pub(super) fn blocks(from: IpAddr, to: IpAddr) -> Vec<Prefix> {
    let (width, mut start, end) = match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => (32, from.to_bits().into(), to.to_bits().into()),
        (IpAddr::V6(from), IpAddr::V6(to)) => (128, from.to_bits(), to.to_bits()),
        _ => return Vec::new(),
    };
    let mut blocks = Vec::new();
    while start <= end {
        // The largest block that begins here, by its alignment, and then by the end.
        let mut size: u32 = start.trailing_zeros().min(width);
        while last_of(start, size) > end {
            size -= 1;
        }
        let address = match width {
            32 => IpAddr::V4(Ipv4Addr::from_bits(start as u32)),
            _ => IpAddr::V6(Ipv6Addr::from_bits(start)),
        };
        let len = (width - size) as u8;
        blocks.push(Prefix { address, len });
        match last_of(start, size).checked_add(1) {
            Some(next) => start = next,
            None => break,
        }
    }
    blocks
}

/// The last number of a block of 2^`size` that begins at `start`.
fn last_of(start: u128, size: u32) -> u128 {
    match size {
        128 => u128::MAX,
        _ => start | ((1 << size) - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn texts(from: &str, to: &str) -> Vec<String> {
        let blocks = blocks(from.parse().unwrap(), to.parse().unwrap());
        blocks.iter().map(Prefix::to_string).collect()
    }

    #[test]
    fn ranges_become_prefixes() {
        assert_eq!(texts("10.0.0.0", "10.0.0.255"), ["10.0.0.0/24"]);
        assert_eq!(texts("10.0.0.7", "10.0.0.7"), ["10.0.0.7/32"]);
        assert_eq!(texts("0.0.0.0", "255.255.255.255"), ["0.0.0.0/0"]);
        let all = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff";
        assert_eq!(texts("::", all), ["::/0"]);
        assert_eq!(
            texts("10.0.0.1", "10.0.0.6"),
            ["10.0.0.1/32", "10.0.0.2/31", "10.0.0.4/31", "10.0.0.6/32"]
        );
        assert_eq!(texts("::1", all).len(), 128);
        assert!(texts("10.0.0.1", "10.0.0.0").is_empty());
        assert!(texts("10.0.0.1", "::1").is_empty());
    }

    proptest! {
        #[test]
        fn they_hold_the_range_and_no_more(a: u32, len in 0u32..5000) {
            let (from, to) = (a, a.saturating_add(len));
            let v4 = |bits| IpAddr::V4(Ipv4Addr::from_bits(bits));
            let blocks = blocks(v4(from), v4(to));
            let held = |bits| blocks.iter().filter(|block| block.holds(v4(bits))).count();
            for bits in from..=to {
                prop_assert_eq!(held(bits), 1);
            }
            prop_assert!(from == 0 || held(from - 1) == 0);
            prop_assert!(to == u32::MAX || held(to + 1) == 0);
        }
    }
}
