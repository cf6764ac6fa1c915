//! A flight on its way through the device, in waves where it is larger than the ring or the
//! pool.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use cipherlane_core::{Flight, Request};

use super::engine::{Engine, Stale, lock};
use super::key::{Ids, Key, Slots};
use super::slot::Group;
use super::transform::{AbortOnUnwind, give_up};

/// A flight, and how far it is.
pub(super) struct Parcel {
    key: Arc<Key>,
    flight: Flight,
    /// Requests before this one have their final status or a slot.
    next: usize,
    /// Those of the wave, by their places in the flight from `first` on.
    slots: Slots,
    first: usize,
    /// How many of the slots the device was given.
    published: usize,
    epoch: u32,
}

impl std::fmt::Debug for Parcel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parcel")
            .field("next", &self.next)
            .finish_non_exhaustive()
    }
}

/// How a parcel goes on.
enum Step {
    /// The device has some of it.
    Flying,
    /// Others have the room that it needs.
    Stuck,
    /// Every request has its final status.
    Done,
}

impl Parcel {
    pub(super) fn new(key: Arc<Key>, flight: Flight) -> Box<Self> {
        Box::new(Parcel {
            key,
            flight,
            next: 0,
            slots: Slots::new(),
            first: 0,
            published: 0,
            epoch: 0,
        })
    }

    pub(super) fn into_flight(self) -> Flight {
        self.flight
    }

    /// Leaves all requests to software.
    pub(super) fn give_up(mut self) {
        self.flight.with_requests(give_up);
        self.flight.finish();
    }

    /// Gives the device what it has room for. No slot of the group is in its hands.
    fn step(&mut self, engine: &Engine, group: &Arc<Group>) -> Step {
        // The device may have the flight's memory: unwinding would give it back too early.
        let bomb = AbortOnUnwind;
        let step = self.step_on(engine, group);
        std::mem::forget(bomb);
        step
    }

    fn step_on(&mut self, engine: &Engine, group: &Arc<Group>) -> Step {
        loop {
            let left: Ids = self.slots[self.published..].iter().map(|s| s.0).collect();
            if !left.is_empty() {
                match engine.publish(&left, group, self.epoch) {
                    Ok(0) => return Step::Stuck,
                    Ok(taken) => {
                        self.published += taken;
                        return Step::Flying;
                    }
                    // The device was reset: what it was not given is given up.
                    Err(Stale) => {}
                }
            }
            self.settle();
            let requests = self.flight.with_requests(|requests| requests.len());
            if self.next == requests {
                return Step::Done;
            }
            if !engine.is_up() {
                self.give_up_next(requests - self.next);
                continue;
            }
            self.epoch = engine.epoch();
            let started = engine.transport.now_ns();
            let direction = self.flight.direction();
            let (key, epoch, next) = (&self.key, self.epoch, self.next);
            // SAFETY: the flight owns the memory and stays in the parcel until the slots are
            // settled.
            let fill = |requests: &mut [Request<'_>]| unsafe {
                key.fill(epoch, direction, &mut requests[next..])
            };
            let filled = self.flight.with_requests(fill);
            engine.spend(started, filled.cost);
            (self.slots, self.first, self.published) = (filled.slots, self.next, 0);
            self.next += filled.handled;
            if filled.handled > 0 {
                continue;
            }
            if !engine.is_idle() {
                return Step::Stuck;
            }
            // Nobody has what is lacking, and nobody will give it back.
            self.give_up_next(1);
        }
    }

    /// Leaves this number of requests to software.
    fn give_up_next(&mut self, count: usize) {
        let next = self.next;
        self.flight
            .with_requests(|requests| give_up(&mut requests[next..][..count]));
        self.next += count;
    }

    /// Ends the requests of the wave.
    fn settle(&mut self) {
        let direction = self.flight.direction();
        let (key, epoch, first) = (&self.key, self.epoch, self.first);
        let slots = &self.slots;
        self.flight.with_requests(|requests| {
            key.settle(epoch, slots, direction, &mut requests[first..]);
        });
        self.slots.clear();
        self.published = 0;
    }
}

impl Engine {
    /// Begins a flight, or gives it back as it was if there is no room at all.
    pub(super) fn dispatch(self: &Arc<Self>, mut parcel: Box<Parcel>) -> Result<(), Box<Parcel>> {
        let group = Arc::new(Group::default());
        // Held until the parcel is in it: whoever goes on with it waits for that.
        let mut place = lock(&group.parcel);
        match parcel.step(self, &group) {
            Step::Flying => {
                self.flights.fetch_add(1, Ordering::Relaxed);
                *place = Some(parcel);
                drop(place);
                self.hail();
            }
            Step::Stuck => {
                parcel.key.discard(&parcel.slots);
                parcel.slots.clear();
                return Err(parcel);
            }
            Step::Done => parcel.flight.finish(),
        }
        Ok(())
    }

    /// Goes on with a flight of which nothing is in the device's hands: gives it more, or
    /// hands it back to its owner.
    pub(super) fn land(&self, group: &Arc<Group>) {
        let mut place = lock(&group.parcel);
        let Some(mut parcel) = place.take() else {
            return;
        };
        match parcel.step(self, group) {
            Step::Flying => *place = Some(parcel),
            Step::Stuck => {
                *place = Some(parcel);
                drop(place);
                lock(&self.stuck).push_back(group.clone());
            }
            Step::Done => {
                drop(place);
                self.flights.fetch_sub(1, Ordering::Relaxed);
                parcel.flight.finish();
            }
        }
    }

    /// Tries flights again that others had the room of.
    pub(super) fn unstick(&self) {
        let stuck = std::mem::take(&mut *lock(&self.stuck));
        stuck.iter().for_each(|group| self.land(group));
    }
}
