//! The order in which several threads write what they have opened: what a thread has opened
//! before its turn waits in its buffers while the thread reads on.
//!
//! All threads read from the same sockets, so that packets have their order until they are read;
//! `cipherlane_esp::order` says whose turn it is from then on, flow by flow.

use std::net::IpAddr;
use std::os::fd::OwnedFd;

use super::inbound::{Context, Inbound, deliver};
use super::io::Io;
use super::sleepers::sleep_alone;
use crate::counters::{Loss, add};
use crate::packet::inner::Inner;
use crate::service::Flow;
use crate::sys::steering::SPREAD;

/// How often a thread looks whether it is its turn before it sleeps.
const LOOKS: usize = 8;

impl Context<'_> {
    /// The thread is about to read.
    #[inline]
    pub(super) fn begin_to_read(&self) {
        if let Some((order, _)) = self.order {
            order.readers.begin(self.io.thread);
        }
    }

    /// The thread holds what it has read.
    #[inline]
    pub(super) fn end_to_read(&self) {
        if let Some((order, _)) = self.order {
            order.readers.end(self.io.thread);
            order.sleepers.wake_all();
        }
    }
}

impl Inbound {
    /// Where packets are received. What waits for its turn is written, if nothing else makes room.
    pub(super) fn make_room(&mut self, context: &Context<'_>) -> &mut [u8] {
        self.write_due(context);
        let mut looks = 0;
        while self.opened.is_full() {
            self.wait_for_turn(context, &mut looks, sleep_alone);
        }
        let (place, room) = self.opened.room();
        self.current = place;
        room
    }

    /// The table is about to change from that of `context`: what waits is written.
    pub(crate) fn forget(&mut self, context: &Context<'_>) {
        while !self.opened.is_empty() {
            self.write(context, 0);
        }
        self.last = None;
    }

    /// Lets others have the processor, and after some `looks` sleeps by `sleep`, where nothing can
    /// be written.
    pub(crate) fn wait_for_turn(
        &mut self,
        context: &Context<'_>,
        looks: &mut usize,
        sleep: impl FnOnce(&OwnedFd),
    ) {
        add(&context.io.counters.waits, 1);
        *looks += 1;
        match context.order {
            Some((order, wake)) if *looks > LOOKS => {
                let mut is_over = || {
                    let before = self.opened.len();
                    self.write_due(context);
                    self.opened.len() < before
                };
                let thread = context.io.thread;
                order.sleepers.sleep(thread, &mut is_over, || sleep(wake));
            }
            _ => std::thread::yield_now(),
        }
        self.write_due(context);
    }

    /// Whether packets wait for their turn to be written.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.opened.is_empty()
    }

    /// Writes what waits, as far as it is its turn or those before it seem to be lost.
    #[inline]
    pub(crate) fn write_due(&mut self, context: &Context<'_>) {
        let Io {
            thread, counters, ..
        } = context.io;
        let mut place = 0;
        while place < self.opened.len() {
            let Some(batch) = self.opened.first_of_its_flows(place) else {
                place += 1;
                continue;
            };
            let tunnel = context.table.by_spi(batch.spi);
            if let Some((order, _)) = context.order
                && let Some(turns) = tunnel.and_then(|tunnel| tunnel.turns.as_ref())
                && let what = (batch.first, batch.flows)
                && !turns.is_next(&order.readers, *thread, batch.arrived, what)
            {
                if batch.is_fresh() {
                    add(&counters.turns_awaited, 1);
                }
                if !batch.is_overdue() {
                    place += 1;
                    continue;
                }
                add(&counters.turns_missed, 1);
            }
            self.write(context, place);
        }
    }

    /// Makes room by what waits longest, whether it is its turn or not.
    #[cold]
    pub(super) fn write_early(&mut self, context: &Context<'_>) {
        add(&context.io.counters.turns_missed, 1);
        self.write(context, 0);
    }

    /// Writes a batch that waits.
    fn write(&mut self, context: &Context<'_>, place: usize) {
        let Some(batch) = self.opened.remove(place) else {
            return;
        };
        let (slot, tunnel) = (batch.slot, context.table.by_spi(batch.spi));
        match tunnel {
            Some(tunnel) => {
                let buffer = self.opened.buffer(batch.buffer);
                deliver(buffer, &mut self.last, context, tunnel, &batch.places);
            }
            None => context
                .io
                .counters
                .lose(Loss::UnknownSpi, batch.places.len()),
        }
        self.opened.written(batch);
        if let Some(turns) = tunnel.and_then(|tunnel| tunnel.turns.as_ref()) {
            turns.end(context.io.thread, slot);
            if let Some((order, _)) = context.order {
                order.sleepers.wake_all();
            }
        }
    }
}

/// The flow of a packet, as one bit of 32: all packets of a flow have the same. Fragments, which
/// do not tell their flow, have all bits.
#[inline]
pub(super) fn flow(packet: &[u8]) -> u32 {
    let Some(inner) = Inner::of(packet).filter(|inner| !inner.is_fragment) else {
        return u32::MAX;
    };
    let flow = Flow::of(&inner, packet);
    let (source, destination) = flow.ports.unwrap_or_default();
    let ports = u64::from(source) << 16 | u64::from(destination);
    let sum = fold(flow.source)
        .wrapping_mul(31)
        .wrapping_add(fold(flow.destination))
        .wrapping_mul(31)
        .wrapping_add(ports << 8 | u64::from(flow.protocol));
    // The upper bits of a product depend on all bits.
    1 << (sum.wrapping_mul(SPREAD) >> 59)
}

fn fold(address: IpAddr) -> u64 {
    match address {
        IpAddr::V4(address) => u32::from(address).into(),
        IpAddr::V6(address) => {
            let bits = u128::from(address);
            (bits >> 64) as u64 ^ bits as u64
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An IPv4 packet from a port of one host to one of another.
    fn packet(ports: [u16; 2], fragment: u16) -> Vec<u8> {
        let mut packet = vec![
            0x45, 0, 0, 28, 0, 7, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
        ];
        packet[6..8].copy_from_slice(&fragment.to_be_bytes());
        packet.extend(ports.iter().flat_map(|port| port.to_be_bytes()));
        packet.extend([0, 8, 0, 0]);
        packet
    }

    #[test]
    fn a_flow_is_one_bit_and_flows_have_many() {
        let mut seen = 0;
        for port in 0..200 {
            let bit = flow(&packet([port, 53], 0x4000));
            assert_eq!(bit.count_ones(), 1);
            assert_eq!(bit, flow(&packet([port, 53], 0)));
            seen |= bit;
        }
        assert_eq!(seen, u32::MAX);
    }

    #[test]
    fn what_does_not_tell_its_flow_may_be_of_any() {
        for fragment in [0x2000, 0x2003, 3] {
            assert_eq!(flow(&packet([1, 53], fragment)), u32::MAX);
        }
        assert_eq!(flow(&[0x45; 19]), u32::MAX);
    }
}
