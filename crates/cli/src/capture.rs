//! Captures: IP packets read from pcap and pcapng files, and the pieces to write one.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use pcap_parser::data::{ETHERTYPE_IPV4, ETHERTYPE_IPV6, PacketData, get_packetdata};
use pcap_parser::traits::PcapNGPacketBlock;
use pcap_parser::{Block, Linktype, PcapBlockOwned, PcapError, create_reader};

use crate::failure::Failure;

/// Bytes that are read before the kind of file is told.
const HEAD: u64 = 4096;
/// The longest record that is read at once.
const RECORD: usize = 1 << 20;
/// Packets that are read of a capture, and bytes; more make no better traffic.
const MOST_PACKETS: usize = 65_536;
const MOST_BYTES: usize = 256 << 20;

/// The whole IP packets of a capture, as far as they are wanted.
pub(crate) fn read(path: &Path) -> Result<Vec<Vec<u8>>, Failure> {
    let file = File::open(path).map_err(|error| Failure::path("read", path, &error))?;
    parse(file).map_err(|problem| {
        Failure::Usage(format!(
            "'{}' is no whole pcap or pcapng file: {problem}",
            path.display()
        ))
    })
}

/// The same of what is read from a file; `Err` says in words what is wrong with it.
pub(crate) fn parse(mut file: impl Read + Send) -> Result<Vec<Vec<u8>>, String> {
    // The reader judges by what it gets at first, and a pipe gives little at a time.
    let mut head = Vec::new();
    let read = file.by_ref().take(HEAD).read_to_end(&mut head);
    read.map_err(|error| error.to_string())?;
    let mut reader = create_reader(RECORD, head.chain(file)).map_err(in_words)?;
    let (mut packets, mut bytes) = (Vec::new(), 0);
    let mut link_types: Vec<Linktype> = Vec::new();
    while packets.len() < MOST_PACKETS && bytes < MOST_BYTES {
        match reader.next() {
            Ok((length, block)) => {
                if let Some(packet) = ip_packet(&block, &mut link_types) {
                    bytes += packet.len();
                    packets.push(packet);
                }
                reader.consume(length);
                continue;
            }
            Err(PcapError::Eof) => break,
            Err(PcapError::Incomplete(_)) => {}
            Err(error) => return Err(in_words(error)),
        }
        let before = reader.data().len();
        if reader.reader_exhausted() {
            return Err(in_words(PcapError::UnexpectedEof));
        }
        reader.refill().map_err(in_words)?;
        if reader.data().len() == before && !reader.reader_exhausted() {
            return Err(in_words(PcapError::BufferTooSmall));
        }
    }
    Ok(packets)
}

/// What is wrong with a capture.
fn in_words(error: PcapError<&[u8]>) -> String {
    match error {
        PcapError::Eof => "it is empty".to_owned(),
        PcapError::Incomplete(_) | PcapError::UnexpectedEof => {
            "it ends within a record; capture or copy it again".to_owned()
        }
        PcapError::BufferTooSmall => format!("a record is longer than {RECORD} bytes"),
        PcapError::ReadError => "it cannot be read to its end".to_owned(),
        PcapError::HeaderNotRecognized => "it begins like neither".to_owned(),
        PcapError::NomError(..) | PcapError::OwnedNomError(..) => {
            "a record is damaged; capture or copy it again".to_owned()
        }
    }
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

/// What the header of an IP packet says of its length, if that has room for the header. (Where
/// the network card cuts segments, a capture has packets that say 0.)
fn ip_length(packet: &[u8]) -> Option<usize> {
    let word = |at: usize| {
        Some(usize::from(u16::from_be_bytes([
            *packet.get(at)?,
            *packet.get(at + 1)?,
        ])))
    };
    let first = *packet.first()?;
    match first >> 4 {
        4 => word(2).filter(|length| (20..=*length).contains(&(4 * usize::from(first & 15)))),
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
    fn what_is_wrong_with_a_capture_is_said_in_words() {
        let mut capture = header();
        capture.extend(record(0, &packet(40)));
        let mut long = capture.clone();
        long.extend([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x7f, 0, 0, 0, 0x7f]);
        long.resize(3 << 20, 0);
        let [mut version, mut block] = [capture.clone(), capture.clone()];
        version[..4].fill(0);
        block.splice(
            ..,
            [0x0a, 0x0d, 0x0d, 0x0a, 12, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a],
        );
        for (bytes, words) in [
            (&[][..], "it is empty"),
            (&capture[..10], "ends within"),
            (&capture[..30], "ends within"),
            (&version[..], "begins like neither"),
            (&block[..], "begins like neither"),
            (&long[..], "longer than 1048576 bytes"),
        ] {
            let message = read_bytes(bytes).unwrap_err().to_string();
            assert!(message.contains(words), "{message}");
            assert!(!message.contains(['(', '{', ')']), "{message}");
        }
    }

    /// Found by the fuzz target `pcap`.
    #[test]
    fn packets_shorter_than_their_header_are_left_out() {
        let mut capture = header();
        for (number, (first, length)) in [(0x45, 0), (0x45, 2), (0x45, 19), (0x44, 40), (0x4b, 40)]
            .into_iter()
            .enumerate()
        {
            let mut short = packet(40);
            (short[0], short[3]) = (first, length);
            capture.extend(record(number as u32, &short));
        }
        capture.extend(record(9, &packet(40)));
        assert_eq!(read_bytes(&capture).unwrap(), [packet(40)]);
    }

    /// As from a pipe into which little is written at a time.
    #[test]
    fn a_capture_that_comes_byte_by_byte_is_read() {
        struct Slow<'a>(&'a [u8]);
        impl Read for Slow<'_> {
            fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
                let few = buffer.len().min(1);
                self.0.read(&mut buffer[..few])
            }
        }
        let mut capture = header();
        capture.extend(record(0, &packet(400)));
        capture.extend(record(1, &packet(40)));
        capture.extend((2..200).flat_map(|number| record(number, &packet(40))));
        let packets = parse(Slow(&capture)).unwrap();
        assert_eq!((packets.len(), &packets[0]), (200, &packet(400)));
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
