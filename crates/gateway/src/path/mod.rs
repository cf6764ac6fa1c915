//! The way of a packet, one thread: TUN to UDP and back.
//!
//! | file | what it holds |
//! |---|---|
//! | `outbound` | reads packets from the TUN device to where they will be sealed |
//! | `train` | packets sealed as one multipacket and sent by one call |
//! | `inbound` | a read of many datagrams, opened as one multipacket, written as one packet |
//! | `opened`, `turn` | what waits in a thread's buffers, and the order in which several threads write |
//! | `plain` | both ways of plain ESP, which has no UDP |
//! | `io` | the descriptors of a thread, and which offloads they have left |
//! | `wait`, `sleepers` | how a thread waits, for packets and for its turn |
//! | `worker` | the loop, and what it does when a device or an address goes away |
//!
//! No packet is copied but by the kernel, apart from those that did not come in the shape that
//! was expected (`tun_moved` counts them). Nothing is allocated.

mod inbound;
pub(crate) mod io;
mod opened;
mod outbound;
mod plain;
mod reader;
pub(crate) mod sleepers;
mod train;
mod turn;
pub(crate) mod wait;
pub(crate) mod worker;
