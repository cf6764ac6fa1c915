//! Events that are open during windows only: ends of system calls, and switches of the target's threads.
//!
//! While a tracepoint at system calls is open, each call of every program takes the kernel's longer
//! way. While a thread has an event, even one that is switched off, each of its switches takes longer:
//! two processes that hand each other a byte took 4.3 microseconds per round without, and 25 % more with
//! such events of one of them (Zen 5).
//!
//! Their rings stay: to map one of a megabyte and to unmap it again took the recorder more time than all
//! that it read from it (Zen 4).

use std::io;

use perf_event::Counter;
use perf_event::events::Software;

use super::attributes::Way;
use super::events::{CALLS, Events, Pace, Scope, Source};
use super::records::Kinds;
use super::tracepoints::tracepoint;

impl Kinds {
    /// Which of their events are open during windows only.
    fn source(self) -> Source {
        match self {
            Self::Calls => Source::Call,
            Self::Waits => Source::Switch,
        }
    }
}

impl Events {
    /// The number of the ring that an event on a processor shares with others of its kind, if there is
    /// one. For what has windows it is opened here, and belongs to an event that never happens; not
    /// where only events of one's own threads are allowed, which have rings of their own.
    pub(super) fn kept_ring(
        &mut self,
        way: &Way<'_>,
        source: Source,
        cpu: usize,
    ) -> io::Result<Option<usize>> {
        let has_windows = match source {
            Source::Call => true,
            // Switches of processors are no events of threads.
            Source::Switch => way.terms.switches_apart && way.scope != Scope::Machine,
            Source::Processor => false,
            Source::Wake | Source::Helper => return Ok(None),
        };
        let kept = self.kept.iter().find(|of| (of.0, of.1) == (source, cpu));
        if let Some((_, _, ring)) = kept {
            return Ok(Some(*ring));
        }
        if !has_windows {
            return Ok(None);
        }
        let way = way.everywhere();
        let mut builder = way.sampler(source, Software::DUMMY, Pace::Each);
        // It is of every thread, whose switches are not wanted.
        builder.context_switch(false);
        let opened = builder.any_pid().one_cpu(cpu).build();
        match opened.map_err(|error| (error.raw_os_error(), error)) {
            Ok(counter) => {
                let size = source.ring(self.terms.is_root);
                self.kept.push((source, cpu, self.rings.len()));
                self.rings.push((source, counter.sampled(size)?));
                Ok(self.kept.last().map(|of| of.2))
            }
            Err((Some(libc::EACCES | libc::EPERM), _)) => Ok(None),
            Err((_, error)) => Err(error),
        }
    }

    /// Whether the events of these kinds are closed between windows, not only off.
    pub(super) fn closes(&self, of: Kinds) -> bool {
        of == Kinds::Calls || self.keeps_ring(of.source())
    }

    fn keeps_ring(&self, source: Source) -> bool {
        self.kept.iter().any(|of| of.0 == source)
    }

    /// Begins a window of these threads, or of every one.
    pub(super) fn open_window(&mut self, of: Kinds, scope: Scope<'_>) -> io::Result<()> {
        let way = Way {
            scope,
            at_exec: false,
            terms: self.terms,
        };
        let before = (self.rings.len(), self.others.len());
        match of {
            Kinds::Calls => {
                let calls = tracepoint(CALLS).ok_or(io::ErrorKind::NotFound)?;
                self.ring(&way, Source::Call, calls, Pace::Each)?;
                if scope != Scope::Machine {
                    self.processor_time = way.counters(Software::TASK_CLOCK);
                }
            }
            Kinds::Waits if self.keeps_ring(Source::Switch) => {
                let switches = Software::CONTEXT_SWITCHES;
                match self.ring(&way, Source::Switch, switches, Pace::Each) {
                    // All threads have just ended.
                    Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                    opened => opened?,
                }
            }
            Kinds::Waits => {}
        }
        let rings = self.rings[before.0..].iter_mut();
        let mut rings = rings.map(|(_, ring)| ring.as_counter_mut());
        let mut others = self.others[before.1..].iter_mut().map(|(_, event)| event);
        rings.try_for_each(Counter::enable)?;
        others.try_for_each(Counter::enable)?;
        match of {
            Kinds::Calls if scope != Scope::Machine => {
                self.processor_time.iter_mut().try_for_each(Counter::enable)
            }
            Kinds::Calls => Ok(()),
            Kinds::Waits => {
                self.switch_waits(true);
                Ok(())
            }
        }
    }

    /// Stops events, so that the rings can be read to their end.
    pub(super) fn stop_window(&mut self, of: Kinds) {
        if of == Kinds::Waits {
            return self.switch_waits(false);
        }
        let rings = self.rings.iter_mut();
        for (_, ring) in rings.filter(|(source, _)| source.is_of(of)) {
            let _ = ring.as_counter_mut().disable();
        }
        let others = self.others.iter_mut();
        for (_, event) in others.filter(|(source, _)| source.is_of(of)) {
            let _ = event.disable();
        }
    }

    /// Ends a window whose events were stopped: those that are open in windows only are closed, and the
    /// caller has to have read the rings. The kernel waits for all processors with that, and this thread
    /// does not.
    pub(super) fn close_window(&mut self, of: Kinds) {
        if !self.closes(of) {
            return;
        }
        let source = of.source();
        let are_kept = self.keeps_ring(source);
        let rings = self.rings.extract_if(.., |of| !are_kept && of.0 == source);
        let rings: Vec<_> = rings.collect();
        let others: Vec<_> = self.others.extract_if(.., |of| of.0 == source).collect();
        let closer = std::thread::Builder::new().name("closer".to_owned());
        // Without a thread they are closed here, since the closure that has them is dropped.
        let _ = closer.spawn(move || drop((others, rings)));
    }

    /// System calls that the open events have counted.
    pub(super) fn calls_counted(&mut self) -> u64 {
        let is_call = |source: Source| source.is_of(Kinds::Calls);
        let rings = self.rings.iter_mut().filter(|of| is_call(of.0));
        let rings = rings.filter_map(|(_, ring)| ring.as_counter_mut().read().ok());
        let others = self.others.iter_mut().filter(|of| is_call(of.0));
        let others = others.filter_map(|(_, event)| event.read().ok());
        rings.chain(others).sum()
    }
}
