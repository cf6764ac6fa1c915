//! Cipherlane: a crypto-acceleration framework that measures every way a machine has to
//! encrypt, and gives each request to the one that finishes it best.
//!
//! | module | what it holds |
//! |---|---|
//! | [`Algorithm`] (`algorithm/`) | names, key lengths, rules, known answers; one file a family |
//! | [`Request`] (`request`) | regions of the caller's memory |
//! | [`Session`] (`session`) | a key in use: checks, picks a driver, runs, rescues |
//! | [`Batch`], [`Ticket`] (`batch`, `flight`) | requests that own their memory, for callers that do not wait |
//! | [`Driver`], [`Transform`], [`Split`] (`driver`) | what a driver author implements |
//! | [`Framework`] (`framework`, `config`, `health`, `selftest`, `verify`) | the registry: admission, settings, health, verification |
//! | `dispatch/`, `calibrate`, `profile` | learned costs and the choice they lead to |
//! | [`conformance`] | what every driver's author runs on it, and how to write one |
//! | [`Clock`] (`clock`) | real time, or a simulation's |
//! | [`Why`] (`why`), [`Totals`] (`stats`) | what the user is told |
//!
//! A request's way: [`Session::process`] checks it against the algorithm's rules, looks the
//! driver up in a table (direction, batch length, size), and calls the driver's
//! [`Transform::run`]. A small request on the caller's own core goes through no queue,
//! lock, allocation, shared counter or system call.

mod algorithm;
mod batch;
mod calibrate;
mod clock;
mod config;
pub mod conformance;
mod dispatch;
mod driver;
mod error;
mod flight;
mod framework;
mod health;
mod profile;
mod request;
mod scatter;
mod selftest;
mod session;
mod stats;
mod verify;
mod why;

pub use cipherlane_kernels::job::Direction;

pub use algorithm::{Aad, Algorithm, Keys, Kind, KnownAnswer, Sample};
pub use batch::{Batch, OwnedRequest, Payload};
pub use calibrate::CalibrationStep;
pub use clock::{Clock, VirtualTime};
pub use config::Config;
pub use dispatch::{Goal, Mode, Switch};
pub use driver::{Driver, Load, PieceState, Split, Transform};
pub use error::Error;
pub use flight::{Flight, Ticket};
pub use framework::{Framework, FrameworkBuilder, Row, SelfTest};
pub use health::Health;
pub use request::{Request, Status, View};
pub use session::{Session, SessionBuilder};
pub use stats::Totals;
pub use verify::{Answer, Mismatch};
pub use why::{Candidate, Question, Why};
