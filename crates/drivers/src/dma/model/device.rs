//! The device itself: fetches, checks, computes through the software kernels, and writes
//! back when the timing says so.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use cipherlane::{Algorithm, Direction, Keys, Kind, Request, Status, Transform};
use zeroize::{Zeroize, Zeroizing};

use super::behaviour::FaultKind;
use super::controls::Controls;
use super::interrupt::Coalescer;
use super::settings::Settings;
use super::timing::{Timing, Work};
use crate::dma::transport::wire::{
    ALGORITHMS, BAD_TAG, BROKEN, Completion, DMA_FAULT, DONE, Descriptor, ENGINE_ERROR, HEADER,
    MAGIC, MORE, NO_SESSION, OPERATION, Opcode, Operation, READY, REFUSED, Register, SHORT_AAD,
    TAG, WRITE, algorithm_number,
};
use crate::dma::transport::{Device, DmaFault, Port};

/// Bytes of additional data that the device takes at most.
const MOST_AAD: u32 = 1 << 20;
/// Bytes of a key that it takes at most.
const MOST_KEY: u32 = 4096;

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
    state: State,
}

/// Whether it works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Working,
    /// Takes nothing until a reset; ignores so many of them.
    Stuck {
        ignores: u32,
    },
    /// For ever.
    Gone,
}

/// A key in the device's memory.
struct LoadedKey {
    algorithm: &'static Algorithm,
    kernel: Box<dyn Transform>,
}

/// Something on the agenda.
enum Event {
    Finish(Box<Finish>),
    Interrupt,
}

/// A request that will be done.
struct Finish {
    completion: Completion,
    output: Zeroizing<Vec<u8>>,
    pieces: Vec<Descriptor>,
    tag: Option<(u64, Vec<u8>)>,
    fault: Option<FaultKind>,
}

/// A request as fetched: the operation and the pieces.
struct Fetched {
    slot: u16,
    operation: Operation,
    inputs: Vec<Descriptor>,
    outputs: Vec<Descriptor>,
    descriptors: u32,
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
        model.write(Register::STATUS, READY);
        model
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
            match self.fetch(tail) {
                Some(fetched) => self.begin(now_ns, fetched),
                None => return self.halt(),
            }
            self.write(Register::SUBMIT_HEAD, self.fetched);
        }
    }

    /// One chain; `None` if it makes no sense.
    fn fetch(&mut self, tail: u32) -> Option<Fetched> {
        let arena = &self.port.arena;
        let layout = *arena.layout();
        let mut chain = Vec::new();
        let mut next = self.fetched;
        loop {
            if next == tail {
                return None;
            }
            let descriptor = Descriptor::load(arena.entry(layout.descriptor(next)));
            next = next.wrapping_add(1);
            chain.push(descriptor);
            if descriptor.flags & MORE == 0 {
                break;
            }
        }
        let head = chain[0];
        let slot_is_right = head.slot < layout.slots()
            && head.address == layout.slot(head.slot) as u64
            && chain.iter().all(|d| d.slot == head.slot);
        let head_is_right = head.flags & (HEADER | WRITE) == HEADER && head.len == OPERATION as u32;
        let pieces = &chain[1..];
        let in_order = pieces.is_sorted_by_key(|d| d.flags & WRITE)
            && pieces.iter().all(|d| d.flags & HEADER == 0);
        if !slot_is_right || !head_is_right || !in_order {
            return None;
        }
        let operation = Operation::load(arena.operation(layout.slot(head.slot)))?;
        self.fetched = next;
        let (inputs, outputs) = pieces.iter().partition(|d| d.flags & WRITE == 0);
        Some(Fetched {
            slot: head.slot,
            operation,
            inputs,
            outputs,
            descriptors: chain.len() as u32,
        })
    }

    /// Begins a request: reads its input, works out the result, and puts its end on the agenda.
    fn begin(&mut self, now_ns: u64, fetched: Fetched) {
        let operation = &fetched.operation;
        let latency = self.settings.link.latency_ns as u64;
        let mut finish = Finish {
            completion: Completion {
                slot: fetched.slot,
                turn: operation.turn,
                status: DONE,
                written: 0,
            },
            output: Zeroizing::default(),
            pieces: Vec::new(),
            tag: None,
            fault: None,
        };
        let direction = match operation.opcode {
            Opcode::LoadKey => {
                finish.completion.status = self.load_key(operation);
                wipe_dead_stack();
                return self.plan(now_ns + latency, Event::Finish(Box::new(finish)));
            }
            Opcode::WipeKey => {
                if self.keys.remove(&operation.session).is_none() {
                    finish.completion.status = NO_SESSION;
                }
                wipe_dead_stack();
                return self.plan(now_ns + latency, Event::Finish(Box::new(finish)));
            }
            Opcode::Run(direction) => direction,
        };
        let fault = self.controls.next();
        match fault.map(|f| f.kind) {
            Some(FaultKind::Hang) => {
                self.state = State::Stuck { ignores: 0 };
                return;
            }
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
            _ => {}
        }
        let work = Work {
            direction,
            bytes: u64::from(operation.len) + u64::from(operation.aad_len),
            written: total(&fetched.outputs),
            descriptors: fetched.descriptors,
        };
        finish.fault = fault.map(|f| f.kind);
        match self.compute(direction, &fetched) {
            Ok((output, tag)) => {
                finish.completion.written = work.written;
                finish.tag = tag.map(|tag| (operation.tag, tag));
                finish.output = output;
                finish.pieces = fetched.outputs;
            }
            Err(status) => finish.completion.status = status,
        }
        let done = self.timing.submit(now_ns, work);
        match fault {
            Some(late) if late.kind == FaultKind::LateDma => {
                self.state = State::Stuck { ignores: 1 };
                self.plan(now_ns + late.delay_ns, Event::Finish(Box::new(finish)));
            }
            _ => self.plan(done, Event::Finish(Box::new(finish))),
        }
    }

    fn load_key(&mut self, operation: &Operation) -> u32 {
        let name = ALGORITHMS.get(usize::from(operation.algorithm));
        let Some(algorithm) = name.and_then(|name| Algorithm::find(name).ok()) else {
            return REFUSED;
        };
        if operation.aad_len > MOST_KEY
            || self.settings.offers(algorithm).is_err()
            || !self.keys.contains_key(&operation.session)
                && self.keys.len() >= self.settings.rules.sessions as usize
        {
            return REFUSED;
        }
        let mut key = Zeroizing::new(vec![0; operation.aad_len as usize]);
        if self.port.iommu.read(operation.aad, &mut key) == Err(DmaFault) {
            return DMA_FAULT;
        }
        let taken = match algorithm.keys {
            Keys::OneOf(lengths) => lengths.iter().any(|&(bytes, _)| bytes == key.len()),
            Keys::Any { .. } => !key.is_empty(),
        };
        if !taken {
            return REFUSED;
        }
        let kernel = (algorithm.kernel)(&key);
        self.keys
            .insert(operation.session, LoadedKey { algorithm, kernel });
        DONE
    }

    /// Output and tag, or the status that says why not.
    #[expect(clippy::type_complexity, reason = "read in one place")]
    fn compute(
        &self,
        direction: Direction,
        fetched: &Fetched,
    ) -> Result<(Zeroizing<Vec<u8>>, Option<Vec<u8>>), u32> {
        let operation = &fetched.operation;
        let key = self.keys.get(&operation.session).ok_or(NO_SESSION)?;
        self.check(key.algorithm, fetched)?;
        if !self.controls.computes() {
            return Ok(Default::default());
        }
        let fault = |DmaFault| DMA_FAULT;
        let iommu = &self.port.iommu;
        let mut data = Zeroizing::new(vec![0; operation.len as usize]);
        let mut rest = data.as_mut_slice();
        for piece in &fetched.inputs {
            let (head, tail) = rest.split_at_mut(piece.len as usize);
            iommu.read(piece.address, head).map_err(fault)?;
            rest = tail;
        }
        let mut aad = vec![0; operation.aad_len as usize];
        iommu.read(operation.aad, &mut aad).map_err(fault)?;
        let mut tag = vec![0; usize::from(operation.tag_len)];
        if direction == Direction::Decrypt {
            iommu.read(operation.tag, &mut tag).map_err(fault)?;
        }
        let request = match key.algorithm.kind {
            Kind::Mac => Request::mac(&data),
            _ => Request::in_place(&mut data),
        };
        let iv = &operation.iv[..usize::from(operation.iv_len)];
        let mut requests = [request.iv(iv).aad(&aad).tag(&mut tag)];
        key.kernel.run(direction, &mut requests);
        let status = requests[0].status();
        match status {
            Status::Done => {}
            Status::BadTag => return Err(BAD_TAG),
            _ => return Err(ENGINE_ERROR),
        }
        if fetched.outputs.is_empty() {
            data.zeroize();
            data.clear();
        }
        let writes_tag = direction == Direction::Encrypt && operation.tag_len > 0;
        Ok((data, writes_tag.then_some(tag)))
    }

    /// Whether a request keeps the rules of the device and of the algorithm.
    fn check(&self, algorithm: &Algorithm, fetched: &Fetched) -> Result<(), u32> {
        let (operation, rules) = (&fetched.operation, &self.settings.rules);
        let len = operation.len as usize;
        let aad = operation.aad_len as usize;
        let output = match algorithm.kind {
            Kind::Mac => 0,
            _ => u64::from(operation.len),
        };
        let piece_is_right = |pieces: &[Descriptor], i: usize| {
            let piece = pieces[i];
            let last = i + 1 == pieces.len();
            piece.len > 0
                && piece.len <= rules.max_segment
                && piece.address.is_multiple_of(rules.alignment.into())
                && (last || piece.len.is_multiple_of(rules.block))
        };
        let (inputs, outputs) = (&fetched.inputs, &fetched.outputs);
        let right = operation.len <= rules.max_request
            && operation.aad_len <= MOST_AAD
            && usize::from(operation.iv_len) == algorithm.iv_len
            && len.is_multiple_of(algorithm.block)
            && len >= algorithm.least
            && (match algorithm.tags {
                [] => operation.tag_len == 0,
                tags => tags.contains(&usize::from(operation.tag_len)),
            })
            && usize::from(operation.tag_len) <= TAG
            && algorithm.aad.takes(aad)
            && total(inputs) == u64::from(operation.len)
            && total(outputs) == output
            && (0..inputs.len()).all(|i| piece_is_right(inputs, i))
            && (0..outputs.len()).all(|i| piece_is_right(outputs, i));
        if right { Ok(()) } else { Err(REFUSED) }
    }

    fn plan(&mut self, at_ns: u64, event: Event) {
        self.events += 1;
        self.agenda.insert((at_ns, self.events), event);
    }

    /// Writes a result back and reports it.
    fn finish(&mut self, at_ns: u64, mut finish: Finish) {
        let half = finish.output.len() / 2;
        let mut completion = finish.completion;
        let whole = match finish.fault {
            Some(FaultKind::WrongResult) => {
                let tag = finish.tag.as_mut().map(|(_, tag)| tag.as_mut_slice());
                let wrong = match finish.output.is_empty() {
                    true => tag.unwrap_or_default(),
                    false => finish.output.as_mut_slice(),
                };
                if let Some(byte) = wrong.get_mut(half / 2) {
                    *byte ^= 0x04;
                }
                true
            }
            Some(FaultKind::ShortWrite) => {
                completion.written = half as u64;
                false
            }
            Some(FaultKind::HalfWritten) => {
                (completion.written, completion.status) = (half as u64, ENGINE_ERROR);
                false
            }
            Some(FaultKind::Refused) => {
                (completion.written, completion.status) = (0, ENGINE_ERROR);
                finish.output.clear();
                true
            }
            _ => true,
        };
        let bytes = if whole { finish.output.len() } else { half };
        let mut rest = &finish.output[..bytes];
        for piece in &finish.pieces {
            let (head, tail) = rest.split_at(rest.len().min(piece.len as usize));
            if !head.is_empty() && self.port.iommu.write(piece.address, head).is_err() {
                completion.status = DMA_FAULT;
            }
            rest = tail;
        }
        if let Some((address, tag)) = &finish.tag
            && self.port.iommu.write(*address, tag).is_err()
        {
            completion.status = DMA_FAULT;
        }
        if finish.fault == Some(FaultKind::LateDma) {
            // Nobody listens any more.
            return;
        }
        let slots = self.port.arena.layout().slots();
        match finish.fault {
            Some(FaultKind::GarbageCompletion) => self.complete(Completion {
                slot: slots + 1 + completion.slot,
                ..completion
            }),
            Some(FaultKind::GarbageIndex) => {
                self.completed = self.completed.wrapping_add(0x5a5a_5a5a);
                self.write(Register::COMPLETE_TAIL, self.completed);
            }
            Some(FaultKind::UnknownCompletion) => {
                self.complete(Completion {
                    slot: (completion.slot + slots / 2) % slots,
                    turn: completion.turn.wrapping_add(77),
                    ..completion
                });
                self.complete(completion);
            }
            Some(FaultKind::DoubleCompletion) => {
                self.complete(completion);
                self.complete(completion);
            }
            _ => self.complete(completion),
        }
        if finish.fault != Some(FaultKind::LostInterrupt) {
            self.coalescer.complete(at_ns);
        }
    }

    /// Puts an entry into the completion ring.
    fn complete(&mut self, completion: Completion) {
        let layout = *self.port.arena.layout();
        let seen = self.read(Register::COMPLETE_HEAD);
        if self.completed.wrapping_sub(seen) >= layout.ring {
            return self.halt();
        }
        completion.store(self.port.arena.entry(layout.completion(self.completed)));
        self.completed = self.completed.wrapping_add(1);
        self.write(Register::COMPLETE_TAIL, self.completed);
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
                Some((_, Event::Finish(finish))) => self.finish(at, *finish),
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

fn total(pieces: &[Descriptor]) -> u64 {
    pieces.iter().map(|piece| u64::from(piece.len)).sum()
}

/// Expanding a key, and dropping one, leaves copies on the stack below. They are overwritten.
#[inline(never)]
fn wipe_dead_stack() {
    let mut dead = [std::mem::MaybeUninit::<u8>::uninit(); 32 << 10];
    dead.zeroize();
}

const _: () = assert!(OPERATION + SHORT_AAD + TAG <= crate::dma::transport::wire::SLOT);
