//! A recording under way: it opens the events, empties their rings, and sees when the target ends.

use std::collections::BTreeSet;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::collect::Collector;
use super::events::{Events, Scope, Source};
use super::rates::Rates;
use super::records::{self, Happened};
use super::spending::{Seen, Spending};
use super::stat::STAT_PACE;
use super::switches::Counted;
use super::target::{self, Moved, Waiting};
use super::used::{Usage, Used};
use super::whose::Whose;
use super::{Options, PACE, Target, call_price, monotonic, share};
use crate::Error;

/// A recording under way.
pub(super) struct Session {
    pub(super) events: Events,
    pub(super) rates: Rates,
    pub(super) collector: Collector,
    /// What was read from the rings and may not be the oldest yet.
    pub(super) held: Vec<Happened>,
    pub(super) command: Option<Waiting>,
    pub(super) process: Option<u32>,
    /// What says that the process has ended, where the kernel gives that.
    watched: Option<OwnedFd>,
    /// It has said so.
    ended: bool,
    /// Rings say when they have to be read.
    rings_tell: bool,
    /// Switches that the rings had since `counted`.
    pub(super) switches: u64,
    /// Wake-ups of kernel threads since then.
    pub(super) asked: u64,
    pub(super) counted: Instant,
    /// What has to be paid for, and when it is, where that is limited.
    pub(super) seen: Seen,
    pub(super) spending: Option<Spending>,
    /// What the target uses, where it is no machine.
    usage: Option<Usage>,
    /// How often its threads give up a processor, where these are few and not all of it is recorded.
    counted_switches: Option<Counted>,
}

impl Session {
    pub(super) fn open(target: &Target, options: &Options) -> Result<Self, Error> {
        let rates = Rates::of(options.rate);
        let mut collector = Collector::default();
        collector.children = options.children;
        collector.call_price = (!options.exact).then(call_price::measured).flatten();
        let (mut command, mut process, mut whose) = (None, None, None);
        let opened = match target {
            Target::Command(words) => {
                let waiting = Waiting::start(words, options.meter.as_ref())?;
                let scope = Scope::Threads {
                    tids: &[waiting.id()],
                    children: options.children,
                };
                let opened = Events::open(scope, true, rates);
                match opened {
                    Ok(_) => {
                        collector.alive.insert(waiting.id(), waiting.id());
                        whose = Some(Whose::command(waiting.id()));
                        command = Some(waiting);
                    }
                    Err(_) => waiting.abandon(),
                }
                opened
            }
            Target::Process(pid) => {
                let tids = target::threads(*pid)?;
                process = Some(*pid);
                whose = Some(Whose::process(*pid));
                collector.alive.extend(tids.iter().map(|tid| (*tid, *pid)));
                collector.spaces.read(*pid);
                let scope = Scope::Threads {
                    tids: &tids,
                    children: options.children,
                };
                Events::open(scope, false, rates)
            }
            Target::Machine => {
                // What it costs is told apart (`recorder_ns`).
                collector.left_out = Some(std::process::id());
                Events::open(Scope::Machine, false, rates)
            }
        };
        let events = opened?;
        collector.whose = whose.filter(|_| events.by_processors);
        let target = process.or(command.as_ref().map(Waiting::id));
        let target = target.and_then(|pid| Pid::from_raw(pid as i32));
        let watched = target.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        let spending = (!options.exact).then(|| Spending::new(&events));
        Ok(Self {
            collector,
            command,
            process,
            watched,
            spending,
            ..Self::over(events, rates)
        })
    }

    /// A session that ends when its owner says so.
    pub(super) fn over(events: Events, rates: Rates) -> Self {
        Self {
            events,
            rates,
            collector: Collector::default(),
            held: Vec::new(),
            command: None,
            process: None,
            watched: None,
            ended: false,
            rings_tell: true,
            switches: 0,
            asked: 0,
            counted: Instant::now(),
            seen: Seen::default(),
            spending: None,
            usage: None,
            counted_switches: None,
        }
    }

    pub(super) fn begin(&mut self) -> Result<(), Error> {
        let begin = monotonic();
        self.collector.begin = Some(begin);
        if self.process.is_some() || self.command.is_some() {
            let processes = self.collector.alive.values().copied();
            self.usage = Some(Usage::begin(processes, self.collector.children));
            let is_limited = self.spending.is_some();
            self.counted_switches = is_limited
                .then(|| Counted::begin(&self.collector.alive))
                .flatten();
        }
        let begun = match &self.command {
            Some(_) => self.events.enable_everywhere(),
            None => self.events.enable(),
        };
        begun.map_err(|source| Error::Unsupported {
            what: "what was opened",
            source,
        })?;
        if let Some(command) = &self.command {
            command.go();
        }
        Ok(())
    }

    /// Whether the target is processes, and not the machine.
    pub(super) fn is_of_processes(&self) -> bool {
        self.usage.is_some()
    }

    /// What the target has used since the begin.
    pub(super) fn used(&mut self) -> Used {
        let processes = self.collector.alive.values().copied();
        match &mut self.usage {
            Some(usage) => usage.look_at_all(processes),
            None => self.events.used(),
        }
    }

    /// The same, unless it was told just before.
    pub(super) fn lately_used(&mut self) -> Used {
        let processes = self.collector.alive.values().copied();
        match &mut self.usage {
            Some(usage) => usage.look(processes),
            None => self.events.used(),
        }
    }

    /// How often the target's threads have waited since the begin; 0 where that is not known.
    pub(super) fn waited(&mut self) -> u64 {
        let counted = self.counted_switches.as_mut();
        let told = counted.and_then(|counted| counted.look(&self.collector.alive));
        if told.is_none() {
            self.counted_switches = None;
        }
        told.map_or(0, |told| told.waits)
    }

    /// The target is at its end: what it has used and done is known to the collector.
    pub(super) fn take_stock(&mut self) {
        self.collector.used = self.used();
        let counted = self.counted_switches.as_mut();
        self.collector.switches =
            counted.and_then(|counted| counted.look_at_the_end(&self.collector.alive));
    }

    /// After the begin, samples are as rare as they are until the end.
    pub(super) fn slow_down(&mut self) {
        let begin = self.collector.begin.unwrap_or(0);
        if monotonic().saturating_sub(begin) >= self.rates.first_ns {
            self.events.slow_clocks();
        }
    }

    /// Sleeps until the rings have to be read, the target ends, or `time` is over.
    pub(super) fn sleep(&mut self, time: Duration) {
        // The end of a process that is not watched has to be looked for.
        let is_watched = self.watched.is_some() || !self.is_of_processes();
        let time = match is_watched && self.rings_tell {
            true => time,
            false => time.min(PACE),
        };
        let rings = self.events.rings.iter().filter(|_| self.rings_tell);
        let rings = rings.map(|(_, ring)| ring.as_raw_fd());
        let watched = self.watched.as_ref().map(AsRawFd::as_raw_fd);
        let polled = share::sleep(rings, watched, time);
        // The ring of a thread hangs up when the thread ends, and others still write there.
        self.rings_tell &= !polled.hung_up;
        self.ended |= polled.ended;
    }

    /// Takes what the rings hold. What happened after the first ring was read may have an older
    /// companion in another one: it waits for the next turn.
    pub(super) fn drain(&mut self) {
        self.drain_until(monotonic());
    }

    pub(super) fn drain_until(&mut self, now: u64) {
        for (source, ring) in &mut self.events.rings {
            while let Some(record) = ring.next_record() {
                self.switches += u64::from(*source == Source::Switch);
                self.asked += u64::from(*source == Source::Helper);
                self.seen.count(*source);
                self.held.extend(records::read(*source, &record));
            }
        }
        // The start of a program is a burst, and says nothing of its rate.
        let since = self.counted.elapsed();
        if since >= STAT_PACE {
            self.events.bound(self.switches, since.as_secs_f64());
            if self.events.bound_helpers(self.asked, since.as_secs_f64()) {
                self.collector.helpers.stop();
            }
            (self.switches, self.asked) = (0, 0);
            self.counted = Instant::now();
            if self.is_of_processes() {
                // One that has ended, and that its parent has waited for, tells nothing any more.
                self.lately_used();
                if !self.collector.waits.is_whole() {
                    self.waited();
                }
            }
        }
        self.held.sort_by_key(|happened| happened.time);
        let ready = self.held.partition_point(|happened| happened.time <= now);
        for happened in self.held.drain(..ready) {
            self.collector.add(happened);
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        match (&self.command, self.process) {
            _ if self.watched.is_some() => self.ended,
            (Some(command), _) => command.has_ended(),
            (None, Some(pid)) => !std::path::Path::new(&format!("/proc/{pid}/task/{pid}")).exists(),
            (None, None) => false,
        }
    }

    pub(super) fn moved(&self) -> Moved {
        match (&self.command, self.process) {
            (Some(command), _) => command.moved(),
            (None, Some(pid)) => target::moved(pid),
            (None, None) => Moved::default(),
        }
    }

    /// Its exit status, if it is a command.
    pub(super) fn end(&mut self, asked: bool) -> Option<i32> {
        let command = self.command.take()?;
        if asked {
            // Those that it has started are to end with it: some only wait for each other.
            let threads = self.collector.threads.iter();
            let started: BTreeSet<u32> = threads.map(|thread| thread.pid).collect();
            command.end(&started);
        }
        Some(command.status())
    }
}
