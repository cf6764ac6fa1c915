//! Measures things against each other on a machine that is never quiet, and
//! says what came out.
//!
//! Knows nothing of ciphers: it is given subjects and gives back figures.
//!
//! - [`clock`], [`counters`]: time, processor time, context switches, page faults, steal
//! - [`subject`]: what is measured; [`interleave`]: how, side by side in short blocks
//! - [`teams`]: the same for teams of different sizes, with preparation that is not timed
//! - [`run`], [`latency`]: what a measurement gives back
//! - [`stats`]: medians, confidence intervals, verdicts
//! - [`crossover`]: from which size on a candidate wins, in figures and in words
//! - [`machine`], [`record`]: where it was measured, and the JSON and CSV it is written to;
//!   [`recorder`] makes that record of measurements
//! - [`others`]: who else was busy meanwhile
//! - [`report`]: the record as a page to look at
//! - [`random`]: numbers that are the same every time
//! - [`units`]: sizes, rates and times as people read them
//!
//! ```
//! use std::time::Duration;
//! use cipherlane_measure::interleave::{Plan, measure};
//! use cipherlane_measure::machine::Machine;
//! use cipherlane_measure::record::Case;
//! use cipherlane_measure::recorder::Recorder;
//! use cipherlane_measure::subject::Candidate;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let case = Case {
//!     algorithm: "sum".into(),
//!     keybits: 0,
//!     direction: "digest".into(),
//!     batch: 1,
//!     threads: 1,
//!     depth: None,
//!     pause_us: None,
//! };
//! let plan = Plan { time: Duration::from_millis(20), ..Plan::default() };
//! let mut recorder = Recorder::new("by byte");
//! for size in [64usize, 1024] {
//!     let candidates = ["by byte", "by word"].map(|name| {
//!         let width = if name == "by byte" { 1 } else { 8 };
//!         Candidate::new(name, move |_thread| {
//!             let data = vec![1u8; size];
//!             Ok(move |operations: u64| {
//!                 for _ in 0..operations {
//!                     let sum: u64 = data.chunks(width).map(|word| u64::from(word[0])).sum();
//!                     std::hint::black_box(sum);
//!                 }
//!                 Ok(())
//!             })
//!         })
//!     });
//!     let measurement = measure(&plan, &candidates, |_progress| ())?;
//!     recorder.add(&case, size as u64, &measurement);
//! }
//! let record = recorder.finish(Machine::detect());
//! println!("{}", record.crossovers[0].sentence);
//! record.write_csv(std::io::stdout())?;
//! let page = cipherlane_measure::report::html(&record, "Sums");
//! # assert_eq!(record.cells.len(), 4);
//! # assert!(page.contains(&record.crossovers[0].sentence));
//! # Ok(())
//! # }
//! ```

#![deny(unsafe_code)]

#[allow(unsafe_code)]
pub mod clock;
#[allow(unsafe_code)]
pub mod counters;
pub mod crossover;
pub mod interleave;
pub mod latency;
pub mod machine;
pub mod others;
pub mod random;
pub mod record;
pub mod recorder;
pub mod report;
pub mod run;
pub mod stats;
pub mod subject;
pub mod teams;
pub mod units;
pub mod watcher;

mod caller;
mod disturbance;
mod error;
mod rendezvous;
mod sentence;

pub use error::Error;
