//! The one error type: why an SA could not be made.

/// Why an SA was refused at its creation.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A reserved SPI.
    #[error("SPI {spi}: 0 to 255 are reserved (RFC 4303 section 2.1); use another")]
    ReservedSpi {
        /// As given.
        spi: u32,
    },

    /// A replay window of a width that is not kept.
    #[error("a replay window of {given}: it takes 32 to 65536, or none")]
    ReplayWindow {
        /// As given.
        given: u32,
    },

    /// An encryption key of the wrong length.
    #[error("{suite}: an encryption key of {given} bytes; it takes {expected}")]
    EncryptionKey {
        /// The suite's name.
        suite: &'static str,
        /// Bytes given.
        given: usize,
        /// The lengths taken, in words.
        expected: &'static str,
    },

    /// An integrity key of the wrong length.
    #[error("{suite}: an integrity key of {given} bytes; it takes {expected}")]
    IntegrityKey {
        /// The suite's name.
        suite: &'static str,
        /// Bytes given.
        given: usize,
        /// Bytes taken.
        expected: usize,
    },

    /// An ICV length that the suite does not have.
    #[error("{suite}: an ICV of {given} bytes; it takes {expected}")]
    IcvLength {
        /// The suite's name.
        suite: &'static str,
        /// Bytes given.
        given: usize,
        /// The lengths taken, in words.
        expected: &'static str,
    },

    /// An SA that is to go on where no sequence number is left.
    #[error("no sequence number is left after {last}: the last is {most}; negotiate another SA")]
    Exhausted {
        /// As given to `resume_after`.
        last: u64,
        /// The last one of the SA.
        most: u64,
    },

    /// More forged packets than the suite's ICV bears.
    #[error("a limit of {given} forged packets: its ICV bears {most}")]
    Forgeries {
        /// The hard limit given.
        given: u64,
        /// The most.
        most: u64,
    },

    /// A soft limit past the hard one would never be reached.
    #[error("a soft lifetime of {soft} past the hard one of {hard}; make it less")]
    Lifetime {
        /// The soft limit.
        soft: u64,
        /// The hard limit.
        hard: u64,
    },

    /// The system's random generator failed.
    #[error("no random key for IVs: {0}")]
    Random(getrandom::Error),

    /// The framework refused the session.
    #[error(transparent)]
    Session(#[from] cipherlane_core::Error),
}
