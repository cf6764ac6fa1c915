//! Opens the kernel's events, as many of them as this user is allowed.
//!
//! Each kind of event has a ring for each processor, which all threads share. Three kinds are
//! sampled: processor time, with what happens to processes and memory; context switches, for the
//! stacks of those who wait; ends of system calls, for their counts and bytes. The latter two are
//! sampled less often where they happen more often than some thousand times a second: the kernel
//! says how many each one stands for.

use std::io;
use std::path::Path;

use perf_event::events::{Event, Hardware, Software, Tracepoint};
use perf_event::{Builder, Clock, Counter, SampleFlag, Sampler};

use super::share::share;
use crate::Error;

/// Bytes of a ring of the processor's samples, and of the others, for root.
const RING: usize = 2 << 20;
/// The same for users, who share 516 KiB a processor (kernel.perf_event_mlock_kb).
const SMALL_RING: usize = 128 << 10;
/// Switches and system calls that are sampled, per second.
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
}

/// Events that are open.

pub(super) struct Events {
    /// Rings to read.
    pub(super) rings: Vec<(Source, Sampler)>,
    /// Events that write into those rings.
    others: Vec<Counter>,
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
    processors: usize,
}

impl Events {
    /// Opens events for `scope`, `rate` samples per second of processor time.
    pub(super) fn open(scope: Scope<'_>, at_exec: bool, rate: u64) -> Result<Self, Error> {
        let mut way = Way {
            scope,
            at_exec,
            kernel: true,
            processors: cipherlane_measure::machine::Machine::detect().cpus,
        };
        let mut events = Self {
            rings: Vec::new(),
            others: Vec::new(),
            processor_time: Vec::new(),
            faults: Vec::new(),
            migrations: Vec::new(),
            name: "cpu-clock",
            missing: Vec::new(),
        };
        events.open_processor(&mut way, rate)?;
        if way.kernel {
            events.open_switches(&way)?;
            events.open_calls(&way)?;
        }
        events.processor_time = way.counters(Software::TASK_CLOCK);
        events.faults = way.counters(Software::PAGE_FAULTS);
        events.migrations = way.counters(Software::CPU_MIGRATIONS);
        Ok(events)
    }

    /// Processor time: by cycles where the processor counts them, which sees inside of sections
    /// without interrupts, and by the kernel's clock elsewhere.
    fn open_processor(&mut self, way: &mut Way<'_>, rate: u64) -> Result<(), Error> {
        let mut last = None;
        for (kernel, cycles) in [(true, true), (true, false), (false, true), (false, false)] {
            way.kernel = kernel;
            let tried = match cycles {
                true => self.ring(way, Source::Processor, Hardware::CPU_CYCLES, rate),
                false => self.ring(way, Source::Processor, Software::CPU_CLOCK, rate),
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
        Err(match (source.raw_os_error(), way.scope) {
            (Some(libc::EACCES | libc::EPERM), Scope::Threads { tids, .. })
                if !way.at_exec && level().trim().parse().is_ok_and(|level: i32| level <= 2) =>
            {
                Error::NotYours {
                    pid: tids.first().copied().unwrap_or(0),
                    source,
                }
            }
            (Some(libc::EACCES | libc::EPERM), _) => Error::Refused {
                source,
                level: level(),
            },
            _ => failed("processor time", source),
        })
    }

    /// Without them, waits have a length and no stack.
    fn open_switches(&mut self, way: &Way<'_>) -> Result<(), Error> {
        self.ring(way, Source::Switch, Software::CONTEXT_SWITCHES, SAMPLED)
            .map_err(|error| failed("context switches", error))
    }

    /// They need the tracepoint's number, which the file system for tracing has.
    fn open_calls(&mut self, way: &Way<'_>) -> Result<(), Error> {
        let id = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"]
            .iter()
            .find_map(|at| {
                let path = Path::new(at).join("events/raw_syscalls/sys_exit/id");
                std::fs::read_to_string(path).ok()?.trim().parse().ok()
            });
        let Some(id) = id else {
            self.missing.push(
                "system calls are not counted: /sys/kernel/tracing cannot be read; run as root, \
                 after 'mount -t tracefs tracefs /sys/kernel/tracing' where it is empty"
                    .to_owned(),
            );
            return Ok(());
        };
        self.ring(way, Source::Call, Tracepoint::with_id(id), SAMPLED)
            .or_else(|error| match error.raw_os_error() {
                Some(libc::EACCES | libc::EPERM) => {
                    self.missing.push(format!(
                        "system calls are not counted ({error}); run as root"
                    ));
                    Ok(())
                }
                _ => Err(failed("system calls", error)),
            })
    }

    /// A ring of each processor for one kind of event.
    fn ring(
        &mut self,
        way: &Way<'_>,
        source: Source,
        event: impl Event + Clone,
        rate: u64,
    ) -> io::Result<()> {
        let before = (self.rings.len(), self.others.len());
        let opened = self.try_ring(way, source, event, rate);
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
        rate: u64,
    ) -> io::Result<()> {
        for cpu in 0..way.processors {
            let mut owner: Option<usize> = None;
            let mut open = |builder: &mut Builder<'_>| -> io::Result<()> {
                let counter = builder.one_cpu(cpu).build()?;
                match owner {
                    None => {
                        let size = if way.kernel { RING } else { SMALL_RING };
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
                Scope::Machine => match open(way.sampler(source, event.clone(), rate).any_pid()) {
                    Err(error) if offline(&error) => {}
                    opened => opened?,
                },
                Scope::Threads { tids, .. } => {
                    for (number, &tid) in tids.iter().enumerate() {
                        let mut builder = way.sampler(source, event.clone(), rate);
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

    /// Starts what does not start with the command.
    pub(super) fn enable(&mut self) -> io::Result<()> {
        for (_, ring) in &mut self.rings {
            ring.as_counter_mut().enable()?;
        }
        let counters = [
            &mut self.others,
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
    fn sampler(&self, source: Source, event: impl Event, rate: u64) -> Builder<'a> {
        let mut builder = Builder::new(event);
        self.common(&mut builder);
        builder
            .sample(SampleFlag::TID)
            .sample(SampleFlag::TIME)
            .sample(SampleFlag::PERIOD)
            .sample_frequency(rate)
            .sample_id_all(true)
            .clockid(Clock::MONOTONIC)
            .wakeup_watermark(RING / 4);
        if source == Source::Call {
            builder.sample(SampleFlag::RAW);
        } else {
            builder.sample(SampleFlag::CALLCHAIN).sample_max_stack(DEEPEST);
        }
        if source == Source::Processor {
            builder
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

/// kernel.perf_event_paranoid.
pub(super) fn level() -> String {
    std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid")
        .map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned())
}

fn without_kernel() -> String {
    format!(
        "the kernel's part of the processor time, what is waited for, and system calls are not \
         recorded: kernel.perf_event_paranoid is {}; run as root, or 'sysctl \
         kernel.perf_event_paranoid=1 kernel.kptr_restrict=0'",
        level()
    )
}

fn failed(what: &'static str, source: io::Error) -> Error {
    match source.raw_os_error() {
        Some(libc::EMFILE | libc::ENFILE) => Error::Rings {
            what,
            source,
            remedy: "raise the limit on open files (ulimit -n)",
        },
        Some(libc::EPERM | libc::ENOMEM) => Error::Rings {
            what,
            source,
            remedy: "raise the limit on locked memory (ulimit -l) or kernel.perf_event_mlock_kb",
        },
        _ => Error::Unsupported { what, source },
    }
}
