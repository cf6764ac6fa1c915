//! Opens the kernel's events, as many of them as this user is allowed.
//!
//! Each kind of event has a ring for each processor, which all threads share. Four kinds are
//! sampled: processor time, with what happens to processes and memory; context switches, for the
//! lengths of waits and the stacks of those who wait; ends of system calls, for their counts and
//! bytes; wake-ups, for the stacks of those who end a wait. Of the latter three each one is
//! recorded, all of the time or in windows. Between windows, wake-ups are switched off, and system
//! calls and switches are closed (`opening`).
//!
//! Who takes turns in short blocks has no windows: too many switches have their stacks sampled.
//!
//! A wake-up happens in the thread that wakes, which may be of any process: its events are those of
//! the processors, and a filter in the kernel leaves only wake-ups of the target.

use std::ffi::CString;
use std::io;

use perf_event::events::{Event, Software, Tracepoint};
use perf_event::{Builder, Counter, Sampler};

use super::attributes::{Terms, Way};
use super::rates::Rates;
use super::records::Kinds;
use super::refusals::failed;
use super::share::{set_filter, share};
use super::tracepoints::{of_kernel, tracepoint, woken};
use crate::Error;

/// Bytes of a ring of the processor's samples, and of the others, for root.
const RING: usize = 1 << 20;
/// The same for users, who share 516 KiB a processor (kernel.perf_event_mlock_kb).
const SMALL_RING: usize = 128 << 10;
/// The same for wake-ups, of which fewer are recorded.
const WAKE_RING: usize = 512 << 10;
/// Those that have one where there are more, per second and thread.
const SAMPLED: u64 = 4000;
/// The tracepoint at the end of every system call.
pub(super) const CALLS: &str = "raw_syscalls/sys_exit";
/// The tracepoint where a thread is about to be woken.
const WAKES: &str = "sched/sched_waking";

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
    /// Processor time, and what happens to processes.
    Processor,
    /// Switches, and stacks of those who stop.
    Switch,
    /// Ends of system calls.
    Call,
    /// Stacks of those who end a wait.
    Wake,
    /// Wake-ups of kernel threads.
    Helper,
}

impl Source {
    /// Bytes of a ring of it.
    pub(super) fn ring(self, is_root: bool) -> usize {
        match self {
            _ if !is_root => SMALL_RING,
            Self::Wake | Self::Helper => WAKE_RING,
            _ => RING,
        }
    }

    pub(super) fn is_of(self, kinds: Kinds) -> bool {
        match self {
            Self::Processor | Self::Helper => false,
            Self::Call => kinds == Kinds::Calls,
            Self::Switch | Self::Wake => kinds == Kinds::Waits,
        }
    }
}

/// How often an event becomes a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    Each,
    /// Times a second.
    Sampled(u64),
}

/// Which of the kernel's tracepoints are recorded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tracepoints {
    /// System calls and wake-ups.
    All,
    Wakes,
    None,
}

/// Events of one kind, and rarer ones that can take their place: indices of the rings and of the
/// others of each.
#[derive(Debug)]
pub(super) struct Replaced {
    pub(super) first: (Vec<usize>, Vec<usize>),
    pub(super) then: (Vec<usize>, Vec<usize>),
}

/// Events that are open.
pub(super) struct Events {
    /// Rings to read.
    pub(super) rings: Vec<(Source, Sampler)>,
    /// Events that write into those rings.
    pub(super) others: Vec<(Source, Counter)>,
    /// Events that record each switch and wake-up, and those that sample them where there are too many.
    pub(super) fallbacks: Vec<Replaced>,
    /// Clocks of the begin, and those that go on.
    pub(super) clocks: Option<Replaced>,
    /// Rings that further events write into: of which kind, of which processor, and its number.
    pub(super) kept: Vec<(Source, usize, usize)>,
    pub(super) terms: Terms,
    /// Processor time is sampled by the clock of each processor, which meets other programs too.
    pub(super) by_processors: bool,
    /// Counters of the machine, of processor time where samples are of something else, and of that of
    /// threads in windows of system calls.
    pub(super) processor_time: Vec<Counter>,
    pub(super) faults: Vec<Counter>,
    /// The event by which processor time is sampled.
    pub(super) name: &'static str,
    /// What is not recorded, and what would change that.
    pub(super) missing: Vec<String>,
}

impl Events {
    /// Opens events for `scope`.
    pub(super) fn open(scope: Scope<'_>, at_exec: bool, rates: Rates) -> Result<Self, Error> {
        Self::open_some(scope, at_exec, rates, Tracepoints::All)
    }

    /// The same for what runs already, without system calls, which costs those that make them, and
    /// on demand with wake-ups.
    pub(super) fn open_without_calls(
        scope: Scope<'_>,
        rate: u64,
        wakes: bool,
    ) -> Result<Self, Error> {
        let tracepoints = match wakes {
            true => Tracepoints::Wakes,
            false => Tracepoints::None,
        };
        Self::open_some(scope, false, Rates::always(rate), tracepoints)
    }

    fn open_some(
        scope: Scope<'_>,
        at_exec: bool,
        rates: Rates,
        tracepoints: Tracepoints,
    ) -> Result<Self, Error> {
        let terms = Terms {
            kernel: true,
            is_root: rustix::process::geteuid().is_root(),
            processors: cipherlane_measure::machine::Machine::detect().cpus,
            switches_apart: tracepoints == Tracepoints::All,
        };
        let mut way = Way {
            scope,
            at_exec,
            terms,
        };
        let mut events = Self {
            terms,
            by_processors: false,
            rings: Vec::new(),
            others: Vec::new(),
            fallbacks: Vec::new(),
            clocks: None,
            kept: Vec::new(),
            processor_time: Vec::new(),
            faults: Vec::new(),
            name: "cpu-clock",
            missing: Vec::new(),
        };
        let by_processors = tracepoints == Tracepoints::All && events.open_processors(&way, rates);
        if !by_processors {
            events.open_processor(&mut way, rates)?;
        }
        if way.terms.kernel {
            events.open_switches(&mut way, rates)?;
            match tracepoints {
                Tracepoints::All => events.open_tracepoints(&way),
                Tracepoints::Wakes => events.open_wakes_or_say(&way),
                Tracepoints::None => {}
            }
        }
        events.terms = way.terms;
        let is_machine = scope == Scope::Machine;
        let by_cycles = tracepoints != Tracepoints::All && events.name == "cycles";
        if is_machine || by_cycles || events.have(Kinds::Calls) {
            events.processor_time = way.counters(Software::TASK_CLOCK);
        }
        if is_machine {
            events.faults = way.counters(Software::PAGE_FAULTS);
        }
        Ok(events)
    }

    /// Without them, waits have a length and no stack.
    fn open_switches(&mut self, way: &mut Way<'_>, rates: Rates) -> Result<(), Error> {
        let (source, event) = (Source::Switch, Software::CONTEXT_SWITCHES);
        let opened = match way.terms.switches_apart {
            true => self.ring(way, source, event, Pace::Each),
            false => {
                let paces = (Pace::Each, Pace::Sampled(SAMPLED));
                let opened = self.rings_replaced(way, source, event, paces);
                opened.map(|fallback| self.fallbacks.push(fallback))
            }
        };
        let Err(error) = opened else {
            return Ok(());
        };
        let error = failed("context switches", error);
        (self.missing).push(format!("what is waited for is not recorded: {error}"));
        if !std::mem::take(&mut way.terms.switches_apart) {
            return Ok(());
        }
        // The lengths can still be told by the samplers of processor time, if they are the threads'.
        self.rings.clear();
        self.others.clear();
        self.kept.clear();
        self.clocks = None;
        self.by_processors = false;
        self.open_processor(way, rates)
    }

    /// They need the tracepoints' numbers, which the file system for tracing has.
    fn open_tracepoints(&mut self, way: &Way<'_>) {
        let Some(calls) = tracepoint(CALLS) else {
            self.missing.push(
                "system calls are not counted, and who ends a wait is not known: \
                 /sys/kernel/tracing cannot be read; run as root, after 'mount -t tracefs tracefs \
                 /sys/kernel/tracing' where it is empty"
                    .to_owned(),
            );
            return;
        };
        if let Err(error) = self.ring(way, Source::Call, calls, Pace::Each) {
            let why = match error.raw_os_error() {
                Some(libc::EACCES | libc::EPERM) => format!("{error}; run as root"),
                _ => failed("system calls", error).to_string(),
            };
            self.missing.push(format!(
                "system calls are not counted, and who ends a wait is not known: {why}"
            ));
            return;
        }
        self.open_wakes_or_say(way);
        self.open_helpers_or_say(way);
    }

    /// Who wakes kernel threads, where samples of those are taken.
    fn open_helpers_or_say(&mut self, way: &Way<'_>) {
        let opened = match self.by_processors {
            true => self.open_helpers(way).map_err(|error| error.to_string()),
            false => Err("only root can see them".to_owned()),
        };
        if let (Err(why), Scope::Threads { .. }) = (opened, way.scope) {
            self.missing.push(format!(
                "processor time of kernel threads that work for the program is not on its bill: {why}"
            ));
        }
    }

    fn open_helpers(&mut self, way: &Way<'_>) -> io::Result<()> {
        let wakes = tracepoint(WAKES).ok_or(io::ErrorKind::NotFound)?;
        self.filtered(way, Source::Helper, wakes, Some(of_kernel()))
    }

    /// All else is worth recording without wake-ups.
    fn open_wakes_or_say(&mut self, way: &Way<'_>) {
        if let Err(error) = self.open_wakes(way) {
            self.missing.push(format!(
                "who ends a wait is not known: the kernel's tracepoint sched:sched_waking cannot be \
                 used ({error}); run as root"
            ));
        }
    }

    fn open_wakes(&mut self, way: &Way<'_>) -> io::Result<()> {
        let wakes = tracepoint(WAKES).ok_or(io::ErrorKind::NotFound)?;
        let before = self.rings.len();
        self.filtered(way, Source::Wake, wakes, woken(way.scope))?;
        // Where there are too many switches for their stacks, there are for those of wake-ups.
        if let Some(fallback) = self.fallbacks.last_mut() {
            fallback.first.0.extend(before..self.rings.len());
        }
        Ok(())
    }

    /// Rings of all processors, whose events pass the filter.
    fn filtered(
        &mut self,
        way: &Way<'_>,
        source: Source,
        event: Tracepoint,
        filter: Option<CString>,
    ) -> io::Result<()> {
        let before = self.rings.len();
        self.ring(&way.everywhere(), source, event, Pace::Each)?;
        let Some(filter) = filter else {
            return Ok(());
        };
        let mut rings = self.rings[before..].iter();
        let set = rings.try_for_each(|(_, ring)| set_filter(ring.as_counter(), &filter));
        if set.is_err() {
            self.truncate((before, self.others.len()));
        }
        set
    }

    /// Events of the first pace, and those of the second, which do not begin by themselves.
    pub(super) fn rings_replaced(
        &mut self,
        way: &Way<'_>,
        source: Source,
        event: impl Event + Clone,
        paces: (Pace, Pace),
    ) -> io::Result<Replaced> {
        let begin = (self.rings.len(), self.others.len());
        self.ring(way, source, event.clone(), paces.0)?;
        let middle = (self.rings.len(), self.others.len());
        if let Err(error) = self.ring(way, source, event, paces.1) {
            self.truncate(begin);
            return Err(error);
        }
        Ok(Replaced {
            first: ((begin.0..middle.0).collect(), (begin.1..middle.1).collect()),
            then: (
                (middle.0..self.rings.len()).collect(),
                (middle.1..self.others.len()).collect(),
            ),
        })
    }

    /// Closes all but the first rings and others.
    fn truncate(&mut self, (rings, others): (usize, usize)) {
        self.rings.truncate(rings);
        self.others.truncate(others);
        self.kept.retain(|of| of.2 < rings);
    }

    /// A ring of each processor for one kind of event.
    pub(super) fn ring(
        &mut self,
        way: &Way<'_>,
        source: Source,
        event: impl Event + Clone,
        pace: Pace,
    ) -> io::Result<()> {
        let before = (self.rings.len(), self.others.len());
        let opened = self.try_ring(way, source, event, pace);
        if opened.is_err() {
            self.truncate(before);
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
        let mut is_there = source == Source::Call;
        for cpu in 0..way.terms.processors {
            let offline = |error: &io::Error| error.raw_os_error() == Some(libc::ENODEV);
            let mut owner = match self.kept_ring(way, source, cpu) {
                Err(error) if offline(&error) => continue,
                kept => kept?,
            };
            let mut open = |builder: &mut Builder<'_>| -> io::Result<()> {
                let counter = builder.one_cpu(cpu).build()?;
                match owner {
                    None => {
                        let size = source.ring(way.terms.is_root);
                        owner = Some(self.rings.len());
                        if source == Source::Processor && way.scope == Scope::Machine {
                            self.kept.push((source, cpu, self.rings.len()));
                        }
                        self.rings.push((source, counter.sampled(size)?));
                    }
                    Some(owner) => {
                        share(&counter, self.rings[owner].1.as_counter())?;
                        self.others.push((source, counter));
                    }
                }
                Ok(())
            };
            match way.scope {
                Scope::Machine => match open(way.sampler(source, event.clone(), pace).any_pid()) {
                    Err(error) if offline(&error) => {}
                    opened => opened?,
                },
                Scope::Threads { tids, .. } => {
                    for &tid in tids {
                        let mut builder = way.sampler(source, event.clone(), pace);
                        match open(builder.observe_pid(tid as libc::pid_t)) {
                            // A thread may have ended since they were listed, or before the others.
                            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                            Err(error) if offline(&error) => is_there = true,
                            opened => {
                                opened?;
                                is_there = true;
                            }
                        }
                    }
                    if !is_there {
                        return Err(io::Error::from_raw_os_error(libc::ESRCH));
                    }
                }
            }
        }
        Ok(())
    }
}
