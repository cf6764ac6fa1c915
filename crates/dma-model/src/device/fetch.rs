//! From the submission ring to a request in the device.

use super::engine::wipe;
use super::{FaultKind, Model};
use crate::transport::wire::{
    Completion, DONE, Descriptor, HEADER, MORE, OPERATION, Operation, WRITE,
};

/// A request in the device, from fetch to completion. Its memory is used again.
pub(super) struct Work {
    pub(super) operation: Operation,
    pub(super) completion: Completion,
    pub(super) inputs: Vec<Descriptor>,
    pub(super) outputs: Vec<Descriptor>,
    pub(super) data: Vec<u8>,
    pub(super) aad: Vec<u8>,
    pub(super) tag: Vec<u8>,
    /// Whether the tag is for the host.
    pub(super) writes_tag: bool,
    pub(super) fault: Option<FaultKind>,
}

impl Work {
    /// Descriptors of its chain.
    pub(super) fn descriptors(&self) -> u32 {
        (1 + self.inputs.len() + self.outputs.len()) as u32
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        wipe(&mut self.data);
    }
}

impl Model {
    /// One chain; `None` if it makes no sense.
    pub(super) fn fetch(&mut self, tail: u32) -> Option<Box<Work>> {
        let arena = &self.port.arena;
        let layout = *arena.layout();
        let mut next = self.fetched;
        let mut take = || {
            let descriptor = Descriptor::load(arena.entry(layout.descriptor(next)));
            next = next.wrapping_add(1);
            (next.wrapping_sub(1) != tail).then_some(descriptor)
        };
        let head = take()?;
        let right = head.slot < layout.slots()
            && head.address == layout.slot(head.slot) as u64
            && head.flags & (HEADER | WRITE) == HEADER
            && head.len == OPERATION as u32;
        if !right {
            return None;
        }
        let operation = Operation::load(arena.operation(layout.slot(head.slot)))?;
        let completion = Completion {
            slot: head.slot,
            turn: operation.turn,
            status: DONE,
            written: 0,
        };
        let mut work = match self.spare.pop() {
            Some(spare) => spare,
            None => Box::new(Work {
                operation,
                completion,
                inputs: Vec::new(),
                outputs: Vec::new(),
                data: Vec::new(),
                aad: Vec::new(),
                tag: Vec::new(),
                writes_tag: false,
                fault: None,
            }),
        };
        (work.operation, work.completion) = (operation, completion);
        let mut last = head;
        while last.flags & MORE != 0 {
            last = take()?;
            let pieces = match last.flags & WRITE {
                0 => &mut work.inputs,
                _ => &mut work.outputs,
            };
            pieces.push(last);
            let misplaced = last.flags & WRITE == 0 && !work.outputs.is_empty();
            if misplaced || last.flags & HEADER != 0 || last.slot != head.slot {
                return None;
            }
        }
        self.fetched = next;
        Some(work)
    }
}
