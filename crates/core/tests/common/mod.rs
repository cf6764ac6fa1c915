//! What the tests of the framework share.
#![allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    reason = "each test file uses a part of it"
)]

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use cipherlane_core::{
    Algorithm, Direction, Driver, Flight, Framework, Request, Status, Transform, Unavailable,
};

/// The kernels on the caller's core.
pub struct Base;

impl Driver for Base {
    fn name(&self) -> &str {
        "base"
    }
    fn version(&self) -> String {
        "1".into()
    }
    fn priority(&self) -> i32 {
        100
    }
    fn transform(
        &self,
        algorithm: &'static Algorithm,
        key: &[u8],
    ) -> Result<Box<dyn Transform>, Unavailable> {
        Ok((algorithm.software)(key))
    }
}

pub fn framework() -> Framework {
    Framework::builder(Arc::new(Base)).build().unwrap()
}

/// One framework for all tests of a program that do not look at its statistics: an algorithm
/// is admitted once.
pub fn shared_framework() -> Framework {
    static SHARED: LazyLock<Framework> = LazyLock::new(framework);
    SHARED.clone()
}

/// An AEAD with an IV of 12 bytes and a tag of 16, where it matters not which; Miri, which
/// interprets every instruction, takes the one that has the fewest.
pub const AEAD: &str = match cfg!(miri) {
    true => "rfc7539(chacha20,poly1305)",
    false => "gcm(aes)",
};

/// A key of [`AEAD`].
pub const AEAD_KEY: &[u8] = &[5; if cfg!(miri) { 32 } else { 16 }];

/// What a [`Rogue`] does to requests once it is armed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// Works.
    None,
    /// Gives requests up before touching them.
    GiveUp,
    /// Half writes the output, then fails.
    HalfWrite,
    /// Returns without a word.
    Forget,
    /// Drops submitted flights.
    Drop,
    /// Takes no submitted flight.
    Full,
    /// Has room for this number of requests only.
    Room(usize),
    /// Flips a bit of every output.
    FlipBit,
    /// Never looks at tags.
    IgnoreTag,
}

/// A driver that works until it is told to misbehave.
pub struct Rogue {
    pub armed: Arc<AtomicBool>,
    pub fault: Fault,
    pub runs: Arc<AtomicUsize>,
    pub automatic: bool,
}

impl Rogue {
    /// The driver, its trigger, and its count of runs.
    pub fn new(fault: Fault) -> (Arc<Rogue>, Arc<AtomicBool>, Arc<AtomicUsize>) {
        let (armed, runs) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicUsize::new(0)),
        );
        let rogue = Rogue {
            armed: armed.clone(),
            fault,
            runs: runs.clone(),
            automatic: true,
        };
        (Arc::new(rogue), armed, runs)
    }
}

impl Driver for Rogue {
    fn name(&self) -> &str {
        "rogue"
    }
    fn version(&self) -> String {
        "1".into()
    }
    fn priority(&self) -> i32 {
        1
    }
    fn automatic(&self) -> bool {
        self.automatic
    }
    fn transform(
        &self,
        algorithm: &'static Algorithm,
        key: &[u8],
    ) -> Result<Box<dyn Transform>, Unavailable> {
        Ok(Box::new(RogueTransform {
            kernel: (algorithm.software)(key),
            armed: self.armed.clone(),
            fault: self.fault,
            runs: self.runs.clone(),
        }))
    }
}

struct RogueTransform {
    kernel: Box<dyn Transform>,
    armed: Arc<AtomicBool>,
    fault: Fault,
    runs: Arc<AtomicUsize>,
}

impl RogueTransform {
    fn fault(&self) -> Fault {
        if self.armed.load(Ordering::Relaxed) {
            self.fault
        } else {
            Fault::None
        }
    }
}

impl Transform for RogueTransform {
    fn run(&self, direction: Direction, requests: &mut [Request<'_>]) {
        self.runs.fetch_add(1, Ordering::Relaxed);
        match self.fault() {
            Fault::GiveUp => requests
                .iter_mut()
                .for_each(|r| r.set_status(Status::Untouched)),
            Fault::HalfWrite => requests.iter_mut().for_each(|r| {
                if r.tag_len() == 0 {
                    let half = r.len() / 2;
                    r.data().get_out()[..half].fill(0x55);
                }
                r.set_status(Status::Failed);
            }),
            Fault::Forget => {}
            Fault::FlipBit => {
                self.kernel.run(direction, requests);
                for r in requests.iter_mut().filter(|r| !r.is_empty()) {
                    match r.tag_len() {
                        0 => r.data().get_out()[0] ^= 1,
                        _ => r.tag_bytes()[0] ^= 1,
                    }
                }
            }
            Fault::IgnoreTag => {
                self.kernel.run(direction, requests);
                requests.iter_mut().for_each(|r| r.set_status(Status::Done));
            }
            _ => self.kernel.run(direction, requests),
        }
    }

    fn submit(&self, direction: Direction, mut flight: Flight) -> Result<(), Flight> {
        match self.fault() {
            Fault::Drop => Ok(()),
            Fault::Full => Err(flight),
            _ => {
                flight.with_requests(|requests| self.run(direction, requests));
                flight.finish();
                Ok(())
            }
        }
    }

    fn room(&self) -> usize {
        match self.fault() {
            Fault::Room(n) => n,
            _ => usize::MAX,
        }
    }
}

/// A framework with the base and a rogue.
pub fn with_rogue(fault: Fault) -> (Framework, Arc<AtomicBool>, Arc<AtomicUsize>) {
    let (rogue, armed, runs) = Rogue::new(fault);
    (
        Framework::builder(Arc::new(Base))
            .driver(rogue)
            .build()
            .unwrap(),
        armed,
        runs,
    )
}
