//! From the TUN device to the peers.
//!
//! A read is scattered over the slots in which its segments will be sealed, by the shape of the
//! super-packet before it: bulk traffic has one shape for a long time. A packet of another shape
//! is moved once, and the next read expects the new one. Small packets are read one behind the
//! other until the device has no more, and are sent as one train.

use std::io::{self, IoSliceMut};
use std::net::IpAddr;

use arrayvec::ArrayVec;
use cipherlane_esp::OutboundSa;

use super::io::{Io, Marks};
use super::train::{self, MAX_BYTES, MAX_DATAGRAMS};
use crate::control::inbox::Inbox;
use crate::counters::{Loss, add};
use crate::packet::segment::{Cut, MAX_HEADERS};
use crate::packet::vnet::{self, Gso, Vnet};
use crate::packet::{checksum, icmp, inner::Inner, mss, protocol};
use crate::table::Table;

/// The longest packet, or super-packet.
const LONGEST: usize = 65536;

/// The most slots that a read is scattered over.
const SLOTS: usize = 100;

/// Room for a train that is being gathered and a read behind it.
const BUFFER: usize = 2 * LONGEST + 3 * LONGEST;

/// The shape that is expected of the next read.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Aim {
    /// Bytes before each packet.
    head: usize,
    /// Bytes of headers of a super-packet.
    headers: usize,
    /// Bytes of payload of each segment.
    size: usize,
    /// Bytes of a slot.
    stride: usize,
}

/// Packets that are gathered.
struct Train {
    start: usize,
    lens: ArrayVec<usize, MAX_DATAGRAMS>,
    stride: usize,
    place: usize,
    marks: Marks,
    /// The last packet is shorter than the others: nothing can follow it.
    is_full: bool,
}

/// The outbound half of a thread.
pub(crate) struct Outbound {
    buffer: Box<[u8]>,
    /// What a read brought past the slots, and packets that are to be moved.
    spill: Box<[u8]>,
    linear: Box<[u8]>,
    aim: Aim,
    train: Train,
    /// The addresses of the last packet, and its tunnel's place.
    last: Option<(IpAddr, IpAddr, usize)>,
    message: [u8; icmp::LONGEST],
}

/// A packet that was read, and where.
struct Arrived {
    vnet: Vnet,
    len: usize,
    /// Where its slot begins.
    base: usize,
    /// It lies in `linear`, not in its slot.
    is_linear: bool,
}

/// What is the same for all packets of a step.
pub(crate) struct Context<'a> {
    pub(crate) io: &'a Io,
    pub(crate) table: &'a Table,
    /// Wakes who reserves sequence numbers.
    pub(crate) wake: &'a dyn Fn(),
    pub(crate) clamps_mss: bool,
    /// Who speaks IKE, if anybody does.
    pub(crate) inbox: Option<&'a Inbox>,
}

/// No tunnel takes a packet. A policy of IKE may ask for one.
#[cold]
fn drop_without_tunnel(context: &Context<'_>, inner: &Inner) {
    let counters = &context.io.counters;
    match context.table.trap(inner.source, inner.destination) {
        Some(trap) => {
            counters.lose(Loss::NoSa, 1);
            if let Some(inbox) = context.inbox {
                inbox.ask_for_sa(trap, inner);
            }
        }
        None => counters.lose(Loss::NoPolicy, 1),
    }
}

impl Outbound {
    pub(crate) fn new() -> Self {
        let zeros = |len: usize| vec![0; len].into_boxed_slice();
        Outbound {
            buffer: zeros(BUFFER),
            spill: zeros(LONGEST),
            linear: zeros(LONGEST),
            aim: Aim {
                head: 16,
                headers: 52,
                size: 1368,
                stride: 1456,
            },
            train: Train {
                start: 0,
                lens: ArrayVec::new(),
                stride: 1,
                place: 0,
                marks: Marks {
                    traffic_class: 0,
                    may_fragment: false,
                },
                is_full: false,
            },
            last: None,
            message: [0; icmp::LONGEST],
        }
    }

    /// The table has changed. Nothing may be gathered then.
    pub(crate) fn forget(&mut self) {
        debug_assert!(self.train.lens.is_empty());
        self.last = None;
    }

    /// Reads once from the device. `false`: it had nothing, and what was gathered is sent.
    pub(crate) fn step(&mut self, context: &Context<'_>) -> io::Result<bool> {
        let counters = &context.io.counters;
        match self.read(context) {
            Ok(Some(arrived)) => {
                add(&counters.tun_reads, 1);
                self.work(context, arrived);
                Ok(true)
            }
            Ok(None) => {
                add(&counters.tun_reads, 1);
                counters.lose(Loss::MalformedInner, 1);
                Ok(true)
            }
            Err(error) => {
                self.flush(context);
                match error.kind() {
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => {
                        add(&counters.empty_calls, 1);
                        Ok(false)
                    }
                    _ => Err(error),
                }
            }
        }
    }

    /// Where the next packet's slot begins.
    fn next_slot(&self) -> usize {
        match self.train.lens.len() {
            0 => 0,
            count => self.train.start + count * self.train.stride,
        }
    }

    fn read(&mut self, context: &Context<'_>) -> io::Result<Option<Arrived>> {
        let base = self.next_slot();
        let Aim {
            head,
            headers,
            size,
            stride,
        } = self.aim;
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
        let len = rustix::io::readv(&context.io.tun, &mut parts)?;
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
            add(&context.io.counters.tun_moved, 1);
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
    fn gather(&mut self, base: usize, len: usize, scattered: usize) {
        let Aim {
            head,
            headers,
            size,
            stride,
        } = self.aim;
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

    fn work(&mut self, context: &Context<'_>, arrived: Arrived) {
        let counters = &context.io.counters;
        let begin = arrived.base + self.aim.head;
        let known = match arrived.is_linear {
            true => &self.linear[..arrived.len],
            false => {
                let first = (self.aim.headers + self.aim.size).min(arrived.len);
                &self.buffer[begin..begin + first]
            }
        };
        let Some(inner) = Inner::of_head(known).filter(|inner| inner.len == arrived.len) else {
            counters.lose(Loss::MalformedInner, 1);
            return;
        };
        let cut = match arrived.vnet.gso {
            Gso::None => None,
            _ => Cut::of(&arrived.vnet, known, arrived.len),
        };
        let Some(place) = self.place(context, &inner) else {
            drop_without_tunnel(context, &inner);
            return;
        };
        if arrived.vnet.gso == Gso::None {
            add(&counters.tun_packets, 1);
            self.single(context, &arrived, &inner, place);
            return;
        }
        let Some(cut) = cut else {
            counters.lose(Loss::MalformedInner, 1);
            return;
        };
        add(&counters.tun_packets, cut.count);
        // What is gathered was there first.
        self.flush(context);
        self.super_packet(context, &arrived, &inner, place, &cut);
    }

    /// The tunnel for a packet.
    #[inline]
    fn place(&mut self, context: &Context<'_>, inner: &Inner) -> Option<usize> {
        match self.last {
            Some((source, destination, place))
                if (source, destination) == (inner.source, inner.destination) =>
            {
                Some(place)
            }
            _ => {
                let place = context
                    .table
                    .by_addresses(inner.source, inner.destination)?;
                self.last = Some((inner.source, inner.destination, place));
                Some(place)
            }
        }
    }

    fn single(&mut self, context: &Context<'_>, arrived: &Arrived, inner: &Inner, place: usize) {
        let tunnel = &context.table.tunnels()[place];
        let sa = &tunnel.outbound;
        let (base, len) = (arrived.base, arrived.len);
        let begin = base + sa.head_room();
        if arrived.is_linear {
            add(&context.io.counters.copies, 2);
            self.buffer[begin..begin + len].copy_from_slice(&self.linear[..len]);
        } else if sa.head_room() != self.aim.head {
            add(&context.io.counters.copies, 1);
            let from = base + self.aim.head;
            self.buffer.copy_within(from..from + len, begin);
            self.aim.head = sa.head_room();
        }
        let is_long = len > tunnel.inner_mtu();
        let may_fragment = is_long && !inner.dont_fragment;
        if is_long && !may_fragment {
            let packet = begin..begin + len;
            self.say_too_big(context, packet, inner, tunnel.inner_mtu());
            return;
        }
        let packet = &mut self.buffer[begin..begin + len];
        if let Some((start, field)) = arrived.vnet.checksum {
            let (start, field) = (usize::from(start), usize::from(start) + usize::from(field));
            if field + 2 > len {
                context.io.counters.lose(Loss::MalformedInner, 1);
                return;
            }
            checksum::finish(packet, start, field, inner.protocol == protocol::UDP);
        }
        if context.clamps_mss {
            mss::clamp(packet, inner, tunnel.inner_mtu());
        }
        let marks = Marks {
            traffic_class: tunnel.outer_class(inner.traffic_class),
            may_fragment,
        };
        let sealed = sa.sealed_len(len);
        let train = &self.train;
        let joins = !train.lens.is_empty()
            && !train.is_full
            && train.place == place
            && train.marks.traffic_class == marks.traffic_class
            && !train.marks.may_fragment
            && !may_fragment
            && sealed <= train.stride
            && base + sealed - train.start <= MAX_BYTES;
        if !joins {
            self.flush(context);
            self.train.start = base;
            self.train.stride = sealed;
            self.train.place = place;
            self.train.marks = marks;
            self.train.is_full = false;
        }
        self.train.lens.push(len);
        if sealed < self.train.stride || may_fragment {
            self.train.is_full = true;
        }
        let is_near_end = self.next_slot() > MAX_BYTES + LONGEST;
        if self.train.is_full || self.train.lens.is_full() || is_near_end {
            self.flush(context);
        }
    }

    fn super_packet(
        &mut self,
        context: &Context<'_>,
        arrived: &Arrived,
        inner: &Inner,
        place: usize,
        cut: &Cut,
    ) {
        let tunnel = &context.table.tunnels()[place];
        let sa = &tunnel.outbound;
        let head = sa.head_room();
        if cut.headers + cut.size.min(arrived.len - cut.headers) > tunnel.inner_mtu() {
            let quoted = (cut.headers + cut.size).min(arrived.len);
            let packet = match arrived.is_linear {
                true => {
                    self.buffer[..quoted].copy_from_slice(&self.linear[..quoted]);
                    0..quoted
                }
                false => {
                    let begin = arrived.base + self.aim.head;
                    begin..begin + quoted
                }
            };
            self.say_too_big(context, packet, inner, tunnel.inner_mtu());
            return;
        }
        let stride = sa.sealed_len(cut.headers + cut.size);
        let marks = Marks {
            traffic_class: tunnel.outer_class(inner.traffic_class),
            may_fragment: false,
        };
        let at_once = MAX_DATAGRAMS.min(MAX_BYTES / stride).max(1);
        let is_in_place = !arrived.is_linear && (head, stride) == (self.aim.head, self.aim.stride);
        if !is_in_place && !arrived.is_linear {
            let scattered = arrived.len;
            self.gather(arrived.base, arrived.len, scattered);
        }
        if !is_in_place {
            // Gathered, and brought to its slots.
            add(&context.io.counters.copies, 2 * cut.count);
        }
        let mut template = [0; MAX_HEADERS];
        let template = &mut template[..cut.headers];
        template.copy_from_slice(match is_in_place {
            true => &self.buffer[arrived.base + head..][..cut.headers],
            false => &self.linear[..cut.headers],
        });
        for first in (0..cut.count).step_by(at_once) {
            let last = cut.count.min(first + at_once);
            let base = match is_in_place {
                true => arrived.base + first * stride,
                false => 0,
            };
            for index in first..last {
                let begin = base + (index - first) * stride + head;
                let segment = &mut self.buffer[begin..begin + cut.len(index)];
                if !is_in_place {
                    let from = cut.headers + index * cut.size;
                    let len = segment.len() - cut.headers;
                    segment[cut.headers..].copy_from_slice(&self.linear[from..from + len]);
                }
                cut.write(template, index, segment);
            }
            let room = &mut self.buffer[base..base + (last - first) * stride];
            let lens = (first..last).map(|index| cut.len(index));
            train::seal_and_send(context.io, tunnel, room, stride, lens, marks, context.wake);
        }
        if !is_in_place {
            self.expect(sa, cut);
        }
    }

    /// The next read will have the shape of this super-packet.
    fn expect(&mut self, sa: &OutboundSa, cut: &Cut) {
        let stride = sa.sealed_len(cut.headers + cut.size);
        // Segments of a few bytes would need more slots than a read may have.
        if LONGEST / cut.size < SLOTS {
            self.aim = Aim {
                head: sa.head_room(),
                headers: cut.headers,
                size: cut.size,
                stride,
            };
        }
    }

    /// Seals and sends what is gathered.
    pub(crate) fn flush(&mut self, context: &Context<'_>) {
        let count = self.train.lens.len();
        if count == 0 {
            return;
        }
        let Train {
            start,
            stride,
            place,
            marks,
            ..
        } = self.train;
        let room = &mut self.buffer[start..start + count * stride];
        let tunnel = &context.table.tunnels()[place];
        let lens = self.train.lens.iter().copied();
        train::seal_and_send(context.io, tunnel, room, stride, lens, marks, context.wake);
        self.train.lens.clear();
    }

    /// Tells the sender of a packet that lies in the buffer that it is too long.
    #[cold]
    fn say_too_big(
        &mut self,
        context: &Context<'_>,
        packet: std::ops::Range<usize>,
        inner: &Inner,
        mtu: usize,
    ) {
        context.io.counters.lose(Loss::TooBig, 1);
        let packet = &self.buffer[packet];
        let told = icmp::too_big(&mut self.message, packet, inner, mtu);
        if let Some(len) = told {
            let header = Vnet::PLAIN.bytes();
            let parts = [
                io::IoSlice::new(&header),
                io::IoSlice::new(&self.message[..len]),
            ];
            // A sender that misses the message sends again, and is told again.
            let _ = rustix::io::writev(&context.io.tun, &parts);
        }
    }
}
