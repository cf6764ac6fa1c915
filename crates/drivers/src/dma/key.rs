//! A key in the device, and the filling and emptying of slots with its requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use arrayvec::ArrayVec;
use cipherlane_core::{Algorithm, Direction, Request, Status};
use zeroize::Zeroizing;

use super::engine::Engine;
use super::operation::Refusal;
use super::slot::{Outcome, Phase};
use cipherlane_dma_model::transport::wire::DONE;

/// Requests in one go at most.
pub(super) const MAX_REQUESTS: usize = 128;

/// A key, and where it is loaded.
pub(super) struct Key {
    pub(super) engine: Arc<Engine>,
    algorithm: &'static Algorithm,
    key: Zeroizing<Vec<u8>>,
    pub(super) session: u32,
    /// The epoch for which the device has it.
    loaded: AtomicU32,
}

/// Slots, each with the place of its request; none for a key.
pub(super) type Slots = ArrayVec<(u16, Option<u32>), { MAX_REQUESTS + 1 }>;
/// Numbers of slots.
pub(super) type Ids = ArrayVec<u16, { MAX_REQUESTS + 1 }>;

/// Slots that were filled.
pub(super) struct Filled {
    pub(super) slots: Slots,
    /// Requests that are in slots, or refused for good.
    pub(super) handled: usize,
    /// Nanoseconds of host time by the settings.
    pub(super) cost: f64,
}

impl Key {
    pub(super) fn new(engine: Arc<Engine>, algorithm: &'static Algorithm, key: &[u8]) -> Self {
        Key {
            session: engine.next_key.fetch_add(1, Ordering::Relaxed),
            engine,
            algorithm,
            key: Zeroizing::new(key.to_vec()),
            loaded: AtomicU32::new(0),
        }
    }

    pub(super) fn is_loaded(&self, epoch: u32) -> bool {
        self.loaded.load(Ordering::Acquire) == epoch
    }

    /// Puts requests into slots, from the front, with the key before them if the device does
    /// not have it. Those that can never be put there are given up.
    ///
    /// # Safety
    /// The memory of the requests must stay, and only input may be read, until the slots are
    /// settled.
    pub(super) unsafe fn fill(
        &self,
        epoch: u32,
        direction: Direction,
        requests: &mut [Request<'_>],
    ) -> Filled {
        let engine = &*self.engine;
        let wants_key = !self.is_loaded(epoch);
        let mut free = Ids::new();
        engine.reserve(
            requests.len().min(MAX_REQUESTS) + usize::from(wants_key),
            &mut free,
        );
        free.reverse();
        let mut filled = Filled {
            slots: Slots::new(),
            handled: 0,
            cost: 0.0,
        };
        if wants_key && let Some(id) = self.fill_key(&mut free) {
            filled.slots.push((id, None));
        }
        let has_key = !wants_key || !filled.slots.is_empty();
        for (place, request) in requests.iter_mut().enumerate().filter(|_| has_key) {
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

    fn fill_key(&self, free: &mut Ids) -> Option<u16> {
        let id = free.pop()?;
        let engine = &*self.engine;
        let name = self.algorithm.name;
        let prepared = engine
            .slot(id)
            .prepare_key(engine, id, self.session, name, &self.key);
        if prepared.is_err() {
            free.push(id);
        }
        prepared.is_ok().then_some(id)
    }

    /// Empties slots that the device was not given, or that have no request.
    pub(super) fn discard(&self, slots: &[(u16, Option<u32>)]) {
        for &(id, _) in slots {
            self.engine.slot(id).clear(&self.engine);
            self.engine.release(id);
        }
    }

    /// Ends requests whose slots have ended, or were never given to the device.
    pub(super) fn settle(
        &self,
        epoch: u32,
        slots: &[(u16, Option<u32>)],
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
                    if let Phase::Ended(Outcome::Reported { status: DONE, .. }) = slot.phase {
                        self.loaded.store(epoch, Ordering::Release);
                    }
                    slot.clear(engine);
                }
            }
            drop(slot);
            engine.release(id);
        }
        engine.spend(started, cost);
    }
}
