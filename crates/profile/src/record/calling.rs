//! Events of system calls, which are open during windows only. Their rings stay: to map one of a megabyte
//! and to unmap it again took the recorder more time than all that it read from it (Zen 4).

use std::io;

use perf_event::Counter;
use perf_event::events::Software;

use super::attributes::Way;
use super::events::{CALLS, Events, Pace, Scope, Source};
use super::records::Kinds;
use super::tracepoints::tracepoint;

impl Events {
    /// The number of the ring that an event on a processor shares with others of its kind, if there is
    /// one. For system calls it is opened here, and belongs to an event that never happens; not where
    /// only events of one's own threads are allowed, which have rings of their own.
    pub(super) fn kept_ring(
        &mut self,
        way: &Way<'_>,
        source: Source,
        cpu: usize,
    ) -> io::Result<Option<usize>> {
        let kept = self.kept.iter().find(|of| (of.0, of.1) == (source, cpu));
        if let (Some((_, _, ring)), Source::Processor | Source::Call) = (kept, source) {
            return Ok(Some(*ring));
        }
        if source != Source::Call {
            return Ok(None);
        }
        let way = way.everywhere();
        let mut builder = way.sampler(Source::Call, Software::DUMMY, Pace::Each);
        let opened = builder.any_pid().one_cpu(cpu).build();
        match opened.map_err(|error| (error.raw_os_error(), error)) {
            Ok(counter) => {
                let size = Source::Call.ring(self.terms.is_root);
                self.kept.push((source, cpu, self.rings.len()));
                self.rings.push((Source::Call, counter.sampled(size)?));
                Ok(self.kept.last().map(|of| of.2))
            }
            Err((Some(libc::EACCES | libc::EPERM), _)) => Ok(None),
            Err((_, error)) => Err(error),
        }
    }

    /// Begins a window of system calls, of these threads or of every one.
    pub(super) fn open_calls(&mut self, scope: Scope<'_>) -> io::Result<()> {
        let calls = tracepoint(CALLS).ok_or(io::ErrorKind::NotFound)?;
        let way = Way {
            scope,
            at_exec: false,
            terms: self.terms,
        };
        let before = (self.rings.len(), self.others.len());
        self.ring(&way, Source::Call, calls, Pace::Each)?;
        let rings = self.rings[before.0..].iter_mut();
        let mut rings = rings.map(|(_, ring)| ring.as_counter_mut());
        let mut others = self.others[before.1..].iter_mut().map(|(_, event)| event);
        rings.try_for_each(Counter::enable)?;
        others.try_for_each(Counter::enable)
    }

    /// Ends a window of system calls: no event is left, and the caller has to have read the rings.
    /// The kernel waits for all processors with that, and this thread does not.
    pub(super) fn close_calls(&mut self) {
        let is_call = |source: &Source| source.is_of(Kinds::Calls);
        let are_kept = self.kept.iter().any(|of| is_call(&of.0));
        let rings = self.rings.extract_if(.., |of| !are_kept && is_call(&of.0));
        let rings: Vec<_> = rings.collect();
        let others: Vec<_> = self.others.extract_if(.., |of| is_call(&of.0)).collect();
        let closer = std::thread::Builder::new().name("closer".to_owned());
        // Without a thread they are closed here, since the closure that has them is dropped.
        let _ = closer.spawn(move || drop((others, rings)));
    }

    /// Stops system calls, so that the rings can be read to their end.
    pub(super) fn stop_calls(&mut self) {
        let rings = self.rings.iter_mut();
        for (_, ring) in rings.filter(|of| of.0.is_of(Kinds::Calls)) {
            let _ = ring.as_counter_mut().disable();
        }
        let others = self.others.iter_mut();
        for (_, event) in others.filter(|of| of.0.is_of(Kinds::Calls)) {
            let _ = event.disable();
        }
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
