//! Which phase each sample of a recording is of: by its thread, by its stack, and for a wait for a
//! lock by what the lock's holder did.

use std::collections::{HashMap, HashSet};

use super::{Rule, RuleKind, Rules};
use crate::locks::{self, Holder};
use crate::recording::{Kind, Recording, Sample};

/// The phase of threads that wait for a lock.
const LOCK: &str = "lock";
/// The phase of threads that wait for another process.
const PEER: &str = "peer";
/// The phase of threads that wait for a device.
const DEVICE: &str = "device";

impl Rules {
    /// The index of the phase of each stack of a recording, by kind of time and number of the
    /// stack; number 0 is the unknown stack.
    pub fn of(&self, recording: &Recording) -> Assigned {
        let decide = |kind: RuleKind| -> Vec<usize> {
            let frames: Vec<Vec<&(usize, Rule)>> = recording
                .frames
                .iter()
                .map(|frame| self.fitting(frame, kind))
                .collect();
            let mut of = vec![self.other(); recording.stacks.len() + 1];
            for (number, &(caller, frame)) in recording.stacks.iter().enumerate() {
                let fitting = frames[frame as usize].iter();
                let decides = fitting
                    .filter(|(_, rule)| rule.is_called_by(recording, caller))
                    .map(|(phase, _)| *phase)
                    .next();
                of[number + 1] = decides.unwrap_or(of[caller as usize]);
            }
            of
        };
        let whole = |kind: RuleKind| -> Vec<Option<usize>> {
            let threads = recording.threads.iter();
            threads
                .map(|thread| self.of_thread(&thread.name, kind))
                .collect()
        };
        let mut assigned = Assigned {
            cpu: decide(RuleKind::Cpu),
            wait: decide(RuleKind::Wait),
            cpu_threads: whole(RuleKind::Cpu),
            wait_threads: whole(RuleKind::Wait),
            ready: self.queue(),
            idle: self.idle(),
            lock: self.find(LOCK),
            peer: self.find(PEER),
            passed_on: HashMap::new(),
            long: long(recording),
            wall_ns: recording.wall_ns,
        };
        if let Some(lock) = assigned.lock {
            let outside = [self.find(DEVICE), assigned.peer];
            let holder = |sample: &Sample| match assigned.of(sample) {
                _ if sample.kind == Kind::Ready => Holder::Nothing,
                phase if phase == assigned.idle => Holder::Nothing,
                phase if phase == lock && sample.kind == Kind::Wait => Holder::Lock,
                phase if sample.kind == Kind::Wait && outside.contains(&Some(phase)) => {
                    Holder::Waits(phase)
                }
                _ => Holder::Works,
            };
            assigned.passed_on = locks::passed_on(recording, holder);
        }
        assigned
    }
}

/// Phases of the stacks of one recording.
#[derive(Clone, Debug)]
pub struct Assigned {
    cpu: Vec<usize>,
    wait: Vec<usize>,
    /// Of threads whose name decides.
    cpu_threads: Vec<Option<usize>>,
    wait_threads: Vec<Option<usize>>,
    ready: usize,
    idle: usize,
    lock: Option<usize>,
    peer: Option<usize>,
    /// Waits for locks, by thread and stack, that are really waits for something else.
    passed_on: HashMap<(u32, u32), usize>,
    /// Threads with stacks in which they waited once and for most of the recording, as far as that
    /// was seen in windows.
    long: HashSet<(u32, u32)>,
    wall_ns: u64,
}

/// Threads and stacks of waits that took most of the recording and were recorded in windows: they
/// have time in many, and began in one at most.
fn long(recording: &Recording) -> HashSet<(u32, u32)> {
    let windows = recording.coverage.as_ref().map(|of| &of.waits);
    let Some(windows) = windows.filter(|of| !of.is_whole()) else {
        return HashSet::new();
    };
    let weights = windows.weights(recording.wall_ns);
    let mut waits: HashMap<(u32, u32), (f64, u64)> = HashMap::new();
    for sample in recording.samples.iter().filter(|of| of.kind == Kind::Wait) {
        let weight = windows.at(sample.at_ns).map_or(1.0, |at| weights[at]);
        let wait = waits.entry((sample.thread, sample.stack)).or_default();
        wait.0 += sample.count as f64 / weight;
        wait.1 = wait.1.saturating_add(sample.ns);
    }
    let long = |of: &(f64, u64)| of.0 < 1.5 && of.1 > recording.wall_ns / 2;
    let waits = waits.into_iter().filter(|(_, of)| long(of));
    waits.map(|(of, _)| of).collect()
}

impl Assigned {
    /// The index of the phase of a sample.
    pub fn of(&self, sample: &Sample) -> usize {
        let by_rules = Some(self.phase(sample.kind, sample.stack));
        let once = sample.count == 1 && sample.ns > self.wall_ns / 2;
        let is_long = sample.kind == Kind::Wait
            && (once || self.long.contains(&(sample.thread, sample.stack)))
            && (by_rules == self.lock || by_rules == self.peer);
        match is_long && self.whole(sample.kind, sample.thread).is_none() {
            true => self.idle,
            false => self.of_thread(sample.kind, sample.thread, sample.stack),
        }
    }

    /// The index of the phase of what a thread does in a stack, where it does not do it for most of
    /// the recording.
    pub fn of_thread(&self, kind: Kind, thread: u32, stack: u32) -> usize {
        if let Some(phase) = self.whole(kind, thread) {
            return phase;
        }
        let phase = self.phase(kind, stack);
        let passed_on = match kind == Kind::Wait && Some(phase) == self.lock {
            true => self.passed_on.get(&(thread, stack)),
            false => None,
        };
        passed_on.copied().unwrap_or(phase)
    }

    /// The index of the phase of all that a thread does, where its name decides.
    fn whole(&self, kind: Kind, thread: u32) -> Option<usize> {
        match kind {
            Kind::Cpu => self.cpu_threads[thread as usize],
            Kind::Wait => self.wait_threads[thread as usize],
            Kind::Ready => None,
        }
    }

    /// The index of the phase of a stack, whichever thread it is of.
    pub fn phase(&self, kind: Kind, stack: u32) -> usize {
        match kind {
            Kind::Cpu => self.cpu[stack as usize],
            Kind::Wait => self.wait[stack as usize],
            Kind::Ready => self.ready,
        }
    }
}
