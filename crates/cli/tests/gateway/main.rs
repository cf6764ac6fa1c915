//! The gateway as its users see it: the built program at both ends of a tunnel, in network
//! namespaces. Without root it says loudly that nothing was tested.

mod carrying;
mod charon;
mod enemies;
mod faults;
mod guest;
mod ikev2;
mod journal;
mod many;
mod plain;
mod prometheus;
mod restarts;
mod rig;
mod scapy;
mod soak;
mod xfrm;

#[path = "../support/schema.rs"]
mod schema;
