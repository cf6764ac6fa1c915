//! One place of the ring: written by the ticket's holder, emptied by the drainer.

use crate::sync::{AtomicU64, Ordering, UnsafeCell};

/// Nobody has finished.
const EMPTY: u64 = 0;
/// There is a result.
const DONE: u64 = 1;
/// There will be none.
const PASSED_OVER: u64 = 2;

/// A result that one thread leaves and another takes.
#[repr(align(64))]
pub(super) struct Slot<T> {
    state: AtomicU64,
    result: UnsafeCell<Option<T>>,
}

/// What a drainer found.
pub(super) enum Taken<T> {
    Result(T),
    Nothing,
}

// SAFETY: the result is touched by one thread at a time: while the state is EMPTY by the
// holder of the one ticket of this place (a ticket is given only after the last one's
// result was taken), and otherwise by the one drainer. The state's release and acquire
// hand it over.
#[allow(unsafe_code)]
unsafe impl<T: Send> Sync for Slot<T> {}

impl<T> Slot<T> {
    pub(super) fn new() -> Self {
        Slot {
            state: AtomicU64::new(EMPTY),
            result: UnsafeCell::new(None),
        }
    }

    /// By the holder of the place's ticket, who gives it up.
    #[inline]
    pub(super) fn put(&self, result: T) {
        // SAFETY: see `Sync`: the state is EMPTY, and this is the ticket's holder.
        #[allow(unsafe_code)]
        self.result.with_mut(|p| unsafe { *p = Some(result) });
        self.state.store(DONE, Ordering::Release);
    }

    /// By the holder of the place's ticket, who gives it up.
    pub(super) fn pass_over(&self) {
        self.state.store(PASSED_OVER, Ordering::Release);
    }

    /// By the drainer, when it is the turn of this place.
    #[inline]
    pub(super) fn take(&self) -> Option<Taken<T>> {
        let state = self.state.load(Ordering::Acquire);
        if state == EMPTY {
            return None;
        }
        // SAFETY: see `Sync`: the state is not EMPTY, and this is the drainer.
        #[allow(unsafe_code)]
        let result = self.result.with_mut(|p| unsafe { (*p).take() });
        // The next ticket of this place follows from the drainer's count of places.
        self.state.store(EMPTY, Ordering::Relaxed);
        Some(result.map_or(Taken::Nothing, Taken::Result))
    }
}
