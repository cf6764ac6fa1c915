//! The fields of an inner header that its outer header takes from.

use super::ip::{Header, LastOptions, replace_word4};
use super::{Ecn, Problem};

/// DSCP, ECN, DF and hop limit of an IP packet. Read before sealing, when they can still be
/// seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fields {
    /// Differentiated services codepoint, 6 bits (RFC 2474).
    pub dscp: u8,
    /// Congestion field.
    pub ecn: Ecn,
    /// Do not fragment; true for IPv6, which routers never fragment.
    pub df: bool,
    /// TTL or hop limit.
    pub hop_limit: u8,
}

impl Fields {
    /// Of an IP packet.
    pub fn of(packet: &[u8]) -> Result<Self, Problem> {
        let header = Header::parse(packet, LastOptions::Payload)?;
        Ok(Self::of_parsed(packet, header.version))
    }

    pub(super) fn of_parsed(packet: &[u8], version: u8) -> Self {
        let (traffic_class, df, hop_limit) = match version {
            4 => (packet[1], packet[6] & 0x40 != 0, packet[8]),
            _ => (packet[0] << 4 | packet[1] >> 4, true, packet[7]),
        };
        Fields {
            dscp: traffic_class >> 2,
            ecn: Ecn::of(traffic_class),
            df,
            hop_limit,
        }
    }
}

/// Writes the ECN field of an IP packet.
pub(super) fn set_ecn(packet: &mut [u8], ecn: Ecn) {
    if packet[0] >> 4 == 4 {
        let class = packet[1] & !3 | ecn as u8;
        replace_word4(packet, 0, u16::from_be_bytes([packet[0], class]));
    } else {
        packet[1] = packet[1] & !0x30 | (ecn as u8) << 4;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::headers::checksum;
    use crate::headers::ip::write_checksum4;

    #[test]
    fn fields_are_read_and_the_mark_written() {
        let mut v4 = [0u8; 20];
        (v4[0], v4[1], v4[3], v4[6], v4[8]) = (0x45, 46 << 2 | 2, 20, 0x40, 61);
        write_checksum4(&mut v4);
        let mut v6 = [0u8; 40];
        (v6[0], v6[1], v6[6], v6[7]) = (0x6b, 0xa0 | 5, 59, 61);
        let expected = Fields {
            dscp: 46,
            ecn: Ecn::Ect0,
            df: true,
            hop_limit: 61,
        };
        assert_eq!(Fields::of(&v4), Ok(expected));
        assert_eq!(Fields::of(&v6), Ok(expected));
        for ecn in [Ecn::Ce, Ecn::NotEct, Ecn::Ect1, Ecn::Ect0] {
            set_ecn(&mut v4, ecn);
            set_ecn(&mut v6, ecn);
            assert_eq!(Fields::of(&v4), Ok(Fields { ecn, ..expected }));
            assert_eq!(Fields::of(&v6), Ok(Fields { ecn, ..expected }));
            assert_eq!(checksum(&[&v4]), 0);
            assert_eq!(v6[1] & 0x0f, 5, "the flow label is not touched");
        }
        v4[6] = 0;
        assert!(!Fields::of(&v4).unwrap().df);
    }
}
