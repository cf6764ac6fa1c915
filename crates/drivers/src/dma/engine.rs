//! The device as the driver sees it: slots, the two rings, and what came back.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Thread;

use super::operation::Refusal;
use super::pool::{Extent, Pool};
use super::recovery::Recovery;
use super::settings::Options;
use super::slot::{Group, Outcome, Phase, Slot};
use super::wait::Learned;
use cipherlane_dma_model::Settings as Device;
use cipherlane_dma_model::transport::Transport;
use cipherlane_dma_model::transport::wire::{
    BOUNCE, Completion, Descriptor, HEADER, MORE, OPERATION, READY, Register, WRITE,
};

/// A device in use. Shared by its transforms and the thread that lands flights.
///
/// Locks are taken in this order: `recovery`, `submit`, `complete`, a slot, `free` or `pool`.
pub(super) struct Engine {
    pub(super) device: Device,
    pub(super) options: Options,
    pub(super) transport: Box<dyn Transport>,
    slots: Box<[Mutex<Slot>]>,
    free: Mutex<Vec<u16>>,
    pool: Mutex<Pool>,
    /// Descriptors made, as in the register.
    pub(super) submit: Mutex<u32>,
    /// Completions seen, as in the register.
    pub(super) complete: Mutex<u32>,
    pub(super) recovery: Mutex<Recovery>,
    /// Goes up with each reset: keys are loaded for one epoch.
    epoch: AtomicU32,
    /// Whether the device takes work.
    pub(super) up: AtomicBool,
    /// The device wrote nonsense, or said that it found some.
    pub(super) broken: AtomicBool,
    /// Whether memory that the device had may still be written by it.
    pub(super) withholds: AtomicBool,
    withheld: Mutex<(Vec<u16>, Vec<Extent>)>,
    /// Requests in the device's hands.
    flying: AtomicU32,
    queued_bytes: AtomicU64,
    /// When the device last ended a request, or was given one while idle.
    pub(super) progress_ns: AtomicU64,
    /// When the ages of requests were last looked at.
    pub(super) ages_ns: AtomicU64,
    pub(super) counters: Counters,
    pub(super) learned: Learned,
    /// Who sleeps at the transport.
    pub(super) listener: Mutex<()>,
    /// Who wants to do so next.
    pub(super) followers: Mutex<Vec<Thread>>,
    /// Flights under way.
    pub(super) flights: AtomicU32,
    /// Those of them that wait for room.
    pub(super) stuck: Mutex<VecDeque<Arc<Group>>>,
    /// The thread that lands flights, once there was one.
    pub(super) lander: Mutex<Option<Thread>>,
    /// Keys in the device.
    pub(super) keys: AtomicU32,
    pub(super) next_key: AtomicU32,
}

/// What the user should know of.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) interrupts: AtomicU64,
    /// Found by looking, no interrupt having come.
    pub(super) lost_interrupts: AtomicU64,
    /// Completions of requests that were not under way.
    pub(super) spurious: AtomicU64,
    pub(super) resets: AtomicU64,
    /// Resets that the device did not acknowledge.
    pub(super) unanswered: AtomicU64,
}

/// The epoch is over in which something was prepared.
#[derive(Debug)]
pub(super) struct Stale;

impl Engine {
    pub(super) fn new(device: Device, options: Options, transport: Box<dyn Transport>) -> Self {
        let layout = *transport.arena().layout();
        let alignment = device.rules.alignment as usize;
        Engine {
            slots: (0..layout.slots()).map(|_| Mutex::default()).collect(),
            free: Mutex::new((0..layout.slots()).rev().collect()),
            pool: Mutex::new(Pool::new(layout.pool_start(), layout.pool, alignment)),
            submit: Mutex::new(0),
            complete: Mutex::new(0),
            recovery: Mutex::default(),
            epoch: AtomicU32::new(1),
            up: AtomicBool::new(true),
            broken: AtomicBool::new(false),
            withholds: AtomicBool::new(false),
            withheld: Mutex::default(),
            flying: AtomicU32::new(0),
            queued_bytes: AtomicU64::new(0),
            progress_ns: AtomicU64::new(0),
            ages_ns: AtomicU64::new(0),
            counters: Counters::default(),
            learned: Learned::default(),
            listener: Mutex::new(()),
            followers: Mutex::default(),
            flights: AtomicU32::new(0),
            stuck: Mutex::default(),
            lander: Mutex::default(),
            keys: AtomicU32::new(0),
            next_key: AtomicU32::new(1),
            device,
            options,
            transport,
        }
    }

    pub(super) fn slot(&self, slot: u16) -> MutexGuard<'_, Slot> {
        lock(&self.slots[usize::from(slot)])
    }

    pub(super) fn slots(&self) -> impl Iterator<Item = MutexGuard<'_, Slot>> {
        self.slots.iter().map(lock)
    }

    pub(super) fn epoch(&self) -> u32 {
        self.epoch.load(Ordering::Acquire)
    }

    pub(super) fn next_epoch(&self) {
        self.epoch.fetch_add(1, Ordering::AcqRel);
    }

    /// Whether the device takes work. For a forked child it does not: it is the parent's.
    pub(super) fn is_up(&self) -> bool {
        self.up.load(Ordering::Acquire) && !self.transport.arena().is_orphaned()
    }

    pub(super) fn flying(&self) -> u32 {
        // Acquire: whoever sees that requests have ended sees what the device did before.
        self.flying.load(Ordering::Acquire)
    }

    pub(super) fn queued_bytes(&self) -> u64 {
        self.queued_bytes.load(Ordering::Relaxed)
    }

    /// Takes up to `most` free slots.
    pub(super) fn reserve(&self, most: usize, slots: &mut impl Extend<u16>) {
        let mut free = lock(&self.free);
        let left = free.len().saturating_sub(most);
        slots.extend(free.drain(left..).rev());
    }

    /// Gives a slot back that nothing is left in. While the device may still write to what
    /// it had, nothing is used again.
    pub(super) fn release(&self, slot: u16) {
        match self.withholds.load(Ordering::Acquire) {
            true => lock(&self.withheld).0.push(slot),
            false => lock(&self.free).push(slot),
        }
    }

    /// Whether nobody has a slot.
    pub(super) fn is_idle(&self) -> bool {
        self.free_slots() == self.slots.len()
    }

    pub(super) fn free_slots(&self) -> usize {
        lock(&self.free).len()
    }

    /// Memory for copies.
    pub(super) fn take_extent(&self, len: usize) -> Result<Extent, Refusal> {
        match lock(&self.pool).take(len) {
            Some(extent) => Ok(extent),
            None if len > self.transport.arena().layout().pool => Err(Refusal::Never),
            None => Err(Refusal::NoRoom),
        }
    }

    /// Wipes an extent and gives it back, as [`release`](Self::release) does.
    pub(super) fn give_extent(&self, extent: Extent) {
        self.transport.arena().wipe(extent.start, extent.len);
        match self.withholds.load(Ordering::Acquire) {
            true => lock(&self.withheld).1.push(extent),
            false => lock(&self.pool).give(extent),
        }
    }

    /// The device is quiet: what was withheld may be used again.
    pub(super) fn release_withheld(&self) {
        self.withholds.store(false, Ordering::Release);
        let (slots, extents) = std::mem::take(&mut *lock(&self.withheld));
        slots.into_iter().for_each(|slot| self.release(slot));
        extents
            .into_iter()
            .for_each(|extent| self.give_extent(extent));
    }

    /// Bytes of the pool that are withheld.
    pub(super) fn withheld_bytes(&self) -> usize {
        lock(&self.withheld).1.iter().map(|extent| extent.len).sum()
    }

    /// Gives prepared slots to the device, from the front, as many as the ring has room for,
    /// and rings the doorbell once. Returns how many: 0 if there is no room for the first.
    pub(super) fn publish(
        &self,
        slots: &[u16],
        group: &Arc<Group>,
        epoch: u32,
    ) -> Result<usize, Stale> {
        let arena = self.transport.arena();
        let ring = arena.layout().ring;
        let now = self.transport.now_ns();
        let mut tail = lock(&self.submit);
        if !self.is_up() || self.epoch() != epoch {
            return Err(Stale);
        }
        let fetched = arena
            .register(Register::SUBMIT_HEAD)
            .load(Ordering::Acquire);
        let used = tail.wrapping_sub(fetched);
        // What has ended was fetched before.
        if used > ring || used > 0 && self.flying() == 0 {
            self.broken.store(true, Ordering::Release);
            return Ok(0);
        }
        let mut room = ring - used;
        let mut count = 0;
        for &id in slots {
            let mut slot = self.slot(id);
            let needed = slot.descriptors();
            if needed > room {
                break;
            }
            room -= needed;
            slot.write_chain(self, id, &mut tail);
            group.begin();
            slot.group = Some(group.clone());
            (slot.phase, slot.since_ns) = (Phase::Flying, now);
            self.queued_bytes.fetch_add(slot.payload, Ordering::Relaxed);
            count += 1;
        }
        if count > 0 && self.flying.fetch_add(count as u32, Ordering::Relaxed) == 0 {
            self.progress_ns.store(now, Ordering::Relaxed);
        }
        // Release: the device sees chains and operations before it sees the index.
        arena
            .register(Register::SUBMIT_TAIL)
            .store(*tail, Ordering::Release);
        drop(tail);
        if count > 0 {
            self.spend(now, self.device.host.doorbell_ns);
            self.transport.ring_doorbell();
        }
        Ok(count)
    }

    /// Takes what is in the completion ring. Returns how many there were; none where
    /// another thread is at it.
    pub(super) fn drain(&self) -> usize {
        if self.transport.arena().is_orphaned() {
            return 0;
        }
        self.transport.catch_up();
        let Ok(mut head) = self.complete.try_lock() else {
            return 0;
        };
        let mut landed = Vec::new();
        let count = self.drain_locked(&mut head, &mut landed);
        drop(head);
        landed.into_iter().for_each(|group| self.land(&group));
        if count > 0 {
            self.unstick();
        }
        count
    }

    /// `landed` gets the groups of flights that are complete.
    pub(super) fn drain_locked(&self, head: &mut u32, landed: &mut Vec<Arc<Group>>) -> usize {
        let arena = self.transport.arena();
        let layout = *arena.layout();
        // Acquire: entries and results are there before the index.
        let tail = arena
            .register(Register::COMPLETE_TAIL)
            .load(Ordering::Acquire);
        let status = arena.register(Register::STATUS).load(Ordering::Relaxed);
        let count = tail.wrapping_sub(*head);
        if count > layout.ring || status != READY {
            self.broken.store(true, Ordering::Release);
        }
        if count == 0 || count > layout.ring {
            return 0;
        }
        let mut progress = false;
        for index in 0..count {
            let entry = arena.entry(layout.completion(head.wrapping_add(index)));
            progress |= self.deliver(Completion::load(entry), landed);
        }
        *head = tail;
        arena
            .register(Register::COMPLETE_HEAD)
            .store(tail, Ordering::Release);
        if progress {
            self.progress_ns
                .store(self.transport.now_ns(), Ordering::Relaxed);
        }
        count as usize
    }

    /// A completion that the device reports; `false` if there is no such request.
    fn deliver(&self, completion: Completion, landed: &mut Vec<Arc<Group>>) -> bool {
        let Completion {
            slot,
            turn,
            status,
            written,
        } = completion;
        let slot = self.slots.get(usize::from(slot)).map(lock);
        let mut slot = slot.filter(|slot| slot.phase == Phase::Flying && slot.turn == turn);
        match &mut slot {
            Some(slot) => self.end(slot, Outcome::Reported { status, written }, landed),
            None => count(&self.counters.spurious),
        }
        slot.is_some()
    }

    /// The device is out of a slot.
    pub(super) fn end(&self, slot: &mut Slot, outcome: Outcome, landed: &mut Vec<Arc<Group>>) {
        slot.phase = Phase::Ended(outcome);
        self.flying.fetch_sub(1, Ordering::Release);
        self.queued_bytes.fetch_sub(slot.payload, Ordering::Relaxed);
        if let Some(group) = slot.group.take()
            && group.end()
        {
            match group.wake() {
                true => {}
                false => landed.push(group),
            }
        }
    }

    /// The host's processor did work since `since_ns` that takes `cost_ns` or more on the
    /// machine of the settings.
    #[inline]
    pub(super) fn spend(&self, since_ns: u64, cost_ns: f64) {
        if cost_ns > 0.0 {
            self.transport.spend(since_ns, cost_ns as u64);
        }
    }
}

impl Slot {
    pub(super) fn descriptors(&self) -> u32 {
        (1 + self.input.pieces.len() + self.output.pieces.len()) as u32
    }

    /// Writes the chain of descriptors from `tail` on.
    fn write_chain(&self, engine: &Engine, id: u16, tail: &mut u32) {
        let arena = engine.transport.arena();
        let layout = *arena.layout();
        let mut left = self.descriptors();
        let mut write = |address: u64, len: usize, flags: u16| {
            left -= 1;
            let more = if left > 0 { MORE } else { 0 };
            let descriptor = Descriptor {
                address,
                len: len as u32,
                flags: flags | more,
                slot: id,
            };
            descriptor.store(arena.entry(layout.descriptor(*tail)));
            *tail = tail.wrapping_add(1);
        };
        write(layout.slot(id) as u64, OPERATION, HEADER);
        for (side, direction) in [(&self.input, 0), (&self.output, WRITE)] {
            for (piece, &address) in side.pieces.iter().zip(&side.addresses) {
                let copied = if piece.direct.is_none() { BOUNCE } else { 0 };
                write(address, piece.len, direction | copied);
            }
        }
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
