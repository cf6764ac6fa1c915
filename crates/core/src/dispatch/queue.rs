//! The batches that one device has been given and has not finished. From when batches begin and
//! end, this estimates when the device will be free, and how long the device takes per batch when
//! it is never idle.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::model::Cost;

/// The most batches that a device is assumed to work on at once.
const MAX_PARALLEL: f32 = 256.0;
/// A time is exact enough if it is known to within one part in this many.
const EXACT_ENOUGH: f32 = 8.0;
/// A batch has waited in the queue if it took more than this many times the expected latency.
const QUEUED_FACTOR: f32 = 1.25;
/// A device that finishes every batch before the next one comes may be faster than the batches
/// show. The time per batch is then assumed to be this part of the time seen.
const UNCONTESTED_FACTOR: f32 = 0.75;

/// A device's queue, in nanoseconds of the framework's clock.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    /// When the device will be free, by estimate.
    free_at: AtomicU64,
    /// Batches that the device has.
    batches: AtomicU32,
    /// Batches that the device has finished.
    finished: AtomicU64,
    /// Nanoseconds of the caller's core to take a finished batch back.
    landing: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The estimated service time of all batches that the device has.
    service: u64,
    /// When a caller last looked for finished work.
    looked: u64,
    /// When a batch last ended.
    ended: u64,
}

/// A batch that a device has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueuedBatch {
    begun: u64,
    /// The device had no other work when the batch was given to it.
    alone: bool,
    /// The expected time from beginning to end on an idle device; 0 if nothing is known.
    latency: u32,
    /// The expected time that the batch occupies the device; 0 if nothing is known.
    service: u32,
}

impl QueuedBatch {
    /// The time to assume for a batch that ended between two moments far from each other. The
    /// guess favours the device: the device then gets more batches, and those are measured more
    /// exactly.
    fn guess(&self, earliest: f32, latest: f32) -> f32 {
        match self.latency as f32 {
            0.0 => f32::midpoint(earliest, latest),
            expected if expected > latest => latest,
            expected => earliest.max(expected / 2.0),
        }
    }
}

/// How the end of a batch was noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Its caller waited for it.
    Waiting,
    /// The driver landed the batch as soon as it ended.
    Landed,
    /// A caller polled, and the batch has ended at some time since the poll before.
    Polling,
}

/// What the end of a batch tells.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    /// Nanoseconds from beginning to end on an idle device; 0 if this batch does not show that.
    pub(crate) latency: f32,
    /// Nanoseconds that the batch occupied the device; 0 if this batch does not show that.
    pub(crate) service: f32,
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nanoseconds until the device is free.
    #[inline]
    pub(crate) fn backlog(&self, now: u64) -> u64 {
        self.free_at.load(Ordering::Relaxed).saturating_sub(now)
    }

    /// Batches that the device has.
    #[inline]
    pub(crate) fn batches(&self) -> u32 {
        self.batches.load(Ordering::Relaxed)
    }

    /// Batches that the device has finished.
    pub(crate) fn finished(&self) -> u64 {
        self.finished.load(Ordering::Relaxed)
    }

    /// Notes that taking back `batches` took a caller's core this many nanoseconds.
    pub(crate) fn took_back(&self, batches: u64, nanoseconds: u64) {
        let each = nanoseconds / batches.max(1);
        let mean = match self.landing.load(Ordering::Relaxed) {
            0 => each,
            mean => mean - mean / 16 + each / 16,
        };
        self.landing.store(mean, Ordering::Relaxed);
    }

    /// Mean nanoseconds that a caller's core takes to take a finished batch back.
    pub(crate) fn landing(&self) -> u64 {
        self.landing.load(Ordering::Relaxed)
    }

    /// Notes that a batch with this expected cost goes to the device.
    pub(crate) fn begin(&self, now: u64, expected: Option<Cost>) -> QueuedBatch {
        let expected = expected.unwrap_or_default();
        let (latency, service) = (expected.latency as u32, expected.period as u32);
        let mut state = self.state();
        state.service += u64::from(service);
        let batches = self.batches.fetch_add(1, Ordering::Relaxed);
        let backlog = self.backlog(now);
        self.free_at
            .store(now + backlog + u64::from(service), Ordering::Relaxed);
        QueuedBatch {
            begun: now,
            alone: batches == 0 && backlog == 0,
            latency,
            service,
        }
    }

    /// Notes that the device had no room for a batch.
    pub(crate) fn cancel(&self, entry: &QueuedBatch) {
        let mut state = self.state();
        self.batches.fetch_sub(1, Ordering::Relaxed);
        state.service = state.service.saturating_sub(entry.service.into());
        let free_at = self.free_at.load(Ordering::Relaxed);
        self.free_at.store(
            free_at.saturating_sub(entry.service.into()),
            Ordering::Relaxed,
        );
    }

    /// Notes that a caller looked for finished work and has seen all of it that there was by
    /// `now`.
    pub(crate) fn looked(&self, now: u64) {
        self.state().looked = now;
    }

    /// Notes that a batch has ended, and tells what its end shows.
    pub(crate) fn end(&self, now: u64, entry: &QueuedBatch, found: Found) -> Seen {
        // The thread that finds the end may have read the clock before the batch began.
        let now = now.max(entry.begun);
        let mut state = self.state();
        self.batches.fetch_sub(1, Ordering::Relaxed);
        self.finished.fetch_add(1, Ordering::Relaxed);
        state.service = state.service.saturating_sub(entry.service.into());
        // A batch on its way back no longer occupies the device, though it has not arrived.
        let on_the_way = u64::from(entry.latency.saturating_sub(entry.service));
        let free_at = match state.service {
            0 => now.saturating_sub(on_the_way),
            left => now + left.saturating_sub(on_the_way),
        };
        self.free_at.store(free_at, Ordering::Relaxed);
        let mut seen = Seen::default();
        let before = std::mem::replace(&mut state.ended, now);
        let latest = now.saturating_sub(entry.begun);
        let earliest = state.looked.clamp(entry.begun, now) - entry.begun;
        let (from, to) = (earliest as f32, latest.max(1) as f32);
        let took = match found {
            Found::Polling if to - from > to / EXACT_ENOUGH => entry.guess(from, to),
            Found::Polling => f32::midpoint(from, to),
            Found::Waiting | Found::Landed => to,
        };
        // The batch began before the previous one ended: the device went from one to the other
        // without a pause.
        let behind = entry.begun < before && before <= now;
        let crowded = behind || !entry.alone;
        let queued = crowded && latest as f32 > entry.latency as f32 * QUEUED_FACTOR;
        // A caller that does not wait fills the queue by itself.
        let counts = match found {
            Found::Waiting => !queued,
            Found::Landed | Found::Polling => !crowded || took < entry.latency as f32,
        };
        if counts {
            seen.latency = took;
        }
        let step = match behind {
            true => (now - before) as f32,
            false => latest as f32,
        };
        if entry.service > 0 {
            // Only a batch that waited in the queue shows the device's pace. If no batch waits, the
            // device may be faster than the batches come.
            seen.service = match queued {
                true => {
                    // On an idle device the batch would take at least as long as it occupies it.
                    if step > entry.latency as f32 {
                        seen.latency = step;
                    }
                    step.max(1.0)
                }
                false => {
                    let least = entry.latency as f32 / MAX_PARALLEL;
                    (step.min(entry.service as f32) * UNCONTESTED_FACTOR).max(least)
                }
            };
        }
        seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A device with a latency and a service time; every batch is taken back as it ends.
    fn saturate(queue: &Queue, latency: u64, service: u64, depth: usize) -> Vec<Seen> {
        let (mut free, mut now) = (0, 1);
        let expected = Cost {
            latency: (latency + service) as f32,
            ..Cost::inline(9000.0)
        };
        let mut under_way = std::collections::VecDeque::new();
        let mut all = Vec::new();
        for _ in 0..200 {
            while under_way.len() < depth {
                free = now.max(free) + service;
                under_way.push_back((free + latency, queue.begin(now, Some(expected))));
            }
            let (end, entry) = under_way.pop_front().unwrap();
            now = end;
            all.push(queue.end(now, &entry, Found::Landed));
        }
        all
    }

    #[test]
    fn the_pace_of_a_device_that_is_never_idle_is_its_service() {
        let queue = Queue::default();
        let seen = saturate(&queue, 10_000, 700, 64);
        assert!(seen[20..].iter().all(|s| s.service == 700.0), "{seen:?}");
        assert_eq!(queue.batches(), 63);
    }

    #[test]
    fn the_latency_of_an_idle_device_is_all_of_the_time() {
        let queue = Queue::default();
        let seen = saturate(&queue, 10_000, 700, 1);
        assert!(
            seen.iter()
                .all(|s| s.latency == 10_700.0 && s.service < 9000.0)
        );
        assert_eq!((queue.batches(), queue.backlog(1 << 40)), (0, 0));
    }

    #[test]
    fn a_batch_found_late_gives_the_device_the_benefit_of_the_doubt() {
        let of = |expected: f32| {
            let queue = Queue::default();
            let entry = queue.begin(1000, Some(Cost::inline(expected)));
            queue.looked(1400);
            queue.end(5000, &entry, Found::Polling).latency
        };
        assert_eq!((of(100.0), of(1000.0), of(9000.0)), (400.0, 500.0, 4000.0));
    }

    #[test]
    fn a_batch_may_be_found_by_one_whose_clock_is_behind() {
        let queue = Queue::default();
        let entry = queue.begin(1000, Some(Cost::inline(50.0)));
        let seen = queue.end(900, &entry, Found::Landed);
        assert!(seen.latency <= 1.0 && queue.batches() == 0, "{seen:?}");
    }

    #[test]
    fn what_is_queued_is_what_was_given_and_has_not_ended() {
        let queue = Queue::default();
        let one = queue.begin(100, Some(Cost::inline(50.0)));
        let two = queue.begin(110, Some(Cost::inline(50.0)));
        assert_eq!(queue.backlog(110), 90);
        queue.cancel(&two);
        assert_eq!(queue.backlog(110), 40);
        queue.end(160, &one, Found::Landed);
        assert_eq!((queue.backlog(160), queue.batches()), (0, 0));
    }
}
