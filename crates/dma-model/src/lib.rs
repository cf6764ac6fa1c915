//! A model of accelerators behind descriptor rings: their times, their rules, their faults, and
//! the results that they compute.
//!
//! | module | idea |
//! |---|---|
//! | [`transport`] | what a driver and a device share: rings, doorbell, interrupt, reachable memory |
//! | `settings`, `presets/` | rates, latencies, rules and costs, as data |
//! | `behaviour` | noise, overload, changes of speed, faults to order |
//! | `controls` | what can be changed while the device works |
//! | `timing` | when a request is done: arithmetic on times |
//! | `interrupt` | when completions become an interrupt |
//! | `device` | the device: fetches, checks, computes, writes back |
//!
//! The driver `dma` of `cipherlane-drivers` drives the model in this process. `cipherlane-device`
//! serves the same model to virtual machines, as a device on their PCI bus.

#![deny(unsafe_code)]

mod behaviour;
mod controls;
mod device;
mod interrupt;
mod settings;
#[cfg(test)]
mod shape;
mod timing;
#[allow(unsafe_code)]
pub mod transport;

pub use self::behaviour::{Behaviour, Change, Collapse, Fault, FaultKind};
pub use self::controls::{Controls, Done};
pub use self::device::Model;
pub use self::interrupt::Coalescer;
pub use self::settings::{Host, Interrupt, Link, Processor, Rules, Settings, Way};
pub use self::timing::{Timing, Work};
