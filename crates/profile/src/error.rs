//! What can go wrong, and what to do about it.

use std::io;
use std::path::PathBuf;

/// Why something could not be recorded, read or compared.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel lets this user record nothing at all.
    #[error(
        "the kernel refuses performance events ({source}; kernel.perf_event_paranoid is {level}); \
         run as root, or 'sysctl kernel.perf_event_paranoid=2' for your own processes; in a \
         container, allow the system call perf_event_open"
    )]
    Refused {
        /// What the system call said.
        source: io::Error,
        /// The value of the sysctl, `unknown` where it cannot be read.
        level: String,
    },
    /// The kernel has no performance events, or lacks what was asked for.
    #[error("this kernel cannot record {what}: {source}; it needs CONFIG_PERF_EVENTS")]
    Unsupported {
        /// The event.
        what: &'static str,
        /// What the system call said.
        source: io::Error,
    },
    /// There are not enough descriptors or not enough memory for the rings.
    #[error("cannot open the rings for {what}: {source}; {remedy}")]
    Rings {
        /// The event.
        what: &'static str,
        /// What the system said.
        source: io::Error,
        /// What to change.
        remedy: &'static str,
    },
    /// Only root may record the whole machine.
    #[error(
        "recording the whole machine needs root, CAP_PERFMON or kernel.perf_event_paranoid=0 \
         ({0}); without it, record a command or one of your own processes (--pid)"
    )]
    WholeMachine(io::Error),
    /// The process is not there.
    #[error("there is no process {0}; it may have ended: 'pgrep -a NAME' lists those that run")]
    NoProcess(u32),
    /// The process belongs to someone else.
    #[error("process {pid} cannot be recorded ({source}); it belongs to another user: use root")]
    NotYours {
        /// The process.
        pid: u32,
        /// What the system said.
        source: io::Error,
    },
    /// The command cannot be started.
    #[error("cannot start '{command}': {source}; check its name")]
    Start {
        /// Its first word.
        command: String,
        /// What the system said.
        source: io::Error,
    },
    /// Nothing was to be recorded.
    #[error("nothing was recorded: {0}")]
    Nothing(&'static str),
    /// A file is not a recording, or is damaged.
    #[error("'{}' is not a recording that can be used: {reason}; record again", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A file cannot be read.
    #[error("cannot read '{}': {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The rules are wrong.
    #[error("rules of {origin}: {reason}; docs/profile.md describes them")]
    Rules {
        /// The file, or the rules that are built in.
        origin: String,
        /// What is wrong with them.
        reason: String,
    },
}
