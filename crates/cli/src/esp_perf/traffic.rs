//! The packets that are put through an SA: of one size, a mix, or those of a capture.

use crate::failure::Failure;
use crate::units;

/// Bytes of an IPv4 header, and the least that a packet has.
const HEADER: usize = 20;
/// The longest IP packet.
const LONGEST: usize = 65_535;
/// The simple Internet mix, in an order that spreads the sizes.
const IMIX: [usize; 12] = [40, 576, 40, 40, 576, 40, 1500, 40, 576, 40, 40, 576];

/// A kind of traffic: packets that come over and over, in this order.
#[derive(Clone, Debug)]
pub(super) struct Traffic {
    name: String,
    packets: Vec<Vec<u8>>,
}

impl Traffic {
    /// `imix`, or the bytes of an IP packet.
    pub(super) fn parse(text: &str) -> Result<Traffic, Failure> {
        if text == "imix" {
            return Ok(Traffic::of("imix", &IMIX));
        }
        let refused = |why: String| Failure::Usage(format!("--size {text}: {why}"));
        let size = units::parse_size(text).map_err(|why| refused(format!("{why}, or 'imix'")))?;
        if !(HEADER..=LONGEST).contains(&size) {
            return Err(refused(format!(
                "an IP packet has {HEADER} to {LONGEST} bytes"
            )));
        }
        Ok(Traffic::of(&size.to_string(), &[size]))
    }

    /// The packets of a capture; none without any.
    pub(super) fn captured(packets: Vec<Vec<u8>>) -> Option<Traffic> {
        (!packets.is_empty()).then(|| Traffic {
            name: "pcap".to_owned(),
            packets,
        })
    }

    fn of(name: &str, sizes: &[usize]) -> Traffic {
        Traffic {
            name: name.to_owned(),
            packets: sizes.iter().map(|&size| packet(size)).collect(),
        }
    }

    /// The size, `imix`, or `pcap`.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// In words.
    pub(super) fn title(&self) -> String {
        match self.name.as_str() {
            "imix" => "IMIX".to_owned(),
            "pcap" => "capture".to_owned(),
            bytes => format!("{bytes} B"),
        }
    }

    /// The packets without end.
    pub(super) fn packets(&self) -> impl Iterator<Item = &[u8]> {
        self.packets.iter().map(Vec::as_slice).cycle()
    }

    /// How many different packets there are.
    pub(super) fn len(&self) -> usize {
        self.packets.len()
    }

    pub(super) fn longest(&self) -> usize {
        self.packets.iter().map(Vec::len).max().unwrap_or_default()
    }

    /// Bytes of a packet on average.
    pub(super) fn mean(&self) -> f64 {
        let bytes: usize = self.packets.iter().map(Vec::len).sum();
        bytes as f64 / self.len() as f64
    }
}

/// An IPv4 packet of `size` bytes from 10.0.0.1 to 10.0.1.1, of protocol 253, which is for
/// experiments (RFC 3692), with counted bytes in it.
fn packet(size: usize) -> Vec<u8> {
    let mut packet: Vec<u8> = (0..size).map(|i| i as u8).collect();
    let [high, low] = (size as u16).to_be_bytes();
    packet[..HEADER].copy_from_slice(&[
        0x45, 0, high, low, 0, 0, 0x40, 0, 64, 253, 0, 0, 10, 0, 0, 1, 10, 0, 1, 1,
    ]);
    let checksum = cipherlane_esp::headers::checksum(&[&packet[..HEADER]]);
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    packet
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_or_refused_by_name() {
        let traffic = Traffic::parse("1400").unwrap();
        assert_eq!((traffic.name(), traffic.longest()), ("1400", 1400));
        assert_eq!(Traffic::parse("9K").unwrap().mean(), 9216.0);
        for wrong in ["19", "65536", "imax", ""] {
            let message = Traffic::parse(wrong).unwrap_err().to_string();
            assert!(message.contains("--size"), "{message}");
        }
    }

    #[test]
    fn the_mix_is_7_to_4_to_1_of_packets_with_right_headers() {
        let imix = Traffic::parse("imix").unwrap();
        for (size, count) in [(40, 7), (576, 4), (1500, 1)] {
            let sizes = imix.packets().take(12).filter(|p| p.len() == size);
            assert_eq!(sizes.count(), count);
        }
        assert!((imix.mean() - 340.33).abs() < 0.01);
        for packet in imix.packets().take(12) {
            assert_eq!(cipherlane_esp::headers::checksum(&[&packet[..HEADER]]), 0);
        }
    }
}
