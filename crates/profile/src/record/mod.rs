//! Records a command, a process or the whole machine.
//!
//! | file | what it holds |
//! |---|---|
//! | `target` | a command that waits to be let go; processes that run |
//! | `events` | the kernel's events, as many as this user is allowed |
//! | `tracepoints`, `refusals` | tracepoints by number and filter; what the kernel refuses to whom |
//! | `records`, `share` | what the kernel's rings hold; rings that threads share |
//! | `switching` | events on and off, for all of the time or for windows |
//! | `budget`, `spending` | when windows are, so that recording costs little; a session that keeps to it |
//! | `collect`, `spaces` | what happened, with stacks; which file an address is in |
//! | `waits`, `wakes` | who waited, where and how long; who ended each wait |
//! | `windowed` | sums over windows |
//! | `turns` | one recording for each of those who take turns |
//! | `calls`, `stat` | system calls by name; what the machine did meanwhile |

mod budget;
mod calls;
mod collect;
mod events;
mod records;
mod refusals;
#[allow(unsafe_code)]
mod share;
pub(crate) mod spaces;
mod spending;
mod stat;
mod switching;
mod target;
mod tracepoints;
pub mod turns;
mod waits;
mod wakes;
mod windowed;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use cipherlane_measure::counters::{Scope as Usage, Snapshot};
use cipherlane_measure::machine::Machine;
use rustix::time::{ClockId, clock_gettime};

use self::collect::{Collector, Sums};
use self::events::{Events, Scope, Source};
use self::records::Happened;
use self::spending::{Seen, Spending};
use self::stat::Stat;
use self::target::{Moved, Waiting};
use crate::Error;
use crate::recording::{
    Counters, Coverage, Kind, Recording, SCHEMA, Sample, SystemCall, Unit, VERSION, Wake, Work,
};
use crate::symbols::{self, Named};

/// Samples per second of processor time, unless the caller says otherwise. It is no divisor of
/// what timers like.
pub const RATE: u64 = 997;
/// How often the rings are emptied.
const PACE: Duration = Duration::from_millis(20);
/// How often the machine's counters are read.
const STAT_PACE: Duration = Duration::from_millis(100);
/// Bytes that a command has to move to be one whose work is moving bytes.
const LEAST_WORK: u64 = 1 << 20;

/// Whom to record.
#[derive(Clone, Debug)]
pub enum Target {
    /// A command with its arguments, from its start to its end.
    Command(Vec<OsString>),
    /// A process.
    Process(u32),
    /// Everything on the machine.
    Machine,
}

/// How to record.
#[derive(Clone, Debug)]
pub struct Options {
    /// Processes that the target starts, too.
    pub children: bool,
    /// At most this long.
    pub time: Option<Duration>,
    /// Samples per second of processor time.
    pub rate: u64,
    /// Each system call and wait is recorded, whatever that costs the target. Without it, they are
    /// recorded in windows where all of them would cost more than about 1 % of the time.
    pub exact: bool,
    /// The work that is done, where the caller knows it.
    pub work: Option<(u64, Unit)>,
}

/// Records until the target ends, the time is over, or `stop` is set. A command that still runs
/// then is asked to end.
pub fn record(target: &Target, options: &Options, stop: &AtomicBool) -> Result<Recording, Error> {
    let mut session = Session::open(target, options)?;
    let begin = Instant::now();
    let (usage, stat) = (Snapshot::now(Usage::Process), Stat::now());
    let moved = session.moved();
    session.begin()?;
    let mut steal = Steal::new(begin, stat);
    let mut asked = false;
    loop {
        std::thread::sleep(session.pace());
        session.drain();
        session.keep_to_budget();
        steal.look();
        let over = options.time.is_some_and(|time| begin.elapsed() >= time);
        if session.has_ended() {
            break;
        }
        if over || stop.load(Ordering::Relaxed) {
            // What it does after that belongs to nobody's figures.
            session.events.disable();
            asked = true;
            break;
        }
    }
    let wall = begin.elapsed();
    let now = monotonic();
    let moved = session.moved().since(moved);
    session.events.disable();
    session.drain();
    session.collector.used = Some(session.events.processor_ns());
    session.collector.finish(now);
    let status = session.end(asked);
    let used = Snapshot::now(Usage::Process).since(&usage);
    let machine = Stat::now().since(stat);
    if session.collector.samples.is_empty() {
        return Err(Error::Nothing(
            "the target used no processor; record for longer, or another process",
        ));
    }
    let samples = std::mem::take(&mut session.collector.samples);
    let ended = Ended::new(session);
    let samples = ended.samples(samples);
    let Ended {
        collector, named, ..
    } = ended;
    let counters = Counters {
        processor_ns: ended.counts[0],
        page_faults: ended.counts[1],
        migrations: ended.counts[2],
        waits: collector.sums.waits,
        preemptions: collector.sums.preemptions,
        read_bytes: moved.read,
        written_bytes: moved.written,
        machine_interrupts: machine.interrupts,
        machine_softirqs: machine.softirqs,
        machine_steal_ns: machine.steal_ns,
        machine_busy_ns: machine.busy_ns,
    };
    Ok(Recording {
        schema: SCHEMA.to_owned(),
        version: VERSION,
        machine: Machine::detect(),
        what: what(target),
        status,
        event: ended.event.to_owned(),
        period_ns: 1_000_000_000 / options.rate.max(1),
        wall_ns: wall.as_nanos() as u64,
        work: work(options, moved, &collector.sums),
        counters,
        system_calls: system_calls(&collector.sums),
        lost: collector.lost,
        recorder_ns: used.cpu().as_nanos() as u64,
        missing: ended.missing,
        threads: collector.threads,
        frames: named.frames,
        stacks: named.stacks,
        samples,
        coverage: covered(&collector.sums.coverage),
        wakes: ended.wakes,
        steal: steal.seen,
    })
}

/// A recording under way.
struct Session {
    events: Events,
    collector: Collector,
    /// What was read from the rings and may not be the oldest yet.
    held: Vec<Happened>,
    command: Option<Waiting>,
    process: Option<u32>,
    /// Switches that the rings had since `counted`.
    switches: u64,
    counted: Instant,
    /// What has to be paid for, and when it is, where that is limited.
    seen: Seen,
    spending: Option<Spending>,
}

impl Session {
    fn open(target: &Target, options: &Options) -> Result<Self, Error> {
        let mut collector = Collector::default();
        collector.children = options.children;
        let (mut command, mut process) = (None, None);
        let opened = match target {
            Target::Command(words) => {
                let waiting = Waiting::start(words)?;
                let scope = Scope::Threads {
                    tids: &[waiting.id()],
                    children: options.children,
                };
                let opened = Events::open(scope, true, options.rate);
                match opened {
                    Ok(_) => {
                        collector.alive.insert(waiting.id(), waiting.id());
                        command = Some(waiting);
                    }
                    Err(_) => waiting.abandon(),
                }
                opened
            }
            Target::Process(pid) => {
                let tids = target::threads(*pid)?;
                process = Some(*pid);
                collector.alive.extend(tids.iter().map(|tid| (*tid, *pid)));
                collector.spaces.read(*pid);
                let scope = Scope::Threads {
                    tids: &tids,
                    children: options.children,
                };
                Events::open(scope, false, options.rate)
            }
            Target::Machine => {
                // What it costs is told apart (`recorder_ns`).
                collector.left_out = Some(std::process::id());
                Events::open(Scope::Machine, false, options.rate)
            }
        };
        let events = opened?;
        let spending = (!options.exact).then(|| Spending::new(&events));
        Ok(Self {
            collector,
            command,
            process,
            spending,
            ..Self::over(events)
        })
    }

    /// A session that ends when its owner says so.
    fn over(events: Events) -> Self {
        Self {
            events,
            collector: Collector::default(),
            held: Vec::new(),
            command: None,
            process: None,
            switches: 0,
            counted: Instant::now(),
            seen: Seen::default(),
            spending: None,
        }
    }

    fn begin(&mut self) -> Result<(), Error> {
        let begin = monotonic();
        self.collector.begin = Some(begin);
        let begun = match &self.command {
            Some(_) => self.events.enable_wakes(),
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

    /// Takes what the rings hold. What happened after the first ring was read may have an older
    /// companion in another one: it waits for the next turn.
    fn drain(&mut self) {
        self.drain_until(monotonic());
    }

    fn drain_until(&mut self, now: u64) {
        for (source, ring) in &mut self.events.rings {
            while let Some(record) = ring.next_record() {
                self.switches += u64::from(*source == Source::Switch);
                self.seen.count(*source);
                self.held.extend(records::read(*source, &record));
            }
        }
        // The start of a program is a burst, and says nothing of its rate.
        let since = self.counted.elapsed();
        if since >= STAT_PACE {
            self.events.bound(self.switches, since.as_secs_f64());
            self.switches = 0;
            self.counted = Instant::now();
        }
        self.held.sort_by_key(|happened| happened.time);
        let ready = self.held.partition_point(|happened| happened.time <= now);
        for happened in self.held.drain(..ready) {
            self.collector.add(happened);
        }
    }

    fn has_ended(&self) -> bool {
        match (&self.command, self.process) {
            (Some(command), _) => command.has_ended(),
            (None, Some(pid)) => !std::path::Path::new(&format!("/proc/{pid}/task/{pid}")).exists(),
            (None, None) => false,
        }
    }

    fn moved(&self) -> Moved {
        match (&self.command, self.process) {
            (Some(command), _) => command.moved(),
            (None, Some(pid)) => target::moved(pid),
            (None, None) => Moved::default(),
        }
    }

    /// Its exit status, if it is a command.
    fn end(&mut self, asked: bool) -> Option<i32> {
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

/// What is known when a recording has ended.
struct Ended {
    collector: Collector,
    named: Named,
    /// The event by which processor time was sampled.
    event: &'static str,
    missing: Vec<String>,
    wakes: Vec<Wake>,
    /// Processor time in nanoseconds, page faults, and moves between processors.
    counts: [u64; 3],
}

impl Ended {
    fn new(session: Session) -> Self {
        let Session {
            mut events,
            collector,
            ..
        } = session;
        let mut named = symbols::resolve(
            &collector.places,
            &collector.stacks,
            &collector.spaces.files,
        );
        let mut missing = std::mem::take(&mut events.missing);
        missing.extend(named.missing.iter().cloned());
        if collector.sums.wakes.are_foreign() {
            missing.push(
                "who ends a wait is not known: the kernel names threads by other numbers here; \
                 record outside of the container"
                    .to_owned(),
            );
        }
        let wakes = collector.sums.wakes.named(&mut named);
        Self {
            collector,
            named,
            event: events.name,
            missing,
            wakes,
            counts: events.counts(),
        }
    }

    /// Samples as a recording has them: in the order of time, in nanoseconds, with functions.
    fn samples(&self, mut samples: Vec<Sample>) -> Vec<Sample> {
        // A sample of cycles stands for cycles: the exact processor time says how long one is.
        let scale = match self.event == "cycles" && self.collector.ran > 0 {
            true => self.counts[0] as f64 / self.collector.ran as f64,
            false => 1.0,
        };
        for sample in &mut samples {
            sample.stack = match sample.stack.checked_sub(1) {
                Some(at) => self.named.numbers[at as usize],
                None => 0,
            };
            if sample.kind == Kind::Cpu && scale != 1.0 {
                sample.ns = (sample.ns as f64 * scale) as u64;
            }
        }
        samples.sort_by_key(|sample| sample.at_ns);
        samples
    }
}

/// When the hypervisor took time.
struct Steal {
    begin: Instant,
    looked: Instant,
    last: Stat,
    seen: Vec<(u64, u64)>,
}

impl Steal {
    fn new(begin: Instant, last: Stat) -> Self {
        Self {
            begin,
            looked: begin,
            last,
            seen: Vec::new(),
        }
    }

    fn look(&mut self) {
        if self.looked.elapsed() < STAT_PACE {
            return;
        }
        self.looked = Instant::now();
        let now = Stat::now();
        let stolen = now.since(self.last).steal_ns;
        self.last = now;
        if stolen > 0 {
            self.seen
                .push((self.begin.elapsed().as_nanos() as u64, stolen));
        }
    }
}

impl Moved {
    fn since(self, earlier: Self) -> Self {
        Self {
            read: self.read.saturating_sub(earlier.read),
            written: self.written.saturating_sub(earlier.written),
        }
    }
}

/// What was done: what the caller says, or the bytes that went through, each counted once: who
/// encrypts reads and writes the same.
fn work(options: &Options, moved: Moved, sums: &Sums) -> Option<Work> {
    if let Some((amount, unit)) = options.work {
        return Some(Work {
            amount,
            unit,
            source: "given".to_owned(),
        });
    }
    let bytes_of = |names: &[libc::c_long]| -> u64 {
        let of = names
            .iter()
            .filter_map(|call| sums.calls.get(&(*call as u64)));
        of.map(|calls| calls.bytes).sum()
    };
    // The kernel does not count these among bytes read and written.
    let sent = bytes_of(&[libc::SYS_sendto, libc::SYS_sendmsg, libc::SYS_sendfile]);
    let received = bytes_of(&[libc::SYS_recvfrom, libc::SYS_recvmsg]);
    let amount = (moved.read + received).max(moved.written + sent);
    let mut source = "bytes read or written, whichever is more".to_owned();
    if !sums.coverage.calls.is_whole() && sent.max(received) > 0 {
        source += "; those of sockets are estimated";
    }
    (amount >= LEAST_WORK).then_some(Work {
        amount,
        unit: Unit::Byte,
        source,
    })
}

/// When system calls and waits were recorded, if there were gaps.
fn covered(coverage: &Coverage) -> Option<Coverage> {
    let is_whole = coverage.calls.is_whole() && coverage.waits.is_whole();
    (!is_whole).then(|| coverage.clone())
}

fn system_calls(sums: &Sums) -> Vec<SystemCall> {
    let mut named: Vec<SystemCall> = sums
        .calls
        .iter()
        .map(|(number, calls)| SystemCall {
            name: calls::name(*number),
            count: calls.count,
            exact: sums.coverage.calls.is_whole(),
            bytes: calls.bytes,
        })
        .collect();
    named.sort_by_key(|call| std::cmp::Reverse(call.count));
    named
}

fn what(target: &Target) -> String {
    match target {
        Target::Command(words) => {
            let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
            target::without_secrets(words.iter().map(AsRef::as_ref))
        }
        Target::Process(pid) => format!("process {pid}: {}", target::command_line(*pid)),
        Target::Machine => "the whole machine".to_owned(),
    }
}

/// Now, on the clock of the samples, in nanoseconds.
fn monotonic() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
