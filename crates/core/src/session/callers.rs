//! What the submitted batches of one thread share. Each thread that submits to a session has its own,
//! so that threads with one session write to no cache line together: a batch changes about twenty
//! words of this, and a word that another core has changed last takes as long as ten that it has not.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use super::Inner;
use super::flight::Route;
use crate::dispatch::submit_depth::SubmitDepth;
use crate::thread_number;

/// Places of threads in a session. More threads than that share them.
const PLACES: usize = 128;

/// The threads that submit to a session, by their number.
#[derive(Default)]
pub(super) struct Callers(OnceLock<Box<[OnceLock<Arc<Caller>>]>>);

impl Callers {
    /// This thread's.
    pub(super) fn own(&self, session: &Arc<Inner>) -> &Arc<Caller> {
        let places = self
            .0
            .get_or_init(|| (0..PLACES).map(|_| OnceLock::new()).collect());
        let place = thread_number().unwrap_or(0) % PLACES;
        places[place].get_or_init(|| Arc::new(Caller::new(session)))
    }

    /// Whether a flight has not landed. While nobody submits, what lands is seen with all that was
    /// done to it.
    pub(super) fn have_flights(&self) -> bool {
        let places = self.0.get().into_iter().flatten();
        let mut callers = places.filter_map(OnceLock::get);
        callers.any(|caller| caller.under_way.load(Ordering::Acquire) > 0)
    }
}

/// One thread that submits to a session. Flights keep it, and it keeps the session, so that no flight
/// counts the owners of the session itself.
#[repr(align(128))]
pub(crate) struct Caller {
    pub(super) session: Arc<Inner>,
    /// How this caller works. A ticket keeps that and not the key.
    pub(super) submit_depth: Arc<SubmitDepth>,
    /// Flights that have not landed.
    under_way: AtomicU32,
    /// Those of them that no device has.
    at_home: AtomicU32,
}

impl Caller {
    fn new(session: &Arc<Inner>) -> Caller {
        Caller {
            session: session.clone(),
            submit_depth: Arc::new(SubmitDepth::default()),
            under_way: AtomicU32::new(0),
            at_home: AtomicU32::new(0),
        }
    }

    /// A flight begins; returns how many of this caller share its driver's time with it, itself
    /// included.
    pub(super) fn take_off(&self, route: &Route) -> u32 {
        self.under_way.fetch_add(1, Ordering::Relaxed);
        if route.queued.is_some() {
            return 0;
        }
        self.at_home.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// A flight has landed, or was turned back.
    pub(super) fn touch_down(&self, route: &Route) {
        if route.queued.is_none() {
            self.at_home.fetch_sub(1, Ordering::Relaxed);
        }
        // Release: whoever closes the session sees that all use of its memory is over.
        let is_last = self.under_way.fetch_sub(1, Ordering::Release) == 1;
        if is_last {
            self.session.ring_if_closing();
        }
    }
}
