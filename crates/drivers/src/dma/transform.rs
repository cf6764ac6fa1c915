//! A key in the device, and the way of requests through it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use arrayvec::ArrayVec;
use cipherlane::{Algorithm, Direction, Flight, Request, Status, Transform};
use zeroize::Zeroizing;

use super::engine::{Engine, Stale, lock};
use super::operation::Refusal;
use super::slot::{Group, Outcome, Parcel, Phase};
use super::transport::wire::DONE;

/// Requests in one go at most.
const MOST: usize = 128;

/// A key, and where it is loaded.
pub(super) struct Keyed {
    engine: Arc<Engine>,
    algorithm: &'static Algorithm,
    key: Zeroizing<Vec<u8>>,
    session: u32,
    /// The epoch for which the device has the key.
    loaded: Arc<AtomicU32>,
}

/// Slots, each with the place of its request; none for a key.
type Slots = ArrayVec<(u16, Option<u32>), { MOST + 1 }>;

/// What stopped the filling of slots.
struct Filled {
    slots: Slots,
    /// Requests that are in slots, or refused for good.
    handled: usize,
    /// Nanoseconds of host time by the settings.
    cost: f64,
}

impl Keyed {
    pub(super) fn new(engine: Arc<Engine>, algorithm: &'static Algorithm, key: &[u8]) -> Self {
        engine.keys.fetch_add(1, Ordering::Relaxed);
        Keyed {
            session: engine.next_key.fetch_add(1, Ordering::Relaxed),
            engine,
            algorithm,
            key: Zeroizing::new(key.to_vec()),
            loaded: Arc::new(AtomicU32::new(0)),
        }
    }

    /// Puts requests into slots, from the front, with the key before them if the device does
    /// not have it.
    ///
    /// # Safety
    /// The memory of the requests must stay, and only input may be read, until the slots are
    /// settled.
    unsafe fn fill(
        &self,
        epoch: u32,
        direction: Direction,
        requests: &mut [Request<'_>],
    ) -> Filled {
        let engine = &*self.engine;
        let wants_key = self.loaded.load(Ordering::Acquire) != epoch;
        let mut free = ArrayVec::<u16, { MOST + 1 }>::new();
        let most = requests.len().min(MOST) + usize::from(wants_key);
        engine.reserve(most, &mut free);
        free.reverse();
        let mut filled = Filled {
            slots: Slots::new(),
            handled: 0,
            cost: 0.0,
        };
        if wants_key {
            match self.fill_key(&mut free) {
                Some(id) => filled.slots.push((id, None)),
                None => {
                    free.into_iter().for_each(|id| engine.release(id));
                    return filled;
                }
            }
        }
        for (place, request) in requests.iter_mut().enumerate() {
            let Some(&id) = free.last() else { break };
            let mut slot = engine.slot(id);
            // SAFETY: promised by the caller.
            match unsafe { slot.prepare(engine, id, self.session, direction, request) } {
                Ok(cost) => {
                    filled.cost += cost;
                    filled.slots.push((id, Some(place as u32)));
                    free.pop();
                }
                Err(Refusal::Never) => request.set_status(Status::Untouched),
                Err(Refusal::NoRoom) => break,
            }
            filled.handled = place + 1;
        }
        free.into_iter().for_each(|id| engine.release(id));
        if filled.slots.iter().all(|(_, place)| place.is_none()) {
            // A key alone is not sent.
            self.discard(&filled.slots);
            filled.slots.clear();
        }
        filled
    }

    fn fill_key(&self, free: &mut ArrayVec<u16, { MOST + 1 }>) -> Option<u16> {
        let id = free.pop()?;
        let engine = &*self.engine;
        let prepared = {
            let (name, mut slot) = (self.algorithm.name, engine.slot(id));
            slot.prepare_key(engine, id, self.session, name, &self.key)
        };
        if prepared.is_err() {
            free.push(id);
        }
        prepared.is_ok().then_some(id)
    }

    /// Empties slots that the device was not given.
    fn discard(&self, slots: &[(u16, Option<u32>)]) {
        for &(id, _) in slots {
            self.engine.slot(id).clear(&self.engine);
            self.engine.release(id);
        }
    }

    /// Runs requests from the front; returns how many have their final status.
    fn run_some(&self, direction: Direction, requests: &mut [Request<'_>]) -> usize {
        let engine = &*self.engine;
        if !engine.is_usable() {
            requests
                .iter_mut()
                .for_each(|r| r.set_status(Status::Untouched));
            return requests.len();
        }
        let epoch = engine.epoch();
        let started = engine.transport.now_ns();
        // SAFETY: the requests are borrowed until this returns, which is after all slots
        // are settled.
        let filled = unsafe { self.fill(epoch, direction, requests) };
        if filled.handled == 0 {
            if engine.flying() == 0 && engine.is_up() {
                // Nobody has what we lack, and nobody will give it back.
                requests[0].set_status(Status::Untouched);
                return 1;
            }
            engine.wait_for_others();
            return 0;
        }
        engine.spend(started, filled.cost);
        if !filled.slots.is_empty() {
            let bytes = requests[..filled.handled].iter().map(Request::len).sum();
            self.fly(epoch, &filled.slots, (direction, filled.handled, bytes));
            self.settle(epoch, &filled.slots, direction, requests);
        }
        filled.handled
    }

    /// Gives slots to the device and waits until all have ended, or cannot begin.
    fn fly(&self, epoch: u32, slots: &Slots, batch: super::wait::Batch) {
        let engine = &*self.engine;
        let group = Arc::new(Group::waiting(std::thread::current()));
        let ids: ArrayVec<u16, { MOST + 1 }> = slots.iter().map(|&(id, _)| id).collect();
        // The device has the caller's memory: unwinding would give it back too early.
        let bomb = AbortOnUnwind;
        let mut left = ids.as_slice();
        while !left.is_empty() {
            match engine.publish(left, &group, epoch) {
                Ok(0) => {
                    // The ring is full of others' requests.
                    let epoch = engine.epoch();
                    engine.check(epoch);
                    engine.wait_for_others();
                }
                Ok(taken) => {
                    left = &left[taken..];
                    engine.wait(&group, batch);
                }
                Err(Stale) => break,
            }
        }
        std::mem::forget(bomb);
    }

    /// Ends requests whose slots have ended, or were never given to the device.
    fn settle(
        &self,
        epoch: u32,
        slots: &Slots,
        direction: Direction,
        requests: &mut [Request<'_>],
    ) {
        let engine = &*self.engine;
        let started = engine.transport.now_ns();
        let mut cost = 0.0;
        for &(id, place) in slots {
            let mut slot = engine.slot(id);
            match place {
                // SAFETY: the slot was prepared with this request.
                Some(place) => unsafe {
                    cost += slot.settle(engine, id, direction, &mut requests[place as usize]);
                },
                None => {
                    note_key(&self.loaded, epoch, slot.phase);
                    slot.clear(engine);
                }
            }
            drop(slot);
            engine.release(id);
        }
        engine.spend(started, cost);
    }
}

/// The device has a key, if it says so.
fn note_key(loaded: &AtomicU32, epoch: u32, phase: Phase) {
    if let Phase::Ended(Outcome::Reported { status: DONE, .. }) = phase {
        loaded.store(epoch, Ordering::Release);
    }
}

impl Engine {
    /// Hands a flight whose requests have all ended back to its owner, or gives the device
    /// more of it that the ring had no room for before.
    pub(super) fn land(&self, group: &Arc<Group>) {
        let mut place = lock(&group.parcel);
        let Some(mut parcel) = place.take() else {
            return;
        };
        let left: Vec<u16> = parcel.slots[parcel.published..]
            .iter()
            .map(|&(id, _)| id)
            .collect();
        if !left.is_empty()
            && let Ok(taken @ 1..) = self.publish(&left, group, parcel.epoch)
        {
            parcel.published += taken;
            *place = Some(parcel);
            return;
        }
        drop(place);
        let Parcel {
            mut flight,
            slots,
            epoch,
            loaded,
            ..
        } = parcel;
        let started = self.transport.now_ns();
        let direction = flight.direction();
        let mut cost = 0.0;
        for (id, place) in slots {
            let mut slot = self.slot(id);
            match place {
                // SAFETY: the slot was prepared with this request.
                Some(place) => unsafe {
                    let request = &mut flight.requests()[place as usize];
                    cost += slot.settle(self, id, direction, request);
                },
                None => {
                    note_key(&loaded, epoch, slot.phase);
                    slot.clear(self);
                }
            }
            drop(slot);
            self.release(id);
        }
        self.spend(started, cost);
        self.flights.fetch_sub(1, Ordering::Relaxed);
        flight.finish();
    }
}

impl Transform for Keyed {
    fn run(&self, direction: Direction, requests: &mut [Request<'_>]) {
        let mut rest = requests;
        while !rest.is_empty() {
            let ended = self.run_some(direction, rest);
            rest = &mut rest[ended..];
        }
    }

    fn submit(&self, direction: Direction, mut flight: Flight) -> Result<(), Flight> {
        let engine = &*self.engine;
        if !engine.is_usable() {
            let requests = flight.requests().iter_mut();
            requests.for_each(|r| r.set_status(Status::Untouched));
            flight.finish();
            return Ok(());
        }
        let (epoch, started) = (engine.epoch(), engine.transport.now_ns());
        let requests = flight.requests();
        let all = requests.len();
        // SAFETY: the flight owns the memory; it goes with the slots into the parcel, and
        // comes out when they are settled.
        let filled = unsafe { self.fill(epoch, direction, requests) };
        if filled.handled < all {
            self.discard(&filled.slots);
            return Err(flight);
        }
        engine.spend(started, filled.cost);
        if filled.slots.is_empty() {
            flight.finish();
            return Ok(());
        }
        let ids: ArrayVec<u16, { MOST + 1 }> = filled.slots.iter().map(|&(id, _)| id).collect();
        let group = Arc::new(Group::default());
        // Held until the parcel is in it: whoever lands it waits for that.
        let mut place = lock(&group.parcel);
        match engine.publish(&ids, &group, epoch) {
            Ok(published @ 1..) => {
                engine.flights.fetch_add(1, Ordering::Relaxed);
                *place = Some(Parcel {
                    flight,
                    slots: filled.slots.to_vec(),
                    published,
                    epoch,
                    loaded: self.loaded.clone(),
                });
                drop(place);
                self.engine.hail();
                Ok(())
            }
            _ => {
                self.discard(&filled.slots);
                Err(flight)
            }
        }
    }

    fn room(&self) -> usize {
        match self.engine.is_up() {
            // One may be needed for the key.
            true => self.engine.free_slots().saturating_sub(1).min(MOST),
            // Taken, and given up untouched.
            false => MOST,
        }
    }

    fn most(&self) -> usize {
        let rules = &self.engine.device.rules;
        let pieces = (rules.ring as usize - 1) / 2;
        let segment = rules.max_segment / rules.block * rules.block;
        (rules.max_request as usize).min(pieces * segment as usize)
    }

    fn assist(&self) -> bool {
        let engine = &*self.engine;
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
        let engine = &*self.engine;
        engine.keys.fetch_sub(1, Ordering::Relaxed);
        let epoch = engine.epoch();
        if self.loaded.load(Ordering::Acquire) != epoch || !engine.is_up() {
            return;
        }
        let mut free = ArrayVec::<u16, 1>::new();
        while free.is_empty() && engine.epoch() == epoch {
            engine.reserve(1, &mut free);
            if free.is_empty() {
                engine.wait_for_others();
            }
        }
        let Some(&id) = free.first() else { return };
        engine.slot(id).prepare_wipe(engine, id, self.session);
        let slots = Slots::from_iter([(id, None)]);
        self.fly(epoch, &slots, (Direction::Encrypt, 1, 0));
        self.discard(&slots);
    }
}

/// Ends the process if it is dropped.
struct AbortOnUnwind;

impl Drop for AbortOnUnwind {
    fn drop(&mut self) {
        std::process::abort();
    }
}
