//! What each event tells, and of whom: its attributes as perf_event_open(2) has them.

use perf_event::events::{Event, Software};
use perf_event::{Builder, Clock, Counter, SampleFlag};

use super::events::{Pace, Scope, Source};

/// Frames of a stack.
const DEEPEST: u16 = 96;

/// What is the same for all events.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    pub(super) kernel: bool,
    pub(super) is_root: bool,
    pub(super) processors: usize,
    /// Switches are recorded by an event of their own, which can be switched off.
    pub(super) switches_apart: bool,
}

/// How events are opened.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way<'a> {
    pub(super) scope: Scope<'a>,
    /// They begin when the process starts another program.
    pub(super) at_exec: bool,
    pub(super) terms: Terms,
}

impl<'a> Way<'a> {
    /// The same for all processors, whatever runs there; no program begins it.
    pub(super) fn everywhere(&self) -> Way<'static> {
        Way {
            scope: Scope::Machine,
            at_exec: false,
            terms: self.terms,
        }
    }

    pub(super) fn sampler(&self, source: Source, event: impl Event, pace: Pace) -> Builder<'a> {
        let mut builder = Builder::new(event);
        self.common(&mut builder);
        match pace {
            Pace::Each => builder.sample_period(1),
            Pace::Sampled(rate) => builder.sample_frequency(rate),
        };
        // Where another event records each one, this one waits for its turn.
        let waits = source != Source::Processor && pace != Pace::Each;
        builder.enable_on_exec(self.at_exec && !waits);
        builder
            .sample(SampleFlag::TID)
            .sample(SampleFlag::TIME)
            .sample(SampleFlag::CPU)
            .sample(SampleFlag::PERIOD)
            .sample_id_all(true)
            .clockid(Clock::MONOTONIC)
            .wakeup_watermark(source.ring(self.terms.is_root) / 4);
        if matches!(source, Source::Call | Source::Wake | Source::Helper) {
            builder.sample(SampleFlag::RAW);
        }
        if !matches!(source, Source::Call | Source::Helper) {
            builder
                .sample(SampleFlag::CALLCHAIN)
                .sample_max_stack(DEEPEST);
        }
        if source == Source::Processor {
            builder
                // The kernel writes records of mappings, of either form, for this flag alone.
                .mmap(true)
                .mmap2(true)
                .comm(true)
                .comm_exec(true)
                .task(true);
        }
        let tells_switches = match self.terms.kernel && self.terms.switches_apart {
            true => Source::Switch,
            false => Source::Processor,
        };
        builder.context_switch(source == tells_switches);
        builder
    }

    pub(super) fn common(&self, builder: &mut Builder<'_>) {
        builder.exclude_kernel(!self.terms.kernel);
        builder.exclude_callchain_kernel(!self.terms.kernel);
        builder.exclude_idle(true);
        if let Scope::Threads { children, .. } = self.scope {
            // Threads of the process are its children too, for the kernel.
            builder.inherit(true).inherit_thread(!children);
        }
        builder.enable_on_exec(self.at_exec);
    }

    /// Counters over all processors; none where they are refused, which the samplers have told.
    pub(super) fn counters(&self, event: Software) -> Vec<Counter> {
        let mut builder = Builder::new(event);
        self.common(&mut builder);
        match self.scope {
            Scope::Machine => (0..self.terms.processors)
                .filter_map(|cpu| builder.any_pid().one_cpu(cpu).build().ok())
                .collect(),
            Scope::Threads { tids, .. } => tids
                .iter()
                .filter_map(|&tid| {
                    let builder = builder.any_cpu().observe_pid(tid as libc::pid_t);
                    builder.build().ok()
                })
                .collect(),
        }
    }
}
