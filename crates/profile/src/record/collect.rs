//! Makes samples of what happened: intern stacks, measure waits, add up what is alike.
//!
//! Time is cut into slices of ten milliseconds. What one thread did in one stack in one slice is
//! one sample, so that a program that switches a hundred thousand times per second makes
//! no larger recording than another one.

use std::collections::{BTreeMap, HashMap};

use super::records::{Happened, KERNEL, MARK, USER, What};
use super::spaces::{Place, Spaces};
use super::turns::{self, Parts};
use super::wakes::{Waker, Wakes};
use crate::recording::{Kind, Sample, Thread};

/// Nanoseconds of a slice.
const SLICE: u64 = 10_000_000;

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
    pub(super) waits: u64,
    pub(super) preemptions: u64,
    pub(super) wakes: Wakes,
    /// System calls by number: how often, whether each was seen, bytes.
    pub(super) calls: BTreeMap<u64, Calls>,
    /// When the first thing happened, on the kernel's clock.
    pub(super) begin: Option<u64>,
    place_numbers: HashMap<Place, u32>,
    stack_numbers: HashMap<(u32, u32), u32>,
    thread_numbers: HashMap<u32, u32>,
    states: HashMap<u32, State>,
    /// Where samples go by turns.
    pub(super) turns: Option<Parts>,
    /// The process whose threads are left out.
    pub(super) left_out: Option<u32>,
    /// Sum of the periods of all samples of processor time, also of those that are left out.
    pub(super) ran: u64,
    slice: u64,
    pending: BTreeMap<(u32, Kind, u32), (u64, u64)>,
}

/// One kind of system call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Calls {
    pub(super) count: u64,
    pub(super) exact: bool,
    pub(super) bytes: u64,
}

/// Of a thread.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// The last stack that it stopped in.
    stack: u32,
    /// Since when it has stopped, and how.
    out: Option<(u64, Kind)>,
    /// Who has woken it since.
    waker: Option<Waker>,
}

impl Collector {
    /// Takes in what happened; the callers see to the order of time.
    pub(super) fn add(&mut self, happened: Happened) {
        let Happened {
            time,
            pid,
            tid,
            what,
        } = happened;
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
                let stack = self.stack(pid, &chain);
                let thread = self.thread(pid, tid);
                self.sample(time, Kind::Cpu, thread, stack, period);
            }
            What::Stack { chain } => {
                let stack = self.stack(pid, &chain);
                self.states.entry(tid).or_default().stack = stack;
            }
            What::Called {
                period,
                number,
                result,
            } => self.called(period, number, result),
            What::Out { preempted } => {
                let kind = match preempted {
                    true => Kind::Ready,
                    false => Kind::Wait,
                };
                match kind {
                    Kind::Ready => self.preemptions += 1,
                    _ => self.waits += 1,
                }
                self.begin.get_or_insert(time);
                self.thread(pid, tid);
                let state = self.states.entry(tid).or_default();
                (state.out, state.waker) = (Some((time, kind)), None);
            }
            What::In => self.resumed(time, pid, tid),
            What::Woke {
                woken,
                interrupt,
                chain,
            } => {
                let waker = (!interrupt).then_some((pid, tid));
                self.woke(woken, waker, &chain);
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
                // Numbers are used again.
                self.thread_numbers.remove(&tid);
                self.states.remove(&tid);
            }
            What::Ended => {
                self.resumed(time, pid, tid);
                self.states.remove(&tid);
            }
            What::Lost { samples } => self.lost += samples,
            What::Turn { of } => self.turn(time, of),
        }
    }

    /// The recording ends: those who wait have waited until now.
    pub(super) fn finish(&mut self, now: u64) {
        let waiting: Vec<u32> = self.states.keys().copied().collect();
        for tid in waiting {
            self.resumed(now, 0, tid);
        }
        self.flush();
    }

    fn resumed(&mut self, time: u64, pid: u32, tid: u32) {
        let Some(state) = self.states.get_mut(&tid) else {
            return;
        };
        let (Some((since, kind)), stack) = (state.out.take(), state.stack) else {
            return;
        };
        let waker = state.waker.take();
        // Who waits beyond a turn's ends has nothing to do with the work of the turn.
        let Some(since) = turns::within(self.turns.as_ref(), since, kind) else {
            return;
        };
        let thread = self.thread(pid, tid);
        let ns = time.saturating_sub(since);
        self.sample(since, kind, thread, stack, ns);
        if let Some(waker) = waker {
            self.wakes.add(thread, stack, waker, ns);
        }
    }

    /// A thread of ours may wait no more. Others may wake it again before it runs: the first has
    /// ended the wait. `waker` is `None` for an interrupt.
    fn woke(&mut self, woken: u32, waker: Option<(u32, u32)>, chain: &[u64]) {
        /// The threads that a processor runs while it has nothing to do.
        const NOBODY: u32 = 0;
        self.wakes.seen += 1;
        let waits = |state: &State| matches!(state.out, Some((_, Kind::Wait)));
        let ours = self.states.get(&woken);
        if !ours.is_some_and(|state| waits(state) && state.waker.is_none()) {
            return;
        }
        let waker = match waker {
            Some((pid, tid)) if tid != NOBODY => {
                (self.thread(pid, tid) + 1, self.stack(pid, chain))
            }
            _ => {
                let program = chain.iter().position(|address| *address == USER);
                let kernel = &chain[..program.unwrap_or(chain.len())];
                (0, self.stack(NOBODY, kernel))
            }
        };
        if let Some(state) = self.states.get_mut(&woken) {
            state.waker = Some(waker);
        }
    }

    fn called(&mut self, period: u64, number: u64, result: i64) {
        let calls = self.calls.entry(number).or_insert(Calls {
            count: 0,
            exact: true,
            bytes: 0,
        });
        calls.count += period;
        calls.exact &= period == 1;
        if let (true, Ok(bytes)) = (super::calls::moves_bytes(number), u64::try_from(result)) {
            calls.bytes = calls.bytes.saturating_add(bytes.saturating_mul(period));
        }
    }

    /// Adds to what the slice has of the kind already. A wait belongs to the slice it began in,
    /// which may have passed: then it stands alone.
    fn sample(&mut self, time: u64, kind: Kind, thread: u32, stack: u32, ns: u64) {
        if self.turns.as_ref().is_some_and(|turns| turns.now.is_none()) {
            return;
        }
        let begin = *self.begin.get_or_insert(time);
        let slice = time.saturating_sub(begin) / SLICE;
        if slice < self.slice {
            self.samples.push(Sample {
                at_ns: slice * SLICE,
                kind,
                thread,
                stack,
                count: 1,
                ns,
            });
            return;
        }
        if slice > self.slice {
            self.flush();
            self.slice = slice;
        }
        let sum = self.pending.entry((thread, kind, stack)).or_default();
        sum.0 += 1;
        sum.1 += ns;
    }

    /// The turn ends, and the next one begins, if there is one. A part's time stands still between
    /// its turns.
    pub(super) fn turn(&mut self, time: u64, of: Option<u32>) {
        let Some(now) = self.turns.as_ref().map(|turns| turns.now) else {
            return;
        };
        if let Some((_, since)) = now {
            let starved: Vec<(u32, u64)> = self
                .states
                .iter()
                .filter_map(|(tid, state)| match state.out {
                    Some((out, Kind::Ready)) => Some((*tid, out.max(since))),
                    _ => None,
                })
                .collect();
            for (tid, out) in starved {
                let stack = self.states.get(&tid).map_or(0, |state| state.stack);
                let thread = self.thread(0, tid);
                self.sample(out, Kind::Ready, thread, stack, time.saturating_sub(out));
            }
            self.flush();
        }
        let samples = std::mem::take(&mut self.samples);
        if let Some(turns) = &mut self.turns {
            let behind = turns.change(time, of, samples);
            self.begin = Some(time.saturating_sub(behind));
            self.slice = behind / SLICE;
        }
    }

    fn flush(&mut self) {
        let at_ns = self.slice * SLICE;
        for ((thread, kind, stack), (count, ns)) in std::mem::take(&mut self.pending) {
            self.samples.push(Sample {
                at_ns,
                kind,
                thread,
                stack,
                count,
                ns,
            });
        }
    }

    fn thread(&mut self, pid: u32, tid: u32) -> u32 {
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

    /// The number of a stack. `chain` has addresses from the innermost function outwards, the
    /// kernel's and the program's, each part behind its mark.
    fn stack(&mut self, pid: u32, chain: &[u64]) -> u32 {
        if !self.spaces.knows(pid) && pid != 0 {
            self.spaces.read(pid);
        }
        let mut places = Vec::with_capacity(chain.len());
        let (mut kernel, mut first) = (false, true);
        for &address in chain {
            if address >= MARK {
                match address {
                    KERNEL => (kernel, first) = (true, true),
                    USER => (kernel, first) = (false, true),
                    _ => {}
                }
                continue;
            }
            // The address behind a call may belong to the next function.
            let address = if first {
                address
            } else {
                address.wrapping_sub(1)
            };
            first = false;
            places.push(match kernel {
                true => Place::Kernel(address),
                false => self.spaces.place(pid, address),
            });
        }
        let mut stack = 0;
        for place in places.into_iter().rev() {
            let next = self.places.len() as u32;
            let number = *self.place_numbers.entry(place).or_insert(next);
            if number == next {
                self.places.push(place);
            }
            let next = self.stacks.len() as u32 + 1;
            let entry = (stack, number);
            stack = *self.stack_numbers.entry(entry).or_insert(next);
            if stack == next {
                self.stacks.push(entry);
            }
        }
        stack
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

    fn at(time: u64, what: What) -> Happened {
        Happened {
            time,
            pid: 0,
            tid: 1,
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
        assert_eq!((collector.waits, collector.preemptions), (2, 1));
        assert!(
            collector
                .samples
                .iter()
                .all(|sample| sample.at_ns <= 30_000_000)
        );
    }

    #[test]
    fn the_first_who_wakes_a_thread_that_waits_has_ended_its_wait() {
        let mut collector = Collector::default();
        let woke = |tid, interrupt| Happened {
            tid,
            ..at(
                0,
                What::Woke {
                    woken: 1,
                    interrupt,
                    chain: vec![KERNEL, 0x10, USER, 0x20],
                },
            )
        };
        // It has not stopped yet; then it waits, and is made to stop.
        collector.add(woke(7, false));
        collector.add(at(10, What::Out { preempted: false }));
        collector.add(woke(2, false));
        collector.add(woke(3, false));
        collector.add(at(30, What::In));
        collector.add(at(40, What::Out { preempted: true }));
        collector.add(woke(4, false));
        collector.add(at(50, What::In));
        collector.add(at(60, What::Out { preempted: false }));
        collector.add(woke(5, true));
        collector.add(at(65, What::In));
        collector.finish(100);
        let mut named = crate::symbols::resolve(&collector.places, &collector.stacks, &[]);
        let wakes = collector.wakes.named(&mut named);
        assert_eq!(
            wakes.iter().map(|wake| wake.ns).collect::<Vec<_>>(),
            [20, 5]
        );
        let waker = &collector.threads[wakes[0].waker as usize - 1];
        assert_eq!((waker.tid, wakes[1].waker), (2, 0));
        let depth = |mut stack: u32| {
            let callers = std::iter::from_fn(|| {
                stack = named.stacks[stack.checked_sub(1)? as usize].0;
                Some(())
            });
            callers.count()
        };
        let depths = wakes.iter().map(|wake| depth(wake.waker_stack));
        assert_eq!(depths.collect::<Vec<_>>(), [2, 1]);
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
