//! Records a command, a process or the whole machine.
//!
//! | file | what it holds |
//! |---|---|
//! | `session` | a recording under way, whose rings are emptied over and over |
//! | `target` | a command that waits to be let go; processes that run |
//! | `events`, `attributes` | the kernel's events, as many as this user is allowed, and what each tells |
//! | `clocks`, `rates` | events that sample processor time, and how often |
//! | `tracepoints`, `refusals` | tracepoints by number and filter; what the kernel refuses to whom |
//! | `records`, `share` | what the kernel's rings hold; rings that threads share and that are waited for |
//! | `switching`, `opening` | events on and off, for all of the time or for windows; open in windows only |
//! | `budget`, `spending` | when windows are, so that recording costs little; a session that keeps to it |
//! | `collect`, `slices` | what happened, and samples of it: what is alike within 10 ms is one |
//! | `whose` | whose records are the target's, where there are records of others |
//! | `helpers` | kernel threads that work for the target |
//! | `stacks`, `spaces` | stacks by number; which file an address is in |
//! | `waits`, `wakes` | who waited, where and how long; who ended each wait |
//! | `windowed`, `unseen` | sums over windows; waits that windows did not see whole |
//! | `call_price` | what a system call takes longer in a window |
//! | `ended` | names and figures of what was recorded |
//! | `turns` | one recording for each of those who take turns |
//! | `used`, `switches` | what the target has used; how often its threads gave up a processor |
//! | `meter` | work as the target counts it itself |
//! | `calls`, `stat` | system calls by name; what the machine did meanwhile |

mod attributes;
mod budget;
mod call_price;
mod calls;
mod clocks;
mod collect;
mod ended;
mod events;
mod helpers;
mod meter;
mod opening;
mod rates;
mod records;
mod refusals;
mod session;
#[allow(unsafe_code)]
mod share;
mod slices;
pub(crate) mod spaces;
mod spending;
mod stacks;
mod stat;
mod switches;
mod switching;
mod target;
mod tracepoints;
pub mod turns;
mod unseen;
mod used;
mod waits;
mod wakes;
mod whose;
mod windowed;

use std::ffi::OsString;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use cipherlane_measure::counters::{Scope as Usage, Snapshot};
use cipherlane_measure::machine::Machine;
use rustix::process::{getpriority_process, setpriority_process};
use rustix::time::{ClockId, clock_gettime};

use self::ended::{Ended, covered, system_calls, work};
pub use self::meter::Meter;
use self::session::Session;
use self::stat::{Stat, Steal};
use crate::Error;
use crate::recording::{Counters, Recording, SCHEMA, Unit, VERSION};

/// How often the rings are emptied where nothing tells that they fill, and where something does.
const PACE: Duration = Duration::from_millis(20);
const LONG_PACE: Duration = Duration::from_millis(200);

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
    /// Samples per second of processor time; without it, as many as the machine takes cheaply.
    pub rate: Option<u64>,
    /// Each system call and wait is recorded, whatever that costs the target. Without it, they are
    /// recorded in windows where all of them would cost more than about 0.5 % of the time.
    pub exact: bool,
    /// The work that is done, where the caller knows it.
    pub work: Option<(u64, Unit)>,
    /// What the target says of its work, where it does.
    pub meter: Option<Meter>,
}

/// Records until the target ends, the time is over, or `stop` is set. A command that still runs
/// then is asked to end.
pub fn record(target: &Target, options: &Options, stop: &AtomicBool) -> Result<Recording, Error> {
    let mut session = Session::open(target, options)?;
    // The command was started before, and keeps its own.
    let priority = Priority::raised();
    let begin = Instant::now();
    let (usage, stat) = (Snapshot::now(Usage::Process), Stat::now());
    let moved = session.moved();
    let metered = options.meter.as_ref().and_then(Meter::now);
    session.begin()?;
    let mut steal = Steal::new(begin, stat);
    let mut asked = false;
    loop {
        let left = options
            .time
            .map_or(LONG_PACE, |time| time.saturating_sub(begin.elapsed()));
        session.sleep(session.pace().min(left));
        session.drain();
        session.keep_to_budget(steal.switches);
        session.slow_down();
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
    session.take_stock();
    session.collector.finish(now);
    let status = session.end(asked);
    drop(priority);
    let metered = metered.and_then(|before| {
        let meter = options.meter.as_ref()?;
        Some((meter.now()?.checked_sub(before)?, meter.source.as_str()))
    });
    let used = Snapshot::now(Usage::Process).since(&usage);
    let machine = Stat::now().since(stat);
    if session.collector.samples.is_empty() {
        return Err(Error::Nothing(match target {
            Target::Command(_) => {
                "the command ended before the first sample of its processor time; repeat its work \
                 (sh -c 'for i in $(seq 1000); do ...; done', with --children), give it more, or \
                 sample more often (--rate 20000)"
            }
            Target::Process(_) | Target::Machine => {
                "the target used no processor; record for longer, or another process"
            }
        }));
    }
    let samples = std::mem::take(&mut session.collector.samples);
    let period_ns = 1_000_000_000 / session.rates.lasting.max(1);
    let ended = Ended::new(session);
    let samples = ended.samples(samples);
    let Ended {
        collector, named, ..
    } = ended;
    let counters = Counters {
        processor_ns: collector.used.processor_ns,
        page_faults: collector.used.faults,
        migrations: collector.sums.migrations,
        kernel_threads_ns: ended.helped,
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
        period_ns,
        wall_ns: wall.as_nanos() as u64,
        work: work(options, metered, moved, &collector.sums),
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

/// The recorder's priority, while it records: where hundreds of threads want the processors, it would
/// have its turn too seldom to empty the rings and to end windows and itself in time.
struct Priority {
    before: i32,
}

impl Priority {
    /// A nice value of -10, as far as this user may have it.
    fn raised() -> Option<Self> {
        const RAISED: i32 = -10;
        let before = getpriority_process(None).ok()?;
        if before <= RAISED {
            return None;
        }
        setpriority_process(None, RAISED).ok()?;
        Some(Self { before })
    }
}

impl Drop for Priority {
    fn drop(&mut self) {
        // Everybody may become less important.
        let _ = setpriority_process(None, self.before);
    }
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
