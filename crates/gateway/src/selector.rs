//! Selectors: which addresses a tunnel carries, found by the longest prefix.

use std::cell::Cell;
use std::net::IpAddr;
use std::str::FromStr;

use rustc_hash::FxHashMap;

use crate::service::{Flow, Selector, Service};

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

/// Something for each of many blocks of addresses, found by an address.
struct Blocks<T> {
    by_prefix: FxHashMap<Prefix, T>,
    /// The lengths there are, the longest first; IPv4 and IPv6.
    lens: [Vec<u8>; 2],
}

impl<T> Default for Blocks<T> {
    fn default() -> Self {
        Blocks {
            by_prefix: FxHashMap::default(),
            lens: [Vec::new(), Vec::new()],
        }
    }
}

impl<T: Default> Blocks<T> {
    fn entry(&mut self, prefix: Prefix) -> &mut T {
        let lens = &mut self.lens[usize::from(prefix.address.is_ipv6())];
        if !lens.contains(&prefix.len) {
            lens.push(prefix.len);
            lens.sort_unstable_by(|a, b| b.cmp(a));
        }
        self.by_prefix.entry(prefix).or_default()
    }

    /// What `found` finds in the blocks around an address, the smallest block first.
    #[inline]
    fn find<R>(&self, around: IpAddr, found: impl Fn(&T) -> Option<R>) -> Option<R> {
        let lens = &self.lens[usize::from(around.is_ipv6())];
        lens.iter().find_map(|&len| {
            let address = match around {
                IpAddr::V4(_) => IpAddr::from(((masked(around, len) >> 96) as u32).to_be_bytes()),
                IpAddr::V6(_) => IpAddr::from(masked(around, len).to_be_bytes()),
            };
            found(self.by_prefix.get(&Prefix { address, len })?)
        })
    }
}

/// The tunnels of a pair of blocks.
#[derive(Default)]
struct Carriers {
    /// Of all protocols.
    of_all: Option<usize>,
    /// Of one protocol, or of some ports.
    of_services: Vec<(Service, usize)>,
}

/// Which tunnel carries what goes from an address to another. The time of a search depends on how
/// many lengths of prefixes there are, not on how many tunnels: ten thousand branches may all send
/// to one network.
#[derive(Default)]
pub(crate) struct Destinations {
    by_remote: Blocks<Blocks<Carriers>>,
}

impl Destinations {
    /// Adds a pair of selectors of tunnel `tunnel`. The first tunnel that has a pair keeps it.
    pub(crate) fn add(&mut self, remote: Prefix, local: Prefix, tunnel: usize) {
        let carriers = self.by_remote.entry(remote).entry(local);
        carriers.of_all.get_or_insert(tunnel);
    }

    /// The same for one service.
    pub(crate) fn add_selector(&mut self, selector: &Selector, tunnel: usize) {
        if selector.service == Service::ALL {
            return self.add(selector.remote, selector.local, tunnel);
        }
        let carriers = self.by_remote.entry(selector.remote).entry(selector.local);
        let mut known = carriers.of_services.iter();
        if !known.any(|(service, _)| *service == selector.service) {
            carriers.of_services.push((selector.service, tunnel));
        }
    }

    /// The tunnel with the smallest remote block around the destination, and of these the one with
    /// the smallest local block around the source; of the same blocks, one that names the packet's
    /// service.
    #[inline]
    pub(crate) fn find(&self, flow: &Flow) -> Option<usize> {
        self.find_of_service(flow).0
    }

    /// The same, and whether its protocol or ports were asked for: another packet between the same
    /// addresses may then be of another tunnel.
    #[inline]
    pub(crate) fn find_of_service(&self, flow: &Flow) -> (Option<usize>, bool) {
        let is_of_service = Cell::new(false);
        let tunnel = self.by_remote.find(flow.destination, |locals| {
            locals.find(flow.source, |carriers| {
                if !carriers.of_services.is_empty() {
                    is_of_service.set(true);
                }
                let mut services = carriers.of_services.iter();
                let named = services.find(|(service, _)| service.holds(flow));
                named.map(|(_, tunnel)| *tunnel).or(carriers.of_all)
            })
        });
        (tunnel, is_of_service.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(source: IpAddr, destination: IpAddr) -> Flow {
        Flow {
            source,
            destination,
            protocol: 17,
            ports: Some((1024, 53)),
        }
    }

    #[test]
    fn of_the_same_blocks_the_service_decides() {
        let mut all = Destinations::default();
        let (local, remote) = (
            "10.1.0.0/16".parse().unwrap(),
            "10.2.0.0/16".parse().unwrap(),
        );
        let names = Selector {
            local,
            remote,
            service: Service {
                protocol: 17,
                remote: (53, 53),
                ..Service::ALL
            },
        };
        let asks = flow("10.1.0.1".parse().unwrap(), "10.2.0.1".parse().unwrap());
        let other = Flow {
            ports: Some((1024, 54)),
            ..asks
        };
        all.add_selector(&names, 1);
        assert_eq!((all.find(&asks), all.find(&other)), (Some(1), None));
        all.add(remote, local, 2);
        assert_eq!(all.find_of_service(&asks), (Some(1), true));
        assert_eq!(all.find_of_service(&other), (Some(2), true));
        // Elsewhere addresses decide alone, and the answer holds for the next packet.
        all.add("10.3.0.0/16".parse().unwrap(), local, 3);
        let elsewhere = Flow {
            destination: "10.3.0.1".parse().unwrap(),
            ..asks
        };
        assert_eq!(all.find_of_service(&elsewhere), (Some(3), false));
    }

    #[test]
    fn the_smallest_block_wins() {
        let mut all = Destinations::default();
        for (at, (remote, local)) in [
            ("0.0.0.0/0", "0.0.0.0/0"),
            ("10.0.0.0/8", "0.0.0.0/0"),
            ("10.1.2.3", "192.0.2.0/24"),
            ("10.1.2.3", "192.0.2.7"),
            ("fd00::/16", "::/0"),
            ("10.1.2.3", "192.0.2.7"),
        ]
        .into_iter()
        .enumerate()
        {
            all.add(remote.parse().unwrap(), local.parse().unwrap(), at);
        }
        let find = |source: &str, destination: &str| {
            all.find(&flow(source.parse().unwrap(), destination.parse().unwrap()))
        };
        assert_eq!(find("192.0.2.1", "10.1.2.3"), Some(2));
        assert_eq!(find("192.0.2.7", "10.1.2.3"), Some(3));
        // Where the source is not of the smallest block's tunnel, a larger one is asked.
        assert_eq!(find("198.51.100.1", "10.1.2.3"), Some(1));
        assert_eq!(find("192.0.2.7", "10.1.2.4"), Some(1));
        assert_eq!(find("192.0.2.7", "192.0.2.1"), Some(0));
        assert_eq!(find("fd00::2", "fd00::1"), Some(4));
        assert_eq!(find("fd00::2", "fe80::1"), None);
        assert_eq!(find("192.0.2.7", "fd00::1"), None);
    }

    #[test]
    fn ten_thousand_branches_of_one_network_are_found() {
        let mut all = Destinations::default();
        let branch = |n: usize| IpAddr::from([10, 128 + (n >> 16) as u8, (n >> 8) as u8, n as u8]);
        let network: Prefix = "192.168.0.0/16".parse().unwrap();
        for n in 0..10_000 {
            let local = Prefix {
                address: branch(n),
                len: 32,
            };
            all.add(network, local, n);
        }
        let server = "192.168.0.1".parse().unwrap();
        for n in 0..10_000 {
            assert_eq!(all.find(&flow(branch(n), server)), Some(n));
        }
        assert_eq!(all.find(&flow(branch(10_000), server)), None);
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
