//! The header that a TUN device puts before each packet (virtio 1.2 section 5.1.6).

/// Its bytes.
pub(crate) const LEN: usize = 10;

/// The checksum's field holds the sum of the pseudo-header; the rest must be added.
const NEEDS_CHECKSUM: u8 = 1;
/// The checksum was looked at, and is right.
const DATA_VALID: u8 = 2;

/// What a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gso {
    /// One packet.
    None,
    /// TCP over IPv4, in segments.
    Tcp4,
    /// TCP over IPv6, in segments.
    Tcp6,
    /// UDP datagrams of one flow and one length.
    Udp,
}

/// The header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Vnet {
    pub(crate) gso: Gso,
    /// Bytes of all headers of a super-packet.
    pub(crate) headers: u16,
    /// Bytes of payload of each segment.
    pub(crate) size: u16,
    /// Where the checksum begins, and its field behind that place, if it must be finished.
    pub(crate) checksum: Option<(u16, u16)>,
    /// Whether the checksum is known to be right.
    pub(crate) is_valid: bool,
}

impl Vnet {
    /// One packet, whose checksum nobody has looked at.
    pub(crate) const PLAIN: Vnet = Vnet {
        gso: Gso::None,
        headers: 0,
        size: 0,
        checksum: None,
        is_valid: false,
    };

    /// Reads one; `None` for a kind of super-packet that was not asked for.
    #[inline]
    pub(crate) fn read(bytes: &[u8; LEN]) -> Option<Vnet> {
        let number = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        // The upper bit says that segments carry ECN marks, which changes nothing here.
        let gso = match bytes[1] & 0x7f {
            0 => Gso::None,
            1 => Gso::Tcp4,
            4 => Gso::Tcp6,
            5 => Gso::Udp,
            _ => return None,
        };
        let needs = bytes[0] & NEEDS_CHECKSUM != 0;
        Some(Vnet {
            gso,
            headers: number(2),
            size: number(4),
            checksum: needs.then(|| (number(6), number(8))),
            is_valid: bytes[0] & DATA_VALID != 0,
        })
    }

    /// The header's bytes.
    #[inline]
    pub(crate) fn bytes(&self) -> [u8; LEN] {
        let mut bytes = [0; LEN];
        if self.is_valid {
            bytes[0] = DATA_VALID;
        }
        bytes[1] = match self.gso {
            Gso::None => 0,
            Gso::Tcp4 => 1,
            Gso::Tcp6 => 4,
            Gso::Udp => 5,
        };
        bytes[2..4].copy_from_slice(&self.headers.to_ne_bytes());
        bytes[4..6].copy_from_slice(&self.size.to_ne_bytes());
        if let Some((start, field)) = self.checksum {
            bytes[0] = NEEDS_CHECKSUM;
            bytes[6..8].copy_from_slice(&start.to_ne_bytes());
            bytes[8..10].copy_from_slice(&field.to_ne_bytes());
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_comes_back() {
        for gso in [Gso::None, Gso::Tcp4, Gso::Tcp6, Gso::Udp] {
            let header = Vnet {
                gso,
                headers: 52,
                size: 1368,
                checksum: Some((20, 16)),
                is_valid: false,
            };
            assert_eq!(Vnet::read(&header.bytes()), Some(header));
        }
        assert_eq!(Vnet::read(&Vnet::PLAIN.bytes()), Some(Vnet::PLAIN));
        assert_eq!(Vnet::read(&[0, 3, 0, 0, 0, 0, 0, 0, 0, 0]), None);
    }
}
