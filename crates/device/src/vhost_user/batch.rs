//! What was taken from a ring at once: copied, given to sessions in groups, completed in order.

use std::ops::Range;

use cipherlane_core::{Request, Status};
use virtio_queue::{Error as RingError, Queue, QueueOwnedT, QueueT};
use vm_memory::{Bytes, GuestAddress, GuestMemoryMmap};
use zeroize::Zeroize;

use super::chain::{self, Chain, Descriptors, Place};
use super::counters::Counters;
use super::operation::{HEADER, MAX_LEN, Operation, Outcome, Refusal};
use super::sessions::{Entry, Sessions};

/// Bytes of payload of a batch at most, one request more aside.
const BYTES: usize = MAX_LEN;

/// Descriptors of a batch at most, one request more aside: a guest can make many more than it
/// has memory, and the thread must come back to its other work.
const DESCRIPTORS: usize = 16 << 10;

/// A batch; its memory is reused for the next one.
#[derive(Default)]
pub(crate) struct Batch {
    chain: Chain,
    taken: Vec<Taken>,
    /// The payloads of requests that are served, behind one another.
    data: Vec<u8>,
    /// Bytes of them.
    used: usize,
    /// Where results go.
    places: Vec<Place>,
    descriptors: usize,
}

/// A request.
struct Taken {
    /// Its first descriptor.
    head: u16,
    /// Where its status goes; `None` where it has no place, and only its end can be told.
    status: Option<GuestAddress>,
    /// What it asks for, or why that is not done.
    operation: Result<Operation, Refusal>,
    iv: [u8; 16],
    data: Range<usize>,
    places: Range<usize>,
}

impl Batch {
    /// Takes what is available, as far as a batch goes; how many requests. An error means that
    /// the ring cannot be served any more.
    pub(crate) fn take(
        &mut self,
        queue: &mut Queue,
        memory: &GuestMemoryMmap,
        sessions: &Sessions,
    ) -> Result<usize, RingError> {
        self.taken.clear();
        self.places.clear();
        (self.used, self.descriptors) = (0, 0);
        let mut available = queue.iter(memory)?;
        while self.used < BYTES && self.descriptors < DESCRIPTORS {
            let Some(mut descriptors) = available.next() else {
                break;
            };
            let mut taken = self.copy(&mut descriptors, memory);
            if let Ok(operation) = taken.operation {
                taken.operation = match sessions.find(operation.session) {
                    None => Err(Refusal::Session),
                    Some(entry) if entry.direction != operation.direction => {
                        Err(Refusal::Direction)
                    }
                    Some(_) => Ok(operation),
                };
            }
            self.taken.push(taken);
        }
        Ok(self.taken.len())
    }

    /// Copies a request out of guest memory.
    fn copy(&mut self, descriptors: &mut Descriptors<'_>, memory: &GuestMemoryMmap) -> Taken {
        let is_sound = self.chain.copy(descriptors);
        self.descriptors += self.chain.len();
        let mut taken = Taken {
            head: descriptors.head_index(),
            // Of a chain that is not sound the end is not known.
            status: self.chain.last_byte().filter(|_| is_sound),
            operation: Err(Refusal::Malformed),
            iv: [0; 16],
            data: self.used..self.used,
            places: self.places.len()..self.places.len(),
        };
        if is_sound {
            taken.operation = self.copy_payload(&mut taken, memory);
        }
        taken
    }

    fn copy_payload(
        &mut self,
        taken: &mut Taken,
        memory: &GuestMemoryMmap,
    ) -> Result<Operation, Refusal> {
        let mut reader = self.chain.reader(memory);
        let mut header = [0; HEADER];
        if !reader.read(&mut header) {
            return Err(Refusal::Malformed);
        }
        let operation = Operation::read(&header)?;
        let has_room = self.chain.writable() > operation.len as u64;
        if !has_room || !reader.read(&mut taken.iv[..operation.iv_len]) {
            return Err(Refusal::Malformed);
        }
        let end = self.used + operation.len;
        if self.data.len() < end {
            self.data.resize(end, 0);
        }
        if !reader.read(&mut self.data[self.used..end]) {
            return Err(Refusal::Malformed);
        }
        taken.data = self.used..end;
        self.used = end;
        let before = self.places.len();
        self.chain.places(operation.len, &mut self.places);
        taken.places = before..self.places.len();
        Ok(operation)
    }

    /// Has sessions work on the payloads: one call per key and direction.
    pub(crate) fn run(&mut self, sessions: &Sessions, counters: &Counters) {
        // Payloads of requests that are refused late stay between the others.
        let mut rest = &mut self.data[..self.used];
        let mut work = Vec::with_capacity(self.taken.len());
        for (index, taken) in self.taken.iter().enumerate() {
            let (data, later) = rest.split_at_mut(taken.data.len());
            rest = later;
            if let Ok(operation) = taken.operation {
                work.push((operation.session, index, data));
            }
        }
        // A session has one direction. The order within a group stays.
        work.sort_by_key(|(session, ..)| *session);
        for group in work.chunk_by_mut(|one, other| one.0 == other.0) {
            let number = group[0].0;
            let Some(entry) = sessions.find(number) else {
                continue;
            };
            run_group(entry, group, &mut self.taken);
            counters.group();
        }
    }

    /// Writes results and statuses, and gives the requests back in the order in which they came.
    pub(crate) fn complete(
        &mut self,
        queue: &mut Queue,
        memory: &GuestMemoryMmap,
        counters: &Counters,
    ) -> Result<(), RingError> {
        for taken in &mut self.taken {
            if taken.operation.is_ok() {
                let result = &self.data[taken.data.clone()];
                if !chain::write(memory, &self.places[taken.places.clone()], result) {
                    taken.operation = Err(Refusal::Malformed);
                }
            }
            let (outcome, written) = match taken.operation {
                Ok(operation) => (Outcome::Ok, operation.len as u32 + 1),
                Err(refusal) => (refusal.outcome(), 1),
            };
            // Where it has no place in memory, the guest hears of the end only.
            let is_told = taken
                .status
                .is_some_and(|at| memory.write_obj(outcome as u8, at).is_ok());
            queue.add_used(memory, taken.head, if is_told { written } else { 0 })?;
            match taken.operation {
                Ok(operation) => counters.served(operation.len),
                Err(refusal) => counters.refused(refusal),
            }
        }
        counters.batch(self.taken.len());
        Ok(())
    }
}

/// One call for requests of one session.
fn run_group(entry: &Entry, group: &mut [(u64, usize, &mut [u8])], taken: &mut [Taken]) {
    let mut requests: Vec<Request<'_>> = group
        .iter_mut()
        .map(|(_, index, data)| {
            let Taken { iv, operation, .. } = &taken[*index];
            let iv_len = operation.map_or(0, |operation| operation.iv_len);
            Request::in_place(data).iv(&iv[..iv_len])
        })
        .collect();
    // Each request has its own status.
    let _ = entry.session.process(entry.direction, &mut requests);
    let statuses: Vec<Status> = requests.iter().map(Request::status).collect();
    for ((_, index, _), status) in group.iter().zip(statuses) {
        if status != Status::Done {
            taken[*index].operation = Err(Refusal::Failed);
        }
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        self.data.zeroize();
    }
}
