//! 'Packet too big', said to an inner sender (RFC 1191 section 4, RFC 4443 section 3.2).

use std::net::IpAddr;

use super::inner::Inner;
use super::{checksum, protocol, put_long, put_word};

/// The longest message: what fits the least MTU of IPv6.
pub(crate) const LONGEST: usize = 1280;

/// Bytes of the packet that an IPv4 message quotes.
const QUOTED4: usize = 548;

/// Writes to `room` a message to the sender of `packet`: packets of at most `mtu` bytes pass. It
/// comes from the packet's destination, because the sender may be this host, which would take no
/// packet from an address of its own out of a device. Its length; `None` where there must be no
/// message, because the packet itself is an error of ICMP or has no single sender.
pub(crate) fn too_big(
    room: &mut [u8; LONGEST],
    packet: &[u8],
    inner: &Inner,
    mtu: usize,
) -> Option<usize> {
    let is_error = match inner.protocol {
        // Errors are below 128 in ICMPv6; in ICMP they are these.
        protocol::ICMPV6 => packet.get(inner.header)? & 0x80 == 0,
        protocol::ICMP => matches!(packet.get(inner.header)?, 3 | 4 | 5 | 11 | 12),
        _ => false,
    };
    let source = inner.source;
    let is_multicast = source.is_multicast() || inner.destination.is_multicast();
    if is_error || is_multicast || source.is_unspecified() {
        return None;
    }
    match (inner.destination, source) {
        (IpAddr::V4(from), IpAddr::V4(source)) => {
            let quoted = packet.len().min(QUOTED4);
            let len = 28 + quoted;
            room[..28].fill(0);
            room[0] = 0x45;
            put_word(room, 2, len as u16);
            (room[8], room[9]) = (64, protocol::ICMP);
            room[12..16].copy_from_slice(&from.octets());
            room[16..20].copy_from_slice(&source.octets());
            checksum::write_ipv4(&mut room[..20]);
            (room[20], room[21]) = (3, 4);
            put_word(room, 26, mtu as u16);
            room[28..len].copy_from_slice(&packet[..quoted]);
            checksum::finish(&mut room[..len], 20, 22, false);
            Some(len)
        }
        (IpAddr::V6(from), IpAddr::V6(source)) => {
            let quoted = packet.len().min(LONGEST - 48);
            let len = 48 + quoted;
            room[..48].fill(0);
            room[0] = 0x60;
            put_word(room, 4, (len - 40) as u16);
            (room[6], room[7]) = (protocol::ICMPV6, 64);
            room[8..24].copy_from_slice(&from.octets());
            room[24..40].copy_from_slice(&source.octets());
            room[40] = 2;
            put_long(room, 44, mtu as u32);
            room[48..len].copy_from_slice(&packet[..quoted]);
            let pseudo = checksum::pseudo_header(&room[..40], protocol::ICMPV6, len - 40);
            let pseudo = checksum::fold(pseudo).to_ne_bytes();
            room[42..44].copy_from_slice(&pseudo);
            checksum::finish(&mut room[..len], 40, 42, false);
            Some(len)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sender_is_told_with_right_checksums() {
        let mut packet = vec![0; 1400];
        (packet[0], packet[9]) = (0x45, 17);
        put_word(&mut packet, 2, 1400);
        packet[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        let inner = Inner::of(&packet).unwrap();
        let mut room = [0; LONGEST];
        let len = too_big(&mut room, &packet, &inner, 1300).unwrap();
        let message = Inner::of(&room[..len]).unwrap();
        assert_eq!(message.destination, inner.source);
        assert_eq!(&room[20..22], &[3, 4]);
        assert_eq!(&room[26..28], &1300u16.to_be_bytes());
        assert_eq!(checksum::fold(checksum::sum(&room[20..len])), 0xffff);
        // No message about a message, and none for nobody.
        let mut error = room;
        assert_eq!(too_big(&mut room, &error[..len], &message, 1300), None);
        error[12..16].fill(0);
        let nobody = Inner::of(&packet).map(|inner| Inner {
            source: IpAddr::from([0, 0, 0, 0]),
            ..inner
        });
        assert_eq!(too_big(&mut room, &packet, &nobody.unwrap(), 1300), None);
    }

    #[test]
    fn a_sender_of_ipv6_is_told() {
        let mut packet = vec![0; 1500];
        (packet[0], packet[6], packet[23], packet[39]) = (0x60, 17, 1, 2);
        put_word(&mut packet, 4, 1460);
        let inner = Inner::of(&packet).unwrap();
        let mut room = [0; LONGEST];
        let len = too_big(&mut room, &packet, &inner, 1300).unwrap();
        assert_eq!(len, LONGEST);
        let message = Inner::of(&room).unwrap();
        assert!(checksum::is_right(&room, &message));
    }
}
