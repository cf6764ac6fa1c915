//! Why a driver cannot be used: what the driver says itself, and what the framework says.

use crate::Health;

/// What a driver answers instead of its service, each with the reason and, where there is one, the
/// remedy in words for the user. The kinds differ in what the framework does.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unavailable {
    /// It is not on this machine, or not allowed. It is not asked again.
    #[error("{0}")]
    Absent(String),
    /// It is there, and does not work.
    #[error("{0}")]
    Failed(String),
    /// It has no such algorithm.
    #[error("{0}")]
    NotOffered(String),
    /// It does not take this key, though it has the algorithm.
    #[error("{0}")]
    KeyRefused(String),
    /// It has no room for one more key now: it is asked again when a session names it.
    #[error("{0}")]
    NoRoom(String),
}

/// Why the framework does not let a driver serve an algorithm.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotAdmitted {
    /// The user disabled the whole driver.
    #[error("disabled by the user")]
    Disabled,
    /// The driver gave a wrong result.
    #[error("{0}")]
    Quarantined(Health),
    /// The driver says so itself.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// The self-test found what it says here.
    #[error("{0}")]
    SelfTest(String),
}
