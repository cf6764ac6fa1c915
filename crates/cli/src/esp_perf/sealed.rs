//! Sealed packets written as a capture, and the line of Wireshark's key table for them.

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use cipherlane_core::Framework;
use cipherlane_esp::headers::{Fields, Tunnel};
use cipherlane_esp::{OutboundSa, Packet, Verdict};

use super::lane::WINDOW;
use super::traffic::Traffic;
use super::transforms::Entry;
use crate::capture::{header, record};
use crate::failure::Failure;
use crate::speed::outputs::write_whole;

/// Packets that are written.
const WRITTEN: usize = 64;
/// The SPI of the SA written.
const SPI: u32 = 0x1000;
/// The ends of its tunnel, of the addresses for documentation (RFC 5737).
const SOURCE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const DESTINATION: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);

/// Writes packets of `traffic`, sealed by `entry`'s transform, and gives the line of Wireshark's
/// `esp_sa` table for them, where its transform has one.
pub(super) fn write(
    path: &Path,
    framework: &Framework,
    entry: &Entry,
    traffic: &Traffic,
) -> Result<Option<String>, Failure> {
    let mut parameters = entry.parameters(SPI, WINDOW);
    // Wireshark does not know extended numbers, and would take the upper half for data.
    parameters.esn = false;
    let sa = OutboundSa::new(framework, parameters.clone())
        .map_err(|error| Failure::Runtime(error.to_string()))?;
    let tunnel = Tunnel::new(IpAddr::V4(SOURCE), IpAddr::V4(DESTINATION));
    let mut capture = header();
    for (number, plain) in traffic
        .packets()
        .take(WRITTEN.max(traffic.len()))
        .enumerate()
    {
        let head = tunnel.head_room() + sa.head_room();
        let mut buffer = vec![0; head + plain.len() + sa.tail_room()];
        buffer[head..head + plain.len()].copy_from_slice(plain);
        let mut packets = [Packet::new(&mut buffer, head..head + plain.len())];
        sa.seal(&mut packets);
        let [mut packet] = packets;
        if packet.verdict() != Verdict::Sealed {
            return Err(Failure::Usage(format!(
                "a packet of {} bytes cannot be sealed: {:?}; use shorter ones",
                plain.len(),
                packet.verdict()
            )));
        }
        let fields = Fields::of(plain).map_err(|problem| Failure::Usage(problem.to_string()))?;
        tunnel.encapsulate(&mut packet, fields).map_err(|problem| {
            Failure::Usage(format!("a packet of {} bytes: {problem}", plain.len()))
        })?;
        capture.extend(record(number as u32, packet.content()));
    }
    write_whole(path, &capture)?;
    Ok(entry.wireshark.map(|(encryption, authentication)| {
        let keys = &parameters.keys;
        let hex = |key: &[u8]| match key {
            [] => String::new(),
            key => format!("0x{}", hex::encode(key)),
        };
        format!(
            "\"IPv4\",\"{SOURCE}\",\"{DESTINATION}\",\"0x{SPI:08x}\",\"{encryption}\",\"{}\",\
             \"{authentication}\",\"{}\"",
            hex(&keys.encryption),
            hex(&keys.integrity),
        )
    }))
}
