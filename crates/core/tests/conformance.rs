//! The conformance kit notices every kind of broken driver, and says what is broken.

mod common;

use std::sync::{Arc, Mutex};

use cipherlane_core::conformance::{Report, check, check_with};
use cipherlane_core::{
    Algorithm, Direction, Driver, Flight, Request, Status, Transform, Unavailable,
};
use cipherlane_test_driver::TestDriver;

/// What is wrong with a [`broken`] driver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Flaw {
    /// A wrong bit in requests of 208 bytes.
    OneLength,
    /// The last byte of the second request of a batch is wrong.
    SecondOfBatch,
    /// One request of large batches keeps its status.
    Forgets,
    /// Gives requests up after it has written to them.
    WritesAndGivesUp,
    /// Gives up everything.
    GivesAllUp,
    /// Says that every tag is right.
    IgnoresTags,
    /// Leaves the plaintext of forged messages.
    LeavesForged,
    /// Uses the key that was set last.
    OneKey,
    /// Puts the requests of a batch in the order of their lengths.
    Sorts,
    /// Lets go of submitted requests.
    DropsSubmitted,
    /// Keeps submitted requests for ever.
    NeverFinishes,
    /// Refuses keys that it takes.
    RefusesKeys,
    /// Not there.
    Absent,
    /// Offers nothing.
    OffersNothing,
}

type Kernel = Arc<dyn Transform>;

/// A driver for CTR and GCM with a flaw.
fn broken(flaw: Flaw) -> Arc<dyn Driver> {
    let last: Arc<Mutex<Option<Kernel>>> = Arc::default();
    let probe = match flaw {
        Flaw::Absent => Err(Unavailable::Absent("no such device".to_owned())),
        _ => Ok(()),
    };
    let driver = TestDriver::new("broken")
        .probe(probe)
        .offers(move |algorithm| {
            let known = ["ctr(aes)", "gcm(aes)"].contains(&algorithm.name);
            match known && flaw != Flaw::OffersNothing {
                true => Ok(()),
                false => Err(Unavailable::NotOffered("not offered".to_owned())),
            }
        })
        .takes_key(|algorithm, key_len| algorithm.key_bits(key_len) == 128)
        .transform(move |algorithm, key| {
            if flaw == Flaw::RefusesKeys {
                return Err(Unavailable::NoRoom("no room for a key".to_owned()));
            }
            let kernel: Kernel = Arc::from((algorithm.software)(key));
            *last.lock().unwrap() = Some(kernel.clone());
            Ok(Box::new(Keyed {
                kernel,
                flaw,
                last: last.clone(),
                lost: Mutex::default(),
            }))
        });
    Arc::new(driver)
}

struct Keyed {
    kernel: Kernel,
    flaw: Flaw,
    last: Arc<Mutex<Option<Kernel>>>,
    lost: Mutex<Vec<Flight>>,
}

impl Transform for Keyed {
    fn run(&self, direction: Direction, requests: &mut [Request<'_>]) {
        match self.flaw {
            Flaw::OneKey => {
                let last = self.last.lock().unwrap().clone().unwrap();
                return last.run(direction, requests);
            }
            Flaw::GivesAllUp => {
                return requests
                    .iter_mut()
                    .for_each(|r| r.set_status(Status::Untouched));
            }
            Flaw::Forgets if requests.len() > 30 => {
                return self.kernel.run(direction, &mut requests[1..]);
            }
            Flaw::Sorts => {
                requests.sort_by_key(|request| request.len());
                self.kernel.run(direction, requests);
            }
            _ => self.kernel.run(direction, requests),
        }
        let batch = requests.len();
        for (place, request) in requests.iter_mut().enumerate() {
            let len = request.len();
            match self.flaw {
                Flaw::OneLength if len == 208 => request.data().get_out()[100] ^= 4,
                Flaw::SecondOfBatch if batch > 1 && place == 1 && len > 0 => {
                    request.data().get_out()[len - 1] ^= 1;
                }
                Flaw::WritesAndGivesUp if len == 240 => request.set_status(Status::Untouched),
                Flaw::IgnoresTags => request.set_status(Status::Done),
                Flaw::LeavesForged if request.status() == Status::BadTag && len > 0 => {
                    request.data().get_out()[0] = 0x5a;
                }
                _ => {}
            }
        }
    }

    fn submit(&self, direction: Direction, mut flight: Flight) -> Result<(), Flight> {
        match self.flaw {
            Flaw::DropsSubmitted => return Ok(()),
            Flaw::NeverFinishes => {
                self.lost.lock().unwrap().push(flight);
                return Ok(());
            }
            _ => {}
        }
        flight.with_requests(|requests| self.run(direction, requests));
        flight.finish();
        Ok(())
    }
}

fn report(flaw: Flaw) -> Report {
    check(&broken(flaw))
}

#[test]
fn a_sound_driver_passes_for_every_algorithm() {
    let mut progress = Vec::new();
    let driver: Arc<dyn Driver> = common::base();
    let report = check_with(&driver, |line| progress.push(line.to_owned()));
    assert!(report.passed(), "{report}");
    assert_eq!(report.algorithms, Algorithm::names());
    // The author of a driver sees how far it is.
    for name in Algorithm::names() {
        let passed = |line: &&String| line.contains(name) && line.ends_with("requests passed");
        assert!(
            progress.iter().any(|line| passed(&line)),
            "{name}: {progress:#?}"
        );
    }
    assert!(report.requests > 10_000, "{report}");
    assert!(report.to_string().contains("no failure"));
}

#[test]
fn every_kind_of_broken_driver_is_told_what_is_wrong_with_it() {
    for (flaw, said) in [
        (Flaw::OneLength, "208 bytes"),
        (Flaw::SecondOfBatch, "request 2 of a batch of"),
        (Flaw::Forgets, "forgotten"),
        (
            Flaw::WritesAndGivesUp,
            "given up as untouched, but was written",
        ),
        (Flaw::GivesAllUp, "gave every request up"),
        (Flaw::IgnoresTags, "a wrong tag was accepted"),
        (Flaw::LeavesForged, "forged message was not wiped"),
        (Flaw::OneKey, "output is wrong"),
        (Flaw::Sorts, "in another order"),
        (Flaw::DropsSubmitted, "its status is Failed"),
        (Flaw::RefusesKeys, "refused one: no room for a key"),
        (Flaw::Absent, "no such device"),
        (Flaw::OffersNothing, "offers no algorithm"),
    ] {
        let report = report(flaw);
        assert!(!report.passed(), "{flaw:?} passed");
        let told = report.to_string();
        assert!(told.contains(said), "{flaw:?}: {told}");
    }
}

#[test]
fn work_that_is_never_finished_is_given_up_and_told() {
    let told = report(Flaw::NeverFinishes).to_string();
    assert!(told.contains("was not finished within"), "{told}");
}
