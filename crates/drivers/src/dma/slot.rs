//! A request in the device's hands: its slot, its pieces, and who waits for it.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::Thread;

use super::parcel::Parcel;
use super::pieces::{Piece, Segment};
use super::pool::Extent;

/// One of the requests that can be under way at a time.
#[derive(Debug, Default)]
pub(super) struct Slot {
    /// Goes up with each use, so that a completion of an earlier one is known for what it is.
    pub(super) turn: u16,
    pub(super) phase: Phase,
    /// Whose request it is, until it has ended.
    pub(super) group: Option<Arc<Group>>,
    /// When the device was given it.
    pub(super) since_ns: u64,
    /// Bytes of payload.
    pub(super) payload: u64,
    /// Bytes of output that the device shall write.
    pub(super) expected: u64,
    pub(super) input: Side,
    pub(super) output: Side,
    /// Long additional data, or a key.
    pub(super) extra: Option<Extent>,
    /// Bytes that the driver copies for it.
    pub(super) copied: usize,
}

/// How far a slot's request is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Phase {
    /// The driver's: free, being filled, or being emptied.
    #[default]
    Idle,
    /// The device's.
    Flying,
    /// The driver's again.
    Ended(Outcome),
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The device reported it.
    Reported { status: u32, written: u64 },
    /// It was taken from the device, which never reported it.
    Aborted,
}

/// Input or output of a request.
#[derive(Debug, Default)]
pub(super) struct Side {
    pub(super) segments: Vec<Segment>,
    pub(super) pieces: Vec<Piece>,
    /// Of each piece, as the device sees it.
    pub(super) addresses: Vec<u64>,
    /// Where the copied pieces are.
    pub(super) bounce: Option<Extent>,
}

// SAFETY: the pointers lead to memory of a request whose owner waits for it, or of a flight
// that the group holds; whoever has the slot uses it alone.
unsafe impl Send for Slot {}

impl Side {
    pub(super) fn clear(&mut self) {
        self.segments.clear();
        self.pieces.clear();
        self.addresses.clear();
    }
}

/// Requests that were given to the device together, and who waits for them.
#[derive(Debug, Default)]
pub(super) struct Group {
    /// Requests that have not ended.
    left: AtomicU32,
    /// A caller that waits...
    waiter: Option<Thread>,
    /// ...or work of one that does not.
    pub(super) parcel: Mutex<Option<Box<Parcel>>>,
}

impl Group {
    /// For a caller that waits.
    pub(super) fn waiting(thread: Thread) -> Self {
        Group {
            waiter: Some(thread),
            ..Group::default()
        }
    }

    /// The device is given a request more.
    pub(super) fn begin(&self) {
        self.left.fetch_add(1, Ordering::Relaxed);
    }

    /// One has ended; says whether it was the last.
    pub(super) fn end(&self) -> bool {
        // Release, and Acquire in `is_done`: whoever sees zero sees the outcomes.
        self.left.fetch_sub(1, Ordering::AcqRel) == 1
    }

    pub(super) fn is_done(&self) -> bool {
        self.left.load(Ordering::Acquire) == 0
    }

    /// Wakes the caller that waits; `false` if nobody does, since it is a flight.
    pub(super) fn wake(&self) -> bool {
        if let Some(thread) = &self.waiter {
            thread.unpark();
        }
        self.waiter.is_some()
    }
}
