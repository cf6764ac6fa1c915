//! Cipherlane: a crypto-acceleration framework that measures every way a machine has to
//! encrypt, and gives each request to the one that finishes it best.
//!
//! | module | what it holds |
//! |---|---|
//! | [`Algorithm`] (`algorithm/`) | names, key lengths, rules, known answers; one file a family |
//! | [`Request`] (`request`) | regions of the caller's memory |
//! | [`Session`] (`session`) | a key in use: checks, picks a driver, runs, rescues |
//! | [`NonceCounter`] (`nonce`) | nonces that never come twice |
//! | [`Batch`], [`Ticket`] (`batch`, `session/flight`) | requests that own their memory, for callers that do not wait |
//! | [`Driver`], [`Transform`], [`Split`] (`driver`) | what a driver author implements |
//! | [`Unavailable`], [`NotAdmitted`] (`unavailable`) | why a driver cannot be used |
//! | [`Framework`] (`framework`, `config`, `health`, `selftest`, `verify`) | the registry: admission, settings, health, verification |
//! | `dispatch/`, `calibrate`, `profile` | learned costs and the choice they lead to |
//! | [`conformance`] | what every driver's author runs on it, and how to write one |
//! | [`environment`] | variables of the process, which a privileged program does not obey |
//! | [`read_text`] (`text_file`) | files that the user names |
//! | [`Clock`] (`clock`) | real time, or a simulation's |
//! | [`Process`] (`process`) | tells a forked child from its parent |
//! | [`thread_number`] (`thread`) | a small number for each living thread |
//! | [`Why`], [`ServedBecause`], [`NotUsedBecause`] (`why`), [`Totals`] (`stats`) | what the user is told |
//!
//! A request's way: [`Session::process`] checks it against the algorithm's rules, looks the
//! driver up in a table (direction, batch length, size), and calls the driver's
//! [`Transform::run`]. A small request on the caller's own core goes through no queue,
//! lock, allocation, shared counter or system call.
//!
//! # Why the unsafe code is sound
//! Callers and drivers may be wrong, in safe code, in every way that compiles: no memory is
//! read or written that is not theirs. Unsafe code stands in the few modules below that are
//! allowed it, and rests on these:
//!
//! - A [`Request`] borrows its regions from the moment it is made, output and tag exclusively. It
//!   is neither `Clone` nor `Copy`, so that no two lead to one output. What it gives out is
//!   borrowed from it, and what bounds its accesses are its own lengths: that a session checked it
//!   is relied on for results, not for memory.
//! - The requests of a [`Flight`] have no lifetime of the caller's. They are seen only within
//!   [`Flight::with_requests`], for a lifetime that the driver cannot name: none of them can be
//!   kept, nor be put into another flight. Their memory belongs to the flight, which gives it
//!   back when it lands; one that is forgotten keeps the memory for ever, and its session
//!   waits.
//! - A driver may exchange the requests of one batch with each other, or put requests of its
//!   own in their place. That harms no memory: what it put there lives long enough. It
//!   makes results wrong, as any wrong driver can, and [`conformance`] finds it.
//! - Threads share the work on one request by [`Request::part`], which is unsafe. [`Split`], which
//!   is safe, is not shown a request of which others have parts.
//!
//! `tests/misuse/` holds programs that must not compile, and `tests/hostile_driver.rs` drivers
//! and callers that lie; Miri runs the latter.

#![deny(unsafe_code)]

mod algorithm;
#[allow(unsafe_code)]
mod batch;
mod calibrate;
#[allow(unsafe_code)]
mod clock;
mod config;
pub mod conformance;
mod dispatch;
mod driver;
mod error;
mod framework;
mod health;
mod nonce;
#[allow(unsafe_code)]
mod process;
mod profile;
#[allow(unsafe_code)]
mod request;
#[allow(unsafe_code)]
mod scatter;
mod selftest;
mod session;
#[allow(unsafe_code)]
mod stats;
mod text_file;
mod thread;
mod unavailable;
mod verify;
mod why;

pub use cipherlane_kernels::job::Direction;
pub use cipherlane_kernels::{environment, wipe_stack};

pub use algorithm::{AadLengths, Algorithm, KeyLengths, Kind, KnownAnswer, Sample};
pub use batch::{Batch, OwnedRequest, Payload, RawPayload};
pub use calibrate::CalibrationStep;
pub use clock::{Clock, VirtualTime};
pub use config::Config;
pub use dispatch::{Goal, Mode, Switch};
pub use driver::{Driver, Load, PieceState, Split, Transform};
pub use error::Error;
pub use framework::{Framework, FrameworkBuilder, Row, SelfTest};
pub use health::Health;
pub use nonce::NonceCounter;
pub use process::Process;
pub use request::{Request, Status};
pub use session::{Flight, Session, SessionBuilder, Ticket};
pub use stats::Totals;
pub use text_file::{read_bounded, read_text};
pub use thread::thread_number;
pub use unavailable::{NotAdmitted, Unavailable};
pub use verify::{Answer, Mismatch};
pub use why::{Candidate, KeptOut, NotUsedBecause, Question, ServedBecause, Why};
