//! The end of a request: results written back, the completion reported, and what goes wrong
//! with that.

use std::sync::atomic::{AtomicU64, Ordering};

use super::engine::wipe;
use super::fetch::Work;
use super::{FaultKind, Model};
use crate::transport::wire::{Completion, DMA_FAULT, DONE, ENGINE_ERROR, Opcode, Register};

impl Model {
    /// Writes a result back and reports it.
    pub(super) fn finish(&mut self, at_ns: u64, mut work: Box<Work>) {
        self.finish_with(at_ns, &mut work);
        wipe(&mut work.data);
        work.inputs.clear();
        work.outputs.clear();
        work.data.clear();
        work.aad.clear();
        work.tag.clear();
        (work.writes_tag, work.fault) = (false, None);
        self.spare.push(work);
    }

    fn finish_with(&mut self, at_ns: u64, work: &mut Work) {
        let (all, half) = (work.data.len(), work.data.len() / 2);
        let mut completion = work.completion;
        let mut bytes = all;
        match work.fault {
            Some(FaultKind::WrongResult) => {
                let wrong = match work.data.is_empty() {
                    true => &mut work.tag,
                    false => &mut work.data,
                };
                if let Some(byte) = wrong.get_mut(half / 2) {
                    *byte ^= 0x04;
                }
            }
            Some(FaultKind::ShortWrite) => (bytes, completion.written) = (half, half as u64),
            Some(FaultKind::HalfWritten) => {
                (bytes, completion.written) = (half, half as u64);
                completion.status = ENGINE_ERROR;
            }
            Some(FaultKind::Refused) => {
                (bytes, completion.written) = (0, 0);
                completion.status = ENGINE_ERROR;
            }
            _ => {}
        }
        let mut rest = &work.data[..bytes];
        for piece in &work.outputs {
            let (head, tail) = rest.split_at(rest.len().min(piece.len as usize));
            if !head.is_empty() && self.port.iommu.write(piece.address, head).is_err() {
                completion.status = DMA_FAULT;
            }
            rest = tail;
        }
        let tag_at = work.operation.tag;
        if work.writes_tag && self.port.iommu.write(tag_at, &work.tag).is_err() {
            completion.status = DMA_FAULT;
        }
        if work.fault == Some(FaultKind::LateDma) {
            // Nobody listens any more.
            return;
        }
        self.count(work.operation.opcode, completion.status, all);
        let slots = self.port.arena.layout().slots();
        match work.fault {
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
        if work.fault != Some(FaultKind::LostInterrupt) {
            self.coalescer.complete(at_ns);
        }
    }

    fn count(&self, opcode: Opcode, status: u32, bytes: usize) {
        let done = self.controls.done();
        let add = |counter: &AtomicU64, number| counter.fetch_add(number, Ordering::Relaxed);
        match (opcode, status) {
            (Opcode::Run(direction), DONE) => {
                add(&done.requests[direction as usize], 1);
                add(&done.bytes[direction as usize], bytes as u64);
            }
            (Opcode::LoadKey, DONE) => {
                add(&done.keys, 1);
            }
            (Opcode::WipeKey, DONE) => {}
            _ => {
                add(&done.failed, 1);
            }
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
