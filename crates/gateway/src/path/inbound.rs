//! From the peers to the TUN device: one read of many datagrams is opened as one multipacket, and
//! what belongs together is written as one super-packet, gathered from where it was opened.

use std::io::{self, IoSlice};
use std::net::{IpAddr, SocketAddr};

use arrayvec::ArrayVec;
use cipherlane_esp::headers::{self, Ecn};
use cipherlane_esp::{Packet, Verdict};

use super::io::Io;
use crate::control::inbox::Inbox;
use crate::counters::{Loss, add};
use crate::packet::coalesce::Group;
use crate::packet::vnet::Vnet;
use crate::packet::{inner::Inner, long, mss, protocol};
use crate::service::Flow;
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
    buffer: Box<[u8]>,
    /// Where the last read came from.
    from: RawAddress,
    /// Addresses of the last packet whose selectors were looked at, and the SPI it came by.
    last: Option<(u32, IpAddr, IpAddr)>,
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
}

impl Inbound {
    /// With room for many packets of plain ESP where there are `raw` sockets.
    pub(crate) fn new(has_raw: bool) -> Self {
        let len = match has_raw {
            true => raw::STRIDE * raw::MOST_RECEIVED,
            false => LONGEST,
        };
        Inbound {
            buffer: vec![0; len].into_boxed_slice(),
            from: RawAddress::empty(),
            last: None,
        }
    }

    /// Where packets are received.
    pub(super) fn room(&mut self) -> &mut [u8] {
        &mut self.buffer
    }

    /// The table has changed.
    pub(crate) fn forget(&mut self) {
        self.last = None;
    }

    /// Reads once from a socket. `false`: it had nothing.
    pub(crate) fn step(&mut self, context: &Context<'_>, socket: &UdpSocket) -> io::Result<bool> {
        let counters = &context.io.counters;
        let received = match socket.receive(&mut self.buffer[..LONGEST], &mut self.from) {
            Ok(received) => received,
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => {
                    add(&counters.empty_calls, 1);
                    return Ok(false);
                }
                _ => return Err(error),
            },
        };
        add(&counters.receives, 1);
        let len = received.len;
        if len == 0 {
            add(&counters.received_packets, 1);
            counters.lose(Loss::Truncated, 1);
            return Ok(true);
        }
        let segment = received.segment;
        add(&counters.received_packets, len.div_ceil(segment));
        let ecn = Ecn::of(received.traffic_class);
        let mut from = 0;
        while from < len {
            let Some(spi) = self.spi(context, &received, from, len.min(from + segment)) else {
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
        Ok(true)
    }

    /// The SPI of a datagram; `None`: it is no ESP, and was passed on or counted.
    #[inline]
    fn spi(
        &self,
        context: &Context<'_>,
        received: &Received,
        from: usize,
        to: usize,
    ) -> Option<u32> {
        let reason = match &self.buffer[from..to] {
            [0xff] => Loss::Keepalive,
            datagram @ [0, 0, 0, 0, ..] => match self.pass_to_ike(context, received, datagram) {
                true => return None,
                false => Loss::Ike,
            },
            datagram if datagram.len() < 8 => Loss::Truncated,
            datagram => return Some(long(datagram, 0)),
        };
        context.io.counters.lose(reason, 1);
        None
    }

    /// Whether somebody speaks IKE, who is given the datagram.
    #[cold]
    fn pass_to_ike(&self, context: &Context<'_>, received: &Received, datagram: &[u8]) -> bool {
        let (Some(inbox), Some(from), Some(to)) = (context.inbox, self.from.address(), received.to)
        else {
            return false;
        };
        inbox.pass_datagram(from, SocketAddr::new(to, context.port), datagram);
        true
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
    fn has_spi(&self, spi: u32, from: usize, to: usize) -> bool {
        to - from >= 8 && long(&self.buffer[from..to], 0) == spi
    }

    /// Opens the datagrams of one SA, and hands on what is in them.
    pub(super) fn open(
        &mut self,
        context: &Context<'_>,
        tunnel: &Tunnel,
        datagrams: &Places,
        ecn: Ecn,
    ) {
        let mut packets: ArrayVec<Packet<'_>, MAX_DATAGRAMS> = ArrayVec::new();
        let (mut rest, mut passed) = (&mut self.buffer[..], 0);
        for &(at, len) in datagrams {
            let (_, from) = rest.split_at_mut(at - passed);
            let (datagram, behind) = from.split_at_mut(len);
            packets.push(Packet::new(datagram, 0..len));
            (rest, passed) = (behind, at + len);
        }
        tunnel.inbound.open(&mut packets);
        let mut places = Places::new();
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
            places.push((at + range.start, range.len()));
        }
        drop(packets);
        if !places.is_empty() {
            self.look_at_source(context, tunnel);
        }
        self.deliver(context, tunnel, &places);
    }

    fn deliver(&mut self, context: &Context<'_>, tunnel: &Tunnel, places: &Places) {
        let offloads = context.io.offloads;
        // The first packet of the group, and what of the others is written behind it.
        let mut group: Option<Group> = None;
        let mut parts = Places::new();
        for &(at, len) in places {
            let packet = &mut self.buffer[at..at + len];
            let Some(inner) = Inner::of(packet) else {
                context.io.counters.lose(Loss::MalformedInner, 1);
                continue;
            };
            let ends = (tunnel.inbound.spi(), inner.source, inner.destination);
            if self.last != Some(ends) {
                if !tunnel.admits(&Flow::of(&inner, packet)) {
                    context.io.counters.lose(Loss::Selectors, 1);
                    continue;
                }
                if !tunnel.has_services() {
                    self.last = Some(ends);
                }
            }
            if context.clamps_mss {
                mss::clamp(packet, &inner, tunnel.inner_mtu());
            }
            if let Some(group) = &mut group
                && let [(first, first_len), ..] = parts[..]
            {
                let (before, behind) = self.buffer.split_at(at);
                let first = &before[first..first + first_len];
                if let Some(headers) = group.join(first, &behind[..len], &inner) {
                    parts.push((at + headers, len - headers));
                    continue;
                }
            }
            self.write(context.io, group.take(), &parts);
            parts.clear();
            parts.push((at, len));
            let is_joined = match inner.protocol {
                protocol::UDP => offloads.uso,
                _ => offloads.tso,
            };
            if is_joined {
                group = Group::begin(&self.buffer[at..at + len], &inner);
            }
        }
        self.write(context.io, group, &parts);
    }

    /// One write of one packet, or super-packet.
    fn write(&mut self, io: &Io, group: Option<Group>, parts: &Places) {
        let [(first, len), ..] = parts[..] else {
            return;
        };
        let (vnet, count) = match group {
            Some(group) => {
                let vnet = group.finish(&mut self.buffer[first..first + len]);
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
                .map(|&(at, len)| IoSlice::new(&self.buffer[at..at + len])),
        );
        add(&io.counters.tun_writes, 1);
        match rustix::io::writev(&io.tun, &slices) {
            Ok(_) => add(&io.counters.written_packets, count),
            Err(_) => io.counters.lose(Loss::NotWritten, count),
        }
    }
}
