//! Waits that windows did not see whole: they are multiplied up, and time whose stack is not known
//! is shared out.

use std::collections::HashMap;

use super::collect::Collector;
use super::windowed::scaled;
use crate::recording::{Kind, Sample};

/// Stacks of a thread that time without a stack is given to at most, those with the most time.
const SHARED: usize = 8;

impl Collector {
    /// The recording has lasted from `begin` to `end`: shares out the time without a stack, and
    /// multiplies up.
    pub(super) fn finish_waits(&mut self, begin: u64, end: u64) {
        let (windows, sums) = self.waits.finish(begin, end, None);
        for (weight, of) in sums {
            self.sums.waits += scaled(of.waits, weight);
            self.sums.preemptions += scaled(of.preemptions, weight);
            self.sums.migrations += scaled(of.migrations, weight);
            self.sums.wakes.add_all(&of.wakes, weight);
        }
        self.share_out();
        let weights = windows.weights(end.saturating_sub(begin));
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
