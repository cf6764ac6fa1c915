//! An inbound SA: parses packets, checks them against the replay window, has them opened,
//! and accepts each sequence number once.

use std::sync::atomic::{AtomicU64, Ordering};

use arrayvec::ArrayVec;
use cipherlane::Framework;

use crate::lifetime::{Life, Observer};
use crate::protection::{self, HEADER, LANES, Layout, Protection};
use crate::replay::Window;
use crate::statistics::{Shards, Statistics, Tally};
use crate::trailer::{self, protocol};
use crate::{Encapsulation, Error, Event, Malformed, Mode, Packet, Refusal, SaParameters, Verdict};

/// An SA that opens packets, on any number of threads at once.
pub struct InboundSa {
    window: Window,
    spi: u32,
    esn: bool,
    mode: Mode,
    udp: bool,
    layout: Layout,
    protection: Box<dyn Protection>,
    /// Packets that were not authentic, where they are limited.
    invalid: Option<Invalid>,
    life: Life,
    statistics: Shards,
}

/// A count of packets that were not authentic, and how many there may be.
struct Invalid {
    seen: AtomicU64,
    limit: u64,
}

impl InboundSa {
    /// Checks the parameters and expands the keys.
    pub fn new(framework: &Framework, parameters: &SaParameters) -> Result<Self, Error> {
        parameters.check(match parameters.esn {
            true => u64::MAX,
            false => u32::MAX.into(),
        })?;
        let protection = protection::protection(framework, parameters)?;
        let last = parameters.first_sequence - 1;
        let window = match parameters.replay_window {
            None => Window::off(last),
            Some(width) => Window::after(last, width)?,
        };
        Ok(InboundSa {
            window,
            spi: parameters.spi,
            esn: parameters.esn,
            mode: parameters.mode,
            udp: parameters.encapsulation != Encapsulation::None,
            layout: protection.layout(),
            invalid: protection.invalid_limit().map(|limit| Invalid {
                seen: AtomicU64::new(0),
                limit,
            }),
            protection,
            life: Life::new(&parameters.lifetimes),
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

    /// The highest sequence number accepted; 0 before the first.
    pub fn highest_sequence(&self) -> u64 {
        self.window.top()
    }

    /// Whether a hard lifetime or the limit of invalid packets was reached.
    pub fn is_over(&self) -> bool {
        self.life.is_over()
    }

    /// What it has done.
    pub fn statistics(&self) -> Statistics {
        let mut sum = self.statistics.sum();
        sum.lost = self.window.lost();
        sum
    }

    /// Opens packets in place. The content of each is an ESP packet, from the SPI to the ICV;
    /// with UDP encapsulation it is what came behind the UDP header. Each has its own
    /// [verdict](Packet::verdict) afterwards. Of a packet that is
    /// [`Accepted`](Verdict::Accepted) the content is what ESP protected.
    pub fn open(&self, packets: &mut [Packet<'_>]) {
        let mut tally = Tally::default();
        for group in packets.chunks_mut(LANES) {
            self.open_group(group, &mut tally);
        }
        self.statistics.add(&tally);
    }

    fn open_group(&self, group: &mut [Packet<'_>], tally: &mut Tally) {
        let over = self.life.is_over();
        for packet in group.iter_mut() {
            packet.set_verdict(Verdict::Pending);
            let parsed = match over {
                true => Err(Refusal::Expired),
                false => self.parse(packet.content()),
            };
            match parsed {
                Ok(sequence) => packet.set_sequence(sequence),
                Err(refusal) => packet.refuse(refusal),
            }
        }
        self.protection.open(group);
        self.count_invalid(group);
        for packet in group.iter_mut().filter(|packet| packet.is_pending()) {
            if let Err(malformed) = self.unframe(packet) {
                packet.refuse_and_wipe(Refusal::Malformed(malformed));
            }
        }
        let (packets, bytes) = self.commit(group);
        if let Some(mut rest) = self.life.spend(packets, bytes) {
            let opened = |packet: &&mut Packet<'_>| is_opened(packet);
            for packet in group.iter_mut().filter(opened) {
                if !rest.take(packet.len()) {
                    packet.refuse_and_wipe(Refusal::Expired);
                }
            }
        }
        for packet in group.iter() {
            match packet.verdict() {
                Verdict::Refused(refusal) => tally.refuse(refusal),
                _ => {
                    tally.packets += 1;
                    tally.bytes += packet.len() as u64;
                }
            }
        }
    }

    /// All that can be said of a packet without cryptography: its whole sequence number, or
    /// why it is refused.
    #[inline]
    fn parse(&self, packet: &[u8]) -> Result<u64, Refusal> {
        let Layout {
            iv,
            icv,
            block,
            longest,
            ..
        } = self.layout;
        let Some(&[s0, s1, s2, s3, n0, n1, n2, n3]) = packet.first_chunk::<HEADER>() else {
            return Err(self.refuse_short(packet));
        };
        let spi = u32::from_be_bytes([s0, s1, s2, s3]);
        if spi != self.spi {
            return Err(match spi {
                0 if self.udp => Refusal::NonEspMarker,
                _ => Refusal::WrongSpi,
            });
        }
        if packet.len() > longest {
            return Err(Refusal::TooLong);
        }
        // The trailer alone fills a block.
        let Some(ciphertext) = packet
            .len()
            .checked_sub(HEADER + iv + icv)
            .filter(|&n| n > 0)
        else {
            return Err(Refusal::Malformed(Malformed::Truncated));
        };
        if ciphertext & (block - 1) != 0 {
            return Err(Refusal::Malformed(Malformed::Unaligned));
        }
        let low = u32::from_be_bytes([n0, n1, n2, n3]);
        let sequence = self.whole_sequence(low)?;
        self.protection.precheck(packet, sequence)?;
        Ok(sequence)
    }

    #[cold]
    fn refuse_short(&self, packet: &[u8]) -> Refusal {
        match packet {
            [0xff] if self.udp => Refusal::Keepalive,
            [0, 0, 0, 0, ..] if self.udp => Refusal::NonEspMarker,
            _ => Refusal::Malformed(Malformed::Truncated),
        }
    }

    /// Infers the upper half where there is one, and looks into the window.
    #[inline]
    fn whole_sequence(&self, low: u32) -> Result<u64, Refusal> {
        // In the first 2^32 numbers a lower half of 0 can only be number 0, unless the
        // window has come near their end.
        let sequence = match self.esn {
            true => self.window.infer(low),
            false => self.window.check(low.into()).map(|()| low.into()),
        };
        match sequence {
            Ok(0) => Err(Refusal::Malformed(Malformed::ZeroSequence)),
            Err(_) if low == 0 && self.window.top() >> 32 == 0 => {
                Err(Refusal::Malformed(Malformed::ZeroSequence))
            }
            Ok(sequence) => Ok(sequence),
            Err(refusal) => Err(refusal),
        }
    }

    /// Takes header and trailer off an opened packet, and what follows the packet in a tunnel.
    #[inline]
    fn unframe(&self, packet: &mut Packet<'_>) -> Result<(), Malformed> {
        let range = packet.range();
        let (start, end) = (
            range.start + HEADER + self.layout.iv,
            range.end - self.layout.icv,
        );
        let plaintext = &packet.buffer()[start..end];
        let (mut len, next_header) = trailer::read(plaintext, self.layout.zero_padding)?;
        if self.mode == Mode::Tunnel && next_header != protocol::NONE {
            len = trailer::inner_len(&plaintext[..len], next_header)?;
        }
        packet.set_next_header(next_header);
        packet.set_range(start..start + len);
        Ok(())
    }

    /// Accepts the pending packets whose numbers are new; how many, and their bytes.
    #[inline]
    fn commit(&self, group: &mut [Packet<'_>]) -> (u64, u64) {
        let mut numbers: ArrayVec<u64, LANES> = ArrayVec::new();
        for packet in group.iter().filter(|packet| packet.is_pending()) {
            numbers.push(packet.sequence());
        }
        let mut answers = [Ok(()); LANES];
        self.window.commit_batch(&numbers, &mut answers);
        let (mut packets, mut bytes) = (0, 0);
        let pending = group.iter_mut().filter(|packet| packet.is_pending());
        for (packet, answer) in pending.zip(answers) {
            match answer {
                Ok(()) => {
                    packet.set_verdict(match packet.next_header() {
                        protocol::NONE => Verdict::Dummy,
                        _ => Verdict::Accepted,
                    });
                    packets += 1;
                    bytes += packet.len() as u64;
                }
                Err(refusal) => packet.refuse_and_wipe(refusal),
            }
        }
        (packets, bytes)
    }

    #[inline]
    fn count_invalid(&self, group: &[Packet<'_>]) {
        let Some(Invalid { seen, limit }) = &self.invalid else {
            return;
        };
        let bad = Verdict::Refused(Refusal::BadIcv);
        let bad = group.iter().filter(|packet| packet.verdict() == bad);
        let bad = bad.count() as u64;
        if bad > 0 && seen.fetch_add(bad, Ordering::Relaxed) + bad >= *limit {
            self.life.tell(Event::TooManyInvalid);
        }
    }
}

fn is_opened(packet: &Packet<'_>) -> bool {
    matches!(packet.verdict(), Verdict::Accepted | Verdict::Dummy)
}

impl std::fmt::Debug for InboundSa {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InboundSa")
            .field("spi", &self.spi)
            .field("mode", &self.mode)
            .field("window", &self.window)
            .finish_non_exhaustive()
    }
}
