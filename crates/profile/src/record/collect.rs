//! Takes in what happened, each thing by its kind, and has what was collected of it.

use std::collections::{BTreeMap, HashMap};

use rustc_hash::FxHashMap;

use super::helpers::Helpers;
use super::records::{Happened, Kinds, What};
use super::spaces::{Place, Spaces};
use super::switches::Switches;
use super::turns::Parts;
use super::used::Used;
use super::waits::{State, WaitSums};
use super::wakes::Wakes;
use super::whose::Whose;
use super::windowed::{Done, Windowed, scaled};
use crate::recording::{Coverage, Kind, Sample, Thread};

/// Nanoseconds of processor time that windows need at least, to say what others stand for.
const LEAST_RAN: f64 = 1e7;

/// What was collected.
#[derive(Debug, Default)]
pub(super) struct Collector {
    pub(super) spaces: Spaces,
    /// Places, and stacks of them as a tree: caller's number and one, index of the place.
    pub(super) places: Vec<Place>,
    pub(super) stacks: Vec<(u32, u32)>,
    pub(super) threads: Vec<Thread>,
    pub(super) samples: Vec<Sample>,
    pub(super) lost: u64,
    /// System calls by number, and waits; what is known of them in the end stands in `sums`.
    pub(super) calls: Windowed<BTreeMap<u64, Calls>>,
    /// Nanoseconds that a recorded system call takes longer, where that was measured.
    pub(super) call_price: Option<u64>,
    /// What the target had used when the recording ended, and how often it had given up a processor, where
    /// that is known.
    pub(super) used: Used,
    pub(super) switches: Option<Switches>,
    pub(super) waits: Windowed<WaitSums>,
    pub(super) sums: Sums,
    /// Threads that are recorded and have not ended, with their processes.
    pub(super) alive: BTreeMap<u32, u32>,
    /// Whether processes that others start are recorded too.
    pub(super) children: bool,
    /// When the first thing happened, on the kernel's clock.
    pub(super) begin: Option<u64>,
    pub(super) place_numbers: FxHashMap<Place, u32>,
    pub(super) stack_numbers: FxHashMap<(u32, u32), u32>,
    thread_numbers: HashMap<u32, u32>,
    pub(super) states: HashMap<u32, State>,
    /// Time without a processor at the begin of a window, for which no stack is known: when,
    /// whose, and how long.
    pub(super) edges: Vec<(u64, u32, u64)>,
    /// Where samples go by turns.
    pub(super) turns: Option<Parts>,
    /// The process whose threads are left out.
    pub(super) left_out: Option<u32>,
    /// The processes whose records count, where there are records of others too.
    pub(super) whose: Option<Whose>,
    /// Kernel threads that work for the target.
    pub(super) helpers: Helpers,
    /// Sum of the periods of all samples of processor time, also of those that are left out.
    pub(super) ran: u64,
    pub(super) slice: u64,
    pub(super) pending: BTreeMap<(u32, Kind, u32), (u64, u64)>,
}

/// One kind of system call.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Calls {
    pub(super) count: u64,
    pub(super) bytes: u64,
}

/// What was counted over the whole recording; multiplied up where it was counted in windows.
#[derive(Debug, Default)]
pub(super) struct Sums {
    pub(super) waits: u64,
    pub(super) preemptions: u64,
    pub(super) migrations: u64,
    pub(super) wakes: Wakes,
    /// System calls by number.
    pub(super) calls: BTreeMap<u64, Calls>,
    pub(super) coverage: Coverage,
}

impl Collector {
    /// Takes in what happened; the callers see to the order of time.
    pub(super) fn add(&mut self, happened: Happened) {
        let is_foreign = self.is_foreign(&happened);
        let Happened {
            time,
            pid,
            tid,
            processor,
            what,
        } = happened;
        if is_foreign {
            if let What::Ran { period, chain } = what {
                self.other_has_run(time, tid, period, &chain);
            }
            return;
        }
        if let What::Ran { period, .. } = what {
            self.ran = self.ran.saturating_add(period);
        }
        let of_thread = matches!(
            what,
            What::Ran { .. }
                | What::Stack { .. }
                | What::Called { .. }
                | What::Out { .. }
                | What::In
        );
        if of_thread && self.left_out == Some(pid) {
            return;
        }
        match what {
            What::Ran { period, chain } => {
                self.has_run(tid);
                let stack = self.stack(pid, &chain);
                let thread = self.thread(pid, tid);
                self.sample(time, Kind::Cpu, thread, stack, (1, period));
            }
            What::Stack { chain } if self.waits.is_open => {
                let stack = self.stack(pid, &chain);
                self.states.entry(tid).or_default().stack = stack;
            }
            What::Called {
                period,
                number,
                result,
            } if self.calls.is_open => self.called(period, number, result),
            What::Out { preempted } => {
                self.is_on(tid, processor);
                self.stopped(time, pid, tid, preempted);
            }
            What::In => {
                self.is_on(tid, processor);
                self.resumed(time, pid, tid);
            }
            What::Woke {
                woken,
                interrupt,
                chain,
            } if self.waits.is_open => {
                let waker = (!interrupt).then_some((pid, tid));
                self.woke(woken, waker, &chain);
            }
            What::Asked { woken, interrupt } => {
                self.asked(woken, (!interrupt).then_some((pid, tid)));
            }
            What::Mapped {
                start,
                length,
                offset,
                path,
            } => {
                let path = String::from_utf8_lossy(&path);
                self.spaces.map(pid, start, length, offset, &path);
            }
            What::Named { name, exec } => {
                if exec {
                    self.spaces.clear(pid);
                }
                let name = String::from_utf8_lossy(&name).into_owned();
                let thread = self.thread(pid, tid);
                self.threads[thread as usize].name = name;
            }
            What::Started { parent } => {
                self.spaces.fork(parent, pid);
                self.forget(tid);
                if self.left_out != Some(pid) && (self.children || parent == pid) {
                    self.alive.insert(tid, pid);
                }
            }
            What::Ended => {
                self.resumed(time, pid, tid);
                self.states.remove(&tid);
                self.alive.remove(&tid);
            }
            What::Lost { samples } => self.lost += samples,
            What::Turn { of } => self.turn(time, of),
            What::Window {
                of,
                is_open,
                done,
                counted,
            } => self.window(time, (of, is_open), done, counted),
            // The last events of a window that has been closed.
            What::Stack { .. } | What::Called { .. } | What::Woke { .. } => {}
        }
    }

    /// The recording ends at `now`: those who wait have waited until then.
    pub(super) fn finish(&mut self, now: u64) {
        if self.waits.is_open {
            self.pause_waits(now);
        }
        self.flush();
        let begin = self.begin.unwrap_or(now);
        let ran = Done {
            all: self.used.processor_ns,
            least: LEAST_RAN,
        };
        let (windows, calls) = self.calls.finish(begin, now, Some(ran));
        for (weight, calls) in calls {
            for (number, of) in calls {
                let sum = self.sums.calls.entry(number).or_default();
                sum.count += scaled(of.count, weight);
                sum.bytes = sum.bytes.saturating_add(scaled(of.bytes, weight));
            }
        }
        self.sums.coverage.calls = windows;
        self.finish_waits(begin, now);
    }

    fn window(&mut self, time: u64, of: (Kinds, bool), done: u64, counted: u64) {
        match of {
            (Kinds::Calls, true) => self.calls.open(time, done),
            (Kinds::Calls, false) => {
                let seen: u64 = self.calls.now.values().map(|of| of.count).sum();
                // Those that the rings had no room for were like the others.
                let weight = (counted as f64 / seen.max(1) as f64).max(1.0);
                for of in self.calls.now.values_mut() {
                    of.count = scaled(of.count, weight);
                    of.bytes = scaled(of.bytes, weight);
                }
                // In a window the program is slower, since it is recorded: what that took is no time
                // in which it could have made calls.
                let price = self.call_price.unwrap_or(super::spending::CALL);
                let price = price.saturating_mul(counted.max(seen));
                self.calls.close(time, done, price);
            }
            (Kinds::Waits, true) => self.resume_waits(time, done),
            (Kinds::Waits, false) => {
                self.pause_waits(time);
                self.waits.close(time, done, 0);
            }
        }
    }

    fn called(&mut self, period: u64, number: u64, result: i64) {
        let calls = self.calls.now.entry(number).or_default();
        calls.count += period;
        if let (true, Ok(bytes)) = (super::calls::moves_bytes(number), u64::try_from(result)) {
            calls.bytes = calls.bytes.saturating_add(bytes.saturating_mul(period));
        }
    }

    /// Another thread got the number of one that has ended.
    pub(super) fn forget(&mut self, tid: u32) {
        self.thread_numbers.remove(&tid);
        self.states.remove(&tid);
        self.helpers.forget(tid);
    }

    pub(super) fn thread(&mut self, pid: u32, tid: u32) -> u32 {
        let Self {
            thread_numbers,
            threads,
            ..
        } = self;
        *thread_numbers.entry(tid).or_insert_with(|| {
            threads.push(Thread {
                pid,
                tid,
                name: name_of(tid),
            });
            threads.len() as u32 - 1
        })
    }
}

/// The name of a thread that was there before us, while it is there.
fn name_of(tid: u32) -> String {
    std::fs::read_to_string(format!("/proc/{tid}/comm"))
        .map(|name| name.trim_end().to_owned())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::records::{KERNEL, USER};

    fn at(time: u64, what: What) -> Happened {
        Happened {
            time,
            pid: 0,
            tid: 1,
            processor: 0,
            what,
        }
    }

    #[test]
    fn a_wait_has_the_stack_it_began_in_and_its_length() {
        let mut collector = Collector::default();
        let kernel = |address| vec![KERNEL, address];
        collector.add(at(
            0,
            What::Ran {
                period: 5,
                chain: kernel(0x10),
            },
        ));
        collector.add(at(
            10,
            What::Stack {
                chain: kernel(0x20),
            },
        ));
        collector.add(at(11, What::Out { preempted: false }));
        collector.add(at(30_000_011, What::In));
        collector.add(at(30_000_020, What::Out { preempted: true }));
        collector.add(at(30_000_030, What::In));
        collector.add(at(30_000_040, What::Out { preempted: false }));
        collector.finish(30_000_100);
        let waits = |kind: Kind| -> u64 {
            let of_kind = collector
                .samples
                .iter()
                .filter(|sample| sample.kind == kind);
            of_kind.map(|sample| sample.ns).sum()
        };
        assert_eq!(waits(Kind::Wait), 30_000_060);
        assert_eq!(waits(Kind::Ready), 10);
        assert_eq!(waits(Kind::Cpu), 5);
        assert_eq!((collector.sums.waits, collector.sums.preemptions), (2, 1));
        assert!(
            collector
                .samples
                .iter()
                .all(|sample| sample.at_ns <= 30_000_000)
        );
    }

    #[test]
    fn what_is_alike_is_one_sample() {
        let mut collector = Collector::default();
        for time in 0..1000 {
            let chain = vec![KERNEL, 0x10, 0x20, USER, 0x30];
            collector.add(at(time, What::Ran { period: 7, chain }));
        }
        collector.finish(1000);
        assert_eq!(collector.samples.len(), 1);
        assert_eq!(
            (collector.samples[0].count, collector.samples[0].ns),
            (1000, 7000)
        );
        // The caller's address is the one before the return address.
        assert!(collector.places.contains(&Place::Kernel(0x1f)));
        assert_eq!(collector.stacks.len(), 3);
    }
}
