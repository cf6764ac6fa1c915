//! Owned requests as a driver sees them: checked, flat, and over their owners' memory.

use super::Inner;
use crate::batch::OwnedRequest;
use crate::request::{Request, Status};

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
        let mut requests = Vec::with_capacity(owned.len());
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

    /// The requests with their results, each with the status that `status` makes of what the driver
    /// left.
    #[inline]
    pub(super) fn disarm(self, status: impl Fn(Status) -> Status) -> Vec<OwnedRequest> {
        let Armed {
            requests,
            places,
            mut owned,
        } = self;
        for (index, request) in requests.iter().enumerate() {
            let place = places.get(index).map_or(index, |&place| place as usize);
            owned[place].disarm(status(request.status()));
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
