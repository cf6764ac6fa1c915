//! Two ends of an ESP tunnel: packets are sealed by one in one call and opened by the other, and a
//! packet that comes again is refused.
//!
//! `cargo run --example esp_pair -p cipherlane-esp`

use cipherlane::Framework;
use cipherlane_esp::{InboundSa, IvOrigin, Keys, OutboundSa, Packet, SaParameters, Suite};

/// An IPv4 packet without payload, of 20 bytes; tunnel mode looks at its length only.
fn inner() -> [u8; 20] {
    let mut header = [0; 20];
    header[0] = 0x45;
    header[3] = 20;
    header
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let framework = Framework::new()?;
    let parameters = || {
        let suite = Suite::AesGcm {
            icv: 16,
            iv: IvOrigin::Explicit,
        };
        let keys = Keys::combined(&[0x2b; 16 + 4]);
        SaParameters::new(0x1000, suite, keys)
    };
    // Both are used by any number of threads at once.
    let outbound = OutboundSa::new(&framework, parameters())?;
    let inbound = InboundSa::new(&framework, parameters())?;

    let (head, tail) = (outbound.head_room(), outbound.tail_room());
    let mut buffers = vec![vec![0; head + 20 + tail]; 16];
    let content = head..head + 20;
    for buffer in &mut buffers {
        buffer[content.clone()].copy_from_slice(&inner());
    }
    let mut packets: Vec<_> = buffers
        .iter_mut()
        .map(|buffer| Packet::new(buffer, content.clone()))
        .collect();
    outbound.seal(&mut packets);
    let sealed: Vec<_> = packets.iter().map(Packet::range).collect();
    println!("sealed: {} bytes per packet on the wire", packets[0].len());
    let kept = packets[0].content().to_vec();

    // The receiver sees the bytes on the wire.
    for (packet, range) in packets.iter_mut().zip(sealed) {
        packet.reset(range);
    }
    inbound.open(&mut packets);
    println!("opened: {:?}", packets[0].verdict());
    let mut again = kept;
    let whole = 0..again.len();
    let mut replayed = Packet::new(&mut again, whole);
    let verdict = inbound.open_one(&mut replayed);
    println!("the same packet again: {verdict:?}");
    Ok(())
}
