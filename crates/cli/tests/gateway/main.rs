//! The gateway as its users see it: the built program at both ends of a tunnel, in network
//! namespaces. Without root it says loudly that nothing was tested.

mod carrying;
mod charon;
mod enemies;
mod ikev2;
mod restarts;
mod rig;
mod scapy;

#[path = "../support/schema.rs"]
mod schema;
