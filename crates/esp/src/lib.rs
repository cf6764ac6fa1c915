//! ESP (RFC 4303): one security association (SA) used by every core at once, without a lock.
//!
//! | module | what it holds |
//! |---|---|
//! | [`Packet`] (`packet`) | a buffer of the caller's with head and tail room, and what became of it |
//! | [`Verdict`], [`Refusal`], [`Malformed`] (`verdict`) | the results per packet |
//! | [`SaParameters`], [`Suite`], [`Keys`] (`parameters`) | what IKE or a file says of an SA |
//! | [`Suite::NAMED`] (`names`) | suites by the names of configurations |
//! | [`OutboundSa`] (`outbound`, `sequence`) | seals: numbers, frames, protects |
//! | [`InboundSa`] (`inbound`) | opens: parses, checks, opens, accepts once |
//! | `trailer` | padding, pad length, next header; lengths of tunnelled packets |
//! | `protection/` | what a suite does with a batch of framed packets |
//! | [`Event`] (`lifetime`) | soft and hard lifetimes, who hears of them, and whose process the SA is |
//! | `forgeries` | packets that were not authentic: how many an ICV bears, and who hears of them |
//! | `resynchronization` | the upper half of the number found again after a long outage |
//! | [`headers`] | IP and UDP headers around ESP: tunnel and transport mode, DF, DSCP, ECN |
//! | [`database`] | SAs by SPI and destination, looked up while others come and go |
//! | [`order`] | results in the order of their tickets, or flow by flow, from threads that do not wait |
//! | [`replay`] | the anti-replay window, and the upper half of extended sequence numbers |
//! | [`statistics`] | counters an SA, sharded by thread |
//!
//! # The way of a multipacket
//! [`OutboundSa::seal`] checks every packet, takes the sequence numbers of all with one
//! addition, and puts header and trailer around each; the suite's protection writes IV,
//! ciphertext and ICV, all packets as one batch of a session. [`InboundSa::open`] parses
//! every packet and looks its number up in the replay window, which refuses most that is not
//! wanted before any cryptography; the protection checks and decrypts the rest as one batch;
//! then the window accepts each number once, and the trailers are read. Counters are
//! added up at the end of the batch. Nothing waits and nothing is allocated.
//!
//! A packet that is refused leaves the SA's state as it was, unless it is authentic: then its
//! number is used up whatever it holds, and it cannot be replayed. What was decrypted and then
//! refused is wiped. A packet that is not authentic is counted, because an ICV bears a limited
//! number of guesses.
//!
//! An SA belongs to the process that made it. A forked child has a copy of the counter and of
//! the window; it would send IVs again and accept packets again, so it is
//! [refused](Refusal::Forked) everything.

#![deny(unsafe_code)]

pub mod database;
mod error;
mod forgeries;
pub mod headers;
mod inbound;
mod lifetime;
mod names;
pub mod order;
mod outbound;
mod packet;
mod parameters;
mod protection;
pub mod replay;
mod resynchronization;
mod sequence;
pub mod statistics;
mod sync;
mod trailer;
mod verdict;

pub use error::Error;
pub use inbound::InboundSa;
pub use lifetime::{Event, Measure, Observer};
pub use outbound::OutboundSa;
pub use packet::Packet;
pub use parameters::{
    Encapsulation, GostSbox, Integrity, IvOrigin, Keys, Lifetime, Lifetimes, Mode, SaParameters,
    Suite,
};
pub use verdict::{Malformed, Refusal, Verdict};
