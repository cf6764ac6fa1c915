//! What is counted, and why requests are refused.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use rustix::io::Errno;

/// Why a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Structures that are shorter than they have to be, or were changed while they were read.
    Malformed,
    /// A request of another number, or of a 32-bit program.
    Command,
    /// An algorithm, a flag or a combination that is not served, or a key that it does not take.
    Unsupported,
    /// More open files or sessions than are allowed.
    Limit,
    /// A session that does not exist.
    Session,
    /// More bytes than the kernel transfers.
    TooLong,
    /// Lengths that the algorithm does not take.
    Lengths,
    /// A wrong tag.
    Forged,
    /// A driver that failed.
    Failed,
}

impl Refusal {
    /// All of them, in the order of the counters.
    pub(crate) const ALL: [Refusal; 9] = [
        Refusal::Malformed,
        Refusal::Command,
        Refusal::Unsupported,
        Refusal::Limit,
        Refusal::Session,
        Refusal::TooLong,
        Refusal::Lengths,
        Refusal::Forged,
        Refusal::Failed,
    ];

    /// What `status` calls it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Refusal::Malformed => "malformed",
            Refusal::Command => "unknown request",
            Refusal::Unsupported => "not supported",
            Refusal::Limit => "over the limit",
            Refusal::Session => "unknown session",
            Refusal::TooLong => "too long",
            Refusal::Lengths => "wrong lengths",
            Refusal::Forged => "wrong tag",
            Refusal::Failed => "failed",
        }
    }

    /// What the program is told: what cryptodev-linux says, where that has a word for it.
    pub(crate) fn errno(self) -> Errno {
        match self {
            Refusal::Malformed
            | Refusal::Command
            | Refusal::Unsupported
            | Refusal::Session
            | Refusal::Lengths => Errno::INVAL,
            Refusal::Limit => Errno::MFILE,
            Refusal::TooLong => Errno::MSGSIZE,
            Refusal::Forged => Errno::BADMSG,
            Refusal::Failed => Errno::IO,
        }
    }
}

/// Counters since the start.
#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) files_opened: AtomicU64,
    pub(crate) files_closed: AtomicU64,
    pub(crate) sessions_opened: AtomicU64,
    pub(crate) sessions_closed: AtomicU64,
    pub(crate) messages: AtomicU64,
    pub(crate) requests: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) refused: [AtomicU64; Refusal::ALL.len()],
}

impl Counters {
    /// A request that was served.
    pub(crate) fn served(&self, bytes: usize) {
        self.requests.fetch_add(1, Relaxed);
        self.bytes.fetch_add(bytes as u64, Relaxed);
    }

    /// A request that was refused.
    pub(crate) fn refused(&self, refusal: Refusal) {
        self.refused[refusal as usize].fetch_add(1, Relaxed);
    }
}
