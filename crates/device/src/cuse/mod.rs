//! `/dev/crypto` for programs that open it, served from the framework by CUSE: requests of
//! programs become requests of sessions of the framework.
//!
//! ```text
//! program --ioctl--> /dev/crypto --kernel: CUSE--> /dev/cuse --read, write--> this process
//! ```
//!
//! | module | what it holds |
//! |---|---|
//! | [`Server`] (`server`) | the file `/dev/cuse` and the threads |
//! | `wire` | the messages of CUSE, read from bytes and written to bytes |
//! | `device` | from a message to its reply |
//! | `ioctl` | which memory of its caller an ioctl needs, and what it does |
//! | `authenticated` | the same of CIOCAUTHCRYPT |
//! | `chained` | a session's work on a message, and the IV with which the next one goes on |
//! | `files` | open files, their sessions and keys |
//! | `counters`, [`status`] | what is counted and shown |
//! | [`hostile`] | all of it without the kernel, for the fuzz target |
//!
//! **Callers are hostile.** All that a message says is checked, and of memory that a caller can
//! change only the last copy counts (`ioctl`). Numbers of sessions belong to an open file, so that
//! nobody can name those of another one.
//!
//! **A caller waits** in the kernel until its reply is written, or until this process is gone:
//! then the kernel gives it an error.
//!
//! The interface is that of cryptodev-linux (`cipherlane_drivers::cryptodev::header`). What it has
//! beyond is refused: parts of a message for a MAC one by one, TLS records, hashes without a key,
//! asynchronous requests.

mod authenticated;
mod chained;
mod counters;
mod device;
mod files;
#[doc(hidden)]
pub mod hostile;
mod ioctl;
mod server;
pub mod status;
mod wire;

pub use crate::vhost_user::KeepKeys;
pub use server::{Options, Server};
