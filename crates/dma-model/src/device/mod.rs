//! The device itself: its registers, its agenda, and its resets.
//!
//! | file | idea |
//! |---|---|
//! | `fetch` | from the submission ring to a request in the device |
//! | `engine` | keys, the rules, and the work itself by the software kernels |
//! | `finish` | results written back, the completion reported |

mod engine;
mod fetch;
mod finish;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use self::engine::{LoadedKey, total, wipe, wipe_dead_stack};
use self::fetch::Work;
use super::behaviour::FaultKind;
use super::controls::Controls;
use super::interrupt::Coalescer;
use super::settings::Settings;
use super::timing::{self, Timing};
use crate::transport::wire::{
    BAD_TAG, BROKEN, DONE, MAGIC, NO_SESSION, Opcode, READY, Register, algorithm_number,
};
use crate::transport::{Device, Port};

/// A model of a device, at the device's end of a transport.
pub struct Model {
    settings: Settings,
    port: Port,
    controls: Arc<Controls>,
    timing: Timing,
    coalescer: Coalescer,
    keys: HashMap<u32, LoadedKey>,
    /// Descriptors fetched, completions made, and resets done, as in the registers.
    fetched: u32,
    completed: u32,
    resets: u32,
    /// What will happen, by time and then by order.
    agenda: BTreeMap<(u64, u64), Event>,
    events: u64,
    /// Of requests that are done. Boxed as they are on the agenda.
    #[expect(clippy::vec_box, reason = "boxes go to and fro")]
    spare: Vec<Box<Work>>,
    state: State,
}

/// Whether it works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Working,
    /// Takes nothing until it is reset, and ignores that number of resets.
    Stuck {
        ignores: u32,
    },
    /// For ever.
    Gone,
}

/// Something on the agenda.
enum Event {
    /// A request is done.
    Finish(Box<Work>),
    Interrupt,
}

impl Model {
    /// A device at the end of that port.
    pub fn new(settings: &Settings, port: Port, controls: Arc<Controls>) -> Self {
        let model = Model {
            timing: Timing::new(settings),
            coalescer: Coalescer::new(&settings.interrupt),
            settings: settings.clone(),
            port,
            controls,
            keys: HashMap::new(),
            fetched: 0,
            completed: 0,
            resets: 0,
            agenda: BTreeMap::new(),
            events: 0,
            spare: Vec::new(),
            state: State::Working,
        };
        let arena = &model.port.arena;
        let offered = model.settings.algorithms.iter();
        let features = offered.filter_map(|name| algorithm_number(name));
        let features = features.fold(0, |bits, number| bits | 1 << number);
        arena
            .wide_register(Register::FEATURES)
            .store(features, Ordering::Relaxed);
        arena
            .wide_register(Register::MAGIC)
            .store(MAGIC, Ordering::Relaxed);
        model.write_rules();
        model.write(Register::STATUS, READY);
        model
    }

    /// What a driver must know that has not read the settings.
    fn write_rules(&self) {
        let rules = &self.settings.rules;
        let lengths = [128, 192, 256].into_iter().enumerate();
        let key_bits = lengths.filter(|(_, bits)| self.settings.key_bits.contains(bits));
        for (register, value) in [
            (Register::RING, rules.ring),
            (Register::ALIGNMENT, rules.alignment),
            (Register::BLOCK, rules.block),
            (Register::MAX_SEGMENT, rules.max_segment),
            (Register::MAX_REQUEST, rules.max_request),
            (Register::SESSIONS, rules.sessions),
            (
                Register::KEY_BITS,
                key_bits.fold(0, |mask, (bit, _)| mask | 1 << bit),
            ),
        ] {
            self.write(register, value);
        }
    }

    fn read(&self, register: usize) -> u32 {
        // Acquire: what was written before it is seen.
        self.port.arena.register(register).load(Ordering::Acquire)
    }

    fn write(&self, register: usize, value: u32) {
        // Release: whoever sees it sees what was written before.
        self.port
            .arena
            .register(register)
            .store(value, Ordering::Release);
    }

    /// Forgets everything, keys included, and begins with empty rings.
    fn reset(&mut self, number: u32) {
        if let State::Stuck {
            ignores: left @ 1..,
        } = self.state
        {
            self.state = State::Stuck { ignores: left - 1 };
            self.resets = number;
            return;
        }
        self.agenda.clear();
        self.timing.reset();
        self.coalescer.clear();
        self.keys.clear();
        wipe_dead_stack();
        (self.fetched, self.completed) = (0, 0);
        self.resets = number;
        self.state = State::Working;
        self.write(Register::SUBMIT_HEAD, 0);
        self.write(Register::COMPLETE_TAIL, 0);
        self.write(Register::STATUS, READY);
        self.write(Register::RESET_DONE, number);
    }

    /// Nonsense in the rings: it stands still and says so.
    fn halt(&mut self) {
        self.state = State::Stuck { ignores: 0 };
        self.write(Register::STATUS, BROKEN);
    }

    /// Takes what is in the submission ring.
    fn fetch_all(&mut self, now_ns: u64) {
        let tail = self.read(Register::SUBMIT_TAIL);
        if tail.wrapping_sub(self.fetched) > self.port.arena.layout().ring {
            return self.halt();
        }
        while self.fetched != tail && self.state == State::Working {
            // A driver has a request a slot at most; one that has more would have us hold
            // whatever it likes. An interrupt or two stand on the agenda beside them.
            if self.agenda.len() > 2 * usize::from(self.port.arena.layout().slots()) {
                return self.halt();
            }
            match self.fetch(tail) {
                Some(work) => self.begin(now_ns, work),
                None => return self.halt(),
            }
            self.write(Register::SUBMIT_HEAD, self.fetched);
        }
    }

    /// Begins a request: reads its input, works out the result, and puts its end on the agenda.
    fn begin(&mut self, now_ns: u64, mut work: Box<Work>) {
        let direction = match work.operation.opcode {
            Opcode::Run(direction) => direction,
            opcode => {
                work.completion.status = match opcode {
                    Opcode::LoadKey => self.load_key(&work.operation),
                    _ => match self.keys.remove(&work.operation.session) {
                        Some(_) => DONE,
                        None => NO_SESSION,
                    },
                };
                wipe_dead_stack();
                let done = now_ns + self.settings.link.latency_ns as u64;
                return self.plan(done, Event::Finish(work));
            }
        };
        let fault = self.controls.next();
        match fault.map(|fault| fault.kind) {
            Some(FaultKind::Hang) => {
                self.state = State::Stuck { ignores: 0 };
                return;
            }
            Some(FaultKind::Lost) => return,
            Some(FaultKind::SpuriousInterrupt) => self.plan(now_ns, Event::Interrupt),
            Some(FaultKind::Reset) => {
                self.agenda.clear();
                self.keys.clear();
                self.state = State::Stuck { ignores: 0 };
                return self.write(Register::STATUS, 0);
            }
            Some(FaultKind::Gone) => {
                self.agenda.clear();
                self.keys.clear();
                self.state = State::Gone;
                // As a bus reads where nobody answers.
                return self.write(Register::STATUS, u32::MAX);
            }
            kind => work.fault = kind,
        }
        let mut load = timing::Work {
            direction,
            bytes: u64::from(work.operation.len) + u64::from(work.operation.aad_len),
            written: total(&work.outputs),
            descriptors: work.descriptors(),
        };
        match self.compute(direction, &mut work) {
            Ok(()) => work.completion.written = load.written,
            Err(status) => {
                work.completion.status = status;
                if status != BAD_TAG {
                    // It was not worked on, whatever lengths it has.
                    (load.bytes, load.written) = (0, 0);
                }
                work.writes_tag = false;
                wipe(&mut work.data);
                work.data.clear();
            }
        }
        let done = self.timing.submit(now_ns, load);
        match fault {
            Some(late) if late.kind == FaultKind::LateDma => {
                self.state = State::Stuck { ignores: 1 };
                self.plan(now_ns + late.delay_ns, Event::Finish(work));
            }
            _ => self.plan(done, Event::Finish(work)),
        }
    }

    fn plan(&mut self, at_ns: u64, event: Event) {
        self.events += 1;
        self.agenda.insert((at_ns, self.events), event);
    }
}

impl Device for Model {
    fn doorbell(&mut self, now_ns: u64) {
        if self.state == State::Gone {
            return;
        }
        let reset = self.read(Register::RESET);
        if reset != self.resets {
            self.reset(reset);
        }
        if self.state == State::Working {
            self.fetch_all(now_ns);
        }
    }

    fn next_event(&self) -> Option<u64> {
        let first = self.agenda.first_key_value().map(|((at, _), _)| *at);
        match (first, self.coalescer.due()) {
            (Some(event), Some(due)) => Some(event.min(due)),
            (event, due) => event.or(due),
        }
    }

    fn advance(&mut self, now_ns: u64) -> bool {
        let mut interrupt = false;
        while let Some(at) = self.next_event().filter(|&at| at <= now_ns) {
            if self.coalescer.due() == Some(at) {
                self.coalescer.clear();
                // Against the driver's: it wants interrupts, then looks at the ring.
                fence(Ordering::SeqCst);
                if self.read(Register::INTERRUPTS) != 0 {
                    let latency = self.settings.interrupt.latency_ns as u64;
                    self.plan(at + latency, Event::Interrupt);
                }
                continue;
            }
            match self.agenda.pop_first() {
                Some((_, Event::Finish(work))) => self.finish(at, work),
                Some((_, Event::Interrupt)) => interrupt = true,
                None => break,
            }
        }
        interrupt
    }
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Model")
            .field("title", &self.settings.title)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}
