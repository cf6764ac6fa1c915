//! Inner packets: what is read of them, cut and joined. No system calls, no allocation; every
//! byte may have been written by an enemy.
//!
//! | file | what it holds |
//! |---|---|
//! | `inner` | the fields of an IP packet that decide about it |
//! | `vnet` | the header that a TUN device puts before each packet |
//! | `segment` | a super-packet cut into the packets that it stands for |
//! | `coalesce` | packets that are joined to one super-packet |
//! | `icmp` | 'packet too big', said to an inner sender |
//! | `mss` | the segment size that inner TCP offers, made less |
//! | `checksum` | the internet checksum |

pub(crate) mod checksum;
pub(crate) mod coalesce;
pub(crate) mod icmp;
pub(crate) mod inner;
pub(crate) mod mss;
pub(crate) mod segment;
pub(crate) mod vnet;

/// IP protocol numbers.
pub(crate) mod protocol {
    pub(crate) const ICMP: u8 = 1;
    pub(crate) const TCP: u8 = 6;
    pub(crate) const UDP: u8 = 17;
    pub(crate) const ICMPV6: u8 = 58;
}

/// Flags of a TCP header.
pub(crate) mod flag {
    pub(crate) const FIN: u8 = 0x01;
    pub(crate) const SYN: u8 = 0x02;
    pub(crate) const PSH: u8 = 0x08;
    pub(crate) const ACK: u8 = 0x10;
    pub(crate) const ECE: u8 = 0x40;
    pub(crate) const CWR: u8 = 0x80;
}

/// A 16-bit number in network order.
#[inline]
pub(crate) fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// A 32-bit number in network order.
#[inline]
pub(crate) fn long(bytes: &[u8], at: usize) -> u32 {
    u32::from(word(bytes, at)) << 16 | u32::from(word(bytes, at + 2))
}

/// Writes a 16-bit number in network order.
#[inline]
pub(crate) fn put_word(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

/// Writes a 32-bit number in network order.
#[inline]
pub(crate) fn put_long(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_be_bytes());
}
