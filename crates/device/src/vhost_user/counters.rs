//! What is counted. One thread writes; whoever asks for the status reads.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use super::operation::Refusal;

/// Classes of batch sizes: 1, 2 to 3, 4 to 7, ... and the last without an end.
pub(crate) const CLASSES: usize = 8;

/// Counters since the start.
#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) connections: AtomicU64,
    pub(crate) messages: AtomicU64,
    pub(crate) messages_refused: AtomicU64,
    pub(crate) sessions_opened: AtomicU64,
    pub(crate) sessions_closed: AtomicU64,
    pub(crate) sessions_refused: AtomicU64,
    pub(crate) requests: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) refused: [AtomicU64; Refusal::ALL.len()],
    pub(crate) kicks: AtomicU64,
    pub(crate) batches: [AtomicU64; CLASSES],
    pub(crate) groups: AtomicU64,
    pub(crate) rings_running: AtomicU64,
    pub(crate) rings_stopped: AtomicU64,
    pub(crate) pauses: AtomicU64,
}

impl Counters {
    /// A kick.
    pub(crate) fn kick(&self) {
        add(&self.kicks, 1);
    }

    /// A batch of this number of requests, served and refused.
    pub(crate) fn batch(&self, requests: usize) {
        let class = requests.max(1).ilog2() as usize;
        add(&self.batches[class.min(CLASSES - 1)], 1);
    }

    /// A call of a session.
    pub(crate) fn group(&self) {
        add(&self.groups, 1);
    }

    /// A request that was served.
    pub(crate) fn served(&self, bytes: usize) {
        add(&self.requests, 1);
        add(&self.bytes, bytes as u64);
    }

    /// A request that was refused.
    pub(crate) fn refused(&self, refusal: Refusal) {
        add(&self.refused[refusal as usize], 1);
    }
}

/// Without a locked instruction: only the thread that serves writes.
pub(crate) fn add(counter: &AtomicU64, count: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(count), Relaxed);
}
