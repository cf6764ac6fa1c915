//! Why a device could not start, or not be asked.

use std::io;
use std::path::PathBuf;

/// The error type of this crate. Each message names the thing and the remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A socket could not be made.
    #[error(
        "cannot listen at '{}': {source}; name a place that this user can write, and where no \
         other process listens", path.display()
    )]
    Listen {
        /// The socket.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },

    /// A device that runs could not be asked for its status.
    #[error(
        "cannot ask the device at '{}': {source}; is it running, and are you the user who runs it?",
        path.display()
    )]
    Ask {
        /// Its status socket.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },

    /// A limit that cannot be one.
    #[error("{what} cannot be {given}; {remedy}")]
    Limit {
        /// Which limit.
        what: &'static str,
        /// As given.
        given: String,
        /// What it can be.
        remedy: &'static str,
    },

    /// A device could not be made.
    #[error("cannot serve '{}': {problem}", path.display())]
    Device {
        /// The device.
        path: PathBuf,
        /// Why, and what to do.
        problem: String,
    },

    /// The system refused something.
    #[error("cannot {doing}: {source}")]
    System {
        /// What was tried.
        doing: &'static str,
        /// Why.
        source: io::Error,
    },

    /// A thread has ended by itself.
    #[error(
        "a thread of the device has ended, which is a mistake of the program; please report it"
    )]
    Broken,
}
