//! Counters an SA.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::Refusal;

/// What one batch adds.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    refused: [u32; Refusal::COUNT],
}

impl Tally {
    #[cold]
    pub(crate) fn refuse(&mut self, refusal: Refusal) {
        self.refused[refusal.index()] += 1;
    }
}

/// What an SA has done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Packets sealed, or accepted (dummies too).
    pub packets: u64,
    /// Their content in bytes.
    pub bytes: u64,
    /// Numbers that left the replay window without having been received. Inbound only.
    pub lost: u64,
    /// Packets refused, by [`Refusal::index`].
    pub refused: [u64; Refusal::COUNT],
}

/// The counters.
#[derive(Default)]
pub(crate) struct Shards {
    packets: AtomicU64,
    bytes: AtomicU64,
    refused: [AtomicU64; Refusal::COUNT],
}

impl Shards {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn add(&self, tally: &Tally) {
        self.packets.fetch_add(tally.packets, Ordering::Relaxed);
        self.bytes.fetch_add(tally.bytes, Ordering::Relaxed);
        for (counter, &more) in self.refused.iter().zip(&tally.refused) {
            if more > 0 {
                counter.fetch_add(more.into(), Ordering::Relaxed);
            }
        }
    }

    pub(crate) fn sum(&self) -> Statistics {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Statistics {
            packets: read(&self.packets),
            bytes: read(&self.bytes),
            lost: 0,
            refused: std::array::from_fn(|i| read(&self.refused[i])),
        }
    }
}
