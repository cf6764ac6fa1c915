//! A chain of a guest: copied once into memory of this process, and understood there.

use std::ops::Range;

use cipherlane_core::Direction;
use vm_memory::{GuestAddress, GuestMemoryMmap};
use zeroize::Zeroizing;

use super::chain::{Chain, Descriptors, Place, Reader};
use super::operation::{HEADER, MAX_LEN, Operation, Refusal};
use super::private::{self, Ask, ENTRY, Entry, HELLO, MAX_KEY, Open};
use super::sessions::{Name, Sessions};

/// What was copied of chains; its memory is reused.
#[derive(Default)]
pub(crate) struct Copies {
    chain: Chain,
    pub(crate) taken: Vec<Taken>,
    pub(crate) jobs: Vec<Job>,
    /// What the jobs work on, one behind the other.
    pub(crate) data: Vec<u8>,
    /// Bytes of it.
    pub(crate) used: usize,
    /// Where results go.
    pub(crate) places: Vec<Place>,
    pub(crate) descriptors: usize,
}

/// A chain.
pub(crate) struct Taken {
    /// Its first descriptor.
    pub(crate) head: u16,
    /// Where its status goes; `None` where it has no place, and only its end can be told.
    pub(crate) status: Option<GuestAddress>,
    /// What it asks for, or why that is not done.
    pub(crate) asked: Result<Asked, Refusal>,
    pub(crate) places: Range<usize>,
}

/// What a chain asks for.
#[derive(Clone, Debug)]
pub(crate) enum Asked {
    /// A request as virtio has it: a job.
    Request(usize),
    /// Requests of the project's own driver: jobs.
    Run(Range<usize>),
    /// A greeting of that driver, which may say in the ring when it wants an interrupt.
    Hello { says_when: bool },
    /// A session that is to be opened.
    Open(Open, Zeroizing<[u8; MAX_KEY]>),
    /// A session that has been opened.
    Opened,
    /// A session that is to be closed, once the requests before are done.
    Close(u32),
}

/// A request: additional data, payload and tag are behind one another.
pub(crate) struct Job {
    pub(crate) session: Name,
    pub(crate) direction: Direction,
    pub(crate) iv: [u8; 16],
    pub(crate) iv_len: usize,
    pub(crate) aad_len: usize,
    pub(crate) len: usize,
    pub(crate) tag_len: usize,
    pub(crate) data: Range<usize>,
    /// Why it is not done.
    pub(crate) end: Result<(), Refusal>,
}

impl Job {
    /// What is written for it, within its data.
    pub(crate) fn written(&self) -> Range<usize> {
        let begin = self.data.start + self.aad_len;
        match self.direction {
            Direction::Encrypt => begin..begin + self.len + self.tag_len,
            Direction::Decrypt => begin..begin + self.len,
        }
    }
}

impl Copies {
    /// For the next batch.
    pub(crate) fn clear(&mut self) {
        self.taken.clear();
        self.jobs.clear();
        self.places.clear();
        (self.used, self.descriptors) = (0, 0);
    }

    /// Copies a chain out of guest memory.
    pub(crate) fn copy(
        &mut self,
        descriptors: &mut Descriptors<'_>,
        memory: &GuestMemoryMmap,
    ) -> Taken {
        // It is taken out while its readers borrow it.
        let mut chain = std::mem::take(&mut self.chain);
        let is_sound = chain.copy(descriptors);
        self.descriptors += chain.len();
        let (used, jobs, places) = (self.used, self.jobs.len(), self.places.len());
        let mut taken = Taken {
            head: descriptors.head_index(),
            // Of a chain that is not sound the end is not known.
            status: chain.last_byte().filter(|_| is_sound),
            asked: Err(Refusal::Malformed),
            places: places..places,
        };
        if is_sound {
            taken.asked = self.understand(&chain, memory);
        }
        if taken.asked.is_err() {
            (self.used, _) = (used, self.jobs.truncate(jobs));
            self.places.truncate(places);
        }
        taken.places.end = self.places.len();
        self.chain = chain;
        taken
    }

    fn understand(&mut self, chain: &Chain, memory: &GuestMemoryMmap) -> Result<Asked, Refusal> {
        let mut reader = chain.reader(memory);
        let mut header = [0; HEADER];
        read(&mut reader, &mut header)?;
        match private::read(&header) {
            None => self.request(Operation::read(&header)?, &mut reader, chain),
            Some(ask) => match ask? {
                Ask::Hello { says_when } => {
                    self.find_room(chain, HELLO)?;
                    Ok(Asked::Hello { says_when })
                }
                Ask::Open(open) => {
                    let mut key = Zeroizing::new([0; MAX_KEY]);
                    read(&mut reader, &mut key[..open.key_len])?;
                    Ok(Asked::Open(open, key))
                }
                Ask::Close(number) => Ok(Asked::Close(number)),
                Ask::Run(count) => self.run(count, &mut reader, chain),
            },
        }
    }

    /// Notes where what is written goes, with a byte behind it for the status.
    fn find_room(&mut self, chain: &Chain, len: usize) -> Result<(), Refusal> {
        if chain.writable() <= len as u64 {
            return Err(Refusal::Malformed);
        }
        chain.places(len, &mut self.places);
        Ok(())
    }

    /// A request as virtio has it.
    fn request(
        &mut self,
        operation: Operation,
        reader: &mut Reader<'_>,
        chain: &Chain,
    ) -> Result<Asked, Refusal> {
        self.find_room(chain, operation.len)?;
        let mut iv = [0; 16];
        read(reader, &mut iv[..operation.iv_len])?;
        let data = self.grow(operation.len);
        read(reader, &mut self.data[data.clone()])?;
        self.jobs.push(Job {
            session: Name::Given(operation.session),
            direction: operation.direction,
            iv,
            iv_len: operation.iv_len,
            aad_len: 0,
            len: operation.len,
            tag_len: 0,
            data,
            end: Ok(()),
        });
        Ok(Asked::Request(self.jobs.len() - 1))
    }

    /// Requests of the project's own driver.
    fn run(
        &mut self,
        count: usize,
        reader: &mut Reader<'_>,
        chain: &Chain,
    ) -> Result<Asked, Refusal> {
        let first = self.jobs.len();
        let mut skips = Vec::with_capacity(count);
        let (mut room, mut written) = (0, count);
        for _ in 0..count {
            let mut bytes = [0; ENTRY];
            read(reader, &mut bytes)?;
            let entry = Entry::read(&bytes)?;
            room += entry.room();
            if room > MAX_LEN {
                return Err(Refusal::TooLong);
            }
            written += entry.written();
            skips.push(entry.skip);
            let data = self.grow(entry.room());
            self.jobs.push(Job {
                session: Name::Chosen(entry.session),
                direction: entry.direction,
                iv: entry.iv,
                iv_len: entry.iv_len,
                aad_len: entry.aad_len,
                len: entry.len,
                tag_len: entry.tag_len,
                data,
                end: Ok(()),
            });
        }
        self.find_room(chain, written)?;
        for (job, skip) in self.jobs[first..].iter().zip(skips) {
            let data = &mut self.data[job.data.clone()];
            let (aad, rest) = data.split_at_mut(job.aad_len);
            let mut skipped = [0; u8::MAX as usize];
            read(reader, aad)?;
            read(reader, &mut skipped[..skip])?;
            let end = match job.direction {
                Direction::Encrypt => job.len,
                Direction::Decrypt => job.len + job.tag_len,
            };
            read(reader, &mut rest[..end])?;
        }
        Ok(Asked::Run(first..self.jobs.len()))
    }

    /// Room for a job.
    fn grow(&mut self, len: usize) -> Range<usize> {
        let begin = self.used;
        self.used += len;
        if self.data.len() < self.used {
            self.data.resize(self.used, 0);
        }
        begin..self.used
    }

    /// Refuses jobs whose sessions are not there, or not for them.
    pub(crate) fn check(&mut self, from: usize, sessions: &Sessions) {
        for job in &mut self.jobs[from..] {
            job.end = match sessions.find(job.session) {
                None => Err(Refusal::Session),
                Some(entry) if entry.direction.is_some_and(|only| only != job.direction) => {
                    Err(Refusal::Direction)
                }
                Some(_) => Ok(()),
            };
        }
    }
}

fn read(reader: &mut Reader<'_>, bytes: &mut [u8]) -> Result<(), Refusal> {
    match reader.read(bytes) {
        true => Ok(()),
        false => Err(Refusal::Malformed),
    }
}
