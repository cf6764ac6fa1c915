//! A driver may report success and be wrong. Of every driver but the base, one request in a
//! [number](Sampler) of them is computed again in software, in the background. At the first
//! difference the driver is quarantined, and a [`Mismatch`] says what the driver did.

mod mismatch;
mod queue;
mod sampler;

use std::sync::Weak;

use zeroize::Zeroizing;

pub use self::mismatch::{Answer, Mismatch};
pub(crate) use self::queue::Verifier;
pub(crate) use self::sampler::Sampler;
use crate::dispatch::BASE;
use crate::framework::RegisteredDriver;
use crate::request::{Request, Status};
use crate::session::Inner;
use crate::{Direction, Flight, Framework, Split, Transform};

/// One request in this many is verified, unless the settings say otherwise.
pub(crate) const DEFAULT_INTERVAL: u64 = 4096;

/// A copy of a request, made before the driver gets the request.
pub(crate) struct RequestSnapshot {
    place: usize,
    iv: [u8; 16],
    iv_len: usize,
    aad: Vec<u8>,
    input: Zeroizing<Vec<u8>>,
    tag: Vec<u8>,
    has_output: bool,
}

impl RequestSnapshot {
    pub(crate) fn new(place: usize, request: &mut Request<'_>) -> Self {
        let mut input = Zeroizing::new(vec![0; request.len()]);
        request.gather(&mut input);
        RequestSnapshot {
            place,
            iv: request.iv_block(),
            iv_len: request.iv_bytes().len(),
            aad: request.aad_bytes().to_vec(),
            input,
            tag: request.tag_bytes().to_vec(),
            has_output: request.has_output(),
        }
    }

    /// The copy together with the driver's results; `None` if the driver gave the request up.
    fn after(self, direction: Direction, requests: &mut [Request<'_>]) -> Option<Sample> {
        let request = requests.get_mut(self.place)?;
        if !matches!(request.status(), Status::Done | Status::BadTag) {
            return None;
        }
        let found = Answer {
            authentic: request.status() == Status::Done,
            output: request.copy_output(),
            tag: request.tag_bytes().to_vec(),
        };
        Some(Sample {
            snapshot: self,
            direction,
            found,
        })
    }
}

/// A request and what a driver has made of it.
struct Sample {
    snapshot: RequestSnapshot,
    direction: Direction,
    found: Answer,
}

impl Sample {
    /// Computes the request again in software; `Some` if the driver's result was wrong.
    fn check(
        self,
        algorithm: &'static str,
        base: &dyn Transform,
        with_data: bool,
    ) -> Option<Mismatch> {
        let RequestSnapshot {
            iv,
            iv_len,
            aad,
            input,
            mut tag,
            has_output,
            ..
        } = self.snapshot;
        let iv = &iv[..iv_len];
        let mut output = input.clone();
        let request = match has_output {
            true => Request::in_place(&mut output),
            false => Request::mac(&input),
        };
        let mut requests = [request.iv(iv).aad(&aad).tag(&mut tag)];
        base.run(self.direction, &mut requests);
        let authentic = requests[0].status() == Status::Done;
        let expected = Answer {
            authentic,
            output: match has_output {
                true => std::mem::take(&mut output),
                false => Vec::new(),
            },
            tag,
        };
        (expected != self.found).then(|| Mismatch {
            algorithm,
            decrypting: self.direction == Direction::Decrypt,
            iv: iv.to_vec(),
            aad,
            input: input.to_vec(),
            found: self.found,
            expected,
            with_data,
        })
    }
}

/// A sample, and where it comes from.
struct Job {
    watch: Watch,
    sample: Sample,
}

impl Job {
    /// Whether the caller of the driver waits for the verification.
    fn is_waited_for(&self) -> bool {
        self.watch.entry().sampler.is_for_all()
    }

    fn run(self) {
        let Watch {
            session,
            framework,
            driver,
            algorithm,
        } = self.watch;
        let with_data = framework.shared.config.mismatch_data == Some(true);
        if let Some(session) = session.upgrade()
            && let base = session.transform(BASE)
            && let Some(mismatch) = self.sample.check(algorithm, base, with_data)
        {
            framework.quarantine(driver, mismatch);
        }
    }
}

/// What is needed to verify one driver's work for one session.
#[derive(Clone)]
struct Watch {
    /// Weak, so that closing a session does not wait for its verification.
    session: Weak<Inner>,
    framework: Framework,
    driver: usize,
    algorithm: &'static str,
}

impl Watch {
    fn entry(&self) -> &RegisteredDriver {
        &self.framework.shared.entries[self.driver]
    }

    #[inline]
    fn is_quarantined(&self) -> bool {
        self.entry().breaker.is_quarantined()
    }

    /// A copy of the request to be verified among the next requests, if one of them is.
    #[inline]
    fn pick(&self, requests: &mut [Request<'_>]) -> Option<RequestSnapshot> {
        let place = self.entry().sampler.pick(requests.len())?;
        Some(RequestSnapshot::new(place, &mut requests[place]))
    }

    /// Hands a picked request to the verifying thread, after the driver has served the request.
    #[cold]
    fn push(self, snapshot: RequestSnapshot, direction: Direction, requests: &mut [Request<'_>]) {
        if let Some(sample) = snapshot.after(direction, requests) {
            let verifier = self.framework.shared.verifier.clone();
            verifier.push(Job {
                watch: self,
                sample,
            });
        }
    }
}

/// A request of a flight that is to be verified when it lands.
pub(crate) struct Pick {
    watch: Watch,
    snapshot: RequestSnapshot,
}

impl Pick {
    pub(crate) fn landed(self, direction: Direction, requests: &mut [Request<'_>]) {
        self.watch.push(self.snapshot, direction, requests);
    }
}

/// The transform of another driver, a sample of whose requests is verified. While the driver is
/// quarantined, this transform gives up every request untouched.
pub(crate) struct Verified {
    transform: Box<dyn Transform>,
    watch: Watch,
}

impl Verified {
    pub(crate) fn new(
        transform: Box<dyn Transform>,
        (framework, driver): (&Framework, usize),
        algorithm: &'static str,
        session: &Weak<Inner>,
    ) -> Self {
        Verified {
            transform,
            watch: Watch {
                session: session.clone(),
                framework: framework.clone(),
                driver,
                algorithm,
            },
        }
    }
}

fn give_up(requests: &mut [Request<'_>]) {
    requests
        .iter_mut()
        .for_each(|request| request.set_status(Status::Untouched));
}

impl Transform for Verified {
    #[inline]
    fn run(&self, direction: Direction, requests: &mut [Request<'_>]) {
        if self.watch.is_quarantined() {
            return give_up(requests);
        }
        let picked = self.watch.pick(requests);
        self.transform.run(direction, requests);
        if let Some(snapshot) = picked {
            self.watch.clone().push(snapshot, direction, requests);
        }
    }

    fn submit(&self, direction: Direction, mut flight: Flight) -> Result<(), Flight> {
        if self.watch.is_quarantined() {
            flight.with_requests(give_up);
            flight.finish();
            return Ok(());
        }
        if let Some(snapshot) = flight.with_requests(|requests| self.watch.pick(requests)) {
            let watch = self.watch.clone();
            flight.pick(Pick { watch, snapshot });
        }
        self.transform.submit(direction, flight)
    }

    fn room(&self) -> usize {
        self.transform.room()
    }

    fn max_len(&self) -> usize {
        self.transform.max_len()
    }

    fn poll(&self) {
        self.transform.poll();
    }

    fn shares(&self, direction: Direction, requests: usize) -> bool {
        self.transform.shares(direction, requests)
    }

    fn hands_over(&self, direction: Direction, requests: usize, bytes: usize) -> bool {
        self.transform.hands_over(direction, requests, bytes)
    }

    fn assist(&self) -> bool {
        self.transform.assist()
    }

    fn scatters(&self) -> bool {
        self.transform.scatters()
    }

    fn split(&self) -> Option<&dyn Split> {
        self.transform.split()
    }
}
