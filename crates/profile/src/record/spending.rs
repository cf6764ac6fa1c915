//! A session that keeps to its budget: it counts what the rings have, and opens and closes windows.
//!
//! The prices are processor time that the recorded program loses, measured on virtual machines with
//! a Zen 4 and a Zen 5 (`bench/profile-overhead` measures what comes out). A system call that is
//! recorded took OpenVPN 1.2 microseconds more on the Zen 4; 0.75 in a loop of nothing else, whose
//! caches it has for itself. A switch with its stack took 4 on the Zen 5, a wake-up with the stack of
//! the one who wakes 1.8.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use super::budget::{Budget, Order};
use super::events::{Events, Scope, Source};
use super::records::{Happened, Kinds, What};
use super::session::Session;
use super::{LONG_PACE, monotonic};

/// Nanoseconds that an event costs the program.
pub(super) const CALL: u64 = 1200;
const SWITCH: u64 = 4000;
const WAKE: u64 = 1800;
/// Nanoseconds that each switch of any thread takes longer while switches of the target's threads have
/// events, since the kernel asks at each of them: 2 % of a full TCP stream through OpenVPN, whose sending
/// end itself switched 300 times per second (Zen 5).
const SWITCH_OF_MACHINE: f64 = 600.0;
/// Records of a switch: its stack, the thread that stops, and the one that goes on.
const RECORDS: u64 = 3;
/// Shares of the time that system calls and waits may cost.
const CALLS_SHARE: f64 = 0.0015;
const WAITS_SHARE: f64 = 0.003;
/// Nanoseconds that each may cost in advance, so that short recordings and short bursts are whole.
const CALLS_IN_ADVANCE: u64 = 5_000_000;
const WAITS_IN_ADVANCE: u64 = 10_000_000;

/// What the rings had since it was paid for.
#[derive(Debug, Default)]
pub(super) struct Seen {
    calls: u64,
    switches: u64,
    wakes: u64,
}

impl Seen {
    pub(super) fn count(&mut self, source: Source) {
        match source {
            Source::Processor | Source::Helper => {}
            Source::Switch => self.switches += 1,
            Source::Call => self.calls += 1,
            Source::Wake => self.wakes += 1,
        }
    }
}

/// What is spent on the kinds of events that cost most; none for those that are not recorded.
pub(super) struct Spending {
    calls: Option<Budget>,
    waits: Option<Budget>,
    /// System calls that were counted before the window began, and processor time of the target then.
    counted: u64,
    ran: u64,
    /// Processor time of the target until the last look.
    processor_ns: u64,
}

impl Spending {
    pub(super) fn new(events: &Events) -> Self {
        let now = monotonic();
        let budget = |kinds, share, in_advance| {
            let is_there = events.have(kinds);
            is_there.then(|| Budget::new(now, share, in_advance, now))
        };
        Self {
            calls: budget(Kinds::Calls, CALLS_SHARE, CALLS_IN_ADVANCE),
            waits: budget(Kinds::Waits, WAITS_SHARE, WAITS_IN_ADVANCE),
            counted: 0,
            ran: 0,
            processor_ns: 0,
        }
    }
}

impl Session {
    /// How long to sleep until the rings have to be read, or a window begins or ends.
    pub(super) fn pace(&self) -> Duration {
        let budgets = self.spending.iter();
        let budgets = budgets.flat_map(|of| [&of.calls, &of.waits]).flatten();
        let now = monotonic();
        let next = budgets
            .map(|budget| budget.next().saturating_sub(now))
            .min();
        next.map_or(LONG_PACE, |next| LONG_PACE.min(Duration::from_nanos(next)))
    }

    /// Pays for what the rings had, and opens or closes windows as the budgets say. All processors switch
    /// `switches` times per second.
    pub(super) fn keep_to_budget(&mut self, switches: f64) {
        // Between these times nothing is decided.
        let due = |spending: &Spending| {
            let budgets = [&spending.calls, &spending.waits].into_iter().flatten();
            let next = budgets.map(Budget::next).min();
            next.is_some_and(|next| next <= monotonic())
        };
        let Some(mut spending) = self.spending.take_if(|spending| due(spending)) else {
            return;
        };
        let seen = std::mem::take(&mut self.seen);
        let processor_ns = self.lately_used().processor_ns;
        let used = processor_ns.saturating_sub(spending.processor_ns);
        spending.processor_ns = processor_ns;
        if let Some(budget) = &mut spending.waits {
            let now = monotonic();
            let mut price = SWITCH * seen.switches / RECORDS + WAKE * seen.wakes;
            if self.events.closes(Kinds::Waits) {
                let per_processor = switches / self.events.terms.processors.max(1) as f64;
                let passed = budget.open_until(now) as f64 / 1e9;
                price += (SWITCH_OF_MACHINE * per_processor * passed) as u64;
            }
            match budget.look(now, price, used) {
                Order::Nothing => {}
                Order::Close => {
                    let waited = self.waited();
                    self.tell(Kinds::Waits, false, waited, 0);
                    self.events.stop_window(Kinds::Waits);
                    self.events.close_window(Kinds::Waits);
                }
                Order::Open => match self.open_window(Kinds::Waits, budget) {
                    Ok(()) => {
                        let waited = self.waited();
                        self.tell(Kinds::Waits, true, waited, 0);
                    }
                    Err(error) => {
                        self.events.stop_window(Kinds::Waits);
                        self.events.close_window(Kinds::Waits);
                        self.events.missing.push(format!(
                            "what is waited for was recorded at the begin only: {error}"
                        ));
                        spending.waits = None;
                    }
                },
            }
        }
        if let Some(budget) = &mut spending.calls {
            match budget.look(monotonic(), CALL * seen.calls, used) {
                Order::Nothing => {}
                Order::Close => self.close_calls(spending.counted, spending.ran),
                Order::Open => match self.open_window(Kinds::Calls, budget) {
                    Ok(()) => {
                        spending.ran = self.used().processor_ns;
                        spending.counted = self.events.calls_counted();
                        self.tell(Kinds::Calls, true, spending.ran, 0);
                    }
                    Err(error) => {
                        self.events.close_window(Kinds::Calls);
                        self.events.missing.push(format!(
                            "system calls were recorded at the begin only: {error}"
                        ));
                        spending.calls = None;
                    }
                },
            }
        }
        self.spending = Some(spending);
    }

    fn close_calls(&mut self, before: u64, ran: u64) {
        // The clock of a process goes on with the kernel's tick, which is as long as a window: the
        // window's own time is counted.
        let counted = self.events.used().processor_ns;
        let ran = match self.is_of_processes() {
            true => {
                self.events.processor_time.clear();
                ran + counted
            }
            false => counted,
        };
        let counted = self.events.calls_counted().saturating_sub(before);
        self.tell(Kinds::Calls, false, ran, counted);
        self.events.stop_window(Kinds::Calls);
        self.drain();
        self.events.close_window(Kinds::Calls);
    }

    /// Begins a window, which is paid for.
    fn open_window(&mut self, of: Kinds, budget: &mut Budget) -> std::io::Result<()> {
        let mut opened = Ok(());
        let price = processor_time_of(|| opened = self.open_window_of_all(of));
        budget.opened(monotonic(), price);
        opened
    }

    fn open_window_of_all(&mut self, of: Kinds) -> std::io::Result<()> {
        let tids: Vec<u32> = self.collector.alive.keys().copied().collect();
        let scope = match self.collector.left_out {
            Some(_) => Scope::Machine,
            None => Scope::Threads {
                tids: &tids,
                children: self.collector.children,
            },
        };
        self.events.open_window(of, scope)
    }

    /// From now on these kinds are recorded, or not; until now the target has `done` that much.
    fn tell(&mut self, of: Kinds, is_open: bool, done: u64, counted: u64) {
        self.held.push(Happened {
            time: monotonic(),
            pid: 0,
            tid: 0,
            processor: 0,
            what: What::Window {
                of,
                is_open,
                done,
                counted,
            },
        });
    }
}

/// Processor time of this thread for `work`, in nanoseconds.
fn processor_time_of(work: impl FnOnce()) -> u64 {
    let now = || {
        let now = clock_gettime(ClockId::ThreadCPUTime);
        now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
    };
    let before = now();
    work();
    now() - before
}
