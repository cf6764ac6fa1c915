//! IPv4 (RFC 791) and IPv6 (RFC 8200) headers, read and changed in place.

use super::Problem;

/// IP protocol numbers.
pub(super) mod protocol {
    pub(crate) const HOP_BY_HOP: u8 = 0;
    pub(crate) const TCP: u8 = 6;
    pub(crate) const UDP: u8 = 17;
    pub(crate) const ROUTING: u8 = 43;
    pub(crate) const FRAGMENT: u8 = 44;
    pub(crate) const ESP: u8 = 50;
    pub(crate) const DESTINATION: u8 = 60;
}

/// What stands before the payload of an IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// 4 or 6.
    pub(super) version: u8,
    /// Bytes of the header, with the extension headers that belong to it.
    pub(super) len: usize,
    /// Bytes of the packet by its own word.
    pub(super) total: usize,
    /// The protocol of what follows.
    pub(super) protocol: u8,
    /// Where that stands.
    pub(super) protocol_at: usize,
    /// Not the whole packet.
    pub(super) fragment: bool,
}

/// Which destination reads a header with destination options that no routing header follows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum LastOptions {
    /// To the payload, as ESP protects them (RFC 4303 section 3.1.1).
    Payload,
    /// To the header.
    Header,
}

pub(super) fn number(bytes: &[u8], at: usize) -> usize {
    usize::from(bytes[at]) << 8 | usize::from(bytes[at + 1])
}

impl Header {
    pub(super) fn parse(packet: &[u8], last_options: LastOptions) -> Result<Self, Problem> {
        let header = match packet.first().map(|byte| byte >> 4) {
            Some(4) if packet.len() >= 20 => Self::parse4(packet),
            Some(6) if packet.len() >= 40 => Self::parse6(packet, last_options)?,
            _ => return Err(Problem::NotIp),
        };
        let least = if header.version == 4 { 20 } else { 40 };
        match header.len < least || header.total < header.len || header.total > packet.len() {
            true => Err(Problem::NotIp),
            false => Ok(header),
        }
    }

    fn parse4(packet: &[u8]) -> Self {
        Header {
            version: 4,
            len: usize::from(packet[0] & 15) * 4,
            total: number(packet, 2),
            protocol: packet[9],
            protocol_at: 9,
            // More fragments, or an offset.
            fragment: number(packet, 6) & 0x3fff != 0,
        }
    }

    fn parse6(packet: &[u8], last_options: LastOptions) -> Result<Self, Problem> {
        let mut header = Header {
            version: 6,
            len: 40,
            total: 40 + number(packet, 4),
            protocol: packet[6],
            protocol_at: 6,
            fragment: false,
        };
        loop {
            let Some(extension) = packet.get(header.len..) else {
                return Err(Problem::NotIp);
            };
            let belongs = match header.protocol {
                protocol::HOP_BY_HOP | protocol::ROUTING | protocol::FRAGMENT => true,
                protocol::DESTINATION => {
                    last_options == LastOptions::Header
                        || matches!(
                            extension.first(),
                            Some(&(protocol::ROUTING | protocol::FRAGMENT))
                        )
                }
                _ => false,
            };
            if !belongs {
                return Ok(header);
            }
            let [next, len, f0, f1, ..] = *extension else {
                return Err(Problem::NotIp);
            };
            // The extension's first byte says what follows it.
            header.protocol_at = header.len;
            header.len += match header.protocol {
                protocol::FRAGMENT => {
                    // An offset, or more to come; neither in an atomic fragment (RFC 6946).
                    header.fragment |= u16::from_be_bytes([f0, f1]) & 0xfff9 != 0;
                    8
                }
                _ => 8 + usize::from(len) * 8,
            };
            header.protocol = next;
        }
    }

    /// Makes `packet`, which begins with this header, say that `protocol` follows, and that it
    /// is as long as it is.
    pub(super) fn rewrite(&self, packet: &mut [u8], protocol: u8) -> Result<(), Problem> {
        let total = packet.len();
        packet[self.protocol_at] = protocol;
        match self.version {
            4 => {
                let total = u16::try_from(total).map_err(|_| Problem::TooLong)?;
                packet[2..4].copy_from_slice(&total.to_be_bytes());
                write_checksum4(&mut packet[..self.len]);
            }
            _ => {
                let payload = u16::try_from(total - 40).map_err(|_| Problem::TooLong)?;
                packet[4..6].copy_from_slice(&payload.to_be_bytes());
            }
        }
        Ok(())
    }
}

/// The sum of 16-bit words that checksums are made of (RFC 1071), not yet folded.
pub(super) fn sum(bytes: &[u8]) -> u64 {
    let (words, odd) = bytes.as_chunks::<2>();
    let last = odd.first().map_or(0, |&byte| u64::from(byte) << 8);
    let words = words
        .iter()
        .map(|&word| u64::from(u16::from_be_bytes(word)));
    words.sum::<u64>() + last
}

pub(super) fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// The internet checksum (RFC 1071) over pieces, all but the last of even length. Over a
/// header with its checksum in place it is 0.
pub fn checksum(pieces: &[&[u8]]) -> u16 {
    !fold(pieces.iter().map(|piece| sum(piece)).sum())
}

/// Writes the checksum of an IPv4 header.
pub(super) fn write_checksum4(header: &mut [u8]) {
    header[10..12].fill(0);
    let value = checksum(&[header]);
    header[10..12].copy_from_slice(&value.to_be_bytes());
}

/// Changes a 16-bit word of an IPv4 header and its checksum with it (RFC 1624).
pub(super) fn replace_word4(header: &mut [u8], at: usize, new: u16) {
    let word = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let (old, checksum) = (word(at), word(10));
    let updated = !fold(u64::from(!checksum) + u64::from(!old) + u64::from(new));
    header[at..at + 2].copy_from_slice(&new.to_be_bytes());
    header[10..12].copy_from_slice(&updated.to_be_bytes());
}

/// Takes one off the TTL or hop limit of an IP packet that is forwarded into a tunnel
/// (RFC 4301 section 5.1.2.1, note 6).
pub fn decrement_hop_limit(packet: &mut [u8]) -> Result<(), Problem> {
    let version = Header::parse(packet, LastOptions::Payload)?.version;
    let at = if version == 4 { 8 } else { 7 };
    if packet[at] <= 1 {
        return Err(Problem::HopLimit);
    }
    if version == 4 {
        let word = u16::from_be_bytes([packet[8] - 1, packet[9]]);
        replace_word4(packet, 8, word);
    } else {
        packet[7] -= 1;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_of_rfc_1071_and_of_a_published_header() {
        // RFC 1071 section 3: the sum is ddf2.
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(checksum(&[&bytes]), !0xddf2);
        assert_eq!(checksum(&[&bytes[..4], &bytes[4..]]), !0xddf2);
        assert_eq!(checksum(&[&[0x12]]), !0x1200);
        // RFC 3602 section 4 case 5.
        let header = [
            0x45, 0, 0, 0x54, 8, 0xf2, 0, 0, 0x40, 1, 0xf9, 0xfe, 192, 168, 123, 3, 192, 168, 123,
            100,
        ];
        assert_eq!(checksum(&[&header]), 0);
        let mut written = header;
        written[10] = 7;
        write_checksum4(&mut written);
        assert_eq!(written, header);
    }

    #[test]
    fn an_incremental_checksum_is_the_whole_one() {
        let mut header = [0u8; 20];
        header[0] = 0x45;
        for new in [0, 1, 0x1234, 0x8000, 0xfffe, 0xffff] {
            for old in [1u16, 0x00ff, 0xffff] {
                header[4..6].copy_from_slice(&old.to_be_bytes());
                write_checksum4(&mut header);
                let mut changed = header;
                replace_word4(&mut changed, 4, new);
                assert_eq!(checksum(&[&changed]), 0, "{old:04x} to {new:04x}");
            }
        }
    }

    #[test]
    fn the_hop_limit_goes_down_to_one() {
        let mut v4 = [0u8; 20];
        (v4[0], v4[3], v4[8]) = (0x45, 20, 2);
        write_checksum4(&mut v4);
        decrement_hop_limit(&mut v4).unwrap();
        assert_eq!((v4[8], checksum(&[&v4])), (1, 0));
        assert_eq!(decrement_hop_limit(&mut v4), Err(Problem::HopLimit));
        let mut v6 = [0u8; 40];
        (v6[0], v6[6], v6[7]) = (0x60, 59, 2);
        decrement_hop_limit(&mut v6).unwrap();
        assert_eq!(v6[7], 1);
        assert_eq!(decrement_hop_limit(&mut v6), Err(Problem::HopLimit));
        assert_eq!(decrement_hop_limit(&mut []), Err(Problem::NotIp));
    }

    /// IPv6 with these extension headers (protocol, bytes) before UDP.
    fn v6(extensions: &[(u8, usize)]) -> Vec<u8> {
        let mut packet = vec![0; 40];
        packet[0] = 0x60;
        let mut at = 6;
        for &(protocol, len) in extensions {
            packet[at] = protocol;
            at = packet.len();
            packet.resize(at + len, 0);
            packet[at + 1] = (len / 8 - 1) as u8;
        }
        packet[at] = protocol::UDP;
        packet.extend([9; 8]);
        let payload = packet.len() - 40;
        packet[5] = payload as u8;
        packet
    }

    #[test]
    fn extension_headers_before_the_last_destination_options_belong_to_the_header() {
        use protocol::{DESTINATION, FRAGMENT, HOP_BY_HOP, ROUTING};
        let parse = |packet: &[u8], last| {
            let header = Header::parse(packet, last).unwrap();
            (header.len, header.protocol, header.protocol_at)
        };
        let plain = v6(&[]);
        assert_eq!(parse(&plain, LastOptions::Payload), (40, 17, 6));
        let all = v6(&[
            (HOP_BY_HOP, 8),
            (DESTINATION, 16),
            (ROUTING, 24),
            (DESTINATION, 8),
        ]);
        assert_eq!(parse(&all, LastOptions::Payload), (88, 60, 64));
        assert_eq!(parse(&all, LastOptions::Header), (96, 17, 88));
        let mut fragment = v6(&[(FRAGMENT, 8)]);
        // The second byte of a fragment header is reserved.
        fragment[41] = 0;
        assert!(
            !Header::parse(&fragment, LastOptions::Payload)
                .unwrap()
                .fragment
        );
        fragment[43] = 1;
        assert!(
            Header::parse(&fragment, LastOptions::Payload)
                .unwrap()
                .fragment
        );
        // Cut anywhere, it is no packet.
        for len in 0..all.len() {
            assert_eq!(
                Header::parse(&all[..len], LastOptions::Header),
                Err(Problem::NotIp)
            );
        }
    }
}
