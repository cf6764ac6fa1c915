//! Work under way: the driver's side is a [`Flight`], the caller's a [`Ticket`].

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use super::{Inner, Landed};
use crate::batch::{Batch, OwnedRequest};
use crate::dispatch::BASE;
use crate::dispatch::queue::{Found, QueuedBatch};
use crate::dispatch::submit_depth::SubmitDepth;
use crate::request::{Request, Status};
use crate::verify::Pick;
use crate::{Direction, Process};

/// A submitted batch in the hands of a driver, which runs its requests on any thread and
/// then calls [`finish`](Self::finish). One that is dropped unfinished is finished in
/// software, so that nothing is lost.
pub struct Flight {
    /// `None` once landed. Boxed: flights are handed from one to another.
    cargo: Option<Box<Cargo>>,
}

struct Cargo {
    direction: Direction,
    /// Requests that passed the checks; their memory is in `owned`.
    armed: Vec<Request<'static>>,
    /// For each armed request, its place in `owned`.
    places: Vec<u32>,
    owned: Vec<OwnedRequest>,
    route: Route,
    /// Nanoseconds, by the framework's clock.
    started: u64,
    /// Flights of the session under way at home when this one started, itself included.
    depth: u32,
    session: Arc<Inner>,
    landing: Arc<Landing>,
    /// What is to be verified of it.
    pick: Option<Pick>,
}

/// Why a flight goes to its driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The driver was chosen.
    Work,
    /// The driver is going to be tried, and should be awake and have a queue by then.
    WarmUp,
    /// The driver is tried.
    Trial,
}

/// Where a flight goes.
#[derive(Debug)]
pub(crate) struct Route {
    pub(crate) driver: usize,
    pub(crate) purpose: Purpose,
    /// Whether the driver's helpers slept: how long the batch takes is not what they are worth.
    pub(crate) slept: bool,
    /// Its place in the queue, if the driver is a device.
    pub(crate) queued: Option<QueuedBatch>,
}

impl Route {
    /// To the base driver.
    pub(crate) fn home() -> Route {
        Route {
            driver: BASE,
            purpose: Purpose::Work,
            slept: false,
            queued: None,
        }
    }
}

thread_local! {
    /// Whether this thread looks for finished work.
    static LOOKING: Cell<bool> = const { Cell::new(false) };
}

/// How long a forked child waits for what its parent submitted.
pub(crate) const ORPHAN_PATIENCE: Duration = Duration::from_secs(1);

/// Where a flight lands and its ticket waits.
struct Landing {
    /// The process that submitted.
    process: Process,
    direction: Direction,
    landed: AtomicBool,
    /// Nanoseconds that the caller's core spent on submitting.
    core: AtomicU64,
    state: Mutex<State>,
    bell: Condvar,
}

#[derive(Default)]
struct State {
    batch: Option<Batch>,
    waker: Option<Waker>,
    /// Whether a thread waits for the bell: ringing it is a system call.
    awaited: bool,
}

impl Landing {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Flight {
    /// Arms `owned` for a driver, submitted at the time `started`; requests that break a rule
    /// are not shown to it.
    pub(crate) fn new(
        session: &Arc<Inner>,
        (route, started): (Route, u64),
        direction: Direction,
        mut owned: Vec<OwnedRequest>,
    ) -> (Flight, Ticket) {
        let mut armed = Vec::with_capacity(owned.len());
        let mut places = Vec::with_capacity(owned.len());
        for (place, request) in owned.iter_mut().enumerate() {
            // SAFETY: `owned` stays in this flight, untouched, until the armed requests
            // have been dropped in `land`.
            let flat = unsafe { request.arm() };
            match session.check(&flat) {
                Status::Pending => {
                    armed.push(flat);
                    places.push(place as u32);
                }
                refused => request.disarm(refused),
            }
        }
        let landing = Arc::new(Landing {
            process: Process::current(),
            direction,
            landed: AtomicBool::new(false),
            core: AtomicU64::new(0),
            state: Mutex::default(),
            bell: Condvar::new(),
        });
        let taken = owned.len();
        let depth = session.take_off(&route);
        session.submit_depth.ticket();
        let driver = route.driver;
        let cargo = Cargo {
            direction,
            armed,
            places,
            owned,
            route,
            started,
            depth,
            session: session.clone(),
            landing: landing.clone(),
            pick: None,
        };
        (
            Flight {
                cargo: Some(Box::new(cargo)),
            },
            Ticket {
                landing,
                session: Arc::downgrade(session),
                submit_depth: session.submit_depth.clone(),
                driver,
                taken,
            },
        )
    }

    /// Has a request of it verified when it lands.
    pub(crate) fn pick(&mut self, pick: Pick) {
        self.cargo().pick = Some(pick);
    }

    fn cargo(&mut self) -> &mut Cargo {
        self.cargo
            .as_mut()
            .expect("a flight has its cargo until it lands")
    }

    /// Which way.
    pub fn direction(&self) -> Direction {
        self.cargo
            .as_ref()
            .expect("a flight has its cargo until it lands")
            .direction
    }

    /// Shows the requests to run to `f`: checked and flat.
    ///
    /// Their memory is the flight's, so that none of them can be kept when `f` has returned:
    ///
    /// ```compile_fail,E0521
    /// fn keep(flight: &mut cipherlane_core::Flight) {
    ///     let mut kept = None;
    ///     flight.with_requests(|requests| kept = requests.first_mut());
    /// }
    /// ```
    pub fn with_requests<R>(
        &mut self,
        f: impl for<'flight> FnOnce(&mut [Request<'flight>]) -> R,
    ) -> R {
        f(&mut self.cargo().armed)
    }

    /// Hands the requests back to the caller, each with its final status.
    pub fn finish(mut self) {
        self.land();
    }

    /// A flight that the driver had no room for: its requests, as they were.
    pub(crate) fn turn_back(mut self) -> Vec<OwnedRequest> {
        let cargo = self
            .cargo
            .take()
            .expect("a flight has its cargo until it lands");
        cargo.session.turned_back(&cargo.route);
        cargo.session.touch_down(&cargo.route);
        let Cargo {
            armed, mut owned, ..
        } = *cargo;
        drop(armed);
        for request in &mut owned {
            let status = request.status;
            request.disarm(status);
        }
        owned
    }

    fn land(&mut self) {
        let Some(cargo) = self.cargo.take() else {
            return;
        };
        let Cargo {
            direction,
            mut armed,
            places,
            mut owned,
            route,
            started,
            depth,
            session,
            landing,
            pick,
        } = *cargo;
        let landed = Landed {
            route: &route,
            direction,
            started,
            depth,
            core: landing.core.load(Ordering::Relaxed),
            found: match LOOKING.get() {
                true => Found::Polling,
                false => Found::Landed,
            },
        };
        // A driver may have put requests in the place of these that the kernels panic at. The
        // results land all the same: a caller waits for them, and so does the session's end.
        let settled = catch_unwind(AssertUnwindSafe(|| {
            if let Some(pick) = pick {
                pick.landed(direction, &mut armed);
            }
            session.landed(landed, &mut armed);
        }));
        let final_status = |request: &Request<'_>| match (request.status(), &settled) {
            (Status::Pending | Status::Untouched, Err(_)) => Status::Failed,
            (status, _) => status,
        };
        let statuses: Vec<Status> = armed.iter().map(final_status).collect();
        drop(armed);
        for (place, status) in places.into_iter().zip(statuses) {
            owned[place as usize].disarm(status);
        }
        let (waker, awaited) = {
            let mut state = landing.lock();
            state.batch = Some(Batch {
                direction,
                requests: owned,
            });
            // Release: whoever sees `landed` sees the results.
            landing.landed.store(true, Ordering::Release);
            (state.waker.take(), state.awaited)
        };
        if awaited {
            landing.bell.notify_all();
        }
        session.touch_down(&route);
        // Before anybody is woken who may close the session: closing waits until this
        // was the last but one to let go of it.
        drop(session);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        let Some(cargo) = &mut self.cargo else { return };
        for request in cargo
            .armed
            .iter_mut()
            .filter(|r| r.status() == Status::Pending)
        {
            // What the driver did before it dropped the flight is unknown: an input that
            // is its own output may be half written.
            request.set_status(match request.is_in_place() {
                true => Status::Failed,
                false => Status::Untouched,
            });
        }
        self.land();
    }
}

impl std::fmt::Debug for Flight {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Flight")
            .field("requests", &self.cargo.as_ref().map(|c| c.armed.len()))
            .finish_non_exhaustive()
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
    landing: Arc<Landing>,
    /// Weak: a ticket that somebody keeps must not keep the key.
    session: Weak<Inner>,
    submit_depth: Arc<SubmitDepth>,
    driver: usize,
    taken: usize,
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
    /// How many requests the driver took; the rest is still in the submitted batch.
    pub fn taken(&self) -> usize {
        self.taken
    }

    /// Whether it is the claim on that flight.
    pub(crate) fn is_of(&self, flight: &Flight) -> bool {
        let cargo = flight.cargo.as_ref();
        cargo.is_some_and(|cargo| Arc::ptr_eq(&cargo.landing, &self.landing))
    }

    /// Whether the results are there.
    pub fn is_done(&self) -> bool {
        self.landing.landed.load(Ordering::Acquire)
    }

    /// Notes the nanoseconds of the caller's core that handing the batch over took.
    pub(crate) fn submitted(&self, nanoseconds: u64) {
        self.landing.core.store(nanoseconds, Ordering::Relaxed);
        if let Some(session) = self.session.upgrade() {
            session.spend(self.driver, nanoseconds);
        }
    }

    /// Looks whether the driver has finished something.
    fn look(&self, session: &Inner) {
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
            true => self.submit_depth.go_on(began),
            false => self.submit_depth.ask(began),
        };
        session.spend(self.driver, waited + (ended - began));
    }

    /// The results, if they are there; otherwise the ticket again.
    pub fn poll(self) -> Result<Batch, Ticket> {
        if !self.is_done()
            && let Some(session) = self.session.upgrade()
        {
            self.look(&session);
        }
        if self.is_done() {
            Ok(self
                .landing
                .lock()
                .batch
                .take()
                .expect("results are taken once"))
        } else {
            Err(self)
        }
    }

    /// Waits for the results. The waiting core helps with the driver's queued work.
    ///
    /// In a forked child the parent's work may be in the hands of a thread that only the
    /// parent has: it does not land there, and after a second the batch comes back empty.
    pub fn wait(self) -> Batch {
        let started = Instant::now();
        let session = self.session.upgrade();
        let stalled = match &session {
            Some(session) if !self.is_done() && session.is_device(self.driver) => {
                self.submit_depth.stall();
                let now = session.now();
                let before = self.submit_depth.go_on(now);
                let finished = session.queue(self.driver).finished();
                Some((now - before, session.clock().processor(), finished))
            }
            _ => None,
        };
        let transform = session
            .as_ref()
            .map(|session| session.transform(self.driver));
        while !self.is_done() {
            if transform.is_some_and(|transform| transform.assist()) {
                continue;
            }
            // Nothing to help with: the rest is under way elsewhere, and often almost done.
            for _ in 0..200 {
                if self.is_done() {
                    break;
                }
                std::hint::spin_loop();
            }
            let orphaned = !self.landing.process.is_current();
            if orphaned && started.elapsed() > ORPHAN_PATIENCE {
                return Batch::new(self.landing.direction);
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
        if let (Some(session), Some((since, processor, finished))) = (&session, stalled) {
            session.spend(self.driver, session.now().saturating_sub(since));
            let queue = session.queue(self.driver);
            let used = session.clock().processor().saturating_sub(processor);
            let batches = queue.finished().saturating_sub(finished);
            queue.took_back(batches, used.as_nanos() as u64);
        }
        self.landing
            .lock()
            .batch
            .take()
            .expect("results are taken once")
    }
}

impl Future for Ticket {
    type Output = Batch;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Batch> {
        let mut state = self.landing.lock();
        match state.batch.take() {
            Some(batch) => Poll::Ready(batch),
            None => {
                state.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}
