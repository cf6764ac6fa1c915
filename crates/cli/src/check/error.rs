//! What can be wrong with a vector file.

use std::io;

/// A vector file that cannot be used, with the remedy.
#[derive(Debug, thiserror::Error)]
pub(crate) enum VectorError {
    /// The file could not be read at all.
    #[error("{file}: cannot be read: {source}; name a file that exists and may be read")]
    Read {
        /// The file as the user named it.
        file: String,
        /// What the system said.
        source: io::Error,
    },
    /// The file is larger than any vector file has reason to be.
    #[error("{file}: more than {limit} bytes; split the file, or check that it is a vector file")]
    TooLarge {
        /// The file as the user named it.
        file: String,
        /// The largest size taken, in bytes.
        limit: u64,
    },
    /// The file is of no known format.
    #[error(
        "{file}: not a vector file: {what}; give a NIST .rsp file, a Wycheproof JSON file or one \
         of the JSON layouts described in vectors/README.md"
    )]
    Unknown {
        /// The file as the user named it.
        file: String,
        /// What was seen instead.
        what: String,
    },
    /// The format is known, and this line does not keep to it.
    #[error("{file}:{line}: {what}; {remedy}")]
    Malformed {
        /// The file as the user named it.
        file: String,
        /// Line number, from 1.
        line: usize,
        /// What is wrong there.
        what: String,
        /// What to do about it.
        remedy: &'static str,
    },
}

/// The remedy for damage in transit.
pub(crate) const FETCH_AGAIN: &str =
    "the file is damaged or cut short: fetch it again from its source";

/// The remedy for a value that was written wrongly.
pub(crate) const CORRECT_VALUE: &str = "correct the value, or fetch the file again from its source";
