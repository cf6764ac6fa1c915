//! Opens the kernel's events, as many of them as this user is allowed.
//!
//! Each kind of event has a ring for each processor, which all threads share. Four kinds are
//! sampled: processor time, with what happens to processes and memory; context switches, for the
//! stacks of those who wait; ends of system calls, for their counts and bytes; wake-ups, for the
//! stacks of those who end a wait. Of the latter three each one is recorded, until there are more
//! than some thousands a second; from then on they are sampled, and the kernel says how many each
//! one stands for.
//!
//! A wake-up happens in the thread that wakes, which may be of any process: its events are those of
//! the processors, and a filter in the kernel leaves only wake-ups of the target.

use std::io;

use perf_event::events::{Event, Hardware, Software};
use perf_event::{Builder, Clock, Counter, SampleFlag, Sampler};

use super::refusals::{failed, level, refused, without_kernel};
use super::share::{set_filter, share};
use super::tracepoints::{tracepoint, woken};
use crate::Error;

/// Bytes of a ring of the processor's samples, and of the others, for root.
const RING: usize = 2 << 20;
/// The same for users, who share 516 KiB a processor (kernel.perf_event_mlock_kb).
const SMALL_RING: usize = 128 << 10;
/// The same for wake-ups, of which fewer are recorded.
const WAKE_RING: usize = 512 << 10;
/// Switches, and system calls, of which each one is recorded, per second.
const MOST: u64 = 20_000;
/// Wake-ups of which each one is recorded, per second: each has two stacks.
const MOST_WAKES: u64 = 5_000;
/// Those that are sampled where there are more, per second and thread.
const SAMPLED: u64 = 4000;
/// Frames of a stack.
const DEEPEST: u16 = 96;

/// What is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope<'a> {
    /// These threads, and what they start where `children` says so.
    Threads { tids: &'a [u32], children: bool },
    /// Every processor.
    Machine,
}

/// Which ring a record is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// Processor time, switches, and what happens to processes.
    Processor,
    /// Stacks of those who stop.
    Switch,
    /// Ends of system calls.
    Call,
    /// Stacks of those who end a wait.
    Wake,
}

/// How often an event becomes a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pace {
    Each,
    /// Times a second.
    Sampled(u64),
}

/// Events of one kind that are sampled as soon as there are too many.
#[derive(Debug)]
struct Fallback {
    source: Source,
    /// Indices of the rings and of the others that record each event.
    each: (Vec<usize>, Vec<usize>),
    sampled: (Vec<usize>, Vec<usize>),
}

/// Events that are open.
pub(super) struct Events {
    /// Rings to read.
    pub(super) rings: Vec<(Source, Sampler)>,
    /// Events that write into those rings.
    others: Vec<Counter>,
    fallbacks: Vec<Fallback>,
    processor_time: Vec<Counter>,
    faults: Vec<Counter>,
    migrations: Vec<Counter>,
    /// The event by which processor time is sampled.
    pub(super) name: &'static str,
    /// What is not recorded, and what would change that.
    pub(super) missing: Vec<String>,
}

/// How events are opened.
#[derive(Clone, Copy, Debug)]
struct Way<'a> {
    scope: Scope<'a>,
    /// They begin when the process starts another program.
    at_exec: bool,
    kernel: bool,
    is_root: bool,
    processors: usize,
}

impl Events {
    /// Opens events for `scope`, `rate` samples per second of processor time.
    pub(super) fn open(scope: Scope<'_>, at_exec: bool, rate: u64) -> Result<Self, Error> {
        Self::open_some(scope, at_exec, rate, true)
    }

    /// The same for what runs already, without system calls, which costs those that make them.
    pub(super) fn open_without_calls(scope: Scope<'_>, rate: u64) -> Result<Self, Error> {
        Self::open_some(scope, false, rate, false)
    }

    fn open_some(scope: Scope<'_>, at_exec: bool, rate: u64, calls: bool) -> Result<Self, Error> {
        let mut way = Way {
            scope,
            at_exec,
            kernel: true,
            is_root: rustix::process::geteuid().is_root(),
            processors: cipherlane_measure::machine::Machine::detect().cpus,
        };
        let mut events = Self {
            rings: Vec::new(),
            others: Vec::new(),
            fallbacks: Vec::new(),
            processor_time: Vec::new(),
            faults: Vec::new(),
            migrations: Vec::new(),
            name: "cpu-clock",
            missing: Vec::new(),
        };
        events.open_processor(&mut way, rate)?;
        if way.kernel {
            events.open_switches(&way);
            if calls {
                events.open_tracepoints(&way);
            }
        }
        events.processor_time = way.counters(Software::TASK_CLOCK);
        events.faults = way.counters(Software::PAGE_FAULTS);
        events.migrations = way.counters(Software::CPU_MIGRATIONS);
        Ok(events)
    }

    /// Processor time: by cycles where the processor counts them, which sees inside of sections
    /// without interrupts, and by the kernel's clock elsewhere.
    fn open_processor(&mut self, way: &mut Way<'_>, rate: u64) -> Result<(), Error> {
        let (mut last, pace) = (None, Pace::Sampled(rate));
        for (kernel, cycles) in [(true, true), (true, false), (false, true), (false, false)] {
            way.kernel = kernel;
            let tried = match cycles {
                true => self.ring(way, Source::Processor, Hardware::CPU_CYCLES, pace),
                false => self.ring(way, Source::Processor, Software::CPU_CLOCK, pace),
            };
            let error = match tried {
                Ok(()) => {
                    self.name = if cycles { "cycles" } else { "cpu-clock" };
                    if !kernel {
                        self.missing.push(without_kernel());
                    }
                    return Ok(());
                }
                Err(error) => error,
            };
            match (error.raw_os_error(), way.scope) {
                (Some(libc::ESRCH), Scope::Threads { tids, .. }) => {
                    return Err(Error::NoProcess(tids.first().copied().unwrap_or(0)));
                }
                (Some(libc::EACCES | libc::EPERM), Scope::Machine) => {
                    return Err(Error::WholeMachine(error));
                }
                _ => {}
            }
            // Cycles that are not there say nothing about permission.
            if !cycles {
                last = Some(error);
            }
        }
        let source = last.expect("each way has said why");
        Err(refused(source, way.scope, way.at_exec, level()))
    }

    /// Without them, waits have a length and no stack.
    fn open_switches(&mut self, way: &Way<'_>) {
        let opened = self.rings_with_fallback(way, Source::Switch, Software::CONTEXT_SWITCHES);
        if let Err(error) = opened {
            let error = failed("context switches", error);
            (self.missing).push(format!("what is waited for is not recorded: {error}"));
        }
    }

    /// They need the tracepoints' numbers, which the file system for tracing has.
    fn open_tracepoints(&mut self, way: &Way<'_>) {
        let Some(calls) = tracepoint("raw_syscalls/sys_exit") else {
            self.missing.push(
                "system calls are not counted, and who ends a wait is not known: \
                 /sys/kernel/tracing cannot be read; run as root, after 'mount -t tracefs tracefs \
                 /sys/kernel/tracing' where it is empty"
                    .to_owned(),
            );
            return;
        };
        if let Err(error) = self.rings_with_fallback(way, Source::Call, calls) {
            let why = match error.raw_os_error() {
                Some(libc::EACCES | libc::EPERM) => format!("{error}; run as root"),
                _ => failed("system calls", error).to_string(),
            };
            self.missing.push(format!(
                "system calls are not counted, and who ends a wait is not known: {why}"
            ));
            return;
        }
        // All else is worth recording without them.
        if let Err(error) = self.open_wakes(way) {
            self.missing.push(format!(
                "who ends a wait is not known: the kernel's tracepoint sched:sched_waking cannot be \
                 used ({error}); run as root"
            ));
        }
    }

    fn open_wakes(&mut self, way: &Way<'_>) -> io::Result<()> {
        let wakes = tracepoint("sched/sched_waking").ok_or(io::ErrorKind::NotFound)?;
        let everywhere = Way {
            scope: Scope::Machine,
            at_exec: false,
            ..*way
        };
        let before = self.rings.len();
        self.rings_with_fallback(&everywhere, Source::Wake, wakes)?;
        if let Some(filter) = woken(way.scope) {
            let mut rings = self.rings[before..].iter();
            let set = rings.try_for_each(|(_, ring)| set_filter(ring.as_counter(), &filter));
            if let Err(error) = set {
                self.fallbacks.retain(|of| of.source != Source::Wake);
                self.rings.truncate(before);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Rings that record each event, and others that sample, which do not begin by themselves.
    fn rings_with_fallback(
        &mut self,
        way: &Way<'_>,
        source: Source,
        event: impl Event + Clone,
    ) -> io::Result<()> {
        let begin = (self.rings.len(), self.others.len());
        self.ring(way, source, event.clone(), Pace::Each)?;
        let middle = (self.rings.len(), self.others.len());
        let sampled = self.ring(way, source, event, Pace::Sampled(SAMPLED));
        if let Err(error) = sampled {
            self.rings.truncate(begin.0);
            self.others.truncate(begin.1);
            return Err(error);
        }
        self.fallbacks.push(Fallback {
            source,
            each: ((begin.0..middle.0).collect(), (begin.1..middle.1).collect()),
            sampled: (
                (middle.0..self.rings.len()).collect(),
                (middle.1..self.others.len()).collect(),
            ),
        });
        Ok(())
    }

    /// From now on events of `source` are sampled if there were too many: `count` in `seconds`.
    pub(super) fn bound(&mut self, source: Source, count: u64, seconds: f64) {
        let most = match source {
            Source::Wake => MOST_WAKES,
            _ => MOST,
        };
        if (count as f64) < most as f64 * seconds {
            return;
        }
        let Some(at) = self.fallbacks.iter().position(|of| of.source == source) else {
            return;
        };
        let fallback = self.fallbacks.swap_remove(at);
        // These calls fail only for a descriptor that is none.
        for ring in fallback.sampled.0 {
            let _ = self.rings[ring].1.as_counter_mut().enable();
        }
        for other in fallback.sampled.1 {
            let _ = self.others[other].enable();
        }
        for ring in fallback.each.0 {
            let _ = self.rings[ring].1.as_counter_mut().disable();
        }
        for other in fallback.each.1 {
            let _ = self.others[other].disable();
        }
    }

    /// A ring of each processor for one kind of event.
    fn ring(
        &mut self,
        way: &Way<'_>,
        source: Source,
        event: impl Event + Clone,
        pace: Pace,
    ) -> io::Result<()> {
        let before = (self.rings.len(), self.others.len());
        let opened = self.try_ring(way, source, event, pace);
        if opened.is_err() {
            self.rings.truncate(before.0);
            self.others.truncate(before.1);
        }
        opened
    }

    fn try_ring(
        &mut self,
        way: &Way<'_>,
        source: Source,
        event: impl Event + Clone,
        pace: Pace,
    ) -> io::Result<()> {
        for cpu in 0..way.processors {
            let mut owner: Option<usize> = None;
            let mut open = |builder: &mut Builder<'_>| -> io::Result<()> {
                let counter = builder.one_cpu(cpu).build()?;
                match owner {
                    None => {
                        let size = match source {
                            _ if !way.is_root => SMALL_RING,
                            Source::Wake => WAKE_RING,
                            _ => RING,
                        };
                        owner = Some(self.rings.len());
                        self.rings.push((source, counter.sampled(size)?));
                    }
                    Some(owner) => {
                        share(&counter, self.rings[owner].1.as_counter())?;
                        self.others.push(counter);
                    }
                }
                Ok(())
            };
            let offline = |error: &io::Error| error.raw_os_error() == Some(libc::ENODEV);
            match way.scope {
                Scope::Machine => match open(way.sampler(source, event.clone(), pace).any_pid()) {
                    Err(error) if offline(&error) => {}
                    opened => opened?,
                },
                Scope::Threads { tids, .. } => {
                    for (number, &tid) in tids.iter().enumerate() {
                        let mut builder = way.sampler(source, event.clone(), pace);
                        match open(builder.observe_pid(tid as libc::pid_t)) {
                            // A thread may have ended since they were listed.
                            Err(e) if e.raw_os_error() == Some(libc::ESRCH) && number > 0 => {}
                            Err(error) if offline(&error) => {}
                            opened => opened?,
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Starts what cannot start by itself with the command.
    pub(super) fn enable_wakes(&mut self) -> io::Result<()> {
        let waiting: Vec<usize> = self.waiting(|fallback| &fallback.sampled.0);
        for (number, (source, ring)) in self.rings.iter_mut().enumerate() {
            if *source == Source::Wake && !waiting.contains(&number) {
                ring.as_counter_mut().enable()?;
            }
        }
        Ok(())
    }

    /// What is to sample where there are too many.
    fn waiting(&self, of: fn(&Fallback) -> &Vec<usize>) -> Vec<usize> {
        self.fallbacks.iter().flat_map(of).copied().collect()
    }

    /// Starts what does not start with the command.
    pub(super) fn enable(&mut self) -> io::Result<()> {
        let rings = self.waiting(|fallback| &fallback.sampled.0);
        let others = self.waiting(|fallback| &fallback.sampled.1);
        for (number, (_, ring)) in self.rings.iter_mut().enumerate() {
            if !rings.contains(&number) {
                ring.as_counter_mut().enable()?;
            }
        }
        for (number, event) in self.others.iter_mut().enumerate() {
            if !others.contains(&number) {
                event.enable()?;
            }
        }
        let counters = [
            &mut self.processor_time,
            &mut self.faults,
            &mut self.migrations,
        ];
        counters.into_iter().flatten().try_for_each(Counter::enable)
    }

    /// Stops all of them; what is in the rings stays.
    pub(super) fn disable(&mut self) {
        for (_, ring) in &mut self.rings {
            // It fails only for a descriptor that is none.
            let _ = ring.as_counter_mut().disable();
        }
        self.others.iter_mut().for_each(|event| {
            let _ = event.disable();
        });
    }

    /// Processor time in nanoseconds, page faults, and moves between processors.
    pub(super) fn counts(&mut self) -> [u64; 3] {
        [
            &mut self.processor_time,
            &mut self.faults,
            &mut self.migrations,
        ]
        .map(|counters| counters.iter_mut().filter_map(|c| c.read().ok()).sum())
    }
}

impl<'a> Way<'a> {
    fn sampler(&self, source: Source, event: impl Event, pace: Pace) -> Builder<'a> {
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
            .sample(SampleFlag::PERIOD)
            .sample_id_all(true)
            .clockid(Clock::MONOTONIC)
            .wakeup_watermark(RING / 4);
        if matches!(source, Source::Call | Source::Wake) {
            builder.sample(SampleFlag::RAW);
        }
        if source != Source::Call {
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
                .task(true)
                .context_switch(true);
        }
        builder
    }

    fn common(&self, builder: &mut Builder<'_>) {
        builder.exclude_kernel(!self.kernel);
        builder.exclude_callchain_kernel(!self.kernel);
        builder.exclude_idle(true);
        if let Scope::Threads { children, .. } = self.scope {
            // Threads of the process are its children too, for the kernel.
            builder.inherit(true).inherit_thread(!children);
        }
        builder.enable_on_exec(self.at_exec);
    }

    /// Counters over all processors; none where they are refused, which the samplers have told.
    fn counters(&self, event: Software) -> Vec<Counter> {
        let mut builder = Builder::new(event);
        self.common(&mut builder);
        match self.scope {
            Scope::Machine => (0..self.processors)
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
