//! What was taken from a ring at once: copied, given to sessions in groups, completed in order.

use cipherlane_core::{Request, Status};
use virtio_queue::{Error as RingError, Queue, QueueOwnedT, QueueT};
use vm_memory::{Bytes, GuestMemoryMmap};
use zeroize::Zeroize;

use super::chain::Writer;
use super::copy::{Asked, Copies, Job, Taken};
use super::counters::{Counters, add};
use super::operation::{MAX_LEN, Outcome, Refusal};
use super::private::{self, HELLO};
use super::sessions::{Entry, Sessions};

/// Bytes of payload of a batch at most, one request more aside.
const BYTES: usize = MAX_LEN;

/// Descriptors of a batch at most, one request more aside: a guest can make many more than it
/// has memory, and the thread must come back to its other work.
const DESCRIPTORS: usize = 16 << 10;

/// Requests of a batch at most, one chain more aside: those without a payload cost time and memory
/// too.
const JOBS: usize = 4096;

/// A batch; its memory is reused for the next one.
#[derive(Default)]
pub(crate) struct Batch {
    copies: Copies,
}

impl Batch {
    /// Takes what is available, as far as a batch goes; how many chains. An error means that
    /// the ring cannot be served any more.
    pub(crate) fn take(
        &mut self,
        queue: &mut Queue,
        memory: &GuestMemoryMmap,
        sessions: &mut Sessions,
        counters: &Counters,
    ) -> Result<usize, RingError> {
        let copies = &mut self.copies;
        copies.clear();
        let mut available = queue.iter(memory)?;
        while copies.used < BYTES && copies.descriptors < DESCRIPTORS && copies.jobs.len() < JOBS {
            let Some(mut descriptors) = available.next() else {
                break;
            };
            let first = copies.jobs.len();
            let mut taken = copies.copy(&mut descriptors, memory);
            copies.check(first, sessions);
            // At once: requests behind it use it.
            if let Ok(Asked::Open(open, key)) = &taken.asked {
                let opened = sessions.open_chosen(open, &key[..open.key_len]);
                let (counter, asked) = match opened {
                    Ok(()) => (&counters.sessions_opened, Ok(Asked::Opened)),
                    Err(_) => (&counters.sessions_refused, Err(Refusal::Failed)),
                };
                add(counter, 1);
                taken.asked = asked;
            }
            // What closes sessions that requests before it use is the last of its batch.
            let is_last = matches!(taken.asked, Ok(Asked::Hello { .. } | Asked::Close(_)));
            copies.taken.push(taken);
            if is_last {
                break;
            }
        }
        Ok(copies.taken.len())
    }

    /// Has sessions work on the payloads: one call per key and direction.
    pub(crate) fn run(&mut self, sessions: &mut Sessions, counters: &Counters) {
        let Copies {
            taken, jobs, data, ..
        } = &mut self.copies;
        // Payloads of requests that are refused late stay between the others.
        let mut rest = &mut data[..];
        let mut work = Vec::with_capacity(jobs.len());
        for (index, job) in jobs.iter().enumerate() {
            let (data, later) = rest.split_at_mut(job.data.len());
            rest = later;
            if job.end.is_ok() {
                work.push(((job.session, job.direction as u8), index, data));
            }
        }
        // The order within a group stays.
        work.sort_by_key(|(group, ..)| *group);
        for group in work.chunk_by_mut(|one, other| one.0 == other.0) {
            let first = &jobs[group[0].1];
            if let Some(entry) = sessions.find(first.session) {
                run_group(entry, group, jobs);
                counters.group();
            }
        }
        let closed = match taken.last().map(|taken| &taken.asked) {
            Some(Ok(Asked::Hello { .. })) => sessions.close_all_chosen(),
            Some(Ok(Asked::Close(number))) => sessions.close_chosen(*number).into(),
            _ => 0,
        };
        add(&counters.sessions_closed, closed as u64);
    }

    /// What a greeting in it says of interrupts; `None` without a greeting.
    pub(crate) fn says_when(&self) -> Option<bool> {
        match self.copies.taken.last()?.asked {
            Ok(Asked::Hello { says_when }) => Some(says_when),
            _ => None,
        }
    }

    /// Writes results and statuses, and gives the chains back in the order in which they came.
    pub(crate) fn complete(
        &mut self,
        queue: &mut Queue,
        memory: &GuestMemoryMmap,
        sessions: &Sessions,
        counters: &Counters,
    ) -> Result<(), RingError> {
        for taken in &self.copies.taken {
            let ended = self.copies.write(taken, memory, sessions, counters);
            let (outcome, written) = match ended {
                Ok(written) => (Outcome::Ok, written as u32 + 1),
                Err(refusal) => {
                    counters.refused(refusal);
                    (refusal.outcome(), 1)
                }
            };
            // Where it has no place in memory, the guest hears of the end only.
            let is_told = taken
                .status
                .is_some_and(|at| memory.write_obj(outcome as u8, at).is_ok());
            queue.add_used(memory, taken.head, if is_told { written } else { 0 })?;
        }
        counters.batch(self.copies.taken.len());
        Ok(())
    }
}

impl Copies {
    /// Writes what a chain asked for; how many bytes.
    fn write(
        &self,
        taken: &Taken,
        memory: &GuestMemoryMmap,
        sessions: &Sessions,
        counters: &Counters,
    ) -> Result<usize, Refusal> {
        let mut writer = Writer::new(memory, &self.places[taken.places.clone()]);
        let must = |is_written: bool, len: usize| match is_written {
            true => Ok(len),
            false => Err(Refusal::Malformed),
        };
        match taken.asked.as_ref().map_err(|refusal| *refusal)? {
            Asked::Opened | Asked::Close(_) | Asked::Open(..) => Ok(0),
            Asked::Hello { .. } => must(writer.write(&private::hello(sessions.limit())), HELLO),
            Asked::Request(index) => {
                let job = &self.jobs[*index];
                job.end?;
                must(writer.write(&self.data[job.written()]), job.len)?;
                counters.served(job.len);
                Ok(job.len)
            }
            Asked::Run(jobs) => {
                let jobs = &self.jobs[jobs.clone()];
                let mut ends = Vec::with_capacity(jobs.len());
                let mut written = 0;
                for job in jobs {
                    let place = job.written();
                    written += place.len();
                    let end = match job.end {
                        Ok(()) => must(writer.write(&self.data[place]), 0).map(|_| ()),
                        Err(refusal) => {
                            writer.skip(place.len());
                            Err(refusal)
                        }
                    };
                    match end {
                        Ok(()) => counters.served(job.len),
                        Err(refusal) => counters.refused(refusal),
                    }
                    ends.push(end.map_or_else(Refusal::outcome, |()| Outcome::Ok) as u8);
                }
                must(writer.write(&ends), written + ends.len())
            }
        }
    }
}

/// One call for requests of one session in one direction.
fn run_group<G>(entry: &Entry, group: &mut [(G, usize, &mut [u8])], jobs: &mut [Job]) {
    let direction = jobs[group[0].1].direction;
    let mut requests: Vec<Request<'_>> = group
        .iter_mut()
        .map(|(_, index, data)| {
            let job = &jobs[*index];
            let (aad, rest) = data.split_at_mut(job.aad_len);
            let (payload, tag) = rest.split_at_mut(job.len);
            let request = Request::in_place(payload).iv(&job.iv[..job.iv_len]);
            request.aad(aad).tag(tag)
        })
        .collect();
    // Each request has its own status.
    let _ = entry.session.process(direction, &mut requests);
    let statuses: Vec<Status> = requests.iter().map(Request::status).collect();
    for ((_, index, _), status) in group.iter().zip(statuses) {
        jobs[*index].end = match status {
            Status::Done => Ok(()),
            Status::BadTag => Err(Refusal::Tag),
            _ => Err(Refusal::Failed),
        };
    }
}

impl Drop for Copies {
    fn drop(&mut self) {
        self.data.zeroize();
    }
}
