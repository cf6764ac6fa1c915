//! Reads from the TUN device, scattered by the shape that is expected.
//!
//! A read is scattered over the slots in which its segments will be sealed, by the shape of the
//! super-packet before it: bulk traffic has one shape for a long time. A packet of another shape
//! is moved once, and the next read expects the new one.

use std::io::{self, IoSliceMut};

use arrayvec::ArrayVec;

use super::io::Io;
use crate::counters::add;
use crate::packet::segment::Cut;
use crate::packet::vnet::{self, Gso, Vnet};

/// The longest packet, or super-packet.
pub(super) const LONGEST: usize = 65536;

/// The most slots that a read is scattered over.
const SLOTS: usize = 100;

/// Room for a train that is being gathered and a read behind it.
const BUFFER: usize = 2 * LONGEST + 3 * LONGEST;

/// The shape that is expected of the next read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    /// Bytes before each packet.
    pub(super) head: usize,
    /// Bytes of headers of a super-packet.
    pub(super) headers: usize,
    /// Bytes of payload of each segment.
    pub(super) size: usize,
    /// Bytes of a slot.
    pub(super) stride: usize,
}

/// A packet that was read, and where.
pub(super) struct Arrived {
    pub(super) vnet: Vnet,
    pub(super) len: usize,
    /// Where its slot begins.
    pub(super) base: usize,
    /// It lies in `linear`, not in its slot.
    pub(super) is_linear: bool,
}

/// Where packets are read to, and sealed.
pub(super) struct Reader {
    pub(super) buffer: Box<[u8]>,
    /// What a read brought past the slots.
    spill: Box<[u8]>,
    /// A packet that is to be moved.
    pub(super) linear: Box<[u8]>,
    pub(super) shape: Shape,
}

impl Reader {
    pub(super) fn new() -> Self {
        let zeros = |len: usize| vec![0; len].into_boxed_slice();
        Reader {
            buffer: zeros(BUFFER),
            spill: zeros(LONGEST),
            linear: zeros(LONGEST),
            shape: Shape {
                head: 16,
                headers: 52,
                size: 1368,
                stride: 1456,
            },
        }
    }

    /// Reads once, into slots from `base` on. `None`: what came is no packet.
    pub(super) fn read(&mut self, io: &Io, base: usize) -> io::Result<Option<Arrived>> {
        let Shape {
            head,
            headers,
            size,
            stride,
        } = self.shape;
        let mut header = [0; vnet::LEN];
        let mut parts: ArrayVec<IoSliceMut<'_>, { SLOTS + 2 }> = ArrayVec::new();
        parts.push(IoSliceMut::new(&mut header));
        let slots = (LONGEST / size + 1).min(SLOTS);
        let mut rest = &mut self.buffer[base + head..];
        let mut scattered = 0;
        for slot in 0..slots {
            let (part, gap) = match slot {
                0 => (headers + size, stride - size),
                _ => (size, stride - size),
            };
            let whole = part + gap;
            if rest.len() < whole {
                break;
            }
            let (now, later) = rest.split_at_mut(whole);
            parts.push(IoSliceMut::new(&mut now[..part]));
            scattered += part;
            rest = later;
        }
        parts.push(IoSliceMut::new(&mut self.spill));
        let len = rustix::io::readv(&io.tun, &mut parts)?;
        drop(parts);
        let Some(len) = len.checked_sub(vnet::LEN).filter(|&len| len > 0) else {
            return Ok(None);
        };
        let Some(vnet) = Vnet::read(&header) else {
            return Ok(None);
        };
        let first = headers + size;
        let is_in_place = match vnet.gso {
            Gso::None => len <= first,
            _ => {
                let cut = Cut::of(&vnet, &self.buffer[base + head..][..len.min(first)], len);
                len <= scattered
                    && cut.is_some_and(|cut| (cut.headers, cut.size) == (headers, size))
            }
        };
        if !is_in_place {
            add(&io.counters.tun_moved, 1);
            self.gather(base, len, scattered);
        }
        Ok(Some(Arrived {
            vnet,
            len,
            base,
            is_linear: !is_in_place,
        }))
    }

    /// Puts the pieces of a read of another shape one behind the other.
    pub(super) fn gather(&mut self, base: usize, len: usize, scattered: usize) {
        let Shape {
            head,
            headers,
            size,
            stride,
        } = self.shape;
        let (mut done, mut from) = (0, base + head);
        let mut part = headers + size;
        while done < len.min(scattered) {
            let now = part.min(len - done);
            self.linear[done..done + now].copy_from_slice(&self.buffer[from..from + now]);
            done += now;
            from += part + stride - size;
            part = size;
        }
        if done < len {
            let spilled = len - done;
            self.linear[done..len].copy_from_slice(&self.spill[..spilled]);
        }
    }

    /// The packet's first bytes that lie in one piece: its headers at least, where it has any.
    pub(super) fn beginning(&self, arrived: &Arrived) -> &[u8] {
        match arrived.is_linear {
            true => &self.linear[..arrived.len],
            false => {
                let first = (self.shape.headers + self.shape.size).min(arrived.len);
                &self.buffer[arrived.base + self.shape.head..][..first]
            }
        }
    }

    /// Brings a lone packet to where it is sealed, `head` bytes behind its slot's beginning. Returns
    /// how often it was copied since it was read.
    pub(super) fn bring_to_slot(&mut self, arrived: &Arrived, head: usize) -> usize {
        let begin = arrived.base + head;
        let slot = begin..begin + arrived.len;
        if arrived.is_linear {
            self.buffer[slot].copy_from_slice(&self.linear[..arrived.len]);
            return 2;
        }
        if head == self.shape.head {
            return 0;
        }
        let from = arrived.base + self.shape.head;
        self.buffer.copy_within(from..from + arrived.len, begin);
        self.shape.head = head;
        1
    }

    /// The next read will have this shape.
    pub(super) fn expect(&mut self, shape: Shape) {
        // Segments of a few bytes would need more slots than a read may have.
        if LONGEST / shape.size < SLOTS {
            self.shape = shape;
        }
    }
}
