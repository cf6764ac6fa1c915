//! What became of a packet.

/// The result of a packet after `seal` or `open`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Not worked on yet.
    #[default]
    Pending,
    /// Sealed; the content is the ESP packet, from the SPI to the ICV.
    Sealed,
    /// Authentic, new, and opened; the content is what ESP protected.
    Accepted,
    /// An authentic dummy packet (next header 59, RFC 4303 section 2.6): to be dropped.
    Dummy,
    /// Refused. A packet that was decrypted before it was refused has been wiped.
    Refused(Refusal),
}

/// Why a packet was refused. Every reason has a counter of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// Its sequence number was received already.
    Replayed,
    /// Its sequence number is older than the replay window.
    TooOld,
    /// The ICV does not match.
    BadIcv,
    /// The outer one of two ICVs does not match; nothing was decrypted. Unlike
    /// [`BadIcv`](Self::BadIcv) it does not bring the SA nearer to its end.
    BadOuterIcv,
    /// The SPI is not that of the SA.
    WrongSpi,
    /// It is not an ESP packet of this SA's suite. One that is authentic all the same
    /// counts as received: it cannot be replayed.
    Malformed(Malformed),
    /// A NAT keepalive: one byte 0xff (RFC 3948 section 2.3).
    Keepalive,
    /// IKE behind a non-ESP marker of four zero bytes (RFC 3948 section 2.2).
    NonEspMarker,
    /// Too little room before or behind the content.
    NoRoom,
    /// Longer than an IP packet, or than the suite takes.
    TooLong,
    /// The content is not what the SA's mode carries: in tunnel mode an IP packet.
    NotTunnelled,
    /// No sequence number is left: the SA must be rekeyed.
    SequenceExhausted,
    /// The SA is past a hard lifetime or its last sequence number: replace it.
    Expired,
    /// The SA saw as many forged packets as its ICV bears: replace it, and look for their source.
    TooManyForgeries,
    /// The SA was made by the parent of this process. Both would send the same sequence numbers
    /// and IVs, and both would accept the same packets: make another SA, with other keys, after
    /// the fork.
    Forked,
    /// A driver failed in the middle of the packet; its content is lost.
    DriverFailed,
}

/// What is wrong with a malformed packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Malformed {
    /// Too short for header, IV, trailer and ICV.
    Truncated,
    /// The ciphertext is not a multiple of the cipher's block, or of 4 bytes.
    Unaligned,
    /// The sequence number is 0, which is never sent.
    ZeroSequence,
    /// The IV breaks the suite's rule.
    Iv,
    /// The pad length is more than the packet holds.
    PadLength,
    /// The padding is not 1, 2, 3, ... (RFC 4303 section 2.4).
    Padding,
    /// Tunnel mode, but the next header is neither IPv4 nor IPv6.
    NextHeader,
    /// Tunnel mode, but the inner packet has no whole IP header of the version announced.
    InnerHeader,
    /// Tunnel mode, but the inner packet says that it is longer than it is.
    InnerLength,
}

impl Refusal {
    /// How many reasons there are: the length of a table by [`index`](Self::index).
    pub const COUNT: usize = 24;

    /// Every reason, in the order of [`index`](Self::index).
    pub const ALL: [Refusal; Self::COUNT] = [
        Refusal::Replayed,
        Refusal::TooOld,
        Refusal::BadIcv,
        Refusal::BadOuterIcv,
        Refusal::WrongSpi,
        Refusal::Keepalive,
        Refusal::NonEspMarker,
        Refusal::NoRoom,
        Refusal::TooLong,
        Refusal::NotTunnelled,
        Refusal::SequenceExhausted,
        Refusal::Expired,
        Refusal::TooManyForgeries,
        Refusal::Forked,
        Refusal::DriverFailed,
        Refusal::Malformed(Malformed::Truncated),
        Refusal::Malformed(Malformed::Unaligned),
        Refusal::Malformed(Malformed::ZeroSequence),
        Refusal::Malformed(Malformed::Iv),
        Refusal::Malformed(Malformed::PadLength),
        Refusal::Malformed(Malformed::Padding),
        Refusal::Malformed(Malformed::NextHeader),
        Refusal::Malformed(Malformed::InnerHeader),
        Refusal::Malformed(Malformed::InnerLength),
    ];

    /// Its place in tables of counters, below [`COUNT`](Self::COUNT).
    pub fn index(self) -> usize {
        match self {
            Refusal::Replayed => 0,
            Refusal::TooOld => 1,
            Refusal::BadIcv => 2,
            Refusal::BadOuterIcv => 3,
            Refusal::WrongSpi => 4,
            Refusal::Keepalive => 5,
            Refusal::NonEspMarker => 6,
            Refusal::NoRoom => 7,
            Refusal::TooLong => 8,
            Refusal::NotTunnelled => 9,
            Refusal::SequenceExhausted => 10,
            Refusal::Expired => 11,
            Refusal::TooManyForgeries => 12,
            Refusal::Forked => 13,
            Refusal::DriverFailed => 14,
            Refusal::Malformed(kind) => 15 + kind as usize,
        }
    }

    /// Short name of its counter.
    pub fn name(self) -> &'static str {
        match self {
            Refusal::Replayed => "replayed",
            Refusal::TooOld => "late",
            Refusal::BadIcv => "integrity_failures",
            Refusal::BadOuterIcv => "outer_integrity_failures",
            Refusal::WrongSpi => "wrong_spi",
            Refusal::Keepalive => "keepalives",
            Refusal::NonEspMarker => "non_esp_marker",
            Refusal::NoRoom => "no_room",
            Refusal::TooLong => "too_long",
            Refusal::NotTunnelled => "not_tunnelled",
            Refusal::SequenceExhausted => "sequence_exhausted",
            Refusal::Expired => "expired",
            Refusal::TooManyForgeries => "too_many_forgeries",
            Refusal::Forked => "forked",
            Refusal::DriverFailed => "driver_failed",
            Refusal::Malformed(Malformed::Truncated) => "malformed_truncated",
            Refusal::Malformed(Malformed::Unaligned) => "malformed_unaligned",
            Refusal::Malformed(Malformed::ZeroSequence) => "malformed_zero_sequence",
            Refusal::Malformed(Malformed::Iv) => "malformed_iv",
            Refusal::Malformed(Malformed::PadLength) => "malformed_pad_length",
            Refusal::Malformed(Malformed::Padding) => "malformed_padding",
            Refusal::Malformed(Malformed::NextHeader) => "malformed_next_header",
            Refusal::Malformed(Malformed::InnerHeader) => "malformed_inner_header",
            Refusal::Malformed(Malformed::InnerLength) => "malformed_inner_length",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_has_its_own_counter_and_name() {
        let mut names = std::collections::HashSet::new();
        for (index, refusal) in Refusal::ALL.into_iter().enumerate() {
            assert_eq!(refusal.index(), index);
            assert!(names.insert(refusal.name()));
        }
    }
}
