//! The outer header of tunnel mode (RFC 4301 section 5.1.2).

use std::net::IpAddr;

use super::ip::{protocol, write_checksum4};
use super::{Ecn, Fields, Problem, udp};
use crate::{Encapsulation, Packet};

/// The ends of a tunnel, and what its outer headers say.
#[derive(Clone, Copy, Debug)]
pub struct Tunnel {
    /// The near end.
    pub source: IpAddr,
    /// The far end.
    pub destination: IpAddr,
    /// What carries ESP.
    pub encapsulation: Encapsulation,
    /// TTL or hop limit of outer headers.
    pub hop_limit: u8,
    /// DF of outer headers; IPv4 only.
    pub df: DfPolicy,
    /// DSCP of outer headers.
    pub dscp: DscpPolicy,
    /// ECN of outer headers.
    pub ecn: EcnPolicy,
}

/// DF of an outer IPv4 header (RFC 4301 section 8.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DfPolicy {
    /// The inner packet's.
    Copy,
    /// Always set.
    Set,
    /// Never set.
    Clear,
}

/// DSCP of an outer header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DscpPolicy {
    /// The inner packet's.
    Copy,
    /// This one, so that the inner one does not leak.
    Fixed(u8),
}

/// ECN of an outer header (RFC 6040 section 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EcnPolicy {
    /// Normal mode: the inner packet's.
    Copy,
    /// Compatibility mode, where the far end may not understand ECN: none.
    Compatibility,
}

impl Tunnel {
    /// Copies DF, DSCP and ECN; a hop limit of 64.
    pub fn new(source: IpAddr, destination: IpAddr) -> Self {
        Tunnel {
            source,
            destination,
            encapsulation: Encapsulation::None,
            hop_limit: 64,
            df: DfPolicy::Copy,
            dscp: DscpPolicy::Copy,
            ecn: EcnPolicy::Copy,
        }
    }

    /// Bytes of room that it needs before a sealed packet.
    pub fn head_room(&self) -> usize {
        let ip = if self.source.is_ipv4() { 20 } else { 40 };
        ip + self.udp().map_or(0, |_| udp::LEN)
    }

    fn udp(&self) -> Option<(u16, u16)> {
        match self.encapsulation {
            Encapsulation::None => None,
            Encapsulation::Udp {
                source,
                destination,
            } => Some((source, destination)),
        }
    }

    /// The TOS or traffic class byte of the outer header for such an inner packet.
    pub fn traffic_class(&self, inner: Fields) -> u8 {
        let dscp = match self.dscp {
            DscpPolicy::Copy => inner.dscp,
            DscpPolicy::Fixed(dscp) => dscp & 0x3f,
        };
        let ecn = match self.ecn {
            EcnPolicy::Copy => inner.ecn,
            EcnPolicy::Compatibility => Ecn::NotEct,
        };
        dscp << 2 | ecn as u8
    }

    /// Whether the outer header asks not to be fragmented.
    pub fn dont_fragment(&self, inner: Fields) -> bool {
        match self.df {
            DfPolicy::Copy => inner.df,
            DfPolicy::Set => true,
            DfPolicy::Clear => false,
        }
    }

    /// Puts the outer headers before a sealed packet; `inner` was read before sealing.
    pub fn encapsulate(&self, packet: &mut Packet<'_>, inner: Fields) -> Result<(), Problem> {
        let ends = (self.source, self.destination);
        if self.source.is_ipv4() != self.destination.is_ipv4() {
            return Err(Problem::MixedFamilies);
        }
        let sealed = packet.range();
        let start = sealed.start.checked_sub(self.head_room());
        let start = start.ok_or(Problem::NoRoom)?;
        if sealed.end - start > usize::from(u16::MAX) {
            return Err(Problem::TooLong);
        }
        // Unique within what may be on the way at one time, for headers without DF.
        let identification = (packet.sequence() as u16).to_be_bytes();
        packet.set_range(start..sealed.end);
        let bytes = packet.content_mut();
        let (ip, payload) = bytes.split_at_mut(if self.source.is_ipv4() { 20 } else { 40 });
        let next = match self.udp() {
            None => protocol::ESP,
            Some(ports) => {
                udp::write(payload, ports, Some(ends));
                protocol::UDP
            }
        };
        let class = self.traffic_class(inner);
        match ends {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let total = ((ip.len() + payload.len()) as u16).to_be_bytes();
                let flags = if self.dont_fragment(inner) { 0x40 } else { 0 };
                let [i0, i1] = identification;
                ip[..12].copy_from_slice(&[
                    0x45,
                    class,
                    total[0],
                    total[1],
                    i0,
                    i1,
                    flags,
                    0,
                    self.hop_limit,
                    next,
                    0,
                    0,
                ]);
                ip[12..16].copy_from_slice(&source.octets());
                ip[16..].copy_from_slice(&destination.octets());
                write_checksum4(ip);
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                let len = (payload.len() as u16).to_be_bytes();
                ip[..8].copy_from_slice(&[
                    0x60 | class >> 4,
                    class << 4,
                    0,
                    0,
                    len[0],
                    len[1],
                    next,
                    self.hop_limit,
                ]);
                ip[8..24].copy_from_slice(&source.octets());
                ip[24..].copy_from_slice(&destination.octets());
            }
            _ => return Err(Problem::MixedFamilies),
        }
        Ok(())
    }
}
