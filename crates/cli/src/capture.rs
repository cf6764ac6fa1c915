//! Captures: IP packets read from pcap and pcapng files, and the pieces to write one.

use std::fs::File;
use std::path::Path;

use pcap_parser::data::{ETHERTYPE_IPV4, ETHERTYPE_IPV6, PacketData, get_packetdata};
use pcap_parser::traits::PcapNGPacketBlock;
use pcap_parser::{Block, Linktype, PcapBlockOwned, PcapError, create_reader};

use crate::failure::Failure;

/// The longest record that is read at once.
const RECORD: usize = 1 << 20;
/// Packets that are read of a capture, and bytes; more make no better traffic.
const MOST_PACKETS: usize = 65_536;
const MOST_BYTES: usize = 256 << 20;

/// The whole IP packets of a capture, as far as they are wanted.
pub(crate) fn read(path: &Path) -> Result<Vec<Vec<u8>>, Failure> {
    let failed = |error: std::io::Error| Failure::path("read", path, &error);
    let damaged = |why: String| {
        Failure::Usage(format!(
            "'{}' is no whole pcap or pcapng file: {why}",
            path.display()
        ))
    };
    let file = File::open(path).map_err(failed)?;
    let mut reader = create_reader(RECORD, file).map_err(|error| damaged(format!("{error:?}")))?;
    let (mut packets, mut bytes) = (Vec::new(), 0);
    let mut link_types: Vec<Linktype> = Vec::new();
    while packets.len() < MOST_PACKETS && bytes < MOST_BYTES {
        let needs_more = match reader.next() {
            Ok((length, block)) => {
                if let Some(packet) = ip_packet(&block, &mut link_types) {
                    bytes += packet.len();
                    packets.push(packet);
                }
                reader.consume(length);
                false
            }
            Err(PcapError::Eof) => break,
            Err(PcapError::Incomplete(_)) => true,
            Err(error) => return Err(damaged(format!("{error:?}"))),
        };
        if needs_more {
            let before = reader.data().len();
            let ended = reader.reader_exhausted();
            reader
                .refill()
                .map_err(|error| damaged(format!("{error:?}")))?;
            if ended {
                return Err(damaged("it ends within a record".to_owned()));
            }
            if reader.data().len() == before && !reader.reader_exhausted() {
                return Err(damaged(format!("a record is longer than {RECORD} bytes")));
            }
        }
    }
    Ok(packets)
}

/// The IP packet of a block, if it holds one; interfaces are remembered.
fn ip_packet(block: &PcapBlockOwned<'_>, link_types: &mut Vec<Linktype>) -> Option<Vec<u8>> {
    let (data, link) = match block {
        PcapBlockOwned::LegacyHeader(header) => {
            link_types.push(header.network);
            return None;
        }
        PcapBlockOwned::Legacy(record) => (record.data, *link_types.first()?),
        PcapBlockOwned::NG(Block::SectionHeader(_)) => {
            link_types.clear();
            return None;
        }
        PcapBlockOwned::NG(Block::InterfaceDescription(interface)) => {
            link_types.push(interface.linktype);
            return None;
        }
        PcapBlockOwned::NG(Block::EnhancedPacket(record)) => (
            record.packet_data(),
            *link_types.get(record.if_id as usize)?,
        ),
        PcapBlockOwned::NG(Block::SimplePacket(record)) => {
            (record.packet_data(), *link_types.first()?)
        }
        PcapBlockOwned::NG(_) => return None,
    };
    let packet = match get_packetdata(data, link, data.len())? {
        PacketData::L2(frame) => behind_ethernet(frame)?,
        PacketData::L3(ETHERTYPE_IPV4 | ETHERTYPE_IPV6, packet) => packet,
        _ => return None,
    };
    Some(packet.get(..ip_length(packet)?)?.to_vec())
}

/// The payload of an Ethernet frame that holds IP, behind tags of VLANs if there are any.
fn behind_ethernet(frame: &[u8]) -> Option<&[u8]> {
    let mut rest = frame.get(12..)?;
    loop {
        let (kind, behind) = rest.split_first_chunk::<2>()?;
        match u16::from_be_bytes(*kind) {
            0x8100 | 0x88a8 => rest = behind.get(2..)?,
            ETHERTYPE_IPV4 | ETHERTYPE_IPV6 => return Some(behind),
            _ => return None,
        }
    }
}

/// What the header of an IP packet says of its length.
fn ip_length(packet: &[u8]) -> Option<usize> {
    let word = |at: usize| {
        Some(usize::from(u16::from_be_bytes([
            *packet.get(at)?,
            *packet.get(at + 1)?,
        ])))
    };
    match packet.first()? >> 4 {
        4 => word(2),
        6 => Some(40 + word(4)?),
        _ => None,
    }
}

/// The head of a capture of raw IP packets (draft-ietf-opsawg-pcap, section 4).
pub(crate) fn header() -> Vec<u8> {
    let words = [
        0xa1b2_c3d4,
        u32::from_le_bytes([2, 0, 4, 0]),
        0,
        0,
        1 << 18,
        Linktype::RAW.0 as u32,
    ];
    words.into_iter().flat_map(u32::to_le_bytes).collect()
}

/// A packet, `number` microseconds after the epoch.
pub(crate) fn record(number: u32, packet: &[u8]) -> Vec<u8> {
    let len = packet.len() as u32;
    let head = [0, number, len, len].into_iter().flat_map(u32::to_le_bytes);
    head.chain(packet.iter().copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(size: usize) -> Vec<u8> {
        let mut packet: Vec<u8> = (0..size).map(|i| i as u8).collect();
        packet[0] = 0x45;
        packet[2..4].copy_from_slice(&(size as u16).to_be_bytes());
        packet
    }

    fn read_bytes(bytes: &[u8]) -> Result<Vec<Vec<u8>>, Failure> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        read(file.path())
    }

    #[test]
    fn what_is_written_is_read() {
        let packets = [packet(40), packet(1500), packet(9000)];
        let mut capture = header();
        for (number, packet) in packets.iter().enumerate() {
            capture.extend(record(number as u32, packet));
        }
        assert_eq!(read_bytes(&capture).unwrap(), packets);
        for cut in [10, 30, capture.len() - 1] {
            let message = read_bytes(&capture[..cut]).unwrap_err().to_string();
            assert!(message.contains("no whole pcap"), "{message}");
        }
        let message = read_bytes(b"not a capture at all, but text").unwrap_err();
        assert!(message.to_string().contains("no whole pcap"), "{message}");
    }

    #[test]
    fn frames_of_ethernet_lose_header_tags_and_padding() {
        let plain = packet(40);
        let frame = |kinds: &[u8]| [&[0; 12], kinds, &plain, &[0; 6]].concat();
        let mut capture = header();
        capture[20] = Linktype::ETHERNET.0 as u8;
        capture.extend(record(0, &frame(&[8, 0])));
        capture.extend(record(1, &frame(&[0x81, 0, 0, 5, 8, 0])));
        capture.extend(record(2, &frame(&[8, 6])));
        capture.extend(record(3, &frame(&[8, 0])[..40]));
        capture.extend(record(4, &[0; 5]));
        assert_eq!(read_bytes(&capture).unwrap(), [plain.clone(), plain]);
    }

    #[test]
    fn the_first_interface_of_a_pcapng_section_tells_its_link() {
        let plain = packet(44);
        let block = |kind: u32, body: &[u8]| {
            let len = (body.len() as u32 + 12).to_le_bytes();
            [&kind.to_le_bytes()[..], &len, body, &len].concat()
        };
        let len = (plain.len() as u32).to_le_bytes();
        let capture = [
            block(
                0x0a0d_0d0a,
                &[
                    0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255,
                ],
            ),
            block(1, &[Linktype::RAW.0 as u8, 0, 0, 0, 0, 0, 4, 0]),
            block(6, &[&[0; 12], &len[..], &len, &plain].concat()),
            block(
                6,
                &[
                    &[9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
                    &len[..],
                    &len,
                    &plain,
                ]
                .concat(),
            ),
        ];
        assert_eq!(read_bytes(&capture.concat()).unwrap(), [plain]);
    }
}
