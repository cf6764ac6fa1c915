//! Transport mode (RFC 4303 section 3.1.1): the IP header is taken off before sealing and put
//! back before the sealed packet, in the same buffer.

use std::net::IpAddr;

use super::ip::{Header, LastOptions, protocol};
use super::{Problem, udp};
use crate::{Encapsulation, OutboundSa, Packet};

/// An IP header that waits in the head room of its packet while that is sealed.
#[derive(Clone, Copy, Debug)]
pub struct Detached {
    header: Header,
    /// Where it begins in the buffer.
    start: usize,
    ports: Option<(u16, u16)>,
}

impl Detached {
    /// Bytes of room that a packet needs before it, at most.
    pub fn head_room(sa: &OutboundSa) -> usize {
        sa.head_room() + udp::LEN
    }

    /// Makes the payload of an IP packet the content, which `sa` can seal. What ESP does not
    /// protect, with IPv6 the extension headers before the last destination options, goes to
    /// where it will stand before the sealed packet.
    pub fn take_off(
        packet: &mut Packet<'_>,
        sa: &OutboundSa,
        encapsulation: Encapsulation,
    ) -> Result<Self, Problem> {
        let header = Header::parse(packet.content(), LastOptions::Payload)?;
        if header.fragment {
            return Err(Problem::Fragment);
        }
        let ports = match encapsulation {
            Encapsulation::None => None,
            Encapsulation::Udp {
                source,
                destination,
            } => Some((source, destination)),
        };
        let room = sa.head_room() + ports.map_or(0, |_| udp::LEN);
        let from = packet.range().start;
        let start = from.checked_sub(room).ok_or(Problem::NoRoom)?;
        packet
            .buffer_mut()
            .copy_within(from..from + header.len, start);
        packet.set_range(from + header.len..from + header.total);
        packet.set_next_header(header.protocol);
        Ok(Detached {
            header,
            start,
            ports,
        })
    }

    /// Makes the header part of the sealed packet again.
    ///
    /// # Panics
    /// If the packet is not the one that the header was taken off, sealed.
    pub fn put_back(&self, packet: &mut Packet<'_>) -> Result<(), Problem> {
        let sealed = packet.range();
        let udp_len = self.ports.map_or(0, |_| udp::LEN);
        assert_eq!(
            self.start + self.header.len + udp_len,
            sealed.start,
            "not the packet that the header belongs to"
        );
        packet.set_range(self.start..sealed.end);
        let bytes = packet.content_mut();
        if bytes.len() > usize::from(u16::MAX) {
            return Err(Problem::TooLong);
        }
        let Some(ports) = self.ports else {
            return self.header.rewrite(bytes, protocol::ESP);
        };
        let (ip, datagram) = bytes.split_at_mut(self.header.len);
        udp::write(datagram, ports, ends(ip));
        self.header.rewrite(bytes, protocol::UDP)
    }
}

/// The addresses of an IPv6 header; IPv4's checksum is not needed.
fn ends(ip: &[u8]) -> Option<(IpAddr, IpAddr)> {
    let address = |at: usize| {
        let octets: [u8; 16] = ip.get(at..at + 16)?.try_into().ok()?;
        Some(IpAddr::from(octets))
    };
    match ip[0] >> 4 {
        6 => Some((address(8)?, address(24)?)),
        _ => None,
    }
}
