//! The device: what it is (settings and presets), when it is done (timing), how it fails.
//!
//! | file | idea |
//! |---|---|
//! | `settings`, `presets/` | rates, latencies, rules and costs, as data |
//! | `behaviour` | noise, overload, changes of speed, faults to order |
//! | `controls` | what can be changed while it works |
//! | `timing` | when a request is done: arithmetic on times |
//! | `interrupt` | when completions become an interrupt |
//! | `device` | the device: fetches, checks, computes, writes back |

mod behaviour;
mod controls;
mod device;
mod interrupt;
mod settings;
#[cfg(test)]
mod shape;
mod timing;

pub use self::behaviour::{Behaviour, Change, Collapse, Fault, FaultKind};
pub use self::controls::{Controls, Done};
pub use self::device::Model;
pub use self::interrupt::Coalescer;
pub use self::settings::{Host, Interrupt, Link, Processor, Rules, Settings, Way};
pub use self::timing::{Timing, Work};
