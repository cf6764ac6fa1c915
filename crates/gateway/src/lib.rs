//! A VPN gateway in user space: ESP (`cipherlane-esp`) between a TUN device and UDP.
//!
//! A packet's way through the kernel costs more than its cipher, so everything is done in batches
//! from end to end: one read of the TUN device brings a super-packet of up to 64 KB, which is cut
//! into segments, sealed as one multipacket and sent by one call (UDP_SEGMENT); one read of the
//! socket (UDP_GRO) is opened as one multipacket, joined, and written as one super-packet.
//!
//! | module | what it holds |
//! |---|---|
//! | [`Gateway`] (`gateway`) | threads started, stopped, and given a changed configuration |
//! | [`Config`] (`config`, `key`, [`selector`]) | `gateway.toml` |
//! | `path/` | the way of a packet, one thread |
//! | `packet/` | inner packets: read, cut, joined; no system calls |
//! | `control/` | SAs and policies of an IKE daemon, over a socket |
//! | `tunnel`, `table`, `shared` | the tunnels that are up, and what threads share |
//! | `service` | protocols and ports of selectors, and of packets |
//! | [`state`] | which sequence numbers were sent, kept over a restart |
//! | [`spi`] | SPIs with room for a shard |
//! | `confine` | what threads that carry packets may still ask of the system |
//! | `encapsulation` | ESP in UDP, or plain |
//! | `keeper` | the slow work: numbers reserved, keepalives, the path's MTU, the log |
//! | `link` | addresses, MTU and routes, by netlink |
//! | [`status`], `counters` | what is counted and shown |
//! | `metrics/` | the status as Prometheus reads it |
//! | [`pair`] | two configurations that match, for a first tunnel |
//! | `parsers` | packets of strangers, for the fuzz targets |
//! | `sys/` | system calls. Unsafe code is allowed only here |
//!
//! What does not belong to a tunnel is dropped, in both directions: no packet is ever sent that
//! an SA has not sealed.

#![deny(unsafe_code)]

mod config;
mod confine;
#[doc(hidden)]
pub mod control;
mod counters;
mod encapsulation;
mod error;
mod gateway;
mod keeper;
mod key;
mod link;
mod metrics;
mod packet;
pub mod pair;
#[doc(hidden)]
pub mod parsers;
mod path;
pub mod selector;
mod service;
mod shared;
pub mod spi;
pub mod state;
pub mod status;
#[allow(unsafe_code)]
mod sys;
mod table;
mod tunnel;

pub use config::{Config, InterfaceAddress, InterfaceConfig, SaConfig, TunnelConfig};
pub use control::keep_keys_in;
pub use error::Error;
pub use gateway::{Changes, Gateway};
pub use key::Key;
pub use selector::Prefix;
pub use sys::steering::Steering;

/// Where a gateway is asked for its status, unless its configuration names another place.
pub const SOCKET: &str = "/run/cipherlane/gateway.sock";

/// Where its configuration is, unless another file is named.
pub const CONFIG: &str = "/etc/cipherlane/gateway.toml";
