//! From the TUN device to the peers.
//!
//! A super-packet is cut, sealed and sent as one train, or as few. Small packets are read one
//! behind the other until the device has no more, and are sent as one train.

use std::io;
use std::net::IpAddr;

use arrayvec::ArrayVec;

use super::io::{Io, Marks};
use super::reader::{Arrived, LONGEST, Reader, Shape};
use super::train::{self, MAX_BYTES, MAX_DATAGRAMS};
use crate::control::inbox::Inbox;
use crate::counters::{Loss, add};
use crate::packet::segment::{Cut, MAX_HEADERS};
use crate::packet::vnet::{Gso, Vnet};
use crate::packet::{checksum, icmp, inner::Inner, mss, protocol};
use crate::service::Flow;
use crate::table::Table;

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
    reader: Reader,
    train: Train,
    /// The addresses of the last packet, and its tunnel's place.
    last: Option<(IpAddr, IpAddr, usize)>,
    message: [u8; icmp::LONGEST],
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
fn drop_without_tunnel(context: &Context<'_>, inner: &Inner, flow: &Flow) {
    let counters = &context.io.counters;
    match context.table.trap(flow) {
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
        Outbound {
            reader: Reader::new(),
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
        match self.reader.read(context.io, self.next_slot()) {
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

    fn work(&mut self, context: &Context<'_>, arrived: Arrived) {
        let counters = &context.io.counters;
        let known = self.reader.beginning(&arrived);
        let Some(inner) = Inner::of_head(known).filter(|inner| inner.len == arrived.len) else {
            counters.lose(Loss::MalformedInner, 1);
            return;
        };
        let cut = match arrived.vnet.gso {
            Gso::None => None,
            _ => Cut::of(&arrived.vnet, known, arrived.len),
        };
        let place = match self.last {
            Some((source, destination, place))
                if (source, destination) == (inner.source, inner.destination) =>
            {
                place
            }
            _ => {
                let flow = Flow::of(&inner, known);
                let Some(place) = self.place(context, &flow) else {
                    drop_without_tunnel(context, &inner, &flow);
                    return;
                };
                place
            }
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

    /// The tunnel for a packet between other addresses than the last one's.
    #[inline]
    fn place(&mut self, context: &Context<'_>, flow: &Flow) -> Option<usize> {
        let (place, is_of_service) = context.table.by_flow(flow)?;
        // The next packet between these addresses may be of another tunnel.
        if !is_of_service {
            self.last = Some((flow.source, flow.destination, place));
        }
        Some(place)
    }

    fn single(&mut self, context: &Context<'_>, arrived: &Arrived, inner: &Inner, place: usize) {
        let tunnel = &context.table.tunnels()[place];
        let sa = &tunnel.outbound;
        let (base, len) = (arrived.base, arrived.len);
        let begin = base + sa.head_room();
        let copies = self.reader.bring_to_slot(arrived, sa.head_room());
        add(&context.io.counters.copies, copies);
        let is_long = len > tunnel.inner_mtu();
        let may_fragment = is_long && !inner.dont_fragment;
        if is_long && !may_fragment {
            let packet = begin..begin + len;
            self.say_too_big(context, packet, inner, tunnel.inner_mtu());
            return;
        }
        let packet = &mut self.reader.buffer[begin..begin + len];
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
                    self.reader.buffer[..quoted].copy_from_slice(&self.reader.linear[..quoted]);
                    0..quoted
                }
                false => {
                    let begin = arrived.base + self.reader.shape.head;
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
        let reader = &mut self.reader;
        let is_in_place =
            !arrived.is_linear && (head, stride) == (reader.shape.head, reader.shape.stride);
        if !is_in_place && !arrived.is_linear {
            reader.gather(arrived.base, arrived.len, arrived.len);
        }
        if !is_in_place {
            // Gathered, and brought to its slots.
            add(&context.io.counters.copies, 2 * cut.count);
        }
        let mut template = [0; MAX_HEADERS];
        let template = &mut template[..cut.headers];
        template.copy_from_slice(match is_in_place {
            true => &reader.buffer[arrived.base + head..][..cut.headers],
            false => &reader.linear[..cut.headers],
        });
        for first in (0..cut.count).step_by(at_once) {
            let last = cut.count.min(first + at_once);
            let base = match is_in_place {
                true => arrived.base + first * stride,
                false => 0,
            };
            for index in first..last {
                let begin = base + (index - first) * stride + head;
                let segment = &mut reader.buffer[begin..begin + cut.len(index)];
                if !is_in_place {
                    let from = cut.headers + index * cut.size;
                    let len = segment.len() - cut.headers;
                    segment[cut.headers..].copy_from_slice(&reader.linear[from..from + len]);
                }
                cut.write(template, index, segment);
            }
            let room = &mut reader.buffer[base..base + (last - first) * stride];
            let lens = (first..last).map(|index| cut.len(index));
            train::seal_and_send(context.io, tunnel, room, stride, lens, marks, context.wake);
        }
        if !is_in_place {
            reader.expect(Shape {
                head,
                headers: cut.headers,
                size: cut.size,
                stride,
            });
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
        let room = &mut self.reader.buffer[start..start + count * stride];
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
        let packet = &self.reader.buffer[packet];
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
