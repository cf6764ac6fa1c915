//! Plain ESP (IP protocol 50): each packet is a packet of the system's too, so a call carries many
//! of them, and nothing else is different.

use std::io;

use arrayvec::ArrayVec;
use cipherlane_esp::headers::Ecn;

use super::inbound::{Context, Inbound, Places, nothing};
use super::io::{Io, Marks, is_about_another};
use crate::counters::{Loss, add};
use crate::packet::long;
use crate::shared::lock;
use crate::sys::raw::{Arrived, RawSocket};
use crate::sys::udp::Sending;
use crate::tunnel::Tunnel;

impl Io {
    /// The raw socket of the family of the tunnel's peer.
    fn raw_socket(&self, tunnel: &Tunnel) -> Option<&RawSocket> {
        let is_v4 = tunnel.peer().is_ipv4();
        self.raw.iter().find(|socket| socket.is_v4() == is_v4)
    }

    /// As [`Io::send`], for a tunnel of plain ESP.
    pub(super) fn send_plain(&self, tunnel: &Tunnel, bytes: &[u8], stride: usize, marks: Marks) {
        let count = |bytes: &[u8]| bytes.len().div_ceil(stride);
        let Some(socket) = self.raw_socket(tunnel) else {
            let error = io::Error::from_raw_os_error(libc::EAFNOSUPPORT);
            self.fail(tunnel, &error, count(bytes));
            return;
        };
        if marks.may_fragment {
            let _ = socket.set_dont_fragment(false);
        }
        let sending = Sending {
            to: &tunnel.to,
            from: tunnel.config.source,
            segment: None,
            traffic_class: marks.traffic_class,
        };
        let (mut rest, mut is_second_try) = (bytes, false);
        while !rest.is_empty() {
            add(&self.counters.sends, 1);
            match socket.send(rest, stride, sending) {
                Ok(sent) => {
                    add(&self.counters.sent_packets, sent);
                    rest = rest.get(sent * stride..).unwrap_or_default();
                    is_second_try = false;
                }
                Err(error) if !is_second_try && is_about_another(&error) => {
                    self.take_errors();
                    is_second_try = true;
                }
                // What follows has the same length and the same way.
                Err(error) => {
                    self.fail(tunnel, &error, count(rest));
                    rest = &[];
                }
            }
        }
        if marks.may_fragment {
            let _ = socket.set_dont_fragment(true);
        }
    }
}

impl Inbound {
    /// Reads once from a raw socket. `false`: it had nothing.
    pub(crate) fn step_plain(
        &mut self,
        context: &Context<'_>,
        socket: &RawSocket,
    ) -> io::Result<bool> {
        let (mut arrived, mut number) = (ArrayVec::new(), None);
        let room = self.make_room(context);
        context.begin_to_read();
        let received = {
            let mut reads = context.order.map(|(order, _)| lock(&order.reads));
            if let Some(reads) = &mut reads {
                **reads += 1;
                number = Some(**reads);
            }
            socket.receive(room, &mut arrived)
        };
        let malformed = match received {
            Ok(malformed) => malformed,
            Err(error) => {
                context.end_to_read();
                return nothing(context.io, error);
            }
        };
        self.note_arrival(context, number);
        self.open_plain(context, &arrived, malformed);
        context.end_to_read();
        self.write_due(context);
        Ok(true)
    }

    /// Opens all packets of a read.
    fn open_plain(&mut self, context: &Context<'_>, arrived: &[Arrived], malformed: usize) {
        let counters = &context.io.counters;
        add(&counters.receives, 1);
        add(&counters.received_packets, arrived.len() + malformed);
        if malformed > 0 {
            counters.lose(Loss::Truncated, malformed);
        }
        let mut rest = arrived;
        while let Some(first) = rest.first() {
            if first.len < 8 {
                counters.lose(Loss::Truncated, 1);
                rest = &rest[1..];
                continue;
            }
            // The packets of one SA that follow each other, with the same marks.
            let spi = long(self.buffer(), first.at);
            let mut datagrams = Places::new();
            for packet in rest {
                let is_like = packet.len >= 8
                    && packet.traffic_class == first.traffic_class
                    && long(self.buffer(), packet.at) == spi;
                if !is_like {
                    break;
                }
                datagrams.push((packet.at, packet.len));
            }
            let tunnel = context.table.by_spi(spi);
            match tunnel.filter(|tunnel| !tunnel.config.in_udp) {
                Some(tunnel) => {
                    let ecn = Ecn::of(first.traffic_class);
                    self.open(context, tunnel, &datagrams, ecn);
                }
                None => counters.lose(Loss::UnknownSpi, datagrams.len()),
            }
            rest = &rest[datagrams.len()..];
        }
    }
}
