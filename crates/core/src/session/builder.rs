//! Options of a session, and the key's way into every driver that may serve.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, Mutex, Weak};

use zeroize::{Zeroize, Zeroizing};

use super::{Closing, Inner, Session};
use crate::algorithm::Rules;
use crate::dispatch::BASE;
use crate::verify::Verified;
use crate::{Algorithm, Error, Framework, Goal, NotAdmitted, Process, Transform};

/// Options of a session to be.
pub struct SessionBuilder {
    framework: Framework,
    algorithm: &'static Algorithm,
    key: Zeroizing<Vec<u8>>,
    tag_len: usize,
    goal: Goal,
    driver: Option<String>,
    learns: bool,
}

impl std::fmt::Debug for SessionBuilder {
    /// All but the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionBuilder")
            .field("algorithm", &self.algorithm.name)
            .field("tag_len", &self.tag_len)
            .field("goal", &self.goal)
            .field("driver", &self.driver)
            .finish_non_exhaustive()
    }
}

impl SessionBuilder {
    pub(crate) fn new(
        framework: Framework,
        algorithm: &'static Algorithm,
        key: &[u8],
    ) -> Result<Self, Error> {
        algorithm.accept_key(key)?;
        let config = &framework.shared.config;
        let (goal, driver) = (config.goal, config.force.clone());
        let (key, tag_len) = (Zeroizing::new(key.to_vec()), algorithm.tag_len());
        Ok(SessionBuilder {
            framework,
            algorithm,
            key,
            tag_len,
            goal,
            driver,
            learns: true,
        })
    }

    /// Bytes of the tag; the default is the algorithm's longest.
    pub fn tag_len(mut self, bytes: usize) -> Self {
        self.tag_len = bytes;
        self
    }

    /// What the driver is chosen for; the default is the framework's setting.
    pub fn goal(mut self, goal: Goal) -> Self {
        self.goal = goal;
        self
    }

    /// This driver and no other, instead of `auto`.
    pub fn driver(mut self, name: &str) -> Self {
        self.driver = Some(name.to_owned());
        self
    }

    /// Nothing is learned from the work, which does not count as any: who measures does so.
    pub(crate) fn without_learning(mut self) -> Self {
        self.learns = false;
        self
    }

    /// Expands the key in every driver that may serve.
    pub fn open(self) -> Result<Session, Error> {
        let session = self.expand();
        wipe_dead_stack();
        session
    }

    #[inline(never)]
    fn expand(self) -> Result<Session, Error> {
        let SessionBuilder {
            framework,
            algorithm,
            key,
            tag_len,
            goal,
            driver,
            learns,
        } = self;
        algorithm.check_tag_len(tag_len)?;
        let unusable = |driver: &str, reason: NotAdmitted| Error::DriverUnusable {
            driver: driver.to_owned(),
            algorithm: algorithm.name,
            reason,
        };
        let forced = match &driver {
            Some(name) => {
                let index = framework.driver_index(name)?;
                let admission =
                    framework.shared.entries[index].admit(algorithm, &framework.shared.clock);
                admission.map_err(|reason| unusable(name, reason))?;
                Some(index)
            }
            None => None,
        };
        let dispatch = framework.dispatch(algorithm, key.len());
        let mut transforms = Vec::new();
        for (index, entry) in framework.shared.entries.iter().enumerate() {
            let needed = match forced {
                Some(forced) => index == BASE || index == forced,
                None => index == BASE || dispatch.is_eligible(index),
            };
            let transform = match needed.then(|| entry.driver.transform(algorithm, &key)) {
                Some(Ok(transform)) => Some(transform),
                // `auto` does without a driver that cannot take one more key.
                Some(Err(_)) if index != BASE && forced.is_none() => None,
                Some(Err(reason)) => return Err(unusable(entry.driver.name(), reason.into())),
                None => None,
            };
            transforms.push(transform);
        }
        let alone = match forced {
            Some(index) => Some(index),
            None if transforms.iter().flatten().count() == 1 => Some(BASE),
            None => None,
        };
        let max_len = |transform: &Option<Box<dyn Transform>>| match transform {
            Some(transform) => transform.max_len(),
            None => 0,
        };
        let max_len = transforms.iter().map(max_len).collect();
        let watched = |session: &Weak<Inner>| {
            let transforms = transforms.into_iter().enumerate();
            let watch = |(index, transform): (usize, Option<Box<dyn Transform>>)| match index {
                BASE => transform,
                _ => transform.map(|transform| -> Box<dyn Transform> {
                    let driver = (&framework, index);
                    Box::new(Verified::new(transform, driver, algorithm.name, session))
                }),
            };
            transforms.map(watch).collect()
        };
        let inner = Arc::new_cyclic(|session| Inner {
            transforms: watched(session),
            max_len,
            algorithm,
            algorithm_index: algorithm.index(),
            rules: Rules::new(algorithm, tag_len),
            tag_len,
            goal,
            alone,
            limits: dispatch.limits(goal, alone),
            forced: forced.is_some() && learns,
            dispatch,
            framework: framework.clone(),
            process: Process::current(),
            idle: (Mutex::new(()), Condvar::new()),
            is_closing: AtomicBool::new(false),
        });
        let closing = Arc::new(Closing::new(inner.clone()));
        Ok(Session { inner, closing })
    }
}

/// Expanding a key moves it about: copies stay on the stack below. They are overwritten.
#[inline(never)]
fn wipe_dead_stack() {
    // Miri has no stack that a later call would see, and interprets every store.
    const BYTES: usize = if cfg!(miri) { 0 } else { 32 << 10 };
    let mut dead = [std::mem::MaybeUninit::<u8>::uninit(); BYTES];
    dead.zeroize();
}
