//! What the tests of the framework share.
#![allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    reason = "each test file uses a part of it"
)]

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use cipherlane_core::{Direction, Flight, Framework, Request, Status, Transform};
use cipherlane_test_driver::TestDriver;

/// The kernels on the caller's core.
pub fn base() -> Arc<TestDriver> {
    Arc::new(TestDriver::new("base").priority(100))
}

pub fn framework() -> Framework {
    Framework::builder(base()).build().unwrap()
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

/// Says how the driver `rogue` behaves: it works until it is told to misbehave.
pub struct Rogue {
    pub armed: Arc<AtomicBool>,
    pub fault: Fault,
    pub runs: Arc<AtomicUsize>,
    pub automatic: bool,
}

impl Rogue {
    /// The behaviour, its trigger, and its count of runs.
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

    /// The driver that behaves so.
    pub fn driver(self: &Arc<Rogue>) -> Arc<TestDriver> {
        let rogue = self.clone();
        let driver = TestDriver::new("rogue").automatic(self.automatic);
        Arc::new(driver.wrap(move |kernel| RogueTransform {
            kernel,
            rogue: rogue.clone(),
        }))
    }
}

struct RogueTransform {
    kernel: Box<dyn Transform>,
    rogue: Arc<Rogue>,
}

impl RogueTransform {
    fn fault(&self) -> Fault {
        if self.rogue.armed.load(Ordering::Relaxed) {
            self.rogue.fault
        } else {
            Fault::None
        }
    }
}

impl Transform for RogueTransform {
    fn run(&self, direction: Direction, requests: &mut [Request<'_>]) {
        self.rogue.runs.fetch_add(1, Ordering::Relaxed);
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
        Framework::builder(base())
            .driver(rogue.driver())
            .build()
            .unwrap(),
        armed,
        runs,
    )
}
