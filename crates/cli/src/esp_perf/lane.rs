//! What one thread works on: packets in memory of its own, put back before every pass.

use std::ops::Range;
use std::sync::{PoisonError, RwLock};

use cipherlane_core::Framework;
use cipherlane_esp::{InboundSa, OutboundSa, Packet, Refusal, SaParameters, Verdict};
use cipherlane_measure::subject::Failure;
use cipherlane_measure::teams::Member;

use super::arguments::Direction;
use super::traffic::Traffic;

/// Bytes of packets that a thread has, so that they stay in the cache of its core.
const MEMORY: usize = 256 << 10;
/// Packets with consecutive numbers; the longest multipacket.
pub(super) const RUN: usize = 64;
/// The replay window. All packets of all threads fit into it, so that a thread that has to wait
/// for its processor loses none.
pub(super) const WINDOW: u32 = 65_536;
/// The most threads whose packets fit, two runs of each.
pub(super) const MOST_THREADS: usize = WINDOW as usize / (2 * RUN);

/// The one SA of all threads.
pub(super) enum Association<'f> {
    Outbound(Box<OutboundSa>),
    Inbound {
        /// Written only while nobody works.
        sa: Box<RwLock<InboundSa>>,
        framework: &'f Framework,
        parameters: Box<SaParameters>,
    },
}

impl<'f> Association<'f> {
    pub(super) fn new(
        framework: &'f Framework,
        parameters: SaParameters,
        direction: Direction,
    ) -> Result<Self, cipherlane_esp::Error> {
        Ok(match direction {
            Direction::Seal => {
                Association::Outbound(Box::new(OutboundSa::new(framework, parameters)?))
            }
            Direction::Open => Association::Inbound {
                sa: Box::new(RwLock::new(InboundSa::new(framework, parameters.clone())?)),
                framework,
                parameters: Box::new(parameters),
            },
        })
    }

    /// Makes the inbound SA anew, with the same keys and an empty window.
    pub(super) fn renew(&self) -> Result<(), Failure> {
        if let Association::Inbound {
            sa,
            framework,
            parameters,
        } = self
        {
            let new = InboundSa::new(framework, SaParameters::clone(parameters))?;
            *sa.write().unwrap_or_else(PoisonError::into_inner) = new;
        }
        Ok(())
    }
}

impl Association<'_> {
    /// Seals or opens, `multipacket` packets per call.
    fn process(&self, packets: &mut [Packet<'_>], multipacket: usize) {
        let calls = packets.chunks_mut(multipacket);
        match self {
            Association::Outbound(sa) => calls.for_each(|packets| sa.seal(packets)),
            Association::Inbound { sa, .. } => {
                let sa = sa.read().unwrap_or_else(PoisonError::into_inner);
                calls.for_each(|packets| sa.open(packets));
            }
        }
    }
}

/// Where a packet lies in the lane's memory, and where its first state is kept.
struct Place {
    buffer: Range<usize>,
    kept: Range<usize>,
}

/// The packets of one thread.
pub(super) struct Lane<'l, 'm> {
    association: &'l Association<'l>,
    /// Packets per call, by team.
    multipackets: &'l [usize],
    packets: Vec<Packet<'m>>,
    places: Vec<Place>,
    kept: Vec<u8>,
}

/// How many packets of this traffic each of `threads` lanes has: whole runs, all of them within
/// the window. The first run of each only brings the SA into the cache of the thread's core.
pub(super) fn packets(traffic: &Traffic, room: usize, threads: usize) -> usize {
    let packet = traffic.mean() as usize + room;
    let least = traffic.len().min(1024).next_multiple_of(RUN);
    let most = WINDOW as usize / threads / RUN * RUN;
    ((MEMORY / packet / RUN * RUN).max(least) + RUN).min(most)
}

/// Memory for `packets` packets with `room` bytes around each.
pub(super) fn memory(traffic: &Traffic, packets: usize, room: usize) -> Vec<u8> {
    vec![0; packets * slot(traffic, room)]
}

/// Whole cache lines.
fn slot(traffic: &Traffic, room: usize) -> usize {
    (traffic.longest() + room).next_multiple_of(64)
}

impl<'l, 'm> Lane<'l, 'm> {
    /// Packets in `memory`, plain.
    pub(super) fn new(
        association: &'l Association<'l>,
        multipackets: &'l [usize],
        traffic: &Traffic,
        memory: &'m mut [u8],
        (head, tail): (usize, usize),
    ) -> Self {
        let slots = memory.chunks_exact_mut(slot(traffic, head + tail));
        let packets = slots.zip(traffic.packets()).map(|(slot, plain)| {
            let mut packet = Packet::new(slot, head..head + plain.len());
            packet.content_mut().copy_from_slice(plain);
            packet
        });
        let packets: Vec<Packet<'m>> = packets.collect();
        let mut lane = Lane {
            association,
            multipackets,
            packets,
            places: Vec::new(),
            kept: Vec::new(),
        };
        lane.keep();
        lane
    }

    /// The packets in runs that get consecutive numbers.
    pub(super) fn runs(&mut self) -> impl Iterator<Item = &mut [Packet<'m>]> {
        self.packets.chunks_mut(RUN)
    }

    /// From now on the packets are put back as they are now.
    pub(super) fn keep(&mut self) {
        self.places.clear();
        self.kept.clear();
        for packet in &self.packets {
            let start = self.kept.len();
            self.kept.extend_from_slice(packet.content());
            self.places.push(Place {
                buffer: packet.range(),
                kept: start..self.kept.len(),
            });
        }
    }
}

impl Member for Lane<'_, '_> {
    fn prepare(&mut self) -> Result<(), Failure> {
        for (packet, place) in self.packets.iter_mut().zip(&self.places) {
            packet.reset(place.buffer.clone());
            packet
                .content_mut()
                .copy_from_slice(&self.kept[place.kept.clone()]);
        }
        self.association.process(&mut self.packets[..RUN], RUN);
        Ok(())
    }

    fn work(&mut self, team: usize) {
        let multipacket = self.multipackets[team];
        self.association
            .process(&mut self.packets[RUN..], multipacket);
    }

    /// A packet that a thread without a processor brought too late is not counted; any other
    /// refusal is an error.
    fn check(&mut self) -> Result<u64, Failure> {
        let mut count = 0;
        for packet in &self.packets[RUN..] {
            match packet.verdict() {
                Verdict::Sealed | Verdict::Accepted => count += 1,
                Verdict::Refused(Refusal::TooOld) => (),
                other => return Err(format!("a packet of its own came out {other:?}").into()),
            }
        }
        Ok(count)
    }
}
