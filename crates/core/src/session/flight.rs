//! The driver's side of submitted work: a [`Flight`].

use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::armed::Armed;
use super::ticket::{LOOKING, Landing, Ticket};
use super::{Caller, Landed};
use crate::Direction;
use crate::batch::{Batch, OwnedRequest};
use crate::dispatch::queue::{Found, QueuedBatch};
use crate::request::{Request, Status};
use crate::verify::Pick;

/// A submitted batch in the hands of a driver, which runs its requests on any thread and
/// then calls [`finish`](Self::finish). One that is dropped unfinished is finished in
/// software, so that nothing is lost.
pub struct Flight {
    /// `None` once landed. Boxed: flights are handed from one to another.
    cargo: Option<Box<Cargo>>,
}

struct Cargo {
    direction: Direction,
    armed: Armed,
    route: Route,
    /// Nanoseconds, by the framework's clock.
    started: u64,
    /// Flights of the caller that shared the driver's time when this one started, itself included.
    depth: u32,
    caller: Arc<Caller>,
    landing: Arc<Landing>,
    /// What is to be verified of it.
    pick: Option<Pick>,
}

/// A flight that has landed. The thread that takes the results does the rest of the work: it has the
/// batch in its caches, and its heap had the memory.
pub(super) struct Arrival {
    direction: Direction,
    armed: Armed,
    _cargo: Box<MaybeUninit<Cargo>>,
}

impl Arrival {
    /// The results.
    pub(super) fn into_batch(self) -> Batch {
        Batch {
            direction: self.direction,
            requests: self.armed.disarm(),
        }
    }
}

/// Moves a cargo out of its box.
fn unpack(cargo: Box<Cargo>) -> (Cargo, Box<MaybeUninit<Cargo>>) {
    let memory = Box::into_raw(cargo);
    // SAFETY: it comes from a box, and is read once: what stays in the memory is not dropped.
    unsafe { (memory.read(), Box::from_raw(memory.cast())) }
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

impl Flight {
    /// Arms `owned` for a driver, submitted at the time `started`; requests that break a rule
    /// are not shown to it.
    pub(crate) fn new(
        caller: &Arc<Caller>,
        (route, started): (Route, u64),
        direction: Direction,
        owned: Vec<OwnedRequest>,
    ) -> (Flight, Ticket) {
        let taken = owned.len();
        let armed = Armed::new(&caller.session, owned);
        let landing = Arc::new(Landing::new(direction));
        let depth = caller.take_off(&route);
        let driver = route.driver;
        let cargo = Cargo {
            direction,
            armed,
            route,
            started,
            depth,
            caller: caller.clone(),
            landing: landing.clone(),
            pick: None,
        };
        let flight = Flight {
            cargo: Some(Box::new(cargo)),
        };
        (flight, Ticket::of_flight(caller, landing, driver, taken))
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

    /// Whether it lands there.
    pub(super) fn lands_at(&self, landing: &Arc<Landing>) -> bool {
        let cargo = self.cargo.as_ref();
        cargo.is_some_and(|cargo| Arc::ptr_eq(&cargo.landing, landing))
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
        f(self.cargo().armed.requests())
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
        cargo.caller.session.turned_back(&cargo.route);
        cargo.caller.touch_down(&cargo.route);
        cargo.armed.turn_back()
    }

    fn land(&mut self) {
        let Some(cargo) = self.cargo.take() else {
            return;
        };
        let (cargo, memory) = unpack(cargo);
        let Cargo {
            direction,
            mut armed,
            route,
            started,
            depth,
            caller,
            landing,
            pick,
        } = cargo;
        let landed = Landed {
            route: &route,
            direction,
            started,
            depth,
            submit_depth: &caller.submit_depth,
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
                pick.landed(direction, armed.requests());
            }
            caller.session.landed(landed, armed.requests());
        }));
        if settled.is_err() {
            armed.fail();
        }
        let (waker, awaited) = {
            let mut state = landing.lock();
            state.arrival = Some(Arrival {
                direction,
                armed,
                _cargo: memory,
            });
            // Release: whoever sees `landed` sees the results.
            landing.landed.store(true, Ordering::Release);
            (state.waker.take(), state.awaited)
        };
        if awaited {
            landing.bell.notify_all();
        }
        caller.touch_down(&route);
        // Before anybody is woken who may close the session: closing waits until this
        // was the last but one to let go of it.
        drop(caller);
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
            .requests()
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
