//! Protocols and ports: what a selector of IKE holds besides addresses (RFC 4301 section 4.4.1.1).

use std::net::IpAddr;

use crate::packet::inner::Inner;
use crate::packet::word;
use crate::selector::Prefix;

/// Protocols whose header begins with the source's port and the destination's: TCP, UDP, DCCP,
/// SCTP, UDP-Lite.
pub(crate) const WITH_PORTS: [u8; 5] = [6, 17, 33, 132, 136];

/// A protocol, and the first and the last port at each side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Service {
    /// 0: any.
    pub(crate) protocol: u8,
    pub(crate) local: (u16, u16),
    pub(crate) remote: (u16, u16),
}

/// What a packet is found by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flow {
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    pub(crate) protocol: u8,
    /// Of the source and the destination. `None`: the packet has none, or is a fragment.
    pub(crate) ports: Option<(u16, u16)>,
}

/// Addresses of both sides, with a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Selector {
    pub(crate) local: Prefix,
    pub(crate) remote: Prefix,
    pub(crate) service: Service,
}

impl Service {
    pub(crate) const ANY_PORT: (u16, u16) = (0, u16::MAX);

    /// All protocols.
    pub(crate) const ALL: Service = Service {
        protocol: 0,
        local: Service::ANY_PORT,
        remote: Service::ANY_PORT,
    };

    /// Whether a packet from the local side to the remote one is of it. Ports of a packet that
    /// shows none, as a fragment, are of no service that names some: they could be any.
    pub(crate) fn holds(&self, flow: &Flow) -> bool {
        let has_protocol = self.protocol == 0 || self.protocol == flow.protocol;
        let names_ports = (self.local, self.remote) != (Service::ANY_PORT, Service::ANY_PORT);
        let is_in = |(first, last): (u16, u16), port: u16| (first..=last).contains(&port);
        let has_ports = || {
            flow.ports.is_some_and(|(source, destination)| {
                is_in(self.local, source) && is_in(self.remote, destination)
            })
        };
        has_protocol && (!names_ports || has_ports())
    }

    /// One side of it as strongSwan writes it behind an address: `[tcp/80]`.
    fn text(&self, ports: (u16, u16)) -> String {
        let protocol = match self.protocol {
            0 if ports == Service::ANY_PORT => return String::new(),
            0 => "0".to_owned(),
            1 => "icmp".to_owned(),
            6 => "tcp".to_owned(),
            17 => "udp".to_owned(),
            58 => "ipv6-icmp".to_owned(),
            132 => "sctp".to_owned(),
            other => other.to_string(),
        };
        match ports {
            Service::ANY_PORT => format!("[{protocol}]"),
            (first, last) if first == last => format!("[{protocol}/{first}]"),
            (first, last) => format!("[{protocol}/{first}-{last}]"),
        }
    }
}

/// Whether a protocol has ports that can be looked at.
pub(crate) fn has_ports(protocol: u8) -> bool {
    WITH_PORTS.contains(&protocol)
}

impl Flow {
    /// Of a packet that `bytes` begin.
    pub(crate) fn of(inner: &Inner, bytes: &[u8]) -> Flow {
        let is_readable = has_ports(inner.protocol)
            && !inner.is_fragment
            && bytes.len().min(inner.len) >= inner.header + 4;
        Flow {
            source: inner.source,
            destination: inner.destination,
            protocol: inner.protocol,
            ports: is_readable.then(|| (word(bytes, inner.header), word(bytes, inner.header + 2))),
        }
    }

    /// The same packet as its receiver sees it: from the local side to the remote one.
    fn turned(&self) -> Flow {
        Flow {
            source: self.destination,
            destination: self.source,
            protocol: self.protocol,
            ports: self
                .ports
                .map(|(source, destination)| (destination, source)),
        }
    }
}

impl Selector {
    /// Whether the far side may have sent a packet.
    pub(crate) fn admits(&self, flow: &Flow) -> bool {
        self.remote.holds(flow.source)
            && self.local.holds(flow.destination)
            && self.service.holds(&flow.turned())
    }

    pub(crate) fn local_text(&self) -> String {
        format!("{}{}", self.local, self.service.text(self.service.local))
    }

    pub(crate) fn remote_text(&self) -> String {
        format!("{}{}", self.remote, self.service.text(self.service.remote))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(protocol: u8, ports: Option<(u16, u16)>) -> Flow {
        Flow {
            source: "10.1.0.1".parse().unwrap(),
            destination: "10.2.0.1".parse().unwrap(),
            protocol,
            ports,
        }
    }

    #[test]
    fn protocol_and_ports_decide() {
        let web = Service {
            protocol: 6,
            remote: (80, 81),
            ..Service::ALL
        };
        for (packet, is_held) in [
            (flow(6, Some((1024, 80))), true),
            (flow(6, Some((1024, 81))), true),
            (flow(6, Some((1024, 82))), false),
            // The ports of an answer, which goes the other way.
            (flow(6, Some((80, 1024))), false),
            (flow(17, Some((1024, 80))), false),
            (flow(6, None), false),
        ] {
            assert_eq!(web.holds(&packet), is_held, "{packet:?}");
        }
        let icmp = Service {
            protocol: 1,
            ..Service::ALL
        };
        assert!(icmp.holds(&flow(1, None)) && !icmp.holds(&flow(6, Some((1, 1)))));
        assert!(Service::ALL.holds(&flow(50, None)));
    }

    #[test]
    fn what_comes_is_looked_at_from_the_other_side() {
        let web = Selector {
            local: "10.2.0.1".parse().unwrap(),
            remote: "10.1.0.0/16".parse().unwrap(),
            service: Service {
                protocol: 6,
                local: (80, 80),
                ..Service::ALL
            },
        };
        assert!(web.admits(&flow(6, Some((1024, 80)))));
        assert!(!web.admits(&flow(6, Some((80, 1024)))));
        assert_eq!(web.local_text(), "10.2.0.1/32[tcp/80]");
        assert_eq!(web.remote_text(), "10.1.0.0/16[tcp]");
    }

    #[test]
    fn ports_are_read_where_they_are() {
        let mut packet = [0; 28];
        (packet[0], packet[3], packet[9]) = (0x45, 28, 17);
        packet[20..24].copy_from_slice(&[4, 0, 0, 53]);
        let ports = |packet: &[u8]| Flow::of(&Inner::of_head(packet).unwrap(), packet).ports;
        assert_eq!(ports(&packet), Some((1024, 53)));
        assert_eq!(ports(&packet[..23]), None);
        let mut fragment = packet;
        fragment[6] = 0x20;
        assert_eq!(ports(&fragment), None);
        packet[9] = 1;
        assert_eq!(ports(&packet), None);
    }
}
