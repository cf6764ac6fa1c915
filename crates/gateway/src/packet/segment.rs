//! A super-packet cut into the packets that it stands for, as a network card would cut it: each
//! segment has a copy of the headers with its own lengths, numbers, flags and checksums.

use super::vnet::{Gso, Vnet};
use super::{checksum, flag, long, protocol, put_long, put_word, word};

/// The longest headers of a super-packet: IPv4 and TCP with all options, or IPv6 with some
/// extension headers and TCP.
pub(crate) const MAX_HEADERS: usize = 192;

/// How a super-packet is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    /// Bytes of all headers.
    pub(crate) headers: usize,
    /// Bytes of payload of each segment but the last.
    pub(crate) size: usize,
    /// Segments.
    pub(crate) count: usize,
    /// Bytes of payload of the last segment.
    pub(crate) last: usize,
    /// Where the transport header begins.
    transport: usize,
    is_udp: bool,
    is_v4: bool,
}

impl Cut {
    /// How to cut a super-packet of `len` bytes that begins with `head`, which holds all of its
    /// headers. `None`: its headers are not what they say.
    #[inline]
    pub(crate) fn of(vnet: &Vnet, head: &[u8], len: usize) -> Option<Cut> {
        let (transport, _) = vnet.checksum?;
        let transport = usize::from(transport);
        let is_udp = vnet.gso == Gso::Udp;
        let is_v4 = match head.first()? >> 4 {
            4 if vnet.gso != Gso::Tcp6 => true,
            6 if vnet.gso != Gso::Tcp4 => false,
            _ => return None,
        };
        let ip = match is_v4 {
            true => usize::from(head[0] & 15) * 4,
            false => 40,
        };
        let is_ordered = match is_v4 {
            true => ip >= 20 && transport == ip,
            false => transport >= ip,
        };
        let headers = match is_udp {
            true => transport + 8,
            false => transport + usize::from(head.get(transport + 12)? >> 4) * 4,
        };
        let least = transport + if is_udp { 8 } else { 20 };
        let size = usize::from(vnet.size);
        if !is_ordered || headers < least || headers > MAX_HEADERS || headers > head.len() {
            return None;
        }
        let payload = len.checked_sub(headers)?;
        if size == 0 || payload == 0 {
            return None;
        }
        let count = payload.div_ceil(size);
        Some(Cut {
            headers,
            size,
            count,
            last: payload - (count - 1) * size,
            transport,
            is_udp,
            is_v4,
        })
    }

    /// Bytes of segment `index`, headers and payload.
    #[inline]
    pub(crate) fn len(&self, index: usize) -> usize {
        self.headers
            + match index + 1 == self.count {
                true => self.last,
                false => self.size,
            }
    }

    /// Writes the headers of segment `index`, whose payload is in its place, by those of the
    /// super-packet.
    #[inline]
    pub(crate) fn write(&self, template: &[u8], index: usize, segment: &mut [u8]) {
        segment[..self.headers].copy_from_slice(&template[..self.headers]);
        let len = segment.len();
        let transport = self.transport;
        if self.is_v4 {
            let id = word(template, 4).wrapping_add(index as u16);
            put_word(segment, 2, len as u16);
            put_word(segment, 4, id);
            checksum::write_ipv4(&mut segment[..transport]);
        } else {
            put_word(segment, 4, (len - 40) as u16);
        }
        let (field, protocol) = if self.is_udp {
            put_word(segment, transport + 4, (len - transport) as u16);
            (transport + 6, protocol::UDP)
        } else {
            let offset = (index * self.size) as u32;
            let sequence = long(template, transport + 4).wrapping_add(offset);
            put_long(segment, transport + 4, sequence);
            let flags = &mut segment[transport + 13];
            if index + 1 < self.count {
                *flags &= !(flag::FIN | flag::PSH);
            }
            if index > 0 {
                *flags &= !flag::CWR;
            }
            (transport + 16, protocol::TCP)
        };
        let pseudo = checksum::pseudo_header(segment, protocol, len - transport);
        let pseudo = checksum::fold(pseudo).to_ne_bytes();
        segment[field..field + 2].copy_from_slice(&pseudo);
        checksum::finish(segment, transport, field, self.is_udp);
    }
}
