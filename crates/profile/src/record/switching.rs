//! Events that are open are switched on and off: all of them at the begin and the end, some of them
//! for windows in between.

use std::io;

use perf_event::Counter;

use super::events::{Events, Replaced, Source};
use super::records::Kinds;
use super::used::Used;

/// Switches per second of which each one has a stack, where there are no windows; wake-ups of kernel
/// threads per second that are recorded.
const MAX_PER_SECOND: u64 = 20_000;

impl Events {
    /// Starts what cannot start by itself with the command: events that are not of its threads.
    pub(super) fn enable_everywhere(&mut self) -> io::Result<()> {
        let waiting: Vec<usize> = self.waiting(|of| &of.then.0);
        let by_processors = self.by_processors;
        for (number, (source, ring)) in self.rings.iter_mut().enumerate() {
            let is_everywhere = match source {
                Source::Wake | Source::Helper => true,
                Source::Processor => by_processors,
                Source::Switch | Source::Call => false,
            };
            if is_everywhere && !waiting.contains(&number) {
                ring.as_counter_mut().enable()?;
            }
        }
        Ok(())
    }

    /// What is to take the place of others.
    fn waiting(&self, of: fn(&Replaced) -> &Vec<usize>) -> Vec<usize> {
        let replaced = self.fallbacks.iter().chain(&self.clocks);
        replaced.flat_map(of).copied().collect()
    }

    /// Starts what does not start with the command.
    pub(super) fn enable(&mut self) -> io::Result<()> {
        let rings = self.waiting(|of| &of.then.0);
        let others = self.waiting(|of| &of.then.1);
        for (number, (_, ring)) in self.rings.iter_mut().enumerate() {
            if !rings.contains(&number) {
                ring.as_counter_mut().enable()?;
            }
        }
        for (number, (_, event)) in self.others.iter_mut().enumerate() {
            if !others.contains(&number) {
                event.enable()?;
            }
        }
        let counters = [&mut self.processor_time, &mut self.faults];
        counters.into_iter().flatten().try_for_each(Counter::enable)
    }

    /// Stops all of them; what is in the rings stays.
    pub(super) fn disable(&mut self) {
        for (_, ring) in &mut self.rings {
            // It fails only for a descriptor that is none.
            let _ = ring.as_counter_mut().disable();
        }
        self.others.iter_mut().for_each(|(_, event)| {
            let _ = event.disable();
        });
    }

    /// Whether there are any of these kinds.
    pub(super) fn have(&self, kinds: Kinds) -> bool {
        self.rings.iter().any(|(source, _)| source.is_of(kinds))
    }

    /// Begins a window of waits, or ends it, as far as its events are open. What is in the rings stays.
    pub(super) fn switch_waits(&mut self, is_on: bool) {
        let rings = self.rings.iter_mut();
        let rings = rings.map(|(source, ring)| (*source, ring.as_counter_mut()));
        let others = self.others.iter_mut();
        let others = others.map(|(source, event)| (*source, event));
        for (_, event) in rings.chain(others).filter(|of| of.0.is_of(Kinds::Waits)) {
            // It fails only for a descriptor that is none.
            let _ = match is_on {
                true => event.enable(),
                false => event.disable(),
            };
        }
    }

    /// What the counters have counted until now.
    pub(super) fn used(&mut self) -> Used {
        let [processor_ns, faults] = [&mut self.processor_time, &mut self.faults]
            .map(|counters| counters.iter_mut().filter_map(|c| c.read().ok()).sum());
        Used {
            processor_ns,
            faults,
        }
    }

    /// From now on kernel threads are left out if they were woken too often: `count` times in
    /// `seconds`. Says whether that is so.
    pub(super) fn bound_helpers(&mut self, count: u64, seconds: f64) -> bool {
        if (count as f64) < MAX_PER_SECOND as f64 * seconds {
            return false;
        }
        let is_helper = |source: &Source| *source == Source::Helper;
        drop(
            self.rings
                .extract_if(.., |of| is_helper(&of.0))
                .collect::<Vec<_>>(),
        );
        self.missing.push(format!(
            "processor time of kernel threads that work for the program is on its bill at the begin \
             only: they are woken more than {MAX_PER_SECOND} times per second, and to record that \
             would slow them down"
        ));
        true
    }

    /// From now on stacks of switches are sampled if there were too many: `count` in `seconds`.
    pub(super) fn bound(&mut self, count: u64, seconds: f64) {
        if (count as f64) < MAX_PER_SECOND as f64 * seconds {
            return;
        }
        if let Some(fallback) = self.fallbacks.pop() {
            self.replace(fallback);
        }
    }

    /// From now on processor time is sampled by the clocks that go on until the end.
    pub(super) fn slow_clocks(&mut self) {
        if let Some(clocks) = self.clocks.take() {
            self.replace(clocks);
        }
    }

    /// Nothing between the first ones and those that follow is missed: a process may start then.
    fn replace(&mut self, replaced: Replaced) {
        // These calls fail only for a descriptor that is none.
        for ring in replaced.then.0 {
            let _ = self.rings[ring].1.as_counter_mut().enable();
        }
        for other in replaced.then.1 {
            let _ = self.others[other].1.enable();
        }
        for ring in replaced.first.0 {
            let _ = self.rings[ring].1.as_counter_mut().disable();
        }
        for other in replaced.first.1 {
            let _ = self.others[other].1.disable();
        }
    }
}
