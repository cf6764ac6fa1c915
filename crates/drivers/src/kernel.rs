//! What the drivers of the kernel share, `af_alg` and `cryptodev`.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use cipherlane_core::{Algorithm, Unavailable};

/// The version of such a driver: that of the kernel.
pub(crate) fn version() -> String {
    let system = rustix::system::uname();
    format!("Linux {}", system.release().to_string_lossy())
}

/// What the kernel has answered by algorithm, for which it is asked once.
pub(crate) struct Answers<T> {
    known: Mutex<BTreeMap<&'static str, Result<T, Unavailable>>>,
}

impl<T> Default for Answers<T> {
    fn default() -> Self {
        Answers {
            known: Mutex::default(),
        }
    }
}

impl<T: Clone> Answers<T> {
    /// The answer for an algorithm, by `ask` if there is none yet.
    pub(crate) fn find(
        &self,
        algorithm: &Algorithm,
        ask: impl FnOnce() -> Result<T, Unavailable>,
    ) -> Result<T, Unavailable> {
        self.known()
            .entry(algorithm.name)
            .or_insert_with(ask)
            .clone()
    }

    /// The algorithms that the kernel has, among those that it was asked for.
    pub(crate) fn offered(&self) -> Vec<(&'static str, T)> {
        let known = self.known();
        let offered = known.iter().filter_map(|(algorithm, answer)| {
            let answer = answer.as_ref().ok()?;
            Some((*algorithm, answer.clone()))
        });
        offered.collect()
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<&'static str, Result<T, Unavailable>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
