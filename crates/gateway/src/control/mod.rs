//! The control socket: by which an IKE daemon makes, queries and deletes SAs and policies, sends
//! and receives its datagrams through the gateway's ports, and hears of what it must act on.
//!
//! | file | what it holds |
//! |---|---|
//! | `wire` | fields of a message: read with bounds, written |
//! | `message` | the messages of version 1 of the protocol: headers, and what the gateway sends |
//! | `request` | what a client asks for: the fields of each request |
//! | `blocks` | a range of addresses as prefixes |
//! | `transforms` | transforms by the numbers that IKE has for them |
//! | `database` | the SAs and policies that were asked for, and the tunnels that they make |
//! | `inbox` | what threads that carry packets tell the control thread |
//! | `routes` | what is routed into the device for policies, and what must not leave otherwise |
//! | `server` | the thread that listens and answers |
//! | `ports` | the UDP sockets of IKE |
//!
//! `docs/gateway-control.md` is the protocol for those who write another client.
//!
//! Whoever may connect may read all traffic that the gateway carries, as it sets keys: the socket
//! is for root and for the gateway's own user alone. A message that is not understood is refused by
//! a reply that says why; it never stops the gateway.

mod blocks;
mod database;
pub(crate) mod inbox;
mod message;
pub(crate) mod ports;
mod request;
mod routes;
pub(crate) mod server;
mod transforms;
mod wire;

pub(crate) use database::{Child, Trap};
pub use request::judge;
pub use server::keep_keys_in;
