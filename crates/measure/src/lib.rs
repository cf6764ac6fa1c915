//! Measures things against each other on a machine that is never quiet, and
//! says what came out.
//!
//! Knows nothing of ciphers: it is given subjects and gives back figures.
//!
//! - [`clock`], [`counters`]: time, processor time, context switches, page faults, steal
//! - [`subject`]: what is measured; [`interleave`]: how, side by side in short blocks
//! - [`run`], [`latency`]: what a measurement gives back
//! - [`stats`]: medians, confidence intervals, verdicts
//! - [`crossover`]: from which size on a candidate wins, in figures and in words
//! - [`units`]: sizes, rates and times as people read them

pub mod clock;
pub mod counters;
pub mod crossover;
pub mod interleave;
pub mod latency;
pub mod run;
pub mod stats;
pub mod subject;
pub mod units;

mod caller;
mod error;
mod random;
mod rendezvous;
mod sentence;

pub use error::Error;
