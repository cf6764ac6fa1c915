//! Samples: what is alike is added up.
//!
//! Time is cut into slices of ten milliseconds. What one thread did in one stack in one slice is
//! one sample, so that a program that switches a hundred thousand times per second makes
//! no larger recording than another one.

use super::collect::Collector;
use crate::recording::{Kind, Sample};

/// Nanoseconds of a slice.
const SLICE: u64 = 10_000_000;

impl Collector {
    /// Adds to what the slice has of the kind already. A wait belongs to the slice it began in,
    /// which may have passed: then it stands alone.
    pub(super) fn sample(
        &mut self,
        time: u64,
        kind: Kind,
        thread: u32,
        stack: u32,
        (count, ns): (u64, u64),
    ) {
        if self.turns.as_ref().is_some_and(|turns| turns.now.is_none()) {
            return;
        }
        let begin = *self.begin.get_or_insert(time);
        let slice = time.saturating_sub(begin) / SLICE;
        if slice < self.slice {
            self.samples.push(Sample {
                at_ns: self.at(slice, kind),
                kind,
                thread,
                stack,
                count,
                ns,
            });
            return;
        }
        if slice > self.slice {
            self.flush();
            self.slice = slice;
        }
        let sum = self.pending.entry((thread, kind, stack)).or_default();
        sum.0 += count;
        sum.1 += ns;
    }

    /// The turn ends, and the next one begins, if there is one. A part's time stands still between
    /// its turns.
    pub(super) fn turn(&mut self, time: u64, of: Option<u32>) {
        let Some(now) = self.turns.as_ref().map(|turns| turns.now) else {
            return;
        };
        if let Some((_, since)) = now {
            let starved: Vec<(u32, u64)> = self
                .states
                .iter()
                .filter_map(|(tid, state)| match state.out {
                    Some((out, Kind::Ready)) => Some((*tid, out.max(since))),
                    _ => None,
                })
                .collect();
            for (tid, out) in starved {
                let stack = self.states.get(&tid).map_or(0, |state| state.stack);
                let thread = self.thread(0, tid);
                let ns = time.saturating_sub(out);
                self.sample(out, Kind::Ready, thread, stack, (1, ns));
            }
            self.flush();
        }
        let samples = std::mem::take(&mut self.samples);
        let wakes = std::mem::take(&mut self.waits.now.wakes);
        self.sums.wakes.add_all(&wakes, (1.0, 1.0));
        if let Some(turns) = &mut self.turns {
            let behind = turns.change(time, of, samples, &wakes);
            self.begin = Some(time.saturating_sub(behind));
            self.slice = behind / SLICE;
        }
    }

    /// When a sample of a slice was, since the begin: within the window that it belongs to.
    fn at(&self, slice: u64, kind: Kind) -> u64 {
        match kind {
            Kind::Cpu => slice * SLICE,
            _ => {
                let since = self.waits.since.saturating_sub(self.begin.unwrap_or(0));
                (slice * SLICE).max(since)
            }
        }
    }

    pub(super) fn flush(&mut self) {
        for ((thread, kind, stack), (count, ns)) in std::mem::take(&mut self.pending) {
            self.samples.push(Sample {
                at_ns: self.at(self.slice, kind),
                kind,
                thread,
                stack,
                count,
                ns,
            });
        }
    }
}
