//! What can go wrong, and what to do about it.

use crate::subject::Failure;

/// Why a measurement, or writing it down, did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There was nothing to measure.
    #[error("no candidates to measure; name at least one")]
    NoCandidates,
    /// The plan asks for an impossible number of caller threads.
    #[error("{0} caller threads asked for; use 1 to {most}", most = crate::interleave::MOST_THREADS)]
    Threads(usize),
    /// A candidate failed, in its factory or in an operation.
    #[error("{candidate}, caller thread {thread}: {source}; leave it out or mend it")]
    Candidate {
        /// The candidate's name.
        candidate: String,
        /// The caller thread's number, from 0.
        thread: usize,
        /// What it said.
        source: Failure,
    },
    /// The operating system refused a caller thread.
    #[error("cannot start caller thread {thread}: {source}; use fewer threads")]
    Spawn {
        /// The caller thread's number, from 0.
        thread: usize,
        /// What the system said.
        source: std::io::Error,
    },
}
