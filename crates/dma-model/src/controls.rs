//! What can be changed of a model while it works: whether it computes, and what goes wrong.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::behaviour::{Behaviour, Fault};

/// What a model has done, in numbers.
#[derive(Debug, Default)]
pub struct Done {
    /// Requests encrypted and decrypted well, by direction.
    pub requests: [AtomicU64; 2],
    /// Their bytes.
    pub bytes: [AtomicU64; 2],
    /// Requests that ended otherwise, those of keys too.
    pub failed: AtomicU64,
    /// Keys taken.
    pub keys: AtomicU64,
}

/// The knobs of a model, and its counters.
#[derive(Debug)]
pub struct Controls {
    computes: AtomicBool,
    /// Requests fetched, keys apart.
    served: AtomicU64,
    done: Done,
    faults: Mutex<Vec<Fault>>,
}

impl Controls {
    /// With the faults of the settings, counted from the first request.
    pub fn new(behaviour: &Behaviour) -> Self {
        Controls {
            computes: AtomicBool::new(true),
            served: AtomicU64::new(0),
            done: Done::default(),
            faults: Mutex::new(behaviour.faults.clone()),
        }
    }

    /// Whether results are worked out, as at first. Without, times are as right and results
    /// are nonsense: for simulations of time, after the self-tests.
    pub fn set_computing(&self, computes: bool) {
        self.computes.store(computes, Ordering::Relaxed);
    }

    /// A fault to order, counted from the next request.
    pub fn inject(&self, fault: Fault) {
        let after = fault.after + self.served.load(Ordering::Relaxed);
        let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        faults.push(Fault { after, ..fault });
    }

    /// What the model has done.
    pub fn done(&self) -> &Done {
        &self.done
    }

    pub(super) fn computes(&self) -> bool {
        self.computes.load(Ordering::Relaxed)
    }

    /// What goes wrong with the next request.
    pub(super) fn next(&self) -> Option<Fault> {
        let number = self.served.fetch_add(1, Ordering::Relaxed);
        let strikes = |f: &&Fault| number >= f.after && number - f.after < f.count;
        let faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        faults.iter().find(strikes).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FaultKind;

    #[test]
    fn faults_strike_by_number_from_the_start_or_from_when_they_are_ordered() {
        let text =
            "faults = [{kind = 'hang', after = 3}, {kind = 'short-write', after = 5, count = 2}]";
        let controls = Controls::new(&toml::from_str(text).unwrap());
        let next = || controls.next().map(|fault| fault.kind);
        let faults: Vec<_> = (0..8).map(|_| next()).collect();
        let (hang, short) = (Some(FaultKind::Hang), Some(FaultKind::ShortWrite));
        assert_eq!(faults, [None, None, None, hang, None, short, short, None]);
        controls.inject(toml::from_str("kind = 'gone'\nafter = 1").unwrap());
        assert_eq!(
            [next(), next(), next()],
            [None, Some(FaultKind::Gone), None]
        );
    }
}
