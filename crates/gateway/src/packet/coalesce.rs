//! Packets that are joined to one super-packet, so that the kernel takes them in one write.
//!
//! Only what the kernel would cut again into the very same packets is joined: neighbours of one
//! flow, TCP with the next sequence number and equal headers, or UDP, all of one length but the
//! last. Their checksums are looked at first, because the kernel trusts those of a super-packet.

use super::inner::Inner;
use super::vnet::{Gso, Vnet};
use super::{checksum, flag, long, protocol, put_word, word};

/// The most packets of a super-packet of UDP: UDP_MAX_SEGMENTS of older kernels.
const MOST_UDP: usize = 64;

/// The packets joined until now. The first one lies in a buffer of the caller's; of the others
/// only the payload is wanted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Group {
    inner: Inner,
    /// Bytes of all headers.
    headers: usize,
    /// Bytes of payload of each packet but the last.
    size: usize,
    count: usize,
    /// Bytes of the super-packet.
    len: usize,
    /// The sequence number that comes next; TCP only.
    next: u32,
    /// Flags of the last packet.
    flags: u8,
    is_open: bool,
}

/// What a packet can be in a group.
struct Shape {
    headers: usize,
    payload: usize,
    sequence: u32,
    flags: u8,
}

impl Group {
    /// A group of one packet; `None`: it cannot be joined to others, and goes by itself.
    #[inline]
    pub(crate) fn begin(packet: &[u8], inner: &Inner) -> Option<Group> {
        let shape = Shape::of(packet, inner)?;
        checksum::is_right(packet, inner).then(|| Group {
            inner: *inner,
            headers: shape.headers,
            size: shape.payload,
            count: 1,
            len: inner.len,
            next: shape.sequence.wrapping_add(shape.payload as u32),
            flags: shape.flags,
            is_open: shape.flags & (flag::FIN | flag::PSH) == 0,
        })
    }

    /// Adds `packet` to the group that begins with `first`; the length of the headers, behind
    /// which its payload begins. `None`: it does not fit.
    #[inline]
    pub(crate) fn join(&mut self, first: &[u8], packet: &[u8], inner: &Inner) -> Option<usize> {
        if !self.is_open || inner.protocol != self.inner.protocol {
            return None;
        }
        let shape = Shape::of(packet, inner)?;
        let is_udp = inner.protocol == protocol::UDP;
        let longest = usize::from(u16::MAX);
        let fits = shape.headers == self.headers
            && shape.payload <= self.size
            && self.len + shape.payload <= longest
            && !(is_udp && self.count == MOST_UDP)
            && (is_udp || shape.sequence == self.next)
            && (shape.flags ^ self.flags) & !(flag::FIN | flag::PSH) == 0
            && self.has_equal_headers(first, packet);
        if !fits || !checksum::is_right(packet, inner) {
            return None;
        }
        self.next = self.next.wrapping_add(shape.payload as u32);
        self.flags |= shape.flags;
        self.count += 1;
        self.len += shape.payload;
        self.is_open = shape.payload == self.size && shape.flags & (flag::FIN | flag::PSH) == 0;
        Some(self.headers)
    }

    /// Whether the headers are equal but for what differs from segment to segment.
    #[inline]
    fn has_equal_headers(&self, first: &[u8], packet: &[u8]) -> bool {
        let at = self.inner.header;
        let is_equal = |from: usize, to: usize| first[from..to] == packet[from..to];
        let network = if first[0] >> 4 == 4 {
            let id = word(first, 4).wrapping_add(self.count as u16);
            is_equal(0, 2) && word(packet, 4) == id && is_equal(6, 10) && is_equal(12, at)
        } else {
            is_equal(0, 4) && is_equal(6, at)
        };
        network
            && is_equal(at, at + 4)
            && (self.inner.protocol == protocol::UDP
                || is_equal(at + 8, at + 13)
                    && is_equal(at + 14, at + 16)
                    && is_equal(at + 18, self.headers))
    }

    /// How many packets it has.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Makes the first packet's headers those of the super-packet; what the TUN device is told.
    #[inline]
    pub(crate) fn finish(&self, first: &mut [u8]) -> Vnet {
        if self.count == 1 {
            return Vnet {
                is_valid: true,
                ..Vnet::PLAIN
            };
        }
        let at = self.inner.header;
        let is_v4 = first[0] >> 4 == 4;
        if is_v4 {
            put_word(first, 2, self.len as u16);
            checksum::write_ipv4(&mut first[..at]);
        } else {
            put_word(first, 4, (self.len - 40) as u16);
        }
        let is_udp = self.inner.protocol == protocol::UDP;
        let field = if is_udp {
            put_word(first, at + 4, (self.len - at) as u16);
            6
        } else {
            first[at + 13] = self.flags;
            16
        };
        let pseudo = checksum::pseudo_header(first, self.inner.protocol, self.len - at);
        let pseudo = checksum::fold(pseudo).to_ne_bytes();
        first[at + field..at + field + 2].copy_from_slice(&pseudo);
        Vnet {
            gso: match (is_udp, is_v4) {
                (true, _) => Gso::Udp,
                (false, true) => Gso::Tcp4,
                (false, false) => Gso::Tcp6,
            },
            headers: self.headers as u16,
            size: self.size as u16,
            checksum: Some((at as u16, field as u16)),
            is_valid: false,
        }
    }
}

impl Shape {
    /// `None`: neither plain TCP data nor UDP with a checksum.
    #[inline]
    fn of(packet: &[u8], inner: &Inner) -> Option<Shape> {
        let at = inner.header;
        let is_plain = match packet[0] >> 4 {
            // The kernel would not put options into each segment; and a header whose checksum is
            // wrong must be dropped, not mended.
            4 => at == 20 && checksum::fold(checksum::sum(&packet[..at])) == 0xffff,
            _ => true,
        };
        if inner.is_fragment || !is_plain {
            return None;
        }
        match inner.protocol {
            protocol::TCP if inner.len > at + 20 => {
                let headers = at + usize::from(packet[at + 12] >> 4) * 4;
                let flags = packet[at + 13];
                let is_data = matches!(flags & !(flag::FIN | flag::PSH | flag::ECE), flag::ACK);
                let is_whole = headers >= at + 20 && headers < inner.len;
                (is_data && is_whole).then(|| Shape {
                    headers,
                    payload: inner.len - headers,
                    sequence: long(packet, at + 4),
                    flags,
                })
            }
            protocol::UDP if inner.len > at + 8 => {
                let has_checksum = word(packet, at + 6) != 0;
                let is_whole = usize::from(word(packet, at + 4)) == inner.len - at;
                (has_checksum && is_whole).then(|| Shape {
                    headers: at + 8,
                    payload: inner.len - at - 8,
                    sequence: 0,
                    flags: 0,
                })
            }
            _ => None,
        }
    }
}
