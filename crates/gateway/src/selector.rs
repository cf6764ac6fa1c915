//! Selectors: which addresses a tunnel carries, found by the longest prefix.

use std::net::IpAddr;
use std::str::FromStr;

use rustc_hash::FxHashMap;

/// A block of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Prefix {
    /// The first address.
    pub address: IpAddr,
    /// How many of its bits count.
    pub len: u8,
}

/// The address as a number, the first bit the highest, whatever the family.
#[inline]
fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => u128::from(v4.to_bits()) << 96,
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

#[inline]
pub(crate) fn masked(address: IpAddr, len: u8) -> u128 {
    bits(address)
        & match len {
            0 => 0,
            _ => u128::MAX << (128 - u32::from(len)),
        }
}

impl Prefix {
    /// Whether the address is in the block.
    #[inline]
    pub fn holds(&self, address: IpAddr) -> bool {
        self.address.is_ipv4() == address.is_ipv4()
            && masked(address, self.len) == bits(self.address)
    }
}

impl FromStr for Prefix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (address, len) = match text.split_once('/') {
            Some((address, len)) => (address, Some(len)),
            None => (text, None),
        };
        let wrong = || format!("'{text}' is no block of addresses; write one as 10.0.0.0/8");
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let len = match len {
            None => most,
            Some(len) => len.parse().map_err(|_| wrong())?,
        };
        if len > most {
            return Err(wrong());
        }
        if masked(address, len) != bits(address) {
            return Err(format!(
                "'{text}' has bits behind its prefix of {len}; clear them, or write a longer \
                 prefix"
            ));
        }
        Ok(Prefix { address, len })
    }
}

impl std::fmt::Display for Prefix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.address, self.len)
    }
}

/// Which tunnels have a selector for a destination.
#[derive(Default)]
pub(crate) struct Destinations {
    by_prefix: FxHashMap<Prefix, Vec<usize>>,
    /// The lengths there are, the longest first; IPv4 and IPv6.
    lens: [Vec<u8>; 2],
}

impl Destinations {
    /// Adds a selector of tunnel `tunnel`.
    pub(crate) fn add(&mut self, prefix: Prefix, tunnel: usize) {
        self.by_prefix.entry(prefix).or_default().push(tunnel);
        let lens = &mut self.lens[usize::from(prefix.address.is_ipv6())];
        if !lens.contains(&prefix.len) {
            lens.push(prefix.len);
            lens.sort_unstable_by(|a, b| b.cmp(a));
        }
    }

    /// The tunnel with the longest prefix around `destination` of those that `wants` names.
    #[inline]
    pub(crate) fn find(&self, destination: IpAddr, wants: impl Fn(usize) -> bool) -> Option<usize> {
        let lens = &self.lens[usize::from(destination.is_ipv6())];
        lens.iter().find_map(|&len| {
            let address = match destination {
                IpAddr::V4(_) => {
                    IpAddr::from(((masked(destination, len) >> 96) as u32).to_be_bytes())
                }
                IpAddr::V6(_) => IpAddr::from(masked(destination, len).to_be_bytes()),
            };
            let tunnels = self.by_prefix.get(&Prefix { address, len })?;
            tunnels.iter().copied().find(|&tunnel| wants(tunnel))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_prefix_wins() {
        let mut all = Destinations::default();
        for (at, text) in ["0.0.0.0/0", "10.0.0.0/8", "10.1.2.3", "fd00::/16"]
            .into_iter()
            .enumerate()
        {
            all.add(text.parse().unwrap(), at);
        }
        let find = |text: &str| all.find(text.parse().unwrap(), |_| true);
        assert_eq!(find("10.1.2.3"), Some(2));
        assert_eq!(find("10.1.2.4"), Some(1));
        assert_eq!(find("192.0.2.1"), Some(0));
        assert_eq!(find("fd00::1"), Some(3));
        assert_eq!(find("fe80::1"), None);
        assert_eq!(all.find("10.1.2.3".parse().unwrap(), |n| n != 2), Some(1));
    }

    #[test]
    fn a_block_holds_what_is_in_it() {
        let block: Prefix = "10.9.0.0/24".parse().unwrap();
        assert!(block.holds("10.9.0.255".parse().unwrap()));
        assert!(!block.holds("10.9.1.0".parse().unwrap()));
        assert!(!block.holds("::10.9.0.1".parse().unwrap()));
        let all: Prefix = "::/0".parse().unwrap();
        assert!(all.holds("fd00::1".parse().unwrap()) && !all.holds("10.9.0.1".parse().unwrap()));
        for wrong in ["", "10", "10.0.0.0/33", "10.9.0.1/24", "fd00::/129", "a/8"] {
            assert!(wrong.parse::<Prefix>().is_err(), "{wrong}");
        }
    }
}
