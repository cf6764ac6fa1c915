//! The conformance kit: what every author of a driver runs on it.
//!
//! [`check`] puts a driver through everything that the framework relies on, for each algorithm
//! and key length that it offers, and says in words what it got wrong:
//!
//! - the published known answers, and one flipped bit that must be noticed (the self-test that
//!   admits it at its first use, too);
//! - every length from 0 to 288 bytes and those around packets, pages and larger, judged by the
//!   naive reference: in place and apart, at odd addresses, in batches of 1 to 64 requests of
//!   mixed lengths, both ways, with right and wrong tags;
//! - scatter lists cut at odd places, where the driver takes them;
//! - that the requests of a batch stand where they stood: their statuses are read by place;
//! - that nothing is written but output and tag: neither beside them, nor to the input of a
//!   request whose output is apart, nor at all to one that is given up `Untouched`;
//! - two keys at once, and one key used by several threads;
//! - submitted work, which must be finished within five seconds, each request in its own place.
//!
//! Whether keys are wiped cannot be seen from here: read the memory of your own process after a
//! session is closed, as Cipherlane's tests do.
//!
//! # Writing a driver
//! A driver is a [`Driver`], which says what it is and offers, and a
//! [`Transform`](crate::Transform), which is one key in it. That is all: sessions, checks of
//! requests, the choice between drivers, another try in software, statistics and health are the
//! framework's. This one has an engine for AES in counter mode that takes no more than 4096 bytes
//! at once; its engine is imagined to be the closure, which is where yours comes in.
//!
//! ```
//! use std::sync::{Arc, Mutex};
//! use cipherlane_core::{conformance, Algorithm, Direction, Driver, Request, Status, Transform, Unavailable};
//!
//! /// The engine: one at a time, and at most 4096 bytes.
//! struct Engine(Box<dyn Transform>);
//!
//! impl Engine {
//!     fn encrypt(&mut self, iv: [u8; 16], data: &mut [u8]) {
//!         self.0.run(Direction::Encrypt, &mut [Request::in_place(data).iv(&iv)]);
//!     }
//! }
//!
//! struct Example;
//!
//! impl Driver for Example {
//!     fn name(&self) -> &str {
//!         "example"
//!     }
//!
//!     // Learned costs are forgotten when this changes.
//!     fn version(&self) -> String {
//!         env!("CARGO_PKG_VERSION").to_owned()
//!     }
//!
//!     fn priority(&self) -> i32 {
//!         200
//!     }
//!
//!     // Is the engine there? `Err` is told to the user.
//!     fn probe(&self) -> Result<(), Unavailable> {
//!         Ok(())
//!     }
//!
//!     fn offers(&self, algorithm: &Algorithm) -> Result<(), Unavailable> {
//!         match algorithm.name {
//!             "ctr(aes)" => Ok(()),
//!             _ => Err(Unavailable::NotOffered("the engine knows ctr(aes) only".to_owned())),
//!         }
//!     }
//!
//!     // The key is yours to keep until the transform is dropped; wipe it then.
//!     fn transform(
//!         &self,
//!         algorithm: &'static Algorithm,
//!         key: &[u8],
//!     ) -> Result<Box<dyn Transform>, Unavailable> {
//!         let engine = Engine((algorithm.software)(key));
//!         Ok(Box::new(Keyed { engine: Mutex::new(engine) }))
//!     }
//! }
//!
//! struct Keyed {
//!     engine: Mutex<Engine>,
//! }
//!
//! impl Transform for Keyed {
//!     fn run(&self, _: Direction, requests: &mut [Request<'_>]) {
//!         let Ok(mut engine) = self.engine.lock() else {
//!             // Nothing was written: software finishes these.
//!             requests.iter_mut().for_each(|r| r.set_status(Status::Untouched));
//!             return;
//!         };
//!         for request in requests {
//!             if request.len() > self.max_len() {
//!                 request.set_status(Status::Untouched);
//!                 continue;
//!             }
//!             let iv = request.iv_block();
//!             // Input and output may be one region: the engine's memory is neither.
//!             let mut memory = request.input().to_vec();
//!             engine.encrypt(iv, &mut memory);
//!             request.data().get_out().copy_from_slice(&memory);
//!             request.set_status(Status::Done);
//!         }
//!     }
//!
//!     // Longer requests are given up as untouched, and that is no failure.
//!     fn max_len(&self) -> usize {
//!         4096
//!     }
//! }
//!
//! let report = conformance::check(&(Arc::new(Example) as Arc<dyn Driver>));
//! assert!(report.passed(), "{report}");
//! assert_eq!(report.algorithms, ["ctr(aes)"]);
//! ```
//!
//! An engine that works while the caller does other things implements
//! [`submit`](crate::Transform::submit) too, and one that is not always ready says so by
//! [`load`](crate::Driver::load).

mod case;
mod submitted;
mod sweep;

use std::fmt;
use std::sync::Arc;

use self::case::{Case, Draw};
use crate::selftest::Random;
use crate::{Algorithm, Direction, Driver, Request, Session, selftest};

/// What [`check`] found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The driver.
    pub driver: String,
    /// CryptoAPI names of the algorithms that it offers.
    pub algorithms: Vec<&'static str>,
    /// Requests that it was given.
    pub requests: usize,
    /// What it got wrong; the first of each kind for an algorithm and key length.
    pub failures: Vec<Failure>,
}

/// What a driver got wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// CryptoAPI name and key bits; `None` where it is no algorithm's.
    pub algorithm: Option<(&'static str, u32)>,
    /// The case and what was wrong with it.
    pub problem: String,
}

impl Report {
    /// Whether nothing was wrong.
    pub fn passed(&self) -> bool {
        self.failures.is_empty()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.algorithm {
            Some((name, bits)) => write!(f, "{name}, {bits} key bits: {}", self.problem),
            None => f.write_str(&self.problem),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (algorithms, requests) = (self.algorithms.len(), self.requests);
        let count = self.failures.len();
        write!(
            f,
            "{}: {algorithms} algorithms, {requests} requests, ",
            self.driver
        )?;
        match count {
            0 => f.write_str("no failure"),
            count => write!(f, "{count} failures"),
        }?;
        self.failures
            .iter()
            .try_for_each(|failure| write!(f, "\n  {failure}"))
    }
}

/// Puts a driver through everything, as the [module](self) says, and writes its progress to
/// standard error: a line for each algorithm and key length.
///
/// It takes some seconds in a release build. In a debug build the reference alone takes many
/// times as long, and the first line says so.
pub fn check(driver: &Arc<dyn Driver>) -> Report {
    check_with(driver, |line| eprintln!("{line}"))
}

/// The same, with each line of progress given to `progress`.
pub fn check_with(driver: &Arc<dyn Driver>, mut progress: impl FnMut(&str)) -> Report {
    let mut report = Report {
        driver: driver.name().to_owned(),
        ..Report::default()
    };
    if cfg!(debug_assertions) {
        progress("conformance: this is a debug build, which is slow; use 'cargo test --release'");
    }
    let mut fail = |algorithm, problem| report.failures.push(Failure { algorithm, problem });
    if let Err(reason) = driver.probe() {
        fail(None, format!("it cannot be used here: {reason}"));
        return report;
    }
    for &algorithm in Algorithm::all() {
        if driver.offers(algorithm).is_err() {
            continue;
        }
        report.algorithms.push(algorithm.name);
        if let Err(failure) = selftest::run(&**driver, algorithm) {
            let bits = algorithm.key_bits(algorithm.key_lengths()[0]);
            fail(Some((algorithm.name, bits)), failure.to_string());
        }
        for key_len in algorithm.key_lengths() {
            if !driver.takes_key(algorithm, key_len) {
                continue;
            }
            let bits = algorithm.key_bits(key_len);
            let mut done = 0;
            let mut wrong = 0;
            let outcomes = [
                sweep::run(&**driver, algorithm, key_len),
                submitted::run(driver, algorithm, key_len),
            ];
            for outcome in outcomes {
                match outcome {
                    Ok(requests) => done += requests,
                    Err(problem) => {
                        wrong += 1;
                        fail(Some((algorithm.name, bits)), problem);
                    }
                }
            }
            report.requests += done;
            let (driver, name) = (driver.name(), algorithm.name);
            progress(&match wrong {
                0 => format!("{driver}: {name}, {bits} key bits: {done} requests passed"),
                _ => format!("{driver}: {name}, {bits} key bits: failed"),
            });
        }
    }
    if report.algorithms.is_empty() {
        fail(None, "it offers no algorithm".to_owned());
    }
    report
}

/// Puts one batch through a session that was opened with `key` and whole tags, and judges it
/// as [`check`] does: requests of about `lengths` bytes of payload (as near as the algorithm
/// takes), some of them scattered or with a wrong tag; everything but the lengths follows
/// from `seed`. `Err` says in words what went wrong with the first one that did.
pub fn batch(
    session: &Session,
    key: &[u8],
    direction: Direction,
    lengths: &[usize],
    seed: u64,
) -> Result<(), String> {
    let algorithm = session.algorithm();
    let mut random = Random(seed);
    let mut cases: Vec<Case> = lengths
        .iter()
        .map(|&len| {
            let draw = Draw {
                direction,
                len: len.max(algorithm.min_len) / algorithm.block * algorithm.block,
                scattered: random.next().is_multiple_of(3),
            };
            Case::new(algorithm, key, draw, &mut random)
        })
        .collect();
    // What it returns tells less than the statuses, which are judged.
    let process = |requests: &mut [Request<'_>]| drop(session.process(direction, requests));
    let done = case::run(process, &mut cases)?;
    match lengths.len() - done {
        0 => Ok(()),
        left => Err(format!("{left} requests were given back unfinished")),
    }
}
