//! Results in the order of their tickets, from workers that finish in any order and never
//! wait for each other ([`Order`]); and packets that several threads read from one queue, handed
//! on flow by flow in the order in which they came ([`Readers`] and [`Turns`], where each thread
//! keeps what it has opened).
//!
//! # How `Order` works
//! [`Order::begin`] gives a ticket: the next place in a ring. It is taken where the order
//! is decided: by a sender together with the batch's sequence numbers, by a receiver when
//! the batch arrives. Any thread may then do the work, and hands the result to
//! [`Ticket::complete`]. Whoever completes while nobody is draining becomes the drainer: it
//! hands on the finished results from the oldest, as far as there is no gap, its own and
//! others'. Whoever completes while somebody drains leaves at once, and the drainer looks
//! again before it stops. So an unfinished batch holds up those after it, but no thread.
//!
//! Who drains is decided by one counter of completions that no drainer has seen: who
//! raises it from 0 drains, and stops by bringing it back to 0 by compare-and-swap, which
//! fails where another result came meanwhile.
//!
//! The ring has a fixed number of places. When none is free `begin` gives no ticket: the
//! caller then lets packets wait where they are, or drops them.

#[cfg(all(test, loom))]
mod models;
mod slot;
#[cfg(all(test, not(loom)))]
mod tests;
mod turns;

use crate::sync::{AtomicU64, Line, Ordering};
use slot::{Slot, Taken};
pub use turns::{Readers, SLOTS, Turns};

/// Puts results back in order, for any number of threads. See the module.
pub struct Order<T> {
    slots: Box<[Slot<T>]>,
    /// Tickets given.
    begun: Line<AtomicU64>,
    /// Places drained, up to which results were handed on.
    drained: Line<AtomicU64>,
    /// Completions that no drainer has seen; not 0 while somebody drains.
    unseen: Line<AtomicU64>,
}

/// A place in the order. Dropped without a result, its place is passed over.
#[must_use = "results behind this place wait for it"]
pub struct Ticket<'o, T> {
    order: &'o Order<T>,
    place: u64,
}

impl<T: Send> Order<T> {
    /// Room for `places` results that are begun and not handed on, rounded up to a power of
    /// two; 1 at least.
    pub fn new(places: usize) -> Self {
        let places = places.max(1).next_power_of_two();
        Order {
            slots: (0..places).map(|_| Slot::new()).collect(),
            begun: Line(AtomicU64::new(0)),
            drained: Line(AtomicU64::new(0)),
            unseen: Line(AtomicU64::new(0)),
        }
    }

    /// The next place, or none while all are taken.
    #[inline]
    pub fn begin(&self) -> Option<Ticket<'_, T>> {
        // Acquire: the slot of a place that was drained is empty. Loaded before `begun`,
        // which so is never the less of the two.
        let drained = self.drained.0.load(Ordering::Acquire);
        let mut place = self.begun.0.load(Ordering::Relaxed);
        loop {
            if place - drained >= self.slots.len() as u64 {
                return None;
            }
            match self.begun.0.compare_exchange_weak(
                place,
                place + 1,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Some(Ticket { order: self, place }),
                Err(now) => place = now,
            }
        }
    }

    /// Places taken whose results were not handed on.
    pub fn pending(&self) -> usize {
        let drained = self.drained.0.load(Ordering::Relaxed);
        let begun = self.begun.0.load(Ordering::Relaxed);
        begun.saturating_sub(drained) as usize
    }

    /// Hands on what is finished, unless another thread is doing so. Needed only after a
    /// ticket was dropped without a result: nobody may be left who completes one, so call
    /// it when [`Order::begin`] gives none, and at the end.
    pub fn drain(&self, hand_on: impl FnMut(T)) {
        // Acquire: what the last drainer did is over; Release: for who drains next.
        if self.unseen.0.fetch_add(1, Ordering::AcqRel) == 0 {
            self.drain_alone(hand_on);
        }
    }

    fn slot(&self, place: u64) -> &Slot<T> {
        &self.slots[place as usize & (self.slots.len() - 1)]
    }

    fn drain_alone(&self, mut hand_on: impl FnMut(T)) {
        let resign = Resign(&self.unseen.0);
        // Only a drainer writes it.
        let mut place = self.drained.0.load(Ordering::Relaxed);
        // Acquire: the results of those counted are there.
        let mut seen = self.unseen.0.load(Ordering::Acquire);
        loop {
            while let Some(taken) = self.slot(place).take() {
                place += 1;
                // Release: the slot is empty.
                self.drained.0.store(place, Ordering::Release);
                if let Taken::Result(result) = taken {
                    hand_on(result);
                }
            }
            match self
                .unseen
                .0
                .compare_exchange(seen, 0, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => break,
                Err(more) => seen = more,
            }
        }
        std::mem::forget(resign);
    }
}

/// Lets others drain after a panic in the middle of it.
struct Resign<'a>(&'a AtomicU64);

impl Drop for Resign<'_> {
    fn drop(&mut self) {
        self.0.store(0, Ordering::Release);
    }
}

impl<T: Send> Ticket<'_, T> {
    /// Leaves the result at its place. If nobody is handing on results, this thread does:
    /// `hand_on` is then called with this result and others, in the order of the tickets,
    /// as long as there are any; and else not at all.
    #[inline]
    pub fn complete(self, result: T, hand_on: impl FnMut(T)) {
        let (order, place) = (self.order, self.place);
        std::mem::forget(self);
        order.slot(place).put(result);
        order.drain(hand_on);
    }

    /// How many tickets were given before it.
    pub fn place(&self) -> u64 {
        self.place
    }
}

impl<T> Drop for Ticket<'_, T> {
    fn drop(&mut self) {
        let slots = &self.order.slots;
        slots[self.place as usize & (slots.len() - 1)].pass_over();
    }
}

impl<T> std::fmt::Debug for Order<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Order")
            .field("places", &self.slots.len())
            .field("begun", &self.begun.0.load(Ordering::Relaxed))
            .field("drained", &self.drained.0.load(Ordering::Relaxed))
            .finish()
    }
}

impl<T> std::fmt::Debug for Ticket<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ticket")
            .field("place", &self.place)
            .finish()
    }
}
