//! A received IP packet with ESP in it: its headers taken off, and after opening what tunnel
//! or transport mode does with them.

use super::ip::{Header, LastOptions, protocol};
use super::{Ecn, Fields, NatChecksums, Problem, fields, udp};
use crate::Packet;

/// The outer headers of a received packet.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    header: Header,
    /// Where the header begins in the buffer.
    start: usize,
    fields: Fields,
    /// Source and destination port, where ESP came in UDP.
    ports: Option<(u16, u16)>,
    checksums: NatChecksums,
}

impl Arrival {
    /// Makes the ESP packet in an IP packet the content, or what UDP carries to one of `ports`:
    /// an inbound SA tells ESP from keepalives and IKE there.
    pub fn strip(packet: &mut Packet<'_>, udp_ports: &[u16]) -> Result<Self, Problem> {
        let bytes = packet.content();
        let header = Header::parse(bytes, LastOptions::Header)?;
        if header.fragment {
            return Err(Problem::Fragment);
        }
        let fields = Fields::of_parsed(bytes, header.version);
        let start = packet.range().start;
        let payload = &bytes[header.len..header.total];
        let (ports, esp) = match header.protocol {
            protocol::ESP => (None, 0..payload.len()),
            protocol::UDP => {
                let ports = udp::read(payload).ok_or(Problem::NotIp)?;
                if !udp_ports.contains(&ports.destination) {
                    return Err(Problem::NotEsp(protocol::UDP));
                }
                (Some((ports.source, ports.destination)), udp::LEN..ports.len)
            }
            other => return Err(Problem::NotEsp(other)),
        };
        let esp_start = start + header.len;
        packet.set_range(esp_start + esp.start..esp_start + esp.end);
        Ok(Arrival {
            header,
            start,
            fields,
            ports,
            checksums: NatChecksums::Recompute,
        })
    }

    /// How [`put_back`](Self::put_back) repairs checksums where ESP came in UDP; unless this is
    /// said it computes them anew.
    pub fn with_checksums(mut self, checksums: NatChecksums) -> Self {
        self.checksums = checksums;
        self
    }

    /// Fields of the outer header.
    pub fn fields(&self) -> Fields {
        self.fields
    }

    /// Source and destination port, where ESP came in UDP.
    pub fn ports(&self) -> Option<(u16, u16)> {
        self.ports
    }

    /// After opening in tunnel mode: carries the outer congestion mark over to the inner packet.
    pub fn leave_tunnel(&self, packet: &mut Packet<'_>) -> Result<(), Problem> {
        leave_tunnel(packet.content_mut(), self.fields.ecn)
    }

    /// After opening in transport mode: the IP packet as it was before it was sealed, but for
    /// what a NAT has changed. Where ESP came in UDP, the checksums of TCP and UDP are made
    /// right for the addresses of the IP header as it is now (RFC 3948 section 3.1.2); that is
    /// safe because the ICV protected what they cover.
    ///
    /// # Panics
    /// If the packet is not the one that the headers were taken off, opened.
    pub fn put_back(&self, packet: &mut Packet<'_>) -> Result<(), Problem> {
        let payload = packet.range();
        let next_header = packet.next_header();
        let start = payload.start.checked_sub(self.header.len);
        let start = start.filter(|&start| start >= self.start);
        let start = start.expect("the packet that the headers belong to");
        let headers = self.start..self.start + self.header.len;
        packet.buffer_mut().copy_within(headers, start);
        packet.set_range(start..payload.end);
        self.header.rewrite(packet.content_mut(), next_header)?;
        if self.ports.is_some() {
            let (ip, payload) = packet.content_mut().split_at_mut(self.header.len);
            self.checksums.repair(ip, next_header, payload);
        }
        Ok(())
    }
}

/// Carries the congestion mark of an outer header over to its inner packet, for a caller that
/// has it from its socket.
pub fn leave_tunnel(inner: &mut [u8], outer: Ecn) -> Result<(), Problem> {
    let before = Fields::of(inner)?.ecn;
    let after = Ecn::decapsulate(before, outer)?;
    if after != before {
        fields::set_ecn(inner, after);
    }
    Ok(())
}
