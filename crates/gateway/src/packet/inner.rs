//! The fields of an inner IP packet that decide about it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::word;

/// What was read of a whole IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Inner {
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    /// Bytes of the IP header without IPv6 extension headers.
    pub(crate) header: usize,
    /// The protocol behind that header.
    pub(crate) protocol: u8,
    /// Bytes that the packet says it has.
    pub(crate) len: usize,
    /// TOS or traffic class.
    pub(crate) traffic_class: u8,
    /// A fragment, the first one too.
    pub(crate) is_fragment: bool,
    /// It must not be cut.
    pub(crate) dont_fragment: bool,
}

impl Inner {
    /// Reads the header of a packet that is in `bytes` as a whole.
    #[inline]
    pub(crate) fn of(bytes: &[u8]) -> Option<Inner> {
        Inner::of_head(bytes).filter(|inner| inner.len <= bytes.len())
    }

    /// Reads the header of a packet of which `bytes` is the beginning.
    #[inline]
    pub(crate) fn of_head(bytes: &[u8]) -> Option<Inner> {
        match bytes.first()? >> 4 {
            4 => Inner::of_v4(bytes),
            6 => Inner::of_v6(bytes),
            _ => None,
        }
    }

    fn of_v4(bytes: &[u8]) -> Option<Inner> {
        let fixed = bytes.first_chunk::<20>()?;
        let header = usize::from(fixed[0] & 15) * 4;
        let len = usize::from(word(fixed, 2));
        if header < 20 || len < header {
            return None;
        }
        let address = |at: usize| Ipv4Addr::from([0, 1, 2, 3].map(|n| fixed[at + n]));
        let fragment = word(fixed, 6);
        Some(Inner {
            source: address(12).into(),
            destination: address(16).into(),
            header,
            protocol: fixed[9],
            len,
            traffic_class: fixed[1],
            is_fragment: fragment & 0x3fff != 0,
            dont_fragment: fragment & 0x4000 != 0,
        })
    }

    fn of_v6(bytes: &[u8]) -> Option<Inner> {
        let fixed = bytes.first_chunk::<40>()?;
        let len = 40 + usize::from(word(fixed, 4));
        let address = |at: usize| {
            let mut octets = [0; 16];
            octets.copy_from_slice(&fixed[at..at + 16]);
            Ipv6Addr::from(octets)
        };
        Some(Inner {
            source: address(8).into(),
            destination: address(24).into(),
            header: 40,
            protocol: fixed[6],
            len,
            traffic_class: fixed[0] << 4 | fixed[1] >> 4,
            is_fragment: fixed[6] == 44,
            dont_fragment: true,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read() {
        let mut v4 = [0; 40];
        (v4[0], v4[1], v4[3], v4[6], v4[9]) = (0x45, 0xb9, 40, 0x40, 6);
        v4[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        let inner = Inner::of(&v4).unwrap();
        assert_eq!((inner.header, inner.len, inner.protocol), (20, 40, 6));
        assert_eq!(inner.source.to_string(), "10.0.0.1");
        assert!(inner.dont_fragment && !inner.is_fragment);
        v4[6] = 0x20;
        assert!(Inner::of(&v4).unwrap().is_fragment);
    }

    #[test]
    fn what_is_no_whole_packet_is_not_read() {
        let mut v4 = [0; 40];
        (v4[0], v4[3]) = (0x45, 40);
        assert!(Inner::of(&v4[..39]).is_none());
        v4[0] = 0x44;
        assert!(Inner::of(&v4).is_none());
        (v4[0], v4[3]) = (0x46, 20);
        assert!(Inner::of(&v4).is_none());
        let mut v6 = [0; 48];
        (v6[0], v6[5]) = (0x60, 8);
        assert!(Inner::of(&v6).is_some());
        assert!(Inner::of(&v6[..47]).is_none());
        assert!(Inner::of(&[]).is_none());
        assert!(Inner::of(&[0x50; 60]).is_none());
    }
}
