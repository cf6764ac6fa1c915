//! ESP (RFC 4303): one security association (SA) used by every core at once, without a lock.
//!
//! | module | what it holds |
//! |---|---|
//! | [`Packet`] (`packet`) | a buffer of the caller's with head and tail room, and what became of it |
//! | [`Verdict`], [`Refusal`], [`Malformed`] (`verdict`) | the results a packet |
//! | [`SaParameters`], [`Transform`], [`Keys`] (`parameters`) | what IKE or a file says of an SA |
//! | [`order`] | results in the order of their tickets, from workers that do not wait |
//! | [`replay`] | the anti-replay window, and the upper half of extended sequence numbers |
//!
//! A batch of 1 to 64 packets (a multipacket; more are cut) goes through one call. Packets are
//! worked on in place; each carries its own verdict afterwards.

#![deny(unsafe_code)]

mod error;
pub mod order;
mod packet;
mod parameters;
pub mod replay;
mod sync;
mod verdict;

pub use error::Error;
pub use packet::Packet;
pub use parameters::{
    Encapsulation, Integrity, IvOrigin, Keys, Lifetime, Lifetimes, Mode, SaParameters, Transform,
};
pub use verdict::{Malformed, Refusal, Verdict};
