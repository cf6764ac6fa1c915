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
//! - [`machine`], [`record`]: where it was measured, and the JSON and CSV it is written to;
//!   [`recorder`] makes that record of measurements
//! - [`report`]: the record as a page to look at
//! - [`units`]: sizes, rates and times as people read them

pub mod clock;
pub mod counters;
pub mod crossover;
pub mod interleave;
pub mod latency;
pub mod machine;
pub mod record;
pub mod recorder;
pub mod report;
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
