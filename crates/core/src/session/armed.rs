//! Owned requests as a driver sees them: checked, flat, and over their owners' memory.

use std::cell::RefCell;

use arrayvec::ArrayVec;

use super::Inner;
use crate::batch::OwnedRequest;
use crate::request::{Request, Status};

/// Vectors that a thread keeps, and the most requests that one of them has room for.
const SPARES: usize = 16;
const LARGEST_SPARE: usize = 256;

thread_local! {
    /// Vectors of batches whose results this thread has, for the next ones that it submits. From half
    /// a kilobyte on, an allocation takes the lock of the heap: a driver's thread that freed what this
    /// thread allocates would make both wait for each other.
    static SPARE: RefCell<ArrayVec<Vec<Request<'static>>, SPARES>> =
        const { RefCell::new(ArrayVec::new_const()) };
}

/// An empty vector.
#[inline]
fn spare() -> Vec<Request<'static>> {
    let spare = SPARE.try_with(|spare| spare.borrow_mut().pop());
    spare.ok().flatten().unwrap_or_default()
}

/// A batch that is with a driver.
pub(super) struct Armed {
    /// Requests that passed the checks; their memory is in `owned`.
    requests: Vec<Request<'static>>,
    /// For each of them, its place in `owned`; empty if all have passed.
    places: Vec<u32>,
    owned: Vec<OwnedRequest>,
}

impl Armed {
    /// Arms all requests that break no rule.
    #[inline]
    pub(super) fn new(session: &Inner, mut owned: Vec<OwnedRequest>) -> Armed {
        let mut requests = spare();
        requests.reserve(owned.len());
        // SAFETY: `owned` stays here, and its memory untouched, until the requests have served:
        // `disarm` and `turn_back` take both.
        requests.extend(owned.iter_mut().map(|request| unsafe { request.arm() }));
        let mut passed = true;
        for request in &mut requests {
            let status = session.check(request);
            request.set_status(status);
            passed &= status == Status::Pending;
        }
        let mut armed = Armed {
            requests,
            places: Vec::new(),
            owned,
        };
        if !passed {
            armed.sort_out();
        }
        armed
    }

    /// Takes out what broke a rule.
    #[cold]
    fn sort_out(&mut self) {
        for (place, request) in self.requests.iter().enumerate() {
            match request.status() {
                Status::Pending => self.places.push(place as u32),
                refused => self.owned[place].disarm(refused),
            }
        }
        self.requests.retain(|r| r.status() == Status::Pending);
    }

    /// For a driver. None of them may be kept.
    #[inline]
    pub(super) fn requests(&mut self) -> &mut [Request<'static>] {
        &mut self.requests
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.requests.len()
    }

    /// What a driver left without a final status has failed.
    #[cold]
    pub(super) fn fail(&mut self) {
        for request in &mut self.requests {
            if matches!(request.status(), Status::Pending | Status::Untouched) {
                request.set_status(Status::Failed);
            }
        }
    }

    /// The requests with their results. Whoever takes them keeps the memory of the rest for batches to
    /// come.
    #[inline]
    pub(super) fn disarm(self) -> Vec<OwnedRequest> {
        let Armed {
            mut requests,
            places,
            mut owned,
        } = self;
        for (index, request) in requests.iter().enumerate() {
            let place = places.get(index).map_or(index, |&place| place as usize);
            owned[place].disarm(request.status());
        }
        requests.clear();
        if requests.capacity() <= LARGEST_SPARE {
            // Where there is no place for it, or where the thread ends, it is dropped.
            let _ = SPARE.try_with(|spare| drop(spare.borrow_mut().try_push(requests)));
        }
        owned
    }

    /// The requests as they were.
    pub(super) fn turn_back(self) -> Vec<OwnedRequest> {
        let mut owned = self.owned;
        for request in &mut owned {
            request.disarm(request.status());
        }
        owned
    }
}
