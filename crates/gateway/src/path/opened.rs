//! The buffers of a thread, and what was opened in them and waits for its turn to be written.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use arrayvec::ArrayVec;
use cipherlane_esp::order::SLOTS;

use super::inbound::Places;

/// How long packets wait for those before them, which another thread has: longer than the system
/// keeps a thread from its processor, unless it has much else to do.
const PATIENCE: Duration = Duration::from_millis(10);

/// The most buffers of a thread.
const MOST_BUFFERS: usize = 8;

/// The most batches that wait: one read may bring packets of several tunnels.
const MOST_BATCHES: usize = 64;

/// Packets of one tunnel that were opened together.
pub(super) struct Batch {
    /// Of the tunnel's inbound SA.
    pub(super) spi: u32,
    /// The buffer that they lie in, and where.
    pub(super) buffer: usize,
    pub(super) places: Places,
    /// Where the tunnel's turns hold it.
    pub(super) slot: usize,
    /// The first sequence number, or another number that tells the order of batches.
    pub(super) first: u64,
    /// See [`flow`](super::turn::flow).
    pub(super) flows: u32,
    /// When it came, by [`Readers::arrived`](cipherlane_esp::order::Readers::arrived).
    pub(super) arrived: u64,
    /// Since when the batch waits.
    since: Option<Instant>,
}

impl Batch {
    fn new() -> Self {
        Batch {
            spi: 0,
            buffer: 0,
            places: Places::new(),
            slot: 0,
            first: 0,
            flows: 0,
            arrived: 0,
            since: None,
        }
    }

    /// Notes that it waits; whether it has done so for long enough.
    pub(super) fn is_overdue(&mut self) -> bool {
        match self.since {
            Some(since) => since.elapsed() > PATIENCE,
            None => {
                self.since = Some(Instant::now());
                false
            }
        }
    }

    /// Whether it is asked for the first time.
    pub(super) fn is_fresh(&self) -> bool {
        self.since.is_none()
    }
}

/// The buffers of a thread and what waits in them.
pub(super) struct Opened {
    buffers: Box<[Box<[u8]>]>,
    /// The buffers that nothing waits in; the last one is read into next, since it is still in the
    /// processor's cache.
    free: ArrayVec<usize, MOST_BUFFERS>,
    /// The oldest first.
    batches: VecDeque<Box<Batch>>,
    /// Batches that are used again: nothing is allocated while packets are carried.
    #[expect(
        clippy::vec_box,
        reason = "a batch of a kilobyte moves to the queue and back"
    )]
    unused: Vec<Box<Batch>>,
}

impl Opened {
    /// With `count` buffers of `len` bytes.
    pub(super) fn new(count: usize, len: usize) -> Self {
        let count = count.clamp(1, MOST_BUFFERS);
        // With one buffer nothing waits: what was opened is written at once.
        let batches = if count == 1 { 1 } else { MOST_BATCHES };
        let batch = |_| Box::new(Batch::new());
        Opened {
            buffers: (0..count).map(|_| vec![0; len].into()).collect(),
            free: (0..count).collect(),
            batches: VecDeque::with_capacity(batches),
            unused: (0..batches).map(batch).collect(),
        }
    }

    /// Whether nothing can be read before something is written.
    pub(super) fn is_full(&self) -> bool {
        self.free.is_empty() || self.unused.is_empty()
    }

    /// A slot in which nothing of a tunnel is held.
    pub(super) fn free_slot(&self, spi: u32) -> Option<usize> {
        let of_tunnel = || self.batches.iter().filter(|batch| batch.spi == spi);
        (0..SLOTS).find(|slot| of_tunnel().all(|batch| batch.slot != *slot))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// Batches that wait.
    pub(super) fn len(&self) -> usize {
        self.batches.len()
    }

    /// The buffer that is read into: its number and its bytes. One is free.
    #[inline]
    pub(super) fn room(&mut self) -> (usize, &mut [u8]) {
        let place = self.free.last().copied().unwrap_or(0);
        (place, &mut self.buffers[place])
    }

    /// A batch to be filled, if there is one.
    pub(super) fn take(&mut self) -> Option<Box<Batch>> {
        self.unused.pop()
    }

    /// A batch that has nothing in it any more.
    pub(super) fn give_back(&mut self, mut batch: Box<Batch>) {
        batch.places.clear();
        batch.since = None;
        self.unused.push(batch);
    }

    /// A batch waits, behind all others.
    pub(super) fn push(&mut self, batch: Box<Batch>) {
        self.free.retain(|place| *place != batch.buffer);
        self.batches.push_back(batch);
    }

    /// A batch that has only batches of other flows before it, counted from the oldest.
    #[inline]
    pub(super) fn first_of_its_flows(&mut self, place: usize) -> Option<&mut Batch> {
        let batch = self.batches.get(place)?;
        let mut before = self.batches.iter().take(place);
        let is_first = before.all(|other| other.spi != batch.spi || other.flows & batch.flows == 0);
        let batch = self.batches.get_mut(place)?;
        is_first.then_some(&mut **batch)
    }

    /// Takes a batch out, to be written from its buffer.
    pub(super) fn remove(&mut self, place: usize) -> Option<Box<Batch>> {
        self.batches.remove(place)
    }

    pub(super) fn buffer(&mut self, place: usize) -> &mut [u8] {
        &mut self.buffers[place]
    }

    /// A batch was written: its buffer is free, unless others wait in it.
    pub(super) fn written(&mut self, batch: Box<Batch>) {
        let buffer = batch.buffer;
        self.give_back(batch);
        let is_used = self.batches.iter().any(|other| other.buffer == buffer);
        if !is_used && !self.free.contains(&buffer) {
            self.free.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(opened: &mut Opened, (spi, flows): (u32, u32)) {
        let mut batch = opened.take().unwrap();
        (batch.buffer, _) = opened.room();
        (batch.spi, batch.flows) = (spi, flows);
        batch.slot = opened.free_slot(spi).unwrap();
        opened.push(batch);
    }

    #[test]
    fn a_buffer_is_read_into_again_once_nothing_waits_in_it() {
        let mut opened = Opened::new(2, 100);
        let (first, room) = opened.room();
        assert_eq!(room.len(), 100);
        // Two tunnels in one buffer.
        batch(&mut opened, (1, 1));
        let mut other = opened.take().unwrap();
        (other.buffer, other.spi) = (first, 2);
        opened.push(other);
        assert_ne!(opened.room().0, first);
        batch(&mut opened, (1, 1));
        assert!(opened.is_full());
        let written = opened.remove(0).unwrap();
        opened.written(written);
        assert!(opened.is_full(), "the other tunnel's packets are there");
        let written = opened.remove(0).unwrap();
        opened.written(written);
        assert!(!opened.is_full());
        assert_eq!((opened.room().0, opened.len()), (first, 1));
    }

    #[test]
    fn what_has_its_flow_before_it_is_not_first() {
        let mut opened = Opened::new(4, 1);
        for what in [(1, 0b01), (1, 0b10), (1, 0b11), (2, 0b01)] {
            batch(&mut opened, what);
        }
        let mut is_first = |place| opened.first_of_its_flows(place).is_some();
        assert_eq!([0, 1, 2, 3].map(&mut is_first), [true, true, false, true]);
        assert_eq!(opened.free_slot(1), Some(3));
        assert_eq!(opened.free_slot(2), Some(1));
    }

    #[test]
    fn patience_begins_when_a_batch_is_first_asked() {
        let mut batch = Batch::new();
        assert!(batch.is_fresh() && !batch.is_overdue() && !batch.is_fresh());
        batch.since = Instant::now().checked_sub(2 * PATIENCE);
        assert!(batch.is_overdue());
    }
}
