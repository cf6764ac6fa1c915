//! The way of requests through the device.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use cipherlane_core::{Algorithm, Direction, Flight, Request, Status, Transform};

use super::engine::{Engine, Stale};
use super::key::{Ids, Key, MAX_REQUESTS, Slots};
use super::parcel::Parcel;
use super::slot::Group;
use super::wait::Batch;

/// How often a request is tried again that finds no room although nobody uses any: others may
/// have used the room meanwhile.
const TRIES: u32 = 8;

/// A key in use by a session.
pub(super) struct Keyed(Arc<Key>);

impl Keyed {
    pub(super) fn new(engine: Arc<Engine>, algorithm: &'static Algorithm, key: &[u8]) -> Self {
        engine.keys.fetch_add(1, Ordering::Relaxed);
        Keyed(Arc::new(Key::new(engine, algorithm, key)))
    }

    /// Runs requests from the front; returns how many have their final status.
    fn run_some(&self, direction: Direction, requests: &mut [Request<'_>]) -> usize {
        let engine = &*self.0.engine;
        let epoch = engine.epoch();
        let started = engine.transport.now_ns();
        // The device may have the caller's memory: unwinding would give it back too early.
        let bomb = AbortOnUnwind;
        // SAFETY: the requests are borrowed until this returns, which is after all slots
        // are settled.
        let filled = unsafe { self.0.fill(epoch, direction, requests) };
        engine.spend(started, filled.cost);
        if !filled.slots.is_empty() {
            let bytes = requests[..filled.handled].iter().map(Request::len).sum();
            self.fly(epoch, &filled.slots, (direction, filled.handled, bytes));
            self.0.settle(epoch, &filled.slots, direction, requests);
        }
        std::mem::forget(bomb);
        filled.handled
    }

    /// Gives slots to the device and waits until all have ended, or cannot begin.
    fn fly(&self, epoch: u32, slots: &Slots, batch: Batch) {
        let engine = &*self.0.engine;
        let group = Arc::new(Group::waiting(std::thread::current()));
        let ids: Ids = slots.iter().map(|&(id, _)| id).collect();
        let mut left = ids.as_slice();
        while !left.is_empty() {
            match engine.publish(left, &group, epoch) {
                // The ring is full of others' requests.
                Ok(0) => engine.wait_for_others(),
                Ok(taken) => {
                    left = &left[taken..];
                    engine.wait(&group, batch);
                }
                Err(Stale) => break,
            }
        }
    }
}

/// Leaves requests to software.
pub(super) fn give_up(requests: &mut [Request<'_>]) {
    requests
        .iter_mut()
        .for_each(|request| request.set_status(Status::Untouched));
}

impl Transform for Keyed {
    fn run(&self, direction: Direction, requests: &mut [Request<'_>]) {
        let engine = &*self.0.engine;
        let (mut rest, mut tries) = (requests, 0);
        while !rest.is_empty() {
            if !engine.is_usable() {
                return give_up(rest);
            }
            let mut ended = self.run_some(direction, rest);
            if ended > 0 {
                tries = 0;
            } else if engine.is_idle() {
                // Nobody has what is lacking, and nobody will give it back.
                tries += 1;
                if tries == TRIES {
                    give_up(&mut rest[..1]);
                    (ended, tries) = (1, 0);
                }
            } else {
                engine.wait_for_others();
            }
            rest = &mut rest[ended..];
        }
    }

    fn submit(&self, _: Direction, flight: Flight) -> Result<(), Flight> {
        let engine = &self.0.engine;
        let parcel = Parcel::new(self.0.clone(), flight);
        if !engine.is_usable() {
            parcel.give_up();
            return Ok(());
        }
        match engine.dispatch(parcel) {
            Ok(()) => Ok(()),
            Err(parcel) => Err(parcel.into_flight()),
        }
    }

    fn room(&self) -> usize {
        match self.0.engine.is_up() {
            // One may be needed for the key.
            true => self
                .0
                .engine
                .free_slots()
                .saturating_sub(1)
                .min(MAX_REQUESTS),
            // Taken, and given up untouched.
            false => MAX_REQUESTS,
        }
    }

    fn max_len(&self) -> usize {
        let rules = &self.0.engine.device.rules;
        let pieces = (rules.ring as usize - 1) / 2;
        let segment = rules.max_segment / rules.block * rules.block;
        (rules.max_request as usize).min(pieces * segment as usize)
    }

    fn poll(&self) {
        self.0.engine.drain();
    }

    fn assist(&self) -> bool {
        let engine = &*self.0.engine;
        if engine.drain() > 0 {
            return true;
        }
        let alone = engine.transport.is_inline() && engine.flights.load(Ordering::Relaxed) > 0;
        if alone {
            engine.wait_for_others();
        }
        alone
    }

    fn scatters(&self) -> bool {
        true
    }
}

impl Drop for Keyed {
    /// Waits until the device has wiped the key. A device that does not answer is reset,
    /// which wipes it too.
    fn drop(&mut self) {
        let engine = &*self.0.engine;
        engine.keys.fetch_sub(1, Ordering::Relaxed);
        let epoch = engine.epoch();
        if !self.0.is_loaded(epoch) || !engine.is_up() {
            return;
        }
        let mut free = Ids::new();
        while free.is_empty() && engine.epoch() == epoch {
            engine.reserve(1, &mut free);
            if free.is_empty() {
                engine.wait_for_others();
            }
        }
        let Some(&id) = free.first() else { return };
        engine.slot(id).prepare_wipe(engine, id, self.0.session);
        let slots = Slots::from_iter([(id, None)]);
        self.fly(epoch, &slots, (Direction::Encrypt, 1, 0));
        self.0.discard(&slots);
    }
}

/// Ends the process if it is dropped.
pub(super) struct AbortOnUnwind;

impl Drop for AbortOnUnwind {
    fn drop(&mut self) {
        std::process::abort();
    }
}
