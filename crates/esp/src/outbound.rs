//! An outbound SA: numbers packets, frames them, and has them protected.

use cipherlane_core::Framework;

use crate::lifetime::{Life, Observer};
use crate::protection::{self, HEADER, LANES, Layout, Protection};
use crate::sequence::Counter;
use crate::statistics::{Shards, Statistics, Tally};
use crate::trailer::{self, protocol};
use crate::{Error, Event, Mode, Packet, Refusal, SaParameters, Verdict};

/// An SA that seals packets, on any number of threads of the process that made it at once.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use cipherlane_esp::{IvOrigin, Keys, Mode, OutboundSa, Packet, SaParameters, Suite};
/// use cipherlane_esp::Verdict;
///
/// let framework = cipherlane::Framework::new()?;
/// let suite = Suite::AesGcm { icv: 16, iv: IvOrigin::Explicit };
/// let mut parameters = SaParameters::new(0x1234, suite, Keys::combined(&[7; 20]));
/// parameters.mode = Mode::Transport;
/// let sa = OutboundSa::new(&framework, parameters)?;
///
/// let mut buffer = [0; 2048];
/// let mut packet = Packet::new(&mut buffer, 64..164).with_next_header(17);
/// assert_eq!(sa.seal_one(&mut packet), Verdict::Sealed);
/// assert_eq!(packet.content()[..8], [0, 0, 0x12, 0x34, 0, 0, 0, 1]);
/// # Ok(())
/// # }
/// ```
pub struct OutboundSa {
    counter: Counter,
    spi: u32,
    mode: Mode,
    layout: Layout,
    protection: Box<dyn Protection>,
    life: Life,
    statistics: Shards,
}

impl OutboundSa {
    /// Checks the parameters and expands the keys.
    pub fn new(framework: &Framework, parameters: SaParameters) -> Result<Self, Error> {
        parameters.check(Counter::last(parameters.esn))?;
        let protection = protection::protection(framework, &parameters)?;
        Ok(OutboundSa {
            counter: Counter::new(parameters.last() + 1, parameters.esn),
            spi: parameters.spi,
            mode: parameters.mode,
            layout: protection.layout(),
            protection,
            life: Life::new(&parameters.lifetimes, framework.clock()),
            statistics: Shards::new(),
        })
    }

    /// Tells `observer` of events.
    pub fn with_observer(mut self, observer: Observer) -> Self {
        self.life.set_observer(observer);
        self
    }

    /// Security parameters index.
    pub fn spi(&self) -> u32 {
        self.spi
    }

    /// Bytes of room that a packet needs before its content.
    pub fn head_room(&self) -> usize {
        HEADER + self.layout.iv
    }

    /// Bytes of room that a packet needs behind its content, at most.
    pub fn tail_room(&self) -> usize {
        self.layout.block - 1 + trailer::FIXED + self.layout.icv
    }

    /// Bytes of the ESP packet, from the SPI to the ICV, that seals `content` bytes.
    pub fn sealed_len(&self, content: usize) -> usize {
        let pad = trailer::pad_len(content, self.layout.block);
        self.head_room() + content + pad + trailer::FIXED + self.layout.icv
    }

    /// The sequence number of the next packet.
    pub fn next_sequence(&self) -> u64 {
        self.counter.next()
    }

    /// Whether it seals nothing any more: a hard lifetime or the end of the sequence numbers
    /// was reached, or this is a child of the process that made it.
    pub fn is_over(&self) -> bool {
        self.life.end().is_some()
    }

    /// Looks whether a lifetime in seconds has passed, as every batch does: for a timer of the
    /// owner, where an SA may have no traffic.
    pub fn check_age(&self) {
        self.life.check_age();
    }

    /// What it has done.
    pub fn statistics(&self) -> Statistics {
        self.statistics.sum()
    }

    /// Seals packets in place, with consecutive sequence numbers in their order. Each has its
    /// own [verdict](Packet::verdict) afterwards: [`Sealed`](Verdict::Sealed), or why not, and
    /// then its content is as it was unless a driver failed.
    pub fn seal(&self, packets: &mut [Packet<'_>]) {
        let mut tally = Tally::default();
        let (mut count, mut bytes) = (0, 0);
        for packet in packets.iter_mut() {
            packet.set_verdict(Verdict::Pending);
            match self.check(packet) {
                Ok(next_header) => {
                    packet.set_next_header(next_header);
                    count += 1;
                    bytes += packet.len() as u64;
                }
                Err(refusal) => packet.refuse(refusal),
            }
        }
        self.life.check_age();
        if let Some(refusal) = self.life.end() {
            count = 0;
            refuse_pending(packets, refusal);
        } else if let Some(mut rest) = self.life.spend(count as u64, bytes) {
            let pending = packets.iter_mut().filter(|packet| packet.is_pending());
            for packet in pending.filter(|packet| !rest.take(packet.len())) {
                packet.refuse(Refusal::Expired);
                count -= 1;
            }
        }
        if count > 0 {
            let mut sequence = self.counter.take(count);
            for group in packets.chunks_mut(LANES) {
                sequence = self.seal_group(group, sequence, &mut tally);
            }
        }
        for packet in packets.iter() {
            if let Verdict::Refused(refusal) = packet.verdict() {
                tally.refuse(refusal);
            }
        }
        self.statistics.add(&tally);
    }

    /// [`seal`](Self::seal) for a packet that comes alone. Several in one call are faster.
    #[must_use = "a packet that was refused was not sealed"]
    pub fn seal_one(&self, packet: &mut Packet<'_>) -> Verdict {
        self.seal(std::slice::from_mut(packet));
        packet.verdict()
    }

    /// Seals the pending ones of up to [`LANES`] packets; the number behind their last.
    fn seal_group(&self, group: &mut [Packet<'_>], first: u64, tally: &mut Tally) -> u64 {
        let mut sequence = first;
        let mut bytes = 0;
        for packet in group.iter_mut().filter(|packet| packet.is_pending()) {
            if self.counter.is_usable(sequence) {
                bytes += packet.len() as u64;
                self.frame(packet, sequence);
            } else {
                packet.refuse(Refusal::SequenceExhausted);
                self.life.tell(Event::SequenceExhausted);
            }
            sequence += 1;
        }
        self.protection.seal(group);
        for packet in group.iter_mut() {
            if packet.is_pending() {
                packet.set_verdict(Verdict::Sealed);
                tally.packets += 1;
            }
        }
        tally.bytes += bytes;
        sequence
    }

    /// Whether a packet can be sealed, and its next header.
    #[inline]
    fn check(&self, packet: &Packet<'_>) -> Result<u8, Refusal> {
        let next_header = match self.mode {
            Mode::Transport => packet.next_header(),
            Mode::Tunnel if packet.next_header() == protocol::NONE => protocol::NONE,
            Mode::Tunnel => {
                let content = packet.content();
                let version = trailer::tunnelled(content).ok_or(Refusal::NotTunnelled)?;
                trailer::inner_len(content, version).map_err(|_| Refusal::NotTunnelled)?;
                version
            }
        };
        let head = HEADER + self.layout.iv;
        let pad = trailer::pad_len(packet.len(), self.layout.block);
        let tail = pad + trailer::FIXED + self.layout.icv;
        if packet.len() > self.layout.longest - head - tail {
            Err(Refusal::TooLong)
        } else if packet.head_room() < head || packet.tail_room() < tail {
            Err(Refusal::NoRoom)
        } else {
            Ok(next_header)
        }
    }

    /// Puts header and trailer around the content; the IV and the ICV are still missing.
    #[inline]
    fn frame(&self, packet: &mut Packet<'_>, sequence: u64) {
        let next_header = packet.next_header();
        let pad = trailer::pad_len(packet.len(), self.layout.block);
        let payload = packet.range();
        let start = payload.start - HEADER - self.layout.iv;
        let end = payload.end + pad + trailer::FIXED + self.layout.icv;
        trailer::write(&mut packet.buffer_mut()[payload.end..end], pad, next_header);
        packet.set_range(start..end);
        packet.set_sequence(sequence);
        let header = u64::from(self.spi) << 32 | u64::from(sequence as u32);
        packet.content_mut()[..HEADER].copy_from_slice(&header.to_be_bytes());
    }
}

#[cold]
fn refuse_pending(packets: &mut [Packet<'_>], refusal: Refusal) {
    for packet in packets.iter_mut().filter(|packet| packet.is_pending()) {
        packet.refuse(refusal);
    }
}

impl std::fmt::Debug for OutboundSa {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OutboundSa")
            .field("spi", &self.spi)
            .field("mode", &self.mode)
            .field("next_sequence", &self.counter.next())
            .finish_non_exhaustive()
    }
}
