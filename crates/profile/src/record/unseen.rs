//! Waits that windows did not see whole: they are multiplied up, and time whose stack is not known
//! is shared out.

use std::collections::HashMap;

use super::collect::Collector;
use super::windowed::{Done, scaled};
use crate::recording::{Kind, Sample};

/// Stacks of a thread that time without a stack is given to at most, those with the most time.
const SHARED: usize = 8;
/// Waits that windows need at least, to say how many there were around them.
const LEAST_WAITS: f64 = 200.0;

impl Collector {
    /// The recording has lasted from `begin` to `end`: shares out the time without a stack, and
    /// multiplies up.
    pub(super) fn finish_waits(&mut self, begin: u64, end: u64) {
        // Threads that live shorter than from one look to the next are not counted. Where they make most
        // of the waits, the count is not used.
        let is_known = 2 * self.waits.done() > self.waits.seen(|of| of.waits);
        let known = self.switches.filter(|_| is_known && !self.waits.is_whole());
        let done = known.map(|of| Done {
            all: of.waits,
            least: LEAST_WAITS,
        });
        let (windows, sums) = self.waits.finish(begin, end, done);
        let weights = windows.weights(end.saturating_sub(begin));
        for (number, (by_count, of)) in sums.into_iter().enumerate() {
            let by_time = weights.get(number).copied().unwrap_or(1.0);
            self.sums.waits += scaled(of.waits, by_count);
            self.sums.preemptions += scaled(of.preemptions, by_time);
            self.sums.migrations += scaled(of.migrations, by_count);
            self.sums.wakes.add_all(&of.wakes, (by_count, by_time));
        }
        if let Some(of) = known {
            (self.sums.waits, self.sums.preemptions) = (of.waits, of.preemptions);
        }
        self.share_out();
        for sample in self.samples.iter_mut().filter(|of| of.kind != Kind::Cpu) {
            let weight = windows.at(sample.at_ns).map_or(1.0, |at| weights[at]);
            sample.count = scaled(sample.count, weight);
            sample.ns = scaled(sample.ns, weight);
        }
        self.sums.coverage.waits = windows;
    }

    fn share_out(&mut self) {
        let mut known: HashMap<u32, HashMap<(Kind, u32), u64>> = HashMap::new();
        for sample in self.samples.iter().filter(|of| of.kind != Kind::Cpu) {
            let times = known.entry(sample.thread).or_default();
            *times.entry((sample.kind, sample.stack)).or_default() += sample.ns;
        }
        let known: HashMap<u32, Vec<_>> = known
            .into_iter()
            .map(|(thread, times)| {
                let mut times: Vec<_> = times.into_iter().collect();
                times.sort_by_key(|&(of, ns)| (std::cmp::Reverse(ns), of));
                times.truncate(SHARED);
                (thread, times)
            })
            .collect();
        let nowhere = [((Kind::Wait, 0), 1)];
        for (at_ns, thread, ns) in std::mem::take(&mut self.edges) {
            let times = known.get(&thread).map_or(&nowhere[..], Vec::as_slice);
            let all: u64 = times.iter().map(|(_, ns)| *ns).sum();
            for &((kind, stack), part) in times {
                self.samples.push(Sample {
                    at_ns,
                    kind,
                    thread,
                    stack,
                    count: 0,
                    ns: scaled(ns, part as f64 / all.max(1) as f64),
                });
            }
        }
    }
}
