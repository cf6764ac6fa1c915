//! A driver for tests: the kernels on the caller's core, under any name, and whatever a test puts
//! between the framework and them.
//!
//! ```
//! use std::sync::Arc;
//!
//! use cipherlane_core::{Framework, Unavailable};
//! use cipherlane_test_driver::TestDriver;
//!
//! let full = TestDriver::new("full")
//!     .transform(|_, _| Err(Unavailable::NoRoom("all keys are in use".to_owned())));
//! let framework = Framework::builder(Arc::new(TestDriver::new("base")))
//!     .driver(Arc::new(full))
//!     .build()?;
//! let builder = framework.session("ctr(aes)", &[1; 16])?;
//! assert!(builder.driver("full").open().is_err());
//! # Ok::<(), cipherlane_core::Error>(())
//! ```
//!
//! A test whose driver misbehaves has a [`Transform`] of its own, which [`TestDriver::wrap`] puts
//! around each kernel.

#![forbid(unsafe_code)]

use std::fmt;
use std::time::Duration;

use cipherlane_core::{Algorithm, Driver, Load, Mode, Transform, Unavailable};

type Offers = dyn Fn(&Algorithm) -> Result<(), Unavailable> + Send + Sync;
type TakesKey = dyn Fn(&Algorithm, usize) -> bool + Send + Sync;
type MakesTransform =
    dyn Fn(&'static Algorithm, &[u8]) -> Result<Box<dyn Transform>, Unavailable> + Send + Sync;
type Patience = dyn Fn() -> Duration + Send + Sync;
type Loaded = dyn Fn() -> Load + Send + Sync;
type Missed = dyn Fn(u32) + Send + Sync;

/// The kernels as a driver, which a test changes where it has to.
pub struct TestDriver {
    name: String,
    priority: i32,
    automatic: bool,
    probe: Result<(), Unavailable>,
    offers: Box<Offers>,
    takes_key: Box<TakesKey>,
    transform: Box<MakesTransform>,
    patience: Box<Patience>,
    load: Box<Loaded>,
    missed: Box<Missed>,
    least_work: Duration,
}

impl TestDriver {
    /// The kernels for every algorithm and key, with priority 1. `auto` may choose them.
    pub fn new(name: impl Into<String>) -> TestDriver {
        TestDriver {
            name: name.into(),
            priority: 1,
            automatic: true,
            probe: Ok(()),
            offers: Box::new(|_| Ok(())),
            takes_key: Box::new(|_, _| true),
            transform: Box::new(|algorithm, key| Ok((algorithm.software)(key))),
            patience: Box::new(|| Duration::ZERO),
            load: Box::new(Load::default),
            missed: Box::new(|_| ()),
            least_work: Duration::ZERO,
        }
    }

    /// As [`Driver::priority`].
    pub fn priority(mut self, priority: i32) -> TestDriver {
        self.priority = priority;
        self
    }

    /// As [`Driver::automatic`].
    pub fn automatic(mut self, automatic: bool) -> TestDriver {
        self.automatic = automatic;
        self
    }

    /// As [`Driver::probe`].
    pub fn probe(mut self, answer: Result<(), Unavailable>) -> TestDriver {
        self.probe = answer;
        self
    }

    /// As [`Driver::offers`].
    pub fn offers(
        mut self,
        offers: impl Fn(&Algorithm) -> Result<(), Unavailable> + Send + Sync + 'static,
    ) -> TestDriver {
        self.offers = Box::new(offers);
        self
    }

    /// As [`Driver::takes_key`].
    pub fn takes_key(
        mut self,
        takes_key: impl Fn(&Algorithm, usize) -> bool + Send + Sync + 'static,
    ) -> TestDriver {
        self.takes_key = Box::new(takes_key);
        self
    }

    /// As [`Driver::patience`].
    pub fn patience(
        mut self,
        patience: impl Fn() -> Duration + Send + Sync + 'static,
    ) -> TestDriver {
        self.patience = Box::new(patience);
        self
    }

    /// As [`Driver::load`].
    pub fn load(mut self, load: impl Fn() -> Load + Send + Sync + 'static) -> TestDriver {
        self.load = Box::new(load);
        self
    }

    /// As [`Driver::missed`].
    pub fn missed(mut self, missed: impl Fn(u32) + Send + Sync + 'static) -> TestDriver {
        self.missed = Box::new(missed);
        self
    }

    /// As [`Driver::least_work`], whether the caller waits or not.
    pub fn least_work(mut self, least_work: Duration) -> TestDriver {
        self.least_work = least_work;
        self
    }

    /// As [`Driver::transform`].
    pub fn transform<F>(mut self, transform: F) -> TestDriver
    where
        F: Fn(&'static Algorithm, &[u8]) -> Result<Box<dyn Transform>, Unavailable>
            + Send
            + Sync
            + 'static,
    {
        self.transform = Box::new(transform);
        self
    }

    /// Puts the test's own transform around each kernel.
    pub fn wrap<T: Transform + 'static>(
        self,
        wrap: impl Fn(Box<dyn Transform>) -> T + Send + Sync + 'static,
    ) -> TestDriver {
        self.transform(move |algorithm, key| Ok(Box::new(wrap((algorithm.software)(key)))))
    }
}

impl fmt::Debug for TestDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestDriver")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Driver for TestDriver {
    fn name(&self) -> &str {
        &self.name
    }

    fn version(&self) -> String {
        "1".to_owned()
    }

    fn priority(&self) -> i32 {
        self.priority
    }

    fn probe(&self) -> Result<(), Unavailable> {
        self.probe.clone()
    }

    fn offers(&self, algorithm: &Algorithm) -> Result<(), Unavailable> {
        (self.offers)(algorithm)
    }

    fn takes_key(&self, algorithm: &Algorithm, key_len: usize) -> bool {
        (self.takes_key)(algorithm, key_len)
    }

    fn transform(
        &self,
        algorithm: &'static Algorithm,
        key: &[u8],
    ) -> Result<Box<dyn Transform>, Unavailable> {
        (self.transform)(algorithm, key)
    }

    fn patience(&self) -> Duration {
        (self.patience)()
    }

    fn load(&self) -> Load {
        (self.load)()
    }

    fn missed(&self, nanoseconds: u32) {
        (self.missed)(nanoseconds);
    }

    fn least_work(&self, _mode: Mode) -> Duration {
        self.least_work
    }

    fn automatic(&self) -> bool {
        self.automatic
    }
}
