//! Records work that is done by turns, such as that of drivers that are measured side by side: one
//! recording for each of those who take turns.
//!
//! The program that measures says whose turn it is. What happens between turns is left out. Of
//! helper threads the processor time counts and no wait: most of the time they wait for work.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use cipherlane_measure::machine::Machine;
use rustix::thread::gettid;

use super::ended::Ended;
use super::events::{Events, Scope};
use super::rates::Rates;
use super::records::{Happened, What};
use super::session::Session;
use super::wakes::Wakes;
use super::{PACE, monotonic, target};
use crate::Error;
use crate::recording::{Counters, Frame, Kind, Recording, SCHEMA, Sample, VERSION, Wake};
use crate::symbols::Named;

/// Samples per second of processor time: turns are short.
pub const RATE: u64 = 1997;

/// Whose work is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// That of this process, with all threads that it has and gets.
    Own,
    /// That of the processes that the calling thread starts from now on, and of those that they
    /// start; this process itself is left out.
    Started,
}

/// A recording under way.
#[derive(Debug)]
pub struct Turns {
    shared: Arc<Shared>,
    recorder: JoinHandle<Result<BTreeMap<u32, Recording>, Error>>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Turns that the recorder has not seen yet: since when, and whose.
    told: Mutex<Vec<(u64, Option<u32>)>>,
    /// Threads whose waits count.
    workers: Mutex<BTreeSet<u32>>,
    over: AtomicBool,
}

impl Turns {
    /// Begins to record; nobody has the turn yet.
    pub fn start(whose: Whose) -> Result<Self, Error> {
        let shared = Arc::new(Shared::default());
        let (opened, is_open) = mpsc::channel();
        let caller = gettid().as_raw_nonzero().get() as u32;
        let recorder = std::thread::Builder::new().name("recorder".to_owned());
        let recorder = recorder.spawn({
            let shared = Arc::clone(&shared);
            move || run(whose, caller, &shared, &opened)
        });
        let recorder = recorder.map_err(|source| Error::Rings {
            what: "the recorder",
            source,
            remedy: "allow more threads (ulimit -u)",
        })?;
        // Where nothing is said, the thread has ended with an error.
        if is_open.recv().is_err() {
            return match recorder.join() {
                Ok(Err(error)) => Err(error),
                Ok(Ok(_)) => Err(Error::Nothing("the recorder ended at once")),
                Err(panic) => std::panic::resume_unwind(panic),
            };
        }
        Ok(Self { shared, recorder })
    }

    /// From now on it is the turn of the one with that number.
    pub fn begin(&self, number: u32) {
        self.shared.tell(Some(number));
    }

    /// From now on it is nobody's turn.
    pub fn end(&self) {
        self.shared.tell(None);
    }

    /// The calling thread does the work: its waits count.
    pub fn join(&self) {
        let mut workers = lock(&self.shared.workers);
        workers.insert(gettid().as_raw_nonzero().get() as u32);
    }

    /// Ends the recording: what was recorded of each, by number. Those without a sample are left
    /// out.
    pub fn finish(self) -> Result<BTreeMap<u32, Recording>, Error> {
        self.shared.over.store(true, Ordering::Relaxed);
        match self.recorder.join() {
            Ok(recorded) => recorded,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

impl Shared {
    fn tell(&self, whose: Option<u32>) {
        let mut told = lock(&self.told);
        // Under the lock: the recorder has seen all turns until the time that it reads there.
        told.push((monotonic(), whose));
    }

    /// The turns that were told, and the time until which there are no others.
    fn seen(&self) -> (u64, Vec<(u64, Option<u32>)>) {
        let mut told = lock(&self.told);
        (monotonic(), std::mem::take(&mut told))
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The life of the recorder.
fn run(
    whose: Whose,
    caller: u32,
    shared: &Shared,
    opened: &Sender<()>,
) -> Result<BTreeMap<u32, Recording>, Error> {
    let own = std::process::id();
    let mut session = open(whose, own, caller)?;
    session.begin()?;
    let _ = opened.send(());
    while !shared.over.load(Ordering::Relaxed) {
        std::thread::sleep(PACE);
        drain(&mut session, shared);
    }
    session.events.disable();
    drain(&mut session, shared);
    session.collector.turn(monotonic(), None);
    let workers = lock(&shared.workers);
    Ok(session.into_parts(&workers))
}

fn open(whose: Whose, own: u32, caller: u32) -> Result<Session, Error> {
    let (tids, children) = match whose {
        Whose::Own => {
            let recorder = gettid().as_raw_nonzero().get() as u32;
            let mut tids = target::threads(own)?;
            tids.retain(|tid| *tid != recorder);
            (tids, false)
        }
        Whose::Started => (vec![caller], true),
    };
    let scope = Scope::Threads {
        tids: &tids,
        children,
    };
    // Of processes that are started, waits are left out, and so is who ends them.
    let wakes = whose == Whose::Own;
    let mut session = Session::over(
        Events::open_without_calls(scope, RATE, wakes)?,
        Rates::always(RATE),
    );
    session.collector.turns = Some(Parts::default());
    session.collector.left_out = (whose == Whose::Started).then_some(own);
    // What is started has these mappings until it becomes another program.
    session.collector.spaces.read(own);
    Ok(session)
}

fn drain(session: &mut Session, shared: &Shared) {
    let (now, told) = shared.seen();
    let turns = told.into_iter().map(|(time, of)| Happened {
        time,
        pid: 0,
        tid: 0,
        processor: 0,
        what: What::Turn { of },
    });
    session.held.extend(turns);
    session.drain_until(now);
}

impl Session {
    fn into_parts(mut self, workers: &BTreeSet<u32>) -> BTreeMap<u32, Recording> {
        let parts = self.collector.turns.take().unwrap_or_default().parts;
        self.collector.used = self.used();
        let mut ended = Ended::new(self);
        let threads = ended.collector.threads.iter();
        let works: Vec<bool> = threads.map(|of| workers.contains(&of.tid)).collect();
        let works = |thread: u32| works.get(thread as usize).copied().unwrap_or(false);
        let machine = Machine::detect();
        let parts = parts
            .into_iter()
            .filter(|(_, part)| !part.samples.is_empty());
        parts
            .map(|(number, mut part)| {
                (part.samples).retain(|sample| sample.kind == Kind::Cpu || works(sample.thread));
                let mut wakes = part.wakes.named(&mut ended.named);
                wakes.retain(|wake| works(wake.thread));
                (number, ended.recording(part, wakes, &machine))
            })
            .collect()
    }
}

impl Ended {
    fn recording(&self, part: Part, mut wakes: Vec<Wake>, machine: &Machine) -> Recording {
        let mut samples = self.samples(part.samples);
        let (frames, stacks) = used(&self.named, &mut samples, &mut wakes);
        let ran = samples.iter().filter(|sample| sample.kind == Kind::Cpu);
        Recording {
            schema: SCHEMA.to_owned(),
            version: VERSION,
            machine: machine.clone(),
            what: "turns".to_owned(),
            status: None,
            event: self.event.to_owned(),
            period_ns: 1_000_000_000 / RATE,
            wall_ns: part.wall_ns,
            work: None,
            counters: Counters {
                processor_ns: ran.map(|sample| sample.ns).sum(),
                ..Counters::default()
            },
            system_calls: Vec::new(),
            lost: self.collector.lost,
            recorder_ns: 0,
            missing: self.missing.clone(),
            threads: self.collector.threads.clone(),
            frames,
            stacks,
            samples,
            coverage: None,
            wakes,
            steal: Vec::new(),
        }
    }
}

/// The functions and stacks that `samples` and `wakes` need, whose stacks are given their numbers
/// there.
fn used(
    named: &Named,
    samples: &mut [Sample],
    wakes: &mut [Wake],
) -> (Vec<Frame>, Vec<(u32, u32)>) {
    let mut is_used = vec![false; named.stacks.len() + 1];
    for sample in &*samples {
        is_used[sample.stack as usize] = true;
    }
    for wake in &*wakes {
        is_used[wake.stack as usize] = true;
        is_used[wake.waker_stack as usize] = true;
    }
    // A stack stands behind its caller.
    for number in (1..is_used.len()).rev() {
        if is_used[number] {
            is_used[named.stacks[number - 1].0 as usize] = true;
        }
    }
    let (mut frames, mut stacks) = (Vec::new(), Vec::new());
    let mut frame_numbers = BTreeMap::new();
    let mut numbers = vec![0u32; is_used.len()];
    for number in (1..is_used.len()).filter(|&number| is_used[number]) {
        let (caller, frame) = named.stacks[number - 1];
        let frame = *frame_numbers.entry(frame).or_insert_with(|| {
            frames.push(named.frames[frame as usize].clone());
            frames.len() as u32 - 1
        });
        stacks.push((numbers[caller as usize], frame));
        numbers[number] = stacks.len() as u32;
    }
    for sample in samples {
        sample.stack = numbers[sample.stack as usize];
    }
    for wake in wakes {
        wake.stack = numbers[wake.stack as usize];
        wake.waker_stack = numbers[wake.waker_stack as usize];
    }
    (frames, stacks)
}

/// What belongs to each of those who take turns.
#[derive(Debug, Default)]
pub(super) struct Parts {
    /// Whose turn it is, and since when.
    pub(super) now: Option<(u32, u64)>,
    parts: BTreeMap<u32, Part>,
}

/// What belongs to one of them.
#[derive(Debug, Default)]
struct Part {
    /// Nanoseconds of its turns.
    wall_ns: u64,
    samples: Vec<Sample>,
    wakes: Wakes,
}

impl Parts {
    /// At `time` the turn with these samples and wake-ups ends, if there was one, and the next one
    /// begins: how long the turns before took of the one who has it.
    pub(super) fn change(
        &mut self,
        time: u64,
        of: Option<u32>,
        samples: Vec<Sample>,
        wakes: &Wakes,
    ) -> u64 {
        if let Some((before, since)) = self.now.take() {
            let part = self.parts.entry(before).or_default();
            part.wall_ns += time.saturating_sub(since);
            part.samples.extend(samples);
            part.wakes.add_all(wakes, (1.0, 1.0));
        }
        let Some(of) = of else {
            return 0;
        };
        self.now = Some((of, time));
        self.parts.entry(of).or_default().wall_ns
    }
}

/// From when on a pause of a thread counts that began at `since` and ends now; `None` where it does
/// not belong to the turn.
pub(super) fn within(parts: Option<&Parts>, since: u64, kind: Kind) -> Option<u64> {
    let Some(parts) = parts else {
        return Some(since);
    };
    let (_, begin) = parts.now?;
    match kind {
        // Somebody has the processor that the thread wants, in whoever's turn that began.
        Kind::Ready => Some(since.max(begin)),
        _ => (since >= begin).then_some(since),
    }
}
