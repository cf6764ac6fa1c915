//! The descriptors of a request, copied once, and the bytes that they name.

use vm_memory::{Bytes, GuestAddress, GuestMemoryMmap};

/// Descriptors of a chain at most. Linux makes chains of a ring's length at most, which is 1024.
pub(crate) const MAX_DESCRIPTORS: usize = 4096;

/// The rings of virtio-queue over mapped memory.
pub(crate) type Descriptors<'m> = virtio_queue::DescriptorChain<&'m GuestMemoryMmap>;

/// A piece of guest memory. Whether it is there shows when it is read or written.
#[derive(Clone, Copy, Debug)]
struct Segment {
    address: GuestAddress,
    len: u32,
}

/// What a guest gives to read, and then to write. Reused from request to request.
#[derive(Default)]
pub(crate) struct Chain {
    readable: Vec<Segment>,
    writable: Vec<Segment>,
}

impl Chain {
    /// Copies descriptors. `false`: they are a loop, lead out of memory, or are too many, or what
    /// is to be read comes behind what is to be written.
    pub(crate) fn copy(&mut self, descriptors: &mut Descriptors<'_>) -> bool {
        self.readable.clear();
        self.writable.clear();
        let mut has_next = true;
        for descriptor in descriptors {
            has_next = descriptor.has_next();
            let segment = Segment {
                address: descriptor.addr(),
                len: descriptor.len(),
            };
            match (descriptor.is_write_only(), self.writable.is_empty()) {
                (true, _) => self.writable.push(segment),
                (false, true) => self.readable.push(segment),
                (false, false) => return false,
            }
            if self.len() > MAX_DESCRIPTORS {
                return false;
            }
        }
        // An end without an end: the iterator stops at what it cannot follow.
        !has_next
    }

    /// Descriptors.
    pub(crate) fn len(&self) -> usize {
        self.readable.len() + self.writable.len()
    }

    /// What is to be read, from its first byte on.
    pub(crate) fn reader<'c>(&'c self, memory: &'c GuestMemoryMmap) -> Reader<'c> {
        Reader {
            memory,
            segments: &self.readable,
            offset: 0,
        }
    }

    /// Bytes that may be written. No sum of 4096 lengths of 32 bits overflows.
    pub(crate) fn writable(&self) -> u64 {
        self.writable.iter().map(|s| u64::from(s.len)).sum()
    }

    /// Where the last byte is that may be written, which is for the status.
    pub(crate) fn last_byte(&self) -> Option<GuestAddress> {
        let last = self.writable.iter().rev().find(|segment| segment.len > 0)?;
        let at = last.address.0.checked_add(u64::from(last.len) - 1)?;
        Some(GuestAddress(at))
    }

    /// Notes where the first `len` writable bytes are.
    pub(crate) fn places(&self, len: usize, places: &mut Vec<Place>) {
        let mut left = len;
        for segment in &self.writable {
            let part = left.min(segment.len as usize);
            if part > 0 {
                places.push(Place {
                    address: segment.address,
                    len: part as u32,
                });
            }
            left -= part;
        }
    }
}

/// Where a part of a result goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    address: GuestAddress,
    len: u32,
}

/// Writes results one behind the other to places.
pub(crate) struct Writer<'p> {
    memory: &'p GuestMemoryMmap,
    places: &'p [Place],
    /// Bytes of the first place that are behind.
    offset: u32,
}

impl<'p> Writer<'p> {
    /// To the first byte of the first place.
    pub(crate) fn new(memory: &'p GuestMemoryMmap, places: &'p [Place]) -> Writer<'p> {
        Writer {
            memory,
            places,
            offset: 0,
        }
    }

    /// Writes. `false`: some of it has no place in memory. What comes next goes behind it in any
    /// case.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> bool {
        self.advance(bytes.len(), Some(bytes))
    }

    /// Leaves bytes as they are.
    pub(crate) fn skip(&mut self, len: usize) -> bool {
        self.advance(len, None)
    }

    fn advance(&mut self, mut len: usize, mut bytes: Option<&[u8]>) -> bool {
        let mut is_written = true;
        while len > 0 {
            let Some(place) = self.places.first() else {
                return false;
            };
            let part = len.min((place.len - self.offset) as usize);
            if let Some((now, later)) = bytes.and_then(|bytes| bytes.split_at_checked(part)) {
                let at = place.address.0.checked_add(u64::from(self.offset));
                is_written &=
                    at.is_some_and(|at| self.memory.write_slice(now, GuestAddress(at)).is_ok());
                bytes = Some(later);
            }
            len -= part;
            self.offset += part as u32;
            if self.offset == place.len {
                self.places = &self.places[1..];
                self.offset = 0;
            }
        }
        is_written
    }
}

/// Reads a chain's bytes, each once.
pub(crate) struct Reader<'c> {
    memory: &'c GuestMemoryMmap,
    segments: &'c [Segment],
    /// Bytes of the first segment that were read.
    offset: u32,
}

impl Reader<'_> {
    /// Fills `bytes`. `false`: the chain has fewer.
    pub(crate) fn read(&mut self, mut bytes: &mut [u8]) -> bool {
        while !bytes.is_empty() {
            let Some(segment) = self.segments.first() else {
                return false;
            };
            let part = bytes.len().min((segment.len - self.offset) as usize);
            let (now, later) = bytes.split_at_mut(part);
            let Some(address) = segment.address.0.checked_add(u64::from(self.offset)) else {
                return false;
            };
            if part > 0 && self.memory.read_slice(now, GuestAddress(address)).is_err() {
                return false;
            }
            bytes = later;
            self.offset += part as u32;
            if self.offset == segment.len {
                self.segments = &self.segments[1..];
                self.offset = 0;
            }
        }
        true
    }
}
