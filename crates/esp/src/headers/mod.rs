//! IP and UDP headers around ESP, for callers that handle whole IP packets. One that sends
//! through a UDP socket needs [`Fields`] alone: what the system is told to write.
//!
//! | file | what it holds |
//! |---|---|
//! | `ip` | IPv4 and IPv6 headers read and changed; the checksum |
//! | [`Fields`] (`fields`) | DSCP, ECN, DF and hop limit of a packet |
//! | [`Ecn`] (`ecn`) | congestion marks through a tunnel (RFC 6040) |
//! | [`Tunnel`] (`tunnel`) | the outer header of tunnel mode (RFC 4301 section 5.1.2) |
//! | [`Detached`] (`transport`) | transport mode: the header before ESP, and back |
//! | [`Arrival`] (`arrival`) | the headers before a received ESP packet taken off |
//! | `udp` | UDP encapsulation (RFC 3948) |
//! | [`NatChecksums`] (`nat`) | checksums of transport mode behind a NAT (RFC 3948 section 3.1.2) |
//!
//! The order of calls, in tunnel mode: [`Fields::of`] the inner packet, `seal`,
//! [`Tunnel::encapsulate`]; [`Arrival::strip`], `open`, [`Arrival::leave_tunnel`]. In transport
//! mode: [`Detached::take_off`], `seal`, [`Detached::put_back`]; [`Arrival::strip`], `open`,
//! [`Arrival::put_back`], which also repairs the checksums of TCP and UDP that a NAT on the way
//! has made wrong.

mod arrival;
mod ecn;
mod fields;
mod ip;
mod nat;
mod transport;
mod tunnel;
mod udp;

pub use arrival::{Arrival, leave_tunnel};
pub use ecn::Ecn;
pub use fields::Fields;
pub use ip::{checksum, decrement_hop_limit};
pub use nat::NatChecksums;
pub use transport::Detached;
pub use tunnel::{DfPolicy, DscpPolicy, EcnPolicy, Tunnel};

/// Why headers cannot be put on or taken off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// No whole IPv4 or IPv6 header.
    #[error("no whole IP packet; drop it")]
    NotIp,
    /// A fragment: ESP is for whole packets (RFC 4303 section 3.3.4).
    #[error("a fragment; reassemble the packet first")]
    Fragment,
    /// Neither ESP nor ESP in UDP.
    #[error("IP protocol {0} is not ESP; hand the packet to the system")]
    NotEsp(u8),
    /// Too little room before the content.
    #[error("too little room before the packet; leave more")]
    NoRoom,
    /// With its new headers the packet would be longer than IP carries.
    #[error("longer than an IP packet; lower the MTU of what comes in")]
    TooLong,
    /// The addresses of a tunnel are of two families.
    #[error("the ends of a tunnel are both IPv4 or both IPv6")]
    MixedFamilies,
    /// The hop limit is used up.
    #[error("the hop limit is used up; drop the packet and tell its sender")]
    HopLimit,
    /// Congestion was marked on a packet whose sender does not understand it.
    #[error("congestion was met on the way; drop the packet, as its sender knows no marks")]
    Congested,
}
