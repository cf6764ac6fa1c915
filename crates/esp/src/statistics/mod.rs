//! Counters per SA; `shards` has a cache line per thread for what every batch counts.

mod shards;

use crate::Refusal;

pub(crate) use shards::Shards;

/// What one batch adds.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    /// Of all reasons together.
    refusals: u32,
    refused: [u32; Refusal::COUNT],
}

impl Tally {
    #[cold]
    pub(crate) fn refuse(&mut self, refusal: Refusal) {
        self.refusals += 1;
        self.refused[refusal.index()] += 1;
    }
}

/// What an SA has done. Counters wrap.
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
