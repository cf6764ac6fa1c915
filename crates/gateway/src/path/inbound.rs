//! From the peers to the TUN device: one read of many datagrams is opened as one multipacket, and
//! what belongs together is written as one super-packet, gathered from where it was opened.

use std::io::{self, IoSlice};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;

use arrayvec::ArrayVec;
use cipherlane_esp::headers::{self, Ecn};
use cipherlane_esp::{Packet, Verdict};

use super::io::Io;
use super::opened::Opened;
use super::turn;
use crate::control::inbox::Inbox;
use crate::counters::{Loss, add};
use crate::packet::coalesce::Group;
use crate::packet::vnet::Vnet;
use crate::packet::{inner::Inner, long, mss, protocol};
use crate::service::Flow;
use crate::shared::WriteOrder;
use crate::sys::raw;
use crate::sys::sockaddr::RawAddress;
use crate::sys::udp::{Received, UdpSocket};
use crate::table::Table;
use crate::tunnel::Tunnel;

/// The most datagrams that are opened as one multipacket.
const MAX_DATAGRAMS: usize = 64;

/// The longest read of UDP.
const LONGEST: usize = 65536;

/// The inbound half of a thread.
pub(crate) struct Inbound {
    pub(super) opened: Opened,
    /// The buffer that was read into last, and when that came.
    pub(super) current: usize,
    arrived: u64,
    read: Option<u64>,
    /// Where the last read came from.
    from: RawAddress,
    /// Addresses of the last packet whose selectors were looked at, and the SPI it came by.
    pub(super) last: Option<(u32, IpAddr, IpAddr)>,
}

/// Where the packets of a run lie in the buffer.
pub(super) type Places = ArrayVec<(usize, usize), MAX_DATAGRAMS>;

/// What is the same for all packets of a step.
pub(crate) struct Context<'a> {
    pub(crate) io: &'a Io,
    pub(crate) table: &'a Table,
    pub(crate) clamps_mss: bool,
    /// Who speaks IKE, if anybody does.
    pub(crate) inbox: Option<&'a Inbox>,
    pub(crate) port: u16,
    /// What several threads need to write in turn, and what wakes this one.
    pub(crate) order: Option<(&'a WriteOrder, &'a OwnedFd)>,
}

impl Inbound {
    /// For one of several threads or the only one; with room for many packets of plain ESP where
    /// there are `raw` sockets.
    pub(crate) fn new(has_raw: bool, is_shared: bool) -> Self {
        let (count, len) = match (is_shared, has_raw) {
            (false, true) => (1, raw::STRIDE * raw::MOST_RECEIVED),
            (false, false) => (1, LONGEST),
            (true, true) => (2, raw::STRIDE * raw::MOST_RECEIVED),
            (true, false) => (8, LONGEST),
        };
        Inbound {
            opened: Opened::new(count, len),
            current: 0,
            arrived: 0,
            read: None,
            from: RawAddress::empty(),
            last: None,
        }
    }

    /// What was received.
    pub(super) fn buffer(&mut self) -> &mut [u8] {
        self.opened.buffer(self.current)
    }

    /// Reads once from a socket. `false`: it had nothing.
    pub(crate) fn step(&mut self, context: &Context<'_>, socket: &UdpSocket) -> io::Result<bool> {
        self.make_room(context);
        let room = &mut self.opened.buffer(self.current)[..LONGEST];
        context.begin_to_read();
        let received = match socket.receive(room, &mut self.from) {
            Ok(received) => received,
            Err(error) => {
                context.end_to_read();
                return nothing(context.io, error);
            }
        };
        self.note_arrival(context, None);
        self.open_all(context, &received);
        context.end_to_read();
        self.write_due(context);
        Ok(true)
    }

    /// Something was read. `read`: the number of the read, which decides about the order. Without,
    /// the sequence numbers do, as what is read is a train that one thread of the peer has sealed.
    #[inline]
    pub(super) fn note_arrival(&mut self, context: &Context<'_>, read: Option<u64>) {
        self.read = read;
        let order = context.order;
        self.arrived = order.map_or(0, |(order, _)| order.readers.arrived());
    }

    /// Opens all datagrams of a read.
    fn open_all(&mut self, context: &Context<'_>, received: &Received) {
        let counters = &context.io.counters;
        add(&counters.receives, 1);
        let len = received.len;
        if len == 0 {
            add(&counters.received_packets, 1);
            counters.lose(Loss::Truncated, 1);
            return;
        }
        let segment = received.segment;
        add(&counters.received_packets, len.div_ceil(segment));
        let ecn = Ecn::of(received.traffic_class);
        let mut from = 0;
        while from < len {
            let Some(spi) = self.spi(context, received, from, len.min(from + segment)) else {
                from += segment;
                continue;
            };
            // The datagrams of one SA that follow each other.
            let mut datagrams = Places::new();
            let mut to = len.min(from + segment);
            datagrams.push((from, to - from));
            while to < len && !datagrams.is_full() {
                let end = len.min(to + segment);
                if !self.has_spi(spi, to, end) {
                    break;
                }
                datagrams.push((to, end - to));
                to = end;
            }
            match context.table.by_spi(spi) {
                Some(tunnel) if tunnel.config.in_udp => {
                    self.open(context, tunnel, &datagrams, ecn);
                }
                _ => counters.lose(Loss::UnknownSpi, datagrams.len()),
            }
            from = to;
        }
    }

    /// The SPI of a datagram; `None`: it is no ESP, and was passed on or counted.
    #[inline]
    fn spi(
        &mut self,
        context: &Context<'_>,
        received: &Received,
        from: usize,
        to: usize,
    ) -> Option<u32> {
        let source = self.from.address();
        let reason = match &self.buffer()[from..to] {
            [0xff] => Loss::Keepalive,
            datagram @ [0, 0, 0, 0, ..] => match pass_to_ike(context, source, received, datagram) {
                true => return None,
                false => Loss::Ike,
            },
            datagram if datagram.len() < 8 => Loss::Truncated,
            datagram => return Some(long(datagram, 0)),
        };
        context.io.counters.lose(reason, 1);
        None
    }

    /// The peer of an SA of IKE may have moved: its authentic packets come from elsewhere.
    #[inline]
    fn look_at_source(&self, context: &Context<'_>, tunnel: &Tunnel) {
        if let (Some(child), Some(inbox)) = (&tunnel.child, context.inbox)
            && let Some(from) = self.from.address()
            && from != child.source
        {
            inbox.tell_mapping(child, from);
        }
    }

    #[inline]
    fn has_spi(&mut self, spi: u32, from: usize, to: usize) -> bool {
        to - from >= 8 && long(&self.buffer()[from..to], 0) == spi
    }

    /// Opens the datagrams of one SA, and hands on what is in them when its turn comes.
    pub(super) fn open(
        &mut self,
        context: &Context<'_>,
        tunnel: &Tunnel,
        datagrams: &Places,
        ecn: Ecn,
    ) {
        let mut batch = loop {
            match self.opened.take() {
                Some(batch) => break batch,
                None => self.write_early(context),
            }
        };
        let buffer = self.opened.buffer(self.current);
        let mut packets: ArrayVec<Packet<'_>, MAX_DATAGRAMS> = ArrayVec::new();
        let (mut rest, mut passed) = (&mut buffer[..], 0);
        for &(at, len) in datagrams {
            let (_, from) = rest.split_at_mut(at - passed);
            let (datagram, behind) = from.split_at_mut(len);
            packets.push(Packet::new(datagram, 0..len));
            (rest, passed) = (behind, at + len);
        }
        tunnel.inbound.open(&mut packets);
        batch.first = u64::MAX;
        for (packet, (at, _)) in packets.iter_mut().zip(datagrams) {
            match packet.verdict() {
                Verdict::Accepted => {}
                // It is meant to be dropped, and hides how much is sent.
                Verdict::Dummy => continue,
                verdict => {
                    context.io.counters.refuse(Loss::NotOpened, verdict);
                    continue;
                }
            }
            if headers::leave_tunnel(packet.content_mut(), ecn).is_err() {
                context.io.counters.lose(Loss::Congestion, 1);
                continue;
            }
            let range = packet.range();
            batch.places.push((at + range.start, range.len()));
            batch.first = batch.first.min(packet.sequence());
        }
        drop(packets);
        if batch.places.is_empty() {
            self.opened.give_back(batch);
            return;
        }
        self.look_at_source(context, tunnel);
        let buffer = self.opened.buffer(self.current);
        let Some(turns) = &tunnel.turns else {
            deliver(buffer, &mut self.last, context, tunnel, &batch.places);
            self.opened.give_back(batch);
            return;
        };
        let packets = batch.places.iter().map(|&(at, len)| &buffer[at..at + len]);
        batch.flows = packets.fold(0, |flows, packet| flows | turn::flow(packet));
        let spi = tunnel.inbound.spi();
        (batch.spi, batch.buffer, batch.arrived) = (spi, self.current, self.arrived);
        batch.first = self.read.unwrap_or(batch.first);
        batch.slot = loop {
            match self.opened.free_slot(spi) {
                Some(slot) => break slot,
                None => self.write_early(context),
            }
        };
        turns.hold(context.io.thread, batch.slot, batch.first, batch.flows);
        self.opened.push(batch);
    }
}

/// What an error of a read means: `false` where there was nothing to read.
pub(super) fn nothing(io: &Io, error: io::Error) -> io::Result<bool> {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => {
            add(&io.counters.empty_calls, 1);
            Ok(false)
        }
        _ => Err(error),
    }
}

/// Whether somebody speaks IKE, who is given the datagram.
#[cold]
fn pass_to_ike(
    context: &Context<'_>,
    from: Option<SocketAddr>,
    received: &Received,
    datagram: &[u8],
) -> bool {
    let (Some(inbox), Some(from), Some(to)) = (context.inbox, from, received.to) else {
        return false;
    };
    inbox.pass_datagram(from, SocketAddr::new(to, context.port), datagram);
    true
}

/// Writes packets of a tunnel, those that belong together as one.
pub(super) fn deliver(
    buffer: &mut [u8],
    last: &mut Option<(u32, IpAddr, IpAddr)>,
    context: &Context<'_>,
    tunnel: &Tunnel,
    places: &Places,
) {
    let offloads = context.io.offloads;
    // The first packet of the group, and what of the others is written behind it.
    let mut group: Option<Group> = None;
    let mut parts = Places::new();
    for &(at, len) in places {
        let packet = &mut buffer[at..at + len];
        let Some(inner) = Inner::of(packet) else {
            context.io.counters.lose(Loss::MalformedInner, 1);
            continue;
        };
        let ends = (tunnel.inbound.spi(), inner.source, inner.destination);
        if *last != Some(ends) {
            if !tunnel.admits(&Flow::of(&inner, packet)) {
                context.io.counters.lose(Loss::Selectors, 1);
                continue;
            }
            if !tunnel.has_services() {
                *last = Some(ends);
            }
        }
        if context.clamps_mss {
            mss::clamp(packet, &inner, tunnel.inner_mtu());
        }
        if let Some(group) = &mut group
            && let [(first, first_len), ..] = parts[..]
        {
            let (before, behind) = buffer.split_at(at);
            let first = &before[first..first + first_len];
            if let Some(headers) = group.join(first, &behind[..len], &inner) {
                parts.push((at + headers, len - headers));
                continue;
            }
        }
        write(buffer, context.io, group.take(), &parts);
        parts.clear();
        parts.push((at, len));
        let is_joined = match inner.protocol {
            protocol::UDP => offloads.uso,
            _ => offloads.tso,
        };
        if is_joined {
            group = Group::begin(&buffer[at..at + len], &inner);
        }
    }
    write(buffer, context.io, group, &parts);
}

/// One write of one packet, or super-packet.
fn write(buffer: &mut [u8], io: &Io, group: Option<Group>, parts: &Places) {
    let [(first, len), ..] = parts[..] else {
        return;
    };
    let (vnet, count) = match group {
        Some(group) => {
            let vnet = group.finish(&mut buffer[first..first + len]);
            (vnet, group.count())
        }
        None => (Vnet::PLAIN, 1),
    };
    let header = vnet.bytes();
    let mut slices: ArrayVec<IoSlice<'_>, { MAX_DATAGRAMS + 1 }> = ArrayVec::new();
    slices.push(IoSlice::new(&header));
    slices.extend(
        parts
            .iter()
            .map(|&(at, len)| IoSlice::new(&buffer[at..at + len])),
    );
    add(&io.counters.tun_writes, 1);
    match rustix::io::writev(&io.tun, &slices) {
        Ok(_) => add(&io.counters.written_packets, count),
        Err(_) => io.counters.lose(Loss::NotWritten, count),
    }
}
