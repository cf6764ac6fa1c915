//! UDP encapsulation of ESP (RFC 3948).

use std::net::IpAddr;

use super::ip::checksum;
use super::ip::protocol;

/// Bytes of a UDP header.
pub(super) const LEN: usize = 8;

/// Writes a UDP header to the first bytes of `datagram`. Over IPv4 the checksum is 0 (RFC 3948
/// section 2.1); over IPv6 it is not optional (RFC 8200 section 8.1).
pub(super) fn write(datagram: &mut [u8], ports: (u16, u16), ends: Option<(IpAddr, IpAddr)>) {
    let len = datagram.len() as u16;
    datagram[..2].copy_from_slice(&ports.0.to_be_bytes());
    datagram[2..4].copy_from_slice(&ports.1.to_be_bytes());
    datagram[4..6].copy_from_slice(&len.to_be_bytes());
    datagram[6..8].fill(0);
    if let Some((IpAddr::V6(source), IpAddr::V6(destination))) = ends {
        let pseudo = [0, protocol::UDP];
        let pieces = [
            &source.octets()[..],
            &destination.octets(),
            &pseudo,
            &len.to_be_bytes(),
            datagram,
        ];
        // A sum of 0 is sent as its other form (RFC 768).
        let sum = match checksum(&pieces) {
            0 => 0xffff,
            sum => sum,
        };
        datagram[6..8].copy_from_slice(&sum.to_be_bytes());
    }
}

/// What a UDP header says.
pub(super) struct Ports {
    pub(super) source: u16,
    pub(super) destination: u16,
    /// Bytes of the datagram.
    pub(super) len: usize,
}

/// Reads a UDP header; `None` where there is no whole datagram.
pub(super) fn read(datagram: &[u8]) -> Option<Ports> {
    let [s0, s1, d0, d1, l0, l1, _, _] = *datagram.first_chunk::<LEN>()?;
    let len = usize::from(u16::from_be_bytes([l0, l1]));
    (LEN..=datagram.len()).contains(&len).then_some(Ports {
        source: u16::from_be_bytes([s0, s1]),
        destination: u16::from_be_bytes([d0, d1]),
        len,
    })
}
