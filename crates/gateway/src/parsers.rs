//! What reads the packets of strangers, for the fuzz targets, and the property that they must
//! have: whatever is joined is cut again into the same packets.

use crate::packet::coalesce::Group;
use crate::packet::inner::Inner;
use crate::packet::segment::Cut;
use crate::packet::vnet::{self, Gso, Vnet};
use crate::packet::{checksum, icmp, mss};

/// Joins `packets` as the inbound path does, and cuts what was joined; how many packets were in
/// the largest super-packet.
///
/// # Panics
/// If a packet would reach the receiver changed, twice, or not at all.
pub fn join_and_cut(packets: &[Vec<u8>]) -> usize {
    let mut group: Option<(Group, Vec<&[u8]>)> = None;
    let mut largest = 0;
    let mut close = |group: Option<(Group, Vec<&[u8]>)>| {
        if let Some((group, packets)) = group {
            assert_eq!(group.count(), packets.len());
            largest = largest.max(packets.len());
            cut_again(&group, &packets);
        }
    };
    for packet in packets {
        let Some(inner) = Inner::of(packet) else {
            continue;
        };
        let packet = &packet[..inner.len];
        if let Some((group, members)) = &mut group
            && let Some(headers) = group.join(members[0], packet, &inner)
        {
            assert!(headers < packet.len());
            members.push(packet);
            continue;
        }
        close(group.take());
        group = Group::begin(packet, &inner).map(|group| (group, vec![packet]));
    }
    close(group);
    largest
}

fn cut_again(group: &Group, packets: &[&[u8]]) {
    let mut whole = packets[0].to_vec();
    let vnet = group.finish(&mut whole);
    if packets.len() == 1 {
        assert_eq!((whole.as_slice(), vnet.gso), (packets[0], Gso::None));
        return;
    }
    let headers = usize::from(vnet.headers);
    for packet in &packets[1..] {
        whole.extend_from_slice(&packet[headers..]);
    }
    assert!(Inner::of(&whole).is_some_and(|inner| inner.len == whole.len()));
    let cut = Cut::of(&vnet, &whole, whole.len()).expect("it was made to be cut");
    assert_eq!((cut.count, cut.headers), (packets.len(), headers));
    for (index, packet) in packets.iter().enumerate() {
        let from = headers + index * cut.size;
        let mut segment = vec![0; cut.len(index)];
        let len = segment.len() - headers;
        segment[headers..].copy_from_slice(&whole[from..from + len]);
        cut.write(&whole, index, &mut segment);
        let inner = Inner::of(&segment).expect("a segment is a packet");
        assert!(checksum::is_right(&segment, &inner));
        // Two forms of zero are the same checksum.
        let (mut one, mut other) = (segment, packet.to_vec());
        for bytes in [&mut one, &mut other] {
            if inner.header == 20 && bytes[0] >> 4 == 4 {
                bytes[10..12].fill(0);
            }
            let field = inner.header + if inner.protocol == 17 { 6 } else { 16 };
            bytes[field..field + 2].fill(0);
        }
        assert_eq!(one, other, "packet {index}");
    }
}

/// Reads a header of a TUN device and what is behind it, and cuts it if it can be cut.
pub fn cut(header: &[u8; vnet::LEN], bytes: &[u8]) -> usize {
    let Some(vnet) = Vnet::read(header) else {
        return 0;
    };
    let Some(cut) = Cut::of(&vnet, bytes, bytes.len()) else {
        return 0;
    };
    let mut total = 0;
    for index in 0..cut.count.min(64) {
        let mut segment = vec![0; cut.len(index)];
        cut.write(bytes, index, &mut segment);
        total += segment.len() - cut.headers;
    }
    assert!(cut.count > 64 || total == bytes.len() - cut.headers);
    cut.count
}

/// What else is done with a packet: its MSS lowered, its sender told that it is too long.
pub fn mend(packet: &mut [u8], mtu: u16) {
    let Some(inner) = Inner::of(packet) else {
        return;
    };
    let was_right = inner.len > inner.header
        && inner.protocol == 6
        && inner.len >= inner.header + 20
        && checksum::is_right(packet, &inner);
    mss::clamp(packet, &inner, usize::from(mtu));
    assert!(!was_right || checksum::is_right(packet, &inner));
    let mut room = [0; icmp::LONGEST];
    let packet = &packet[..inner.len];
    if let Some(len) = icmp::too_big(&mut room, packet, &inner, usize::from(mtu)) {
        let message = Inner::of(&room[..len]).expect("a message is a packet");
        assert_eq!((message.destination, message.len), (inner.source, len));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{flag, put_long, put_word};
    use proptest::prelude::*;

    /// A packet of a flow.
    #[derive(Clone, Debug)]
    struct Shape {
        is_v4: bool,
        is_udp: bool,
        id: u16,
        sequence: u32,
        flags: u8,
        options: usize,
        payload: usize,
    }

    fn packet(shape: &Shape) -> Vec<u8> {
        let ip = if shape.is_v4 { 20 } else { 40 };
        let transport = if shape.is_udp { 8 } else { 20 + shape.options };
        let mut packet = vec![0; ip + transport];
        packet.extend((0..shape.payload).map(|n| (n as u32 ^ shape.sequence) as u8));
        let len = packet.len();
        let protocol = if shape.is_udp { 17 } else { 6 };
        if shape.is_v4 {
            (packet[0], packet[6], packet[8], packet[9]) = (0x45, 0x40, 64, protocol);
            put_word(&mut packet, 2, len as u16);
            put_word(&mut packet, 4, shape.id);
            packet[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
            checksum::write_ipv4(&mut packet[..20]);
        } else {
            (packet[0], packet[6], packet[7]) = (0x60, protocol, 64);
            put_word(&mut packet, 4, (len - 40) as u16);
            (packet[8], packet[24], packet[39]) = (0xfd, 0xfd, 2);
        }
        put_word(&mut packet, ip, 5001);
        put_word(&mut packet, ip + 2, 5002);
        let field = if shape.is_udp {
            put_word(&mut packet, ip + 4, (len - ip) as u16);
            ip + 6
        } else {
            put_long(&mut packet, ip + 4, shape.sequence);
            packet[ip + 12] = ((20 + shape.options) as u8 / 4) << 4;
            packet[ip + 13] = shape.flags;
            ip + 16
        };
        let pseudo = checksum::pseudo_header(&packet, protocol, len - ip);
        let pseudo = checksum::fold(pseudo).to_ne_bytes();
        packet[field..field + 2].copy_from_slice(&pseudo);
        checksum::finish(&mut packet, ip, field, shape.is_udp);
        packet
    }

    /// A flow of `count` packets of `size` bytes, the last one of `last`.
    fn flow(is_v4: bool, is_udp: bool, count: usize, size: usize, last: usize) -> Vec<Shape> {
        let shape = |n: usize| Shape {
            is_v4,
            is_udp,
            id: 0xfffe_u16.wrapping_add(n as u16),
            sequence: 0xffff_ff00_u32.wrapping_add((n * size) as u32),
            flags: flag::ACK,
            options: 12,
            payload: if n + 1 == count { last } else { size },
        };
        (0..count).map(shape).collect()
    }

    fn packets(shapes: &[Shape]) -> Vec<Vec<u8>> {
        shapes.iter().map(packet).collect()
    }

    #[test]
    fn a_flow_becomes_one_super_packet() {
        for (is_v4, is_udp) in [(true, false), (false, false), (true, true), (false, true)] {
            let flow = flow(is_v4, is_udp, 40, 1200, 700);
            assert_eq!(
                join_and_cut(&packets(&flow)),
                40,
                "IPv4 {is_v4}, UDP {is_udp}"
            );
        }
    }

    #[test]
    fn what_the_kernel_would_not_restore_is_not_joined() {
        let joined = |change: fn(&mut [Shape])| {
            let mut shapes = flow(true, false, 3, 100, 100);
            change(&mut shapes);
            join_and_cut(&packets(&shapes))
        };
        assert_eq!(joined(|_| {}), 3);
        // FIN and PSH end a super-packet: they are set on its last packet only.
        for bit in [flag::FIN, flag::PSH] {
            let mut shapes = flow(true, false, 3, 100, 100);
            shapes[1].flags |= bit;
            assert_eq!(join_and_cut(&packets(&shapes)), 2);
        }
        // CWR would be taken off all but the first; a mark of congestion must not be lost.
        assert_eq!(joined(|shapes| shapes[1].flags |= flag::CWR), 1);
        assert_eq!(joined(|shapes| shapes[1].flags |= flag::ECE), 1);
        assert_eq!(
            joined(|shapes| shapes.iter_mut().for_each(|s| s.flags |= flag::ECE)),
            3
        );
        assert_eq!(joined(|shapes| shapes[1].flags = flag::SYN), 1);
        assert_eq!(joined(|shapes| shapes[1].sequence ^= 1), 1);
        assert_eq!(joined(|shapes| shapes[1].id ^= 1), 1);
        assert_eq!(joined(|shapes| shapes[1].options = 8), 1);
        assert_eq!(joined(|shapes| shapes[1].payload = 101), 1);
        // A shorter one is the last.
        assert_eq!(joined(|shapes| shapes[1].payload = 99), 2);
        assert_eq!(
            joined(|shapes| shapes.iter_mut().for_each(|s| s.payload = 0)),
            0
        );
    }

    #[test]
    fn a_wrong_checksum_is_not_trusted() {
        for is_udp in [false, true] {
            let mut packets = packets(&flow(true, is_udp, 3, 100, 100));
            let end = packets[1].len() - 1;
            packets[1][end] ^= 1;
            assert_eq!(join_and_cut(&packets), 1);
        }
        let mut packets = packets(&flow(true, true, 3, 100, 100));
        packets[1][26..28].fill(0);
        assert_eq!(join_and_cut(&packets), 1, "UDP without a checksum");
    }

    #[test]
    fn a_super_packet_of_a_sender_keeps_fin_and_cwr_where_they_belong() {
        let mut whole = packet(&Shape {
            is_v4: true,
            is_udp: false,
            id: 7,
            sequence: 1,
            flags: flag::ACK | flag::FIN | flag::PSH | flag::CWR,
            options: 0,
            payload: 250,
        });
        let vnet = Vnet {
            gso: Gso::Tcp4,
            headers: 40,
            size: 100,
            checksum: Some((20, 16)),
            is_valid: false,
        };
        let cut = Cut::of(&vnet, &whole, whole.len()).unwrap();
        assert_eq!((cut.count, cut.last), (3, 50));
        let flags: Vec<u8> = (0..3)
            .map(|index| {
                let mut segment = vec![0; cut.len(index)];
                cut.write(&whole, index, &mut segment);
                segment[33] & !flag::ACK
            })
            .collect();
        assert_eq!(flags, [flag::CWR, 0, flag::FIN | flag::PSH]);
        // Headers that lie are not cut.
        whole[32] = 0x40;
        assert!(Cut::of(&vnet, &whole, whole.len()).is_none());
        whole[32] = 0xf0;
        assert!(Cut::of(&vnet, &whole[..60], 290).is_none());
    }

    proptest! {
        #[test]
        fn what_is_joined_is_cut_into_the_same(
            is_v4: bool, is_udp: bool, count in 1usize..70, size in 1usize..1500,
            last in 1usize..1500, odd in any::<prop::sample::Index>(), change in 0u8..8, bits: u8,
        ) {
            let mut shapes = flow(is_v4, is_udp, count, size, last);
            let shape = &mut shapes[odd.index(count)];
            match change {
                0 => shape.flags ^= bits,
                1 => shape.sequence ^= u32::from(bits),
                2 => shape.id ^= u16::from(bits),
                3 => shape.payload = usize::from(bits),
                4 => shape.options = usize::from(bits % 11) * 4,
                5 => shape.is_udp = !is_udp,
                _ => {}
            }
            join_and_cut(&packets(&shapes));
        }

        #[test]
        fn any_bytes_do_no_harm(
            mut packets in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..8),
            header: [u8; 10], mtu: u16,
        ) {
            join_and_cut(&packets);
            for packet in &mut packets {
                if let Some(first) = packet.first_mut() {
                    *first = if *first & 1 == 0 { 0x45 } else { 0x60 };
                }
                cut(&header, packet);
                mend(packet, mtu);
            }
        }
    }
}
