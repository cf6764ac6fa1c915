//! A key in use: [`Session`] checks requests, picks the driver, runs them, and finishes in
//! software what a driver gave up.

mod accounting;
#[allow(unsafe_code)]
mod armed;
mod builder;
mod callers;
mod calls;
mod choice;
#[allow(unsafe_code)]
mod flight;
mod refusal;
mod sampling;
mod series;
mod serve;
mod ticket;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use self::callers::{Caller, Callers};
use self::flight::Purpose;
use crate::algorithm::Rules;
use crate::batch::{Batch, OwnedRequest, take_front};
use crate::dispatch::{BASE, Dispatch, Limits, Mode, Shape};
use crate::request::{Request, Status};
use crate::{Algorithm, Direction, Error, Framework, Goal, Process, Transform};

pub(crate) use self::accounting::Landed;
pub use self::builder::SessionBuilder;
pub use self::flight::Flight;
use self::refusal::Lengths;
use self::sampling::is_sample;
use self::ticket::ORPHAN_PATIENCE;
pub use self::ticket::Ticket;

/// An algorithm and a key, used by any number of threads at once without locks. Clones are one
/// session, and cost a counter each.
///
/// Closing or dropping the last clone waits for work under way; the key is then wiped in every
/// driver.
///
/// ```
/// use cipherlane::{Direction, Framework, NonceCounter, Request};
///
/// let framework = Framework::new()?;
/// let session = framework.session("gcm(aes)", &[7; 16])?.open()?;
/// let nonces = NonceCounter::new([0; 4]);
///
/// // One message.
/// let (nonce, mut message, mut tag) = (nonces.next()?, *b"attack at dawn", [0; 16]);
/// session.seal(&nonce, b"header", &mut message, &mut tag)?;
/// session.open(&nonce, b"header", &mut message, &tag)?;
/// assert_eq!(&message, b"attack at dawn");
///
/// // A batch: the messages fill the vector lanes together.
/// let (mut packets, mut tags) = ([[0; 64]; 16], [[0; 16]; 16]);
/// let mut requests = Vec::new();
/// for (packet, tag) in packets.iter_mut().zip(&mut tags) {
///     requests.push(Request::in_place(packet).iv(&nonces.next()?).tag(tag));
/// }
/// session.process(Direction::Encrypt, &mut requests)?;
/// // The same requests serve the other direction too.
/// session.process(Direction::Decrypt, &mut requests)?;
/// assert_eq!(packets, [[0; 64]; 16]);
/// # Ok::<(), cipherlane::Error>(())
/// ```
#[derive(Clone)]
pub struct Session {
    inner: Arc<Inner>,
    /// Behind `inner`: the last clone has let go of that when this closes the session.
    closing: Arc<Closing>,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.inner.fmt(f)
    }
}

/// Closes the session when the last clone of it is dropped.
struct Closing {
    /// They keep the session for their flights.
    callers: Callers,
    inner: Arc<Inner>,
}

/// What flights under way share with the session.
pub(crate) struct Inner {
    algorithm: &'static Algorithm,
    algorithm_index: usize,
    rules: Rules,
    tag_len: usize,
    goal: Goal,
    /// The only driver there is a choice of, if so.
    alone: Option<usize>,
    /// Up to which size the base serves.
    limits: Arc<Limits>,
    /// Whether the user forced it, and submitted work teaches what it costs all the same.
    forced: bool,
    /// By driver; `None` where the driver does not serve this session.
    transforms: Vec<Option<Box<dyn Transform>>>,
    /// By driver, bytes of a request at most.
    max_len: Vec<usize>,
    dispatch: Arc<Dispatch>,
    framework: Framework,
    /// The process that opened it.
    process: Process,
    idle: (Mutex<()>, Condvar),
    /// Whether somebody waits for `idle`: ringing it is a system call.
    is_closing: AtomicBool,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("algorithm", &self.algorithm.name)
            .field("goal", &self.goal)
            .finish_non_exhaustive()
    }
}

impl Session {
    /// The algorithm.
    pub fn algorithm(&self) -> &'static Algorithm {
        self.inner.algorithm
    }

    /// Bytes of the tag of each request.
    pub fn tag_len(&self) -> usize {
        self.inner.tag_len
    }

    /// Runs requests and waits for all of them. Each has its own
    /// [status](Request::status) afterwards; the error is that of the first that failed.
    /// Requests that break a rule are not run; the others are.
    #[inline]
    pub fn process(&self, direction: Direction, requests: &mut [Request<'_>]) -> Result<(), Error> {
        let inner = &*self.inner;
        let mut bytes = 0;
        let mut plain = true;
        for request in requests.iter_mut() {
            let status = inner.rules.check(request);
            request.set_status(status);
            plain &= status == Status::Pending && !request.is_scattered();
            bytes = request.len().saturating_add(bytes);
        }
        if plain && !requests.is_empty() {
            inner.run(direction, requests, bytes);
        } else {
            inner.run_mixed(direction, requests)?;
        }
        match requests.iter().all(|r| r.status() == Status::Done) {
            true => Ok(()),
            false => Err(inner.first_error(requests)),
        }
    }

    /// Hands a batch to a driver and returns at once, as far as the driver allows it.
    ///
    /// The ticket says how many requests were [taken](Ticket::taken), from the front; the
    /// rest stays in `batch`, for another try when work under way has landed.
    pub fn submit(&self, batch: &mut Batch) -> Result<Ticket, Error> {
        let inner = &self.inner;
        let (direction, requests) = (batch.direction, batch.requests.len());
        let bytes = batch.requests.iter().map(OwnedRequest::len).sum();
        let shape = Shape {
            mode: Mode::Submit,
            direction,
            requests,
            bytes,
        };
        let caller = self.closing.callers.own(inner);
        let submit_depth = &caller.submit_depth;
        let is_sample = inner.alone.is_none() && is_sample(&shape);
        // A look at the clock takes as long as a short batch: all batches are timed beside a device only.
        let is_timed = is_sample || inner.dispatch.has_devices() || submit_depth.is_due();
        let now = is_timed.then(|| inner.begin(submit_depth));
        let to = inner.choose_to_submit(&shape, submit_depth, (now, is_sample));
        let ticket = caller.submit_to(to, batch, &shape, now)?;
        // A device whose ring is full is no reason to wait.
        match ticket.taken() == 0 && inner.alone.is_none() && inner.is_device(to.0) {
            true => caller.submit_to((BASE, Purpose::Work), batch, &shape, now),
            false => Ok(ticket),
        }
    }

    /// Why a request was refused or failed, in words; `None` if it was not.
    pub fn error(&self, request: &Request<'_>) -> Option<Error> {
        self.inner.error(request.status(), &Lengths::of(request))
    }

    /// The same for a request of a landed [`Batch`].
    pub fn batch_error(&self, request: &OwnedRequest) -> Option<Error> {
        self.inner
            .error(request.status(), &Lengths::of_owned(request))
    }

    /// Waits for work under way and wipes the key, if this is the last clone. Dropping does the
    /// same.
    pub fn close(self) {}
}

impl Caller {
    /// Hands the front of a batch to a driver.
    fn submit_to(
        self: &Arc<Self>,
        (driver, purpose): (usize, Purpose),
        batch: &mut Batch,
        shape: &Shape,
        now: Option<u64>,
    ) -> Result<Ticket, Error> {
        let (inner, direction) = (&self.session, shape.direction);
        let transform = inner.transform(driver);
        let owned = take_front(batch, transform.room())?;
        if owned.is_empty() {
            return Ok(Ticket::of_results(self, Batch::new(direction)));
        }
        let taken = Shape {
            requests: owned.len(),
            bytes: shape.bytes / shape.requests * owned.len(),
            ..*shape
        };
        let submit_depth = &self.submit_depth;
        let runs_here = inner.runs_here(driver, &taken);
        let now = match now {
            None if runs_here && purpose == Purpose::Work => None,
            None => Some(inner.begin(submit_depth)),
            known => known,
        };
        let (false, Some(now)) = (runs_here, now) else {
            let to = (driver, purpose);
            let done = inner.run_submitted(to, direction, owned, (now, submit_depth));
            return Ok(Ticket::of_results(self, done));
        };
        let route = inner.depart(driver, purpose, &taken, now);
        let (flight, ticket) = Flight::new(self, (route, now), direction, owned);
        // Another flight than this one is none that can be given back: dropped, it is finished
        // in software.
        if let Err(flight) = transform.submit(direction, flight)
            && ticket.is_of(&flight)
        {
            let returned = flight.turn_back();
            batch.requests.splice(0..0, returned);
            return Ok(Ticket::of_results(self, Batch::new(direction)));
        }
        if inner.is_device(driver) {
            ticket.submitted(inner.now().saturating_sub(now));
        }
        Ok(ticket)
    }
}

impl Closing {
    fn new(inner: Arc<Inner>) -> Closing {
        Closing {
            callers: Callers::default(),
            inner,
        }
    }
}

impl Drop for Closing {
    fn drop(&mut self) {
        let Closing { callers, inner } = self;
        let (lock, bell) = &inner.idle;
        let mut guard = lock.lock().unwrap_or_else(PoisonError::into_inner);
        let started = Instant::now();
        inner.is_closing.store(true, Ordering::Relaxed);
        while callers.have_flights() {
            // In a forked child a flight may be with a thread that is not there.
            let orphaned = !inner.process.is_current();
            if orphaned && started.elapsed() > ORPHAN_PATIENCE {
                break;
            }
            let helped = inner.transforms.iter().flatten().any(|t| t.assist());
            if !helped {
                guard = bell
                    .wait_timeout(guard, Duration::from_millis(1))
                    .unwrap_or_else(PoisonError::into_inner)
                    .0;
            }
        }
        drop(guard);
        drop(std::mem::take(callers));
        // Whoever has just landed a flight or waited for one lets go of the session in a
        // moment; then this is the last owner, and the keys are wiped before it returns. Not
        // for ever: in a forked child an owner may be a thread that is not there.
        let patience = Instant::now() + Duration::from_secs(1);
        while Arc::strong_count(inner) > 1 && Instant::now() < patience {
            std::thread::yield_now();
        }
        cipherlane_kernels::wipe_stack();
    }
}
