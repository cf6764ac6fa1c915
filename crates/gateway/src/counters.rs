//! What the gateway counts: system calls and packets of each thread, packets dropped by reason,
//! how many packets a call carries.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use cipherlane_esp::{Refusal, Verdict};

/// Why the gateway dropped a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// From the TUN device: no tunnel's selectors hold it.
    NoPolicy,
    /// From the TUN device: the policy of IKE that holds it has no SA.
    NoSa,
    /// From the TUN device: no IP packet, or a super-packet that contradicts itself.
    MalformedInner,
    /// From the TUN device: longer than the tunnel takes; the sender was told.
    TooBig,
    /// No reserved sequence number was left.
    NotReserved,
    /// The SA refused to seal it.
    NotSealed,
    /// The system refused to send it.
    NotSent,
    /// From the peer: no SA has the SPI.
    UnknownSpi,
    /// From the peer: too short for ESP.
    Truncated,
    /// From the peer: a keepalive.
    Keepalive,
    /// From the peer: IKE, where no daemon is connected to the gateway.
    Ike,
    /// From the peer: the SA refused it.
    NotOpened,
    /// From the peer: the selectors of the tunnel do not hold it.
    Selectors,
    /// From the peer: its congestion marks contradict each other (RFC 6040 section 4.2).
    Congestion,
    /// From the peer: the system refused to take it.
    NotWritten,
}

impl Loss {
    /// Every reason, in the order of its discriminants.
    const ALL: [(Loss, &'static str); 15] = [
        (Loss::NoPolicy, "no_policy"),
        (Loss::NoSa, "no_sa"),
        (Loss::MalformedInner, "malformed_inner"),
        (Loss::TooBig, "too_big"),
        (Loss::NotReserved, "not_reserved"),
        (Loss::NotSealed, "not_sealed"),
        (Loss::NotSent, "not_sent"),
        (Loss::UnknownSpi, "unknown_spi"),
        (Loss::Truncated, "truncated"),
        (Loss::Keepalive, "keepalives"),
        (Loss::Ike, "ike"),
        (Loss::NotOpened, "not_opened"),
        (Loss::Selectors, "selectors"),
        (Loss::Congestion, "congestion"),
        (Loss::NotWritten, "not_written"),
    ];
}

/// The counters of one thread.
#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) tun_reads: AtomicU64,
    pub(crate) tun_packets: AtomicU64,
    pub(crate) tun_moved: AtomicU64,
    pub(crate) sends: AtomicU64,
    pub(crate) sent_packets: AtomicU64,
    pub(crate) receives: AtomicU64,
    pub(crate) received_packets: AtomicU64,
    pub(crate) tun_writes: AtomicU64,
    pub(crate) written_packets: AtomicU64,
    pub(crate) waits: AtomicU64,
    pub(crate) empty_calls: AtomicU64,
    /// Packets whose bytes the gateway itself has moved; one that was moved twice counts twice.
    pub(crate) copies: AtomicU64,
    pub(crate) panics: AtomicU64,
    /// Batches that came before their turn, of several threads.
    pub(crate) turns_awaited: AtomicU64,
    /// Those of them that were written out of turn.
    pub(crate) turns_missed: AtomicU64,
    drops: [AtomicU64; Loss::ALL.len()],
    /// What SAs refused: an SA counts that as well, and is replaced some day.
    refusals: [AtomicU64; Refusal::COUNT],
}

/// Adds to a counter.
#[inline]
pub(crate) fn add(counter: &AtomicU64, count: usize) {
    counter.fetch_add(count as u64, Relaxed);
}

impl Counters {
    /// Counts packets that were dropped.
    #[cold]
    pub(crate) fn lose(&self, reason: Loss, count: usize) {
        add(&self.drops[reason as usize], count);
    }

    /// Counts a packet that an SA refused to seal or to open.
    #[cold]
    pub(crate) fn refuse(&self, reason: Loss, verdict: Verdict) {
        self.lose(reason, 1);
        if let Verdict::Refused(refusal) = verdict {
            add(&self.refusals[refusal.index()], 1);
        }
    }

    /// Adds what this thread has counted to `sum`.
    pub(crate) fn add_to(&self, sum: &mut crate::status::Calls) {
        let read = |counter: &AtomicU64| counter.load(Relaxed);
        sum.tun_reads += read(&self.tun_reads);
        sum.tun_packets += read(&self.tun_packets);
        sum.tun_moved += read(&self.tun_moved);
        sum.sends += read(&self.sends);
        sum.sent_packets += read(&self.sent_packets);
        sum.receives += read(&self.receives);
        sum.received_packets += read(&self.received_packets);
        sum.tun_writes += read(&self.tun_writes);
        sum.written_packets += read(&self.written_packets);
        sum.waits += read(&self.waits);
        sum.empty_calls += read(&self.empty_calls);
        sum.copies += read(&self.copies);
        sum.panics += read(&self.panics);
        sum.turns_awaited += read(&self.turns_awaited);
        sum.turns_missed += read(&self.turns_missed);
        for ((reason, name), counter) in Loss::ALL.iter().zip(&self.drops) {
            debug_assert_eq!(Loss::ALL[*reason as usize].1, *name);
            *sum.dropped.entry(name.to_string()).or_default() += read(counter);
        }
        for (refusal, counter) in Refusal::ALL.iter().zip(&self.refusals) {
            if read(counter) > 0 {
                *sum.refused.entry(refusal.name().to_owned()).or_default() += read(counter);
            }
        }
    }
}
