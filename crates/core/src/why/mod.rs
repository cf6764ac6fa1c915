//! Why a driver serves: the answer that every framework before could not give.

mod because;
mod explain;

use serde::Serialize;

pub use self::because::{KeptOut, NotUsedBecause, ServedBecause};
use crate::dispatch::{Mode, Switch};
use crate::health::Health;
use crate::{Algorithm, Direction, Error, Framework, Goal};

/// A batch to ask about.
#[derive(Clone, Copy, Debug)]
pub struct Question {
    /// The algorithm.
    pub algorithm: &'static Algorithm,
    /// Bytes of the key.
    pub key_len: usize,
    /// What the driver is chosen for.
    pub goal: Goal,
    /// Whether the caller waits.
    pub mode: Mode,
    /// Which way.
    pub direction: Direction,
    /// Requests in the batch.
    pub requests: usize,
    /// Bytes of each request.
    pub size: usize,
}

/// Who serves a batch, and why.
#[derive(Clone, Debug, Serialize)]
pub struct Why {
    /// CryptoAPI name.
    pub algorithm: &'static str,
    /// Key bits.
    pub key_bits: u32,
    /// The goal.
    pub goal: Goal,
    /// The kind of caller.
    pub mode: Mode,
    /// Requests in the batch.
    pub requests: usize,
    /// Bytes of each request.
    pub size: usize,
    /// The driver that serves.
    pub served_by: String,
    /// Why that driver; a sentence in JSON.
    pub reason: ServedBecause,
    /// Every driver.
    pub candidates: Vec<Candidate>,
    /// The last change of driver here, with the drivers' names.
    pub last_switch: Option<(String, String, Switch)>,
}

/// One driver's part in the answer.
#[derive(Clone, Debug, Serialize)]
pub struct Candidate {
    /// Driver name.
    pub driver: String,
    /// Estimated nanoseconds from call to results.
    pub latency_ns: Option<f32>,
    /// Estimated nanoseconds between results with several batches under way.
    pub period_ns: Option<f32>,
    /// Estimated processor time of the caller in nanoseconds.
    pub cpu_ns: Option<f32>,
    /// Samples near this place.
    pub samples: u32,
    /// Health.
    pub health: Health,
    /// Why it is not used, a sentence in JSON; `None` for the one that serves.
    pub not_used_because: Option<NotUsedBecause>,
}

impl std::fmt::Display for Why {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "'{}' serves {} for {} x {} bytes: {}",
            self.served_by, self.algorithm, self.requests, self.size, self.reason
        )
    }
}

impl Framework {
    /// Who would serve one request of `size` bytes, and why: [`explain`](Self::explain) with the
    /// algorithm's shortest key, the goal of the settings and a caller that waits.
    ///
    /// ```
    /// let why = cipherlane::Framework::new()?.why("ctr(aes)", 64)?;
    /// println!("{why}");
    /// assert_eq!(why.served_by, "software");
    /// # Ok::<(), cipherlane::Error>(())
    /// ```
    pub fn why(&self, algorithm: &str, size: usize) -> Result<Why, Error> {
        let algorithm = Algorithm::find(algorithm)?;
        self.explain(Question {
            algorithm,
            key_len: algorithm.key_lengths()[0],
            goal: self.shared.config.goal,
            mode: Mode::Wait,
            direction: Direction::Encrypt,
            requests: 1,
            size,
        })
    }
}
