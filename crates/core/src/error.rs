//! The one error type: each variant says what was refused and what to do about it.

use std::path::PathBuf;

use crate::NotAdmitted;

/// Why a call or a request was refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No algorithm of that name.
    #[error(
        "unknown algorithm '{name}': use a Linux CryptoAPI name, one of {}",
        crate::Algorithm::names().join(", ")
    )]
    UnknownAlgorithm {
        /// The name as given.
        name: String,
    },

    /// The key has a length that the algorithm does not take.
    #[error("{algorithm}: a key of {given} bytes; it takes {expected}")]
    KeyLength {
        /// CryptoAPI name.
        algorithm: &'static str,
        /// Bytes given.
        given: usize,
        /// The lengths taken, in words.
        expected: String,
    },

    /// XTS with both halves of the key the same (FIPS 140-3 IG C.I forbids it).
    #[error("{algorithm}: both halves of the key are the same; use two independent keys")]
    KeyHalvesEqual {
        /// CryptoAPI name.
        algorithm: &'static str,
    },

    /// The IV of a request has the wrong length.
    #[error("{algorithm}: an IV of {given} bytes; it takes {expected}")]
    IvLength {
        /// CryptoAPI name.
        algorithm: &'static str,
        /// Bytes given.
        given: usize,
        /// Bytes taken.
        expected: usize,
    },

    /// A bit of the IV is set that the algorithm does not have.
    #[error(
        "{algorithm}: the first bit of the nonce is set, but its nonces are one bit shorter than a block (RFC 9058); clear the bit and count in the others"
    )]
    IvBits {
        /// CryptoAPI name.
        algorithm: &'static str,
    },

    /// A tag length that the algorithm does not allow, or not the one the session was opened with.
    #[error("{algorithm}: a tag of {given} bytes; {expected}")]
    TagLength {
        /// CryptoAPI name.
        algorithm: &'static str,
        /// Bytes given.
        given: usize,
        /// What is taken, in words.
        expected: String,
    },

    /// The additional data has a length that the algorithm does not take.
    #[error("{algorithm}: {given} bytes of additional data; it takes {expected}")]
    AadLength {
        /// CryptoAPI name.
        algorithm: &'static str,
        /// Bytes given.
        given: usize,
        /// What is taken, in words.
        expected: String,
    },

    /// Payload not a multiple of the block.
    #[error("{algorithm}: {given} bytes are not a multiple of its block of {block}; pad the data")]
    NotBlockMultiple {
        /// CryptoAPI name.
        algorithm: &'static str,
        /// Bytes given.
        given: usize,
        /// Block size in bytes.
        block: usize,
    },

    /// Payload shorter than the algorithm's shortest.
    #[error("{algorithm}: {given} bytes are too few; it takes {min_len} or more")]
    TooShort {
        /// CryptoAPI name.
        algorithm: &'static str,
        /// Bytes given.
        given: usize,
        /// Bytes of the shortest payload.
        min_len: usize,
    },

    /// Payload longer than the algorithm's limit for one IV; in MGM payload and additional
    /// data together.
    #[error(
        "{algorithm}: {given} bytes are over its limit of {max_len} for one IV; cut the data and use another IV for each part"
    )]
    TooLong {
        /// CryptoAPI name.
        algorithm: &'static str,
        /// Bytes given.
        given: usize,
        /// Bytes of the longest payload.
        max_len: u64,
    },

    /// Output not as long as input.
    #[error("{algorithm}: input of {input} bytes but output of {output}; make them equal")]
    OutputLength {
        /// CryptoAPI name.
        algorithm: &'static str,
        /// Bytes of input.
        input: usize,
        /// Bytes of output.
        output: usize,
    },

    /// Input and output overlap without being the same.
    #[error(
        "{algorithm}: input and output overlap in part; use the same region (in place) or regions apart"
    )]
    Overlap {
        /// CryptoAPI name.
        algorithm: &'static str,
    },

    /// The tag does not match. The output was wiped.
    #[error("{algorithm}: authentication failed; the output was wiped")]
    BadTag {
        /// CryptoAPI name.
        algorithm: &'static str,
    },

    /// A driver gave up on a request after it had begun to write the output.
    #[error(
        "{algorithm}: driver '{driver}' failed in the middle of a request in place; its data is lost, send it again"
    )]
    DriverFailed {
        /// CryptoAPI name.
        algorithm: &'static str,
        /// The driver's name.
        driver: String,
    },

    /// No driver of that name.
    #[error("unknown driver '{name}': present are {known}")]
    UnknownDriver {
        /// The name as given.
        name: String,
        /// The drivers known, in words.
        known: String,
    },

    /// A driver that exists cannot be used.
    #[error("driver '{driver}' cannot be used for {algorithm}: {reason}")]
    DriverUnusable {
        /// The driver's name.
        driver: String,
        /// CryptoAPI name.
        algorithm: &'static str,
        /// Why.
        reason: NotAdmitted,
    },

    /// A call that the algorithm does not have.
    #[error("{algorithm} has no '{call}'; its calls are {instead}")]
    WrongCall {
        /// CryptoAPI name.
        algorithm: &'static str,
        /// The method.
        call: &'static str,
        /// The methods that the algorithm has.
        instead: &'static str,
    },

    /// A [`NonceCounter`](crate::NonceCounter) has given all its nonces.
    #[error("all nonces of this counter have been used; take a new key and a new counter")]
    NoncesUsedUp,

    /// A [`NonceCounter`](crate::NonceCounter) belongs to the parent of this process.
    #[error(
        "the parent of this process counts these nonces, and both would use the same ones; take a new key and a new counter after the fork"
    )]
    NonceForked,

    /// A batch was empty.
    #[error("an empty batch; put at least one request in it")]
    EmptyBatch,

    /// A setting cannot be understood.
    #[error("{origin}: {problem}")]
    Config {
        /// The file, environment variable or option.
        origin: String,
        /// What is wrong and what to do.
        problem: String,
    },

    /// A file cannot be read or written.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}
