//! The caller's side of submitted work: a [`Ticket`], and where it waits for its flight.

use std::cell::Cell;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use super::flight::{Arrival, Flight};
use super::{Caller, Inner};
use crate::batch::Batch;
use crate::dispatch::submit_depth::SubmitDepth;
use crate::{Direction, Process};

thread_local! {
    /// Whether this thread looks for finished work.
    pub(super) static LOOKING: Cell<bool> = const { Cell::new(false) };
}

/// How long a forked child waits for what its parent submitted.
pub(crate) const ORPHAN_PATIENCE: Duration = Duration::from_secs(1);

/// How long a caller looks for results before it sleeps: helpers have a piece of some microseconds,
/// and to wake the caller would take them longer; a device may take any time.
const HELPERS_PATIENCE: Duration = Duration::from_micros(20);
const DEVICE_PATIENCE: Duration = Duration::from_micros(5);
/// Looks between two looks at the clock.
const LOOKS: u32 = 16;

/// Where a flight lands and its ticket waits.
pub(super) struct Landing {
    /// The process that submitted.
    process: Process,
    direction: Direction,
    pub(super) landed: AtomicBool,
    /// Nanoseconds that the caller's core spent on submitting.
    pub(super) core: AtomicU64,
    pub(super) state: Mutex<State>,
    pub(super) bell: Condvar,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) arrival: Option<Arrival>,
    pub(super) waker: Option<Waker>,
    /// Whether a thread waits for the bell: ringing it is a system call.
    pub(super) awaited: bool,
}

impl Drop for State {
    fn drop(&mut self) {
        // Nobody took the results, of which there may be copies to wipe.
        drop(self.arrival.take().map(Arrival::into_batch));
    }
}

impl Landing {
    pub(super) fn new(direction: Direction) -> Landing {
        Landing {
            process: Process::current(),
            direction,
            landed: AtomicBool::new(false),
            core: AtomicU64::new(0),
            state: Mutex::default(),
            bell: Condvar::new(),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A claim on a submitted batch: poll it, wait for it, or await it. Dropping it lets the
/// work go on; the results are then thrown away.
///
/// ```
/// use cipherlane::{Batch, Direction, Framework, OwnedRequest, Payload};
///
/// let session = Framework::new()?.session("ctr(aes)", &[7; 16])?.open()?;
/// let mut batch = Batch::new(Direction::Encrypt);
/// let payload = Payload::InPlace(vec![0; 1 << 16]);
/// batch.push(OwnedRequest::new(payload).iv(vec![0; 16]));
/// let mut ticket = session.submit(&mut batch)?;
/// let done = loop {
///     // Other work of the caller.
///     match ticket.poll() {
///         Ok(done) => break done,
///         Err(again) => ticket = again,
///     }
/// };
/// assert_eq!(done.len(), 1);
/// # Ok::<(), cipherlane::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "a ticket is the only way to the results"]
pub struct Ticket {
    results: Results,
    submit_depth: Arc<SubmitDepth>,
    taken: usize,
}

/// Where the results are.
#[derive(Debug)]
enum Results {
    /// Here: the batch was done before the caller had the ticket.
    Here(Batch),
    /// With a flight.
    Awaited(Claim),
}

/// What a ticket knows of a flight.
#[derive(Debug)]
struct Claim {
    landing: Arc<Landing>,
    /// Weak: a ticket that somebody keeps must not keep the key.
    caller: Weak<Caller>,
    driver: usize,
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.submit_depth.take_back();
    }
}

impl std::fmt::Debug for Landing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Landing")
            .field("landed", &self.landed)
            .finish_non_exhaustive()
    }
}

impl Ticket {
    /// The claim on a flight that takes `taken` requests to a driver.
    pub(super) fn of_flight(
        caller: &Arc<Caller>,
        landing: Arc<Landing>,
        driver: usize,
        taken: usize,
    ) -> Ticket {
        let claim = Claim {
            landing,
            caller: Arc::downgrade(caller),
            driver,
        };
        Ticket::new(caller, Results::Awaited(claim), taken)
    }

    /// For a batch that is done.
    pub(super) fn of_results(caller: &Caller, batch: Batch) -> Ticket {
        let taken = batch.len();
        Ticket::new(caller, Results::Here(batch), taken)
    }

    fn new(caller: &Caller, results: Results, taken: usize) -> Ticket {
        caller.submit_depth.ticket();
        Ticket {
            results,
            submit_depth: caller.submit_depth.clone(),
            taken,
        }
    }

    /// How many requests the driver took; the rest is still in the submitted batch.
    pub fn taken(&self) -> usize {
        self.taken
    }

    /// Whether it is the claim on that flight.
    pub(crate) fn is_of(&self, flight: &Flight) -> bool {
        match &self.results {
            Results::Here(_) => false,
            Results::Awaited(claim) => flight.lands_at(&claim.landing),
        }
    }

    /// Whether the results are there.
    pub fn is_done(&self) -> bool {
        match &self.results {
            Results::Here(_) => true,
            Results::Awaited(claim) => claim.is_done(),
        }
    }

    /// Notes the nanoseconds of the caller's core that handing the batch over took.
    pub(crate) fn submitted(&self, nanoseconds: u64) {
        let Results::Awaited(claim) = &self.results else {
            return;
        };
        claim.landing.core.store(nanoseconds, Ordering::Relaxed);
        if let Some(caller) = claim.caller.upgrade() {
            caller.session.spend(claim.driver, nanoseconds);
        }
    }

    /// The results, if they are there; otherwise the ticket again.
    pub fn poll(mut self) -> Result<Batch, Ticket> {
        if let Results::Awaited(claim) = &self.results
            && !claim.is_done()
            && let Some(caller) = claim.caller.upgrade()
        {
            claim.look(&caller.session, &self.submit_depth);
        }
        match self.is_done() {
            true => Ok(self.results.take()),
            false => Err(self),
        }
    }

    /// Waits for the results. The waiting core helps with the driver's queued work.
    ///
    /// In a forked child the parent's work may be in the hands of a thread that only the
    /// parent has: it does not land there, and after a second the batch comes back empty.
    pub fn wait(mut self) -> Batch {
        if let Results::Awaited(claim) = &self.results
            && !claim.is_done()
            && !claim.await_landing(&self.submit_depth)
        {
            return Batch::new(claim.landing.direction);
        }
        self.results.take()
    }
}

impl Results {
    /// Takes results that are there.
    fn take(&mut self) -> Batch {
        match self {
            Results::Here(batch) => batch.take(),
            Results::Awaited(claim) => {
                let arrival = claim.landing.lock().arrival.take();
                arrival.expect("results are taken once").into_batch()
            }
        }
    }
}

impl Claim {
    fn is_done(&self) -> bool {
        self.landing.landed.load(Ordering::Acquire)
    }

    /// Looks whether the driver has finished something.
    fn look(&self, session: &Inner, submit_depth: &SubmitDepth) {
        let transform = session.transform(self.driver);
        if !session.is_device(self.driver) {
            return transform.poll();
        }
        let queue = session.queue(self.driver);
        let (began, finished) = (session.now(), queue.finished());
        LOOKING.set(true);
        transform.poll();
        LOOKING.set(false);
        let ended = session.now();
        queue.looked(ended);
        match queue.finished() - finished {
            0 => {}
            batches => queue.took_back(batches, ended.saturating_sub(began)),
        }
        // A caller that asks again and again, and does nothing else, is waiting.
        let waited = match self.is_done() {
            true => submit_depth.go_on(began),
            false => submit_depth.ask(began),
        };
        session.spend(self.driver, waited + (ended - began));
    }

    /// Looks for the results without sleeping. How long a pause of the processor is differs by a factor
    /// of three, so that the clock says when it is enough.
    fn is_done_within(&self, patience: Duration) -> bool {
        let began = Instant::now();
        loop {
            for _ in 0..LOOKS {
                if self.is_done() {
                    return true;
                }
                std::hint::spin_loop();
            }
            if began.elapsed() > patience {
                return false;
            }
        }
    }

    /// Waits until the results are there; false where they never will be.
    fn await_landing(&self, submit_depth: &SubmitDepth) -> bool {
        let started = Instant::now();
        let caller = self.caller.upgrade();
        let session = caller.as_ref().map(|caller| &*caller.session);
        let stalled = match session {
            Some(session) if !self.is_done() && session.is_device(self.driver) => {
                submit_depth.stall();
                let now = session.now();
                let before = submit_depth.go_on(now);
                let finished = session.queue(self.driver).finished();
                Some((now - before, session.clock().processor(), finished))
            }
            _ => None,
        };
        let transform = session.map(|session| session.transform(self.driver));
        while !self.is_done() {
            if transform.is_some_and(|transform| transform.assist()) {
                continue;
            }
            // Nothing to help with: the rest is under way elsewhere, and often almost done.
            let patience = match stalled {
                Some(_) => DEVICE_PATIENCE,
                None => HELPERS_PATIENCE,
            };
            if self.is_done_within(patience) {
                break;
            }
            let orphaned = !self.landing.process.is_current();
            if orphaned && started.elapsed() > ORPHAN_PATIENCE {
                return false;
            }
            let mut state = self.landing.lock();
            if !self.is_done() {
                state.awaited = true;
                // Wakes now and then to see whether there is work to help with.
                drop(
                    self.landing
                        .bell
                        .wait_timeout(state, Duration::from_millis(1)),
                );
            }
        }
        if let (Some(session), Some((since, processor, finished))) = (session, stalled) {
            session.spend(self.driver, session.now().saturating_sub(since));
            let queue = session.queue(self.driver);
            let used = session.clock().processor().saturating_sub(processor);
            let batches = queue.finished().saturating_sub(finished);
            queue.took_back(batches, used.as_nanos() as u64);
        }
        true
    }
}

impl Future for Ticket {
    type Output = Batch;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Batch> {
        let claim = match &mut self.get_mut().results {
            Results::Here(batch) => return Poll::Ready(batch.take()),
            Results::Awaited(claim) => claim,
        };
        let mut state = claim.landing.lock();
        match state.arrival.take() {
            Some(arrival) => Poll::Ready(arrival.into_batch()),
            None => {
                state.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}
