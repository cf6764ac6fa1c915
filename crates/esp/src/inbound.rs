//! An inbound SA: parses packets, checks them against the replay window, has them opened,
//! and accepts each sequence number once.

use arrayvec::ArrayVec;
use cipherlane_core::Framework;

use crate::forgeries::Forgeries;
use crate::lifetime::{Life, Observer};
use crate::protection::{self, HEADER, LANES, Layout, Protection};
use crate::replay::Window;
use crate::resynchronization::{self, Resynchronization};
use crate::statistics::{Shards, Statistics, Tally};
use crate::trailer::{self, protocol};
use crate::{Encapsulation, Error, Event, Malformed, Mode, Packet, Refusal, SaParameters, Verdict};

/// An SA that opens packets, on any number of threads of the process that made it at once. A
/// child of that process has a copy of the replay window and would accept what its parent has
/// accepted, so there everything is refused as [`Forked`](Refusal::Forked).
pub struct InboundSa {
    window: Window,
    spi: u32,
    esn: bool,
    mode: Mode,
    udp: bool,
    layout: Layout,
    protection: Box<dyn Protection>,
    life: Life,
    resynchronization: Resynchronization,
    forgeries: Forgeries,
    statistics: Shards,
}

impl InboundSa {
    /// Checks the parameters and expands the keys.
    pub fn new(framework: &Framework, parameters: SaParameters) -> Result<Self, Error> {
        parameters.check(match parameters.esn {
            true => u64::MAX,
            false => u32::MAX.into(),
        })?;
        let protection = protection::protection(framework, &parameters)?;
        let last = parameters.last();
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
            forgeries: Forgeries::new(parameters.lifetimes.forgeries, protection.forgery_limit())?,
            protection,
            life: Life::new(&parameters.lifetimes, framework.clock()),
            resynchronization: Resynchronization::new(),
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

    /// Whether it opens nothing any more: a hard lifetime or the limit of forged packets was
    /// reached, or this is a child of the process that made it.
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
        let mut sum = self.statistics.sum();
        sum.lost = self.window.lost();
        sum
    }

    /// Opens packets in place. The content of each is an ESP packet, from the SPI to the ICV;
    /// with UDP encapsulation it is what came behind the UDP header. Each has its own
    /// [verdict](Packet::verdict) afterwards. Of a packet that is
    /// [`Accepted`](Verdict::Accepted) the content is what ESP protected.
    pub fn open(&self, packets: &mut [Packet<'_>]) {
        self.life.check_age();
        let mut tally = Tally::default();
        for group in packets.chunks_mut(LANES) {
            self.open_group(group, &mut tally);
        }
        self.statistics.add(&tally);
    }

    /// [`open`](Self::open) for a packet that comes alone. Several in one call are faster.
    #[must_use = "a packet that was refused must not be used"]
    pub fn open_one(&self, packet: &mut Packet<'_>) -> Verdict {
        self.open(std::slice::from_mut(packet));
        packet.verdict()
    }

    fn open_group(&self, group: &mut [Packet<'_>], tally: &mut Tally) {
        let end = self.life.end();
        for packet in group.iter_mut() {
            packet.set_verdict(Verdict::Pending);
            let parsed = match end {
                Some(refusal) => Err(refusal),
                None => self.parse(packet.content()),
            };
            match parsed {
                Ok(sequence) => packet.set_sequence(sequence),
                Err(refusal) => packet.refuse(refusal),
            }
        }
        match self.resynchronization.leap() {
            Some(halves) if self.esn => self.open_and_try(group, halves),
            _ => self.protection.open(group),
        }
        let (packets, bytes) = self.accept(group);
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

    /// Opens a group. If its first packet is not authentic, that is tried again with a number
    /// some upper halves ahead of the inferred one.
    #[cold]
    #[inline(never)]
    fn open_and_try(&self, group: &mut [Packet<'_>], halves: u64) {
        let mut copy: ArrayVec<u8, { resynchronization::LONGEST }> = ArrayVec::new();
        let fit = group.iter().position(|packet| {
            packet.is_pending() && copy.try_extend_from_slice(packet.content()).is_ok()
        });
        self.protection.open(group);
        let Some(packet) = fit.map(|place| &mut group[place]) else {
            return;
        };
        let refused = packet.verdict();
        let sequence = packet.sequence();
        let Some(leapt) = sequence.checked_add(halves << 32) else {
            return;
        };
        if !is_forged(refused) {
            return;
        }
        packet.content_mut().copy_from_slice(&copy);
        packet.set_verdict(Verdict::Pending);
        packet.set_sequence(leapt);
        self.protection.open(std::slice::from_mut(packet));
        if packet.is_pending() {
            self.life.tell(Event::Resynchronized);
        } else {
            packet.set_sequence(sequence);
        }
    }

    /// Marks the pending packets, all of them authentic, as received (RFC 4303 section 3.4.3:
    /// whatever they hold), and accepts those that are new and right; how many, and their bytes.
    #[inline]
    fn accept(&self, group: &mut [Packet<'_>]) -> (u64, u64) {
        let mut numbers: ArrayVec<u64, LANES> = ArrayVec::new();
        let mut is_any_forged = false;
        for packet in group.iter() {
            match packet.verdict() {
                Verdict::Pending => numbers.push(packet.sequence()),
                verdict => is_any_forged |= is_forged(verdict),
            }
        }
        if is_any_forged {
            self.count_forgeries(group, !numbers.is_empty());
        }
        if numbers.is_empty() {
            return (0, 0);
        }
        self.resynchronization.succeeded();
        let mut answers = [Ok(()); LANES];
        self.window.commit_batch(&numbers, &mut answers);
        let (mut packets, mut bytes) = (0, 0);
        let pending = group.iter_mut().filter(|packet| packet.is_pending());
        for (packet, answer) in pending.zip(answers) {
            let right = answer.and_then(|()| self.unframe(packet).map_err(Refusal::Malformed));
            match right {
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

    /// Some packets are not authentic; `others` says whether some are.
    #[cold]
    fn count_forgeries(&self, group: &[Packet<'_>], others: bool) {
        if !others {
            let forged = group.iter().filter(|packet| is_forged(packet.verdict()));
            self.resynchronization.failed(forged.count() as u64);
        }
        // What failed at the outer one of two ICVs was no guess at the inner one.
        let guess = Verdict::Refused(Refusal::BadIcv);
        let (mut packets, mut bytes) = (0, 0);
        for packet in group.iter().filter(|packet| packet.verdict() == guess) {
            packets += 1;
            bytes += packet.len() as u64;
        }
        if packets == 0 {
            return;
        }
        let told = self.forgeries.count(packets, bytes, self.life.now());
        told.into_iter()
            .flatten()
            .for_each(|event| self.life.tell(event));
    }
}

/// Whether an ICV was wrong.
fn is_forged(verdict: Verdict) -> bool {
    matches!(
        verdict,
        Verdict::Refused(Refusal::BadIcv | Refusal::BadOuterIcv)
    )
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
