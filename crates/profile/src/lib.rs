//! Where the time of each byte goes: records programs, and says what makes one slower than
//! another one.
//!
//! - [`record`]: samples of a command, a process or the machine, by the kernel's performance
//!   events: processor time with stacks, waits with the stacks they began in, system calls
//! - [`recording`]: what a recording has, and its file
//! - [`go`]: names of functions of programs in Go
//! - `symbols`, `unwinding`, `elf`: names of functions
//! - [`rules`]: which phase a stack belongs to (`rules.toml`), and advice
//! - `locks`: what those wait for that wait for a lock
//! - [`phases`]: time by phase, in blocks
//! - [`wakers`]: who ends waits
//! - [`calls`]: system calls and the time in them
//! - [`diff`]: two recordings compared, with intervals
//! - [`script`]: text as `perf script` prints it
//! - [`pprof`]: a profile as pprof reads it
//! - [`page`]: flame graphs, bars and the timeline as one HTML page
//!
//! Unsafe code is in three calls of `record/share.rs`, and in `unwinding/chosen.rs`, which asks the
//! dynamic linker for addresses.

#![deny(unsafe_code)]

pub mod calls;
pub mod diff;
pub mod go;
pub mod page;
pub mod phases;
pub mod pprof;
pub mod record;
pub mod recording;
pub mod rules;
pub mod script;
pub mod wakers;

mod elf;
mod error;
mod locks;
mod symbols;
mod unwinding;

pub use error::Error;
