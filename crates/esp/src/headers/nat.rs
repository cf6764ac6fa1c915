//! Checksums of TCP and UDP in transport mode behind a NAT (RFC 3948 section 3.1.2).
//!
//! They cover the addresses of the IP header, which a NAT has changed in a packet whose
//! payload it could not see.

use std::net::IpAddr;

use super::ip::{checksum, fold, number, protocol, sum};

/// How the checksum of TCP or UDP is made right for the addresses that a packet came with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NatChecksums {
    /// The addresses that the sender put into the packet, which IKE learned as NAT-OA (RFC 3947)
    /// or as traffic selectors (RFC 7296 section 2.23.1): the checksum is changed by the
    /// difference. A checksum that was wrong when the sender sealed the packet stays wrong.
    Original {
        /// The sender's own address.
        source: IpAddr,
        /// The receiver's address as the sender knows it.
        destination: IpAddr,
    },
    /// The checksum is computed anew over the whole payload: the original addresses are not
    /// known.
    Recompute,
    /// UDP's is set to zero, where it is optional: over IPv4. Any other is computed anew.
    Zero,
}

impl NatChecksums {
    /// Repairs the payload of an opened packet. `ip` is its header; what follows is `protocol`.
    pub(super) fn repair(self, ip: &[u8], protocol: u8, payload: &mut [u8]) {
        let addresses = match ip[0] >> 4 {
            4 => &ip[12..20],
            _ => &ip[8..40],
        };
        let Some((protocol, segment)) = segment(protocol, payload) else {
            return;
        };
        let at = match protocol {
            protocol::TCP => 16,
            _ => 6,
        };
        let is_udp = protocol == protocol::UDP;
        let is_v4 = addresses.len() == 8;
        // A UDP checksum of zero says that there is none, over IPv6 too (RFC 6935).
        if segment.len() < at + 2 || is_udp && number(segment, at) == 0 {
            return;
        }
        let value = match self {
            NatChecksums::Zero if is_udp && is_v4 => 0,
            NatChecksums::Original {
                source,
                destination,
            } => {
                let old = sum_of(source) + sum_of(destination);
                let new = u64::from(!fold(old)) + sum(addresses);
                // RFC 1624: the complement of the sum without the old and with the new.
                let value = !fold(u64::from(!(number(segment, at) as u16)) + new);
                present(value, is_udp)
            }
            NatChecksums::Recompute | NatChecksums::Zero => {
                let Some(covered) = covered(is_udp, segment) else {
                    return;
                };
                segment[at..at + 2].fill(0);
                let len = (covered as u32).to_be_bytes();
                let pseudo = [addresses, &len, &[0, protocol], &segment[..covered]];
                present(checksum(&pseudo), is_udp)
            }
        };
        segment[at..at + 2].copy_from_slice(&value.to_be_bytes());
    }
}

/// A sum of zero is sent as its other form by UDP (RFC 768).
fn present(value: u16, is_udp: bool) -> u16 {
    match value {
        0 if is_udp => 0xffff,
        value => value,
    }
}

/// Bytes of a segment that its checksum covers: UDP says so itself.
fn covered(is_udp: bool, segment: &[u8]) -> Option<usize> {
    match is_udp {
        false => Some(segment.len()),
        true => Some(number(segment, 4)).filter(|len| (8..=segment.len()).contains(len)),
    }
}

/// TCP or UDP behind the destination options that IPv6 may have before it.
fn segment(mut protocol: u8, payload: &mut [u8]) -> Option<(u8, &mut [u8])> {
    let mut start = 0;
    while protocol == protocol::DESTINATION {
        let &[next, len, ..] = payload.get(start..)? else {
            return None;
        };
        protocol = next;
        start += 8 + usize::from(len) * 8;
    }
    match protocol {
        protocol::TCP | protocol::UDP => Some((protocol, payload.get_mut(start..)?)),
        _ => None,
    }
}

fn sum_of(address: IpAddr) -> u64 {
    match address {
        IpAddr::V4(address) => sum(&address.octets()),
        IpAddr::V6(address) => sum(&address.octets()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header with these addresses, and a segment of `protocol` with a right checksum for them.
    fn packet(ends: [&str; 2], protocol: u8, len: usize) -> (Vec<u8>, Vec<u8>) {
        let ends = ends.map(|end| end.parse::<IpAddr>().unwrap());
        let (mut ip, mut addresses) = (vec![0x45], Vec::new());
        for end in ends {
            match end {
                IpAddr::V4(end) => addresses.extend(end.octets()),
                IpAddr::V6(end) => addresses.extend(end.octets()),
            }
        }
        if addresses.len() == 32 {
            ip[0] = 0x60;
        }
        ip.resize(if addresses.len() == 8 { 12 } else { 8 }, 0);
        ip.extend(&addresses);
        let mut segment: Vec<u8> = (0..len).map(|i| (i * 89 + len) as u8).collect();
        let at = if protocol == 6 { 16 } else { 6 };
        if protocol == 17 {
            segment[4..6].copy_from_slice(&(len as u16).to_be_bytes());
        }
        segment[at..at + 2].fill(0);
        let pseudo = [&(len as u32).to_be_bytes()[..], &[0, protocol]].concat();
        let value = checksum(&[&addresses, &pseudo, &segment]);
        segment[at..at + 2].copy_from_slice(&value.to_be_bytes());
        (ip, segment)
    }

    const ENDS: [([&str; 2], [&str; 2]); 4] = [
        (["10.0.0.5", "192.0.2.1"], ["198.51.100.7", "192.0.2.1"]),
        (["10.0.0.5", "192.0.2.1"], ["198.51.100.7", "10.9.9.9"]),
        (["255.255.255.255", "0.0.0.0"], ["0.0.0.0", "0.0.0.1"]),
        (["2001:db8::5", "fd00::1"], ["2001:db8:ffff::7", "fd00::1"]),
    ];

    #[test]
    fn every_way_gives_the_checksum_of_the_new_addresses() {
        for (original, received) in ENDS {
            let nat_oa = NatChecksums::Original {
                source: original[0].parse().unwrap(),
                destination: original[1].parse().unwrap(),
            };
            for protocol in [6, 17] {
                for len in 20..90 {
                    let (_, sealed) = packet(original, protocol, len);
                    let (ip, expected) = packet(received, protocol, len);
                    for way in [nat_oa, NatChecksums::Recompute, NatChecksums::Zero] {
                        let mut segment = sealed.clone();
                        way.repair(&ip, protocol, &mut segment);
                        let mut expected = expected.clone();
                        if way == NatChecksums::Zero && protocol == 17 && ip[0] == 0x45 {
                            expected[6..8].fill(0);
                        }
                        assert_eq!(segment, expected, "{way:?} {protocol} {original:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_checksum_that_was_wrong_stays_wrong_by_difference() {
        let (original, received) = ENDS[0];
        let (_, mut segment) = packet(original, 6, 40);
        segment[30] ^= 1;
        let (ip, right) = packet(received, 6, 40);
        let nat_oa = NatChecksums::Original {
            source: original[0].parse().unwrap(),
            destination: original[1].parse().unwrap(),
        };
        nat_oa.repair(&ip, 6, &mut segment);
        assert_eq!(segment[16..18], right[16..18]);
        assert_ne!(segment[30], right[30]);
    }

    #[test]
    fn no_checksum_stays_none_and_what_is_no_segment_is_left_alone() {
        let (ip, mut segment) = packet(ENDS[0].0, 17, 30);
        segment[6..8].fill(0);
        let ways = [NatChecksums::Recompute, NatChecksums::Zero];
        for way in ways {
            let mut same = segment.clone();
            way.repair(&ip, 17, &mut same);
            assert_eq!(same, segment);
            for (protocol, bytes) in [(6, 17), (17, 7), (1, 40), (60, 1), (60, 9)] {
                let mut short = vec![0xee; bytes];
                way.repair(&ip, protocol, &mut short);
                assert_eq!(short, vec![0xee; bytes], "{protocol}");
            }
            // UDP that says it is longer than it is.
            let mut long = segment.clone();
            long[4..8].copy_from_slice(&[0, 31, 9, 9]);
            let before = long.clone();
            NatChecksums::Recompute.repair(&ip, 17, &mut long);
            assert_eq!(long, before);
        }
    }

    #[test]
    fn destination_options_are_passed_over() {
        let (original, received) = ENDS[3];
        let (_, tcp) = packet(original, 6, 50);
        let (ip, expected) = packet(received, 6, 50);
        let options = [6, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let mut payload = [&options[..], &tcp].concat();
        NatChecksums::Recompute.repair(&ip, 60, &mut payload);
        assert_eq!(payload, [&options[..], &expected].concat());
    }
}
