//! What the gateway does with inner packets and with super-packets of a TUN device: any bytes, and
//! flows with some bytes changed. What is joined must be cut into the same packets again.
#![no_main]

use arbitrary::Arbitrary;
use cipherlane_esp::headers::checksum;
use cipherlane_gateway::parsers;
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Input {
    mtu: u16,
    header: [u8; 10],
    packets: Vec<Kind>,
}

#[derive(Arbitrary, Debug)]
enum Kind {
    /// Any bytes.
    Raw(Vec<u8>),
    /// A segment of a flow of TCP or UDP over IPv4, with some bytes changed.
    Segment {
        is_udp: bool,
        len: u8,
        flips: Vec<(u8, u8)>,
        is_mended: bool,
    },
}

fuzz_target!(|input: Input| {
    let mut packets = Vec::new();
    let mut sequence = 0;
    for (number, kind) in input.packets.into_iter().take(80).enumerate() {
        packets.push(match kind {
            Kind::Raw(bytes) => bytes,
            Kind::Segment {
                is_udp,
                len,
                flips,
                is_mended,
            } => {
                let mut packet = segment(is_udp, number as u16, sequence, len.into());
                sequence += u32::from(len);
                let count = packet.len();
                for (at, change) in flips {
                    packet[usize::from(at) % count] ^= change;
                }
                if is_mended {
                    mend(&mut packet);
                }
                packet
            }
        });
    }
    parsers::join_and_cut(&packets);
    for packet in &mut packets {
        parsers::cut(&input.header, packet);
        parsers::mend(packet, input.mtu);
    }
});

fn segment(is_udp: bool, id: u16, sequence: u32, payload: usize) -> Vec<u8> {
    let transport = if is_udp { 8 } else { 20 };
    let len = 20 + transport + payload;
    let mut packet = vec![0; len];
    packet[0] = 0x45;
    packet[2..4].copy_from_slice(&(len as u16).to_be_bytes());
    packet[4..6].copy_from_slice(&id.to_be_bytes());
    packet[9] = if is_udp { 17 } else { 6 };
    packet[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
    if is_udp {
        packet[24..26].copy_from_slice(&((len - 20) as u16).to_be_bytes());
    } else {
        packet[24..28].copy_from_slice(&sequence.to_be_bytes());
        (packet[32], packet[33]) = (0x50, 0x10);
    }
    mend(&mut packet);
    packet
}

/// Makes the checksums right, where there is room for them.
fn mend(packet: &mut [u8]) {
    if packet.len() < 28 || packet[0] != 0x45 {
        return;
    }
    packet[10..12].fill(0);
    let value = checksum(&[&packet[..20]]);
    packet[10..12].copy_from_slice(&value.to_be_bytes());
    let field = if packet[9] == 17 { 26 } else { 36 };
    if packet.len() < field + 2 {
        return;
    }
    packet[field..field + 2].fill(0);
    let mut pseudo = packet[12..20].to_vec();
    pseudo.extend([0, packet[9]]);
    pseudo.extend(((packet.len() - 20) as u16).to_be_bytes());
    let value = checksum(&[&pseudo, &packet[20..]]);
    packet[field..field + 2].copy_from_slice(&value.to_be_bytes());
}
