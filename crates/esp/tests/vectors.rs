//! The packets of the RFCs and drafts are opened to what they publish.

mod support;

use cipherlane_esp::{
    Error, InboundSa, Integrity, IvOrigin, Keys, Mode, OutboundSa, Refusal, SaParameters, Suite,
    Verdict,
};
use support::{Buffer, framework, hex};

#[derive(serde::Deserialize)]
struct File {
    layout: String,
    packets: Vec<Published>,
}

#[derive(serde::Deserialize)]
struct Published {
    name: String,
    transform: String,
    encryption_key: String,
    integrity_key: String,
    esn: bool,
    /// The whole number; the packet carries its lower half.
    sequence: String,
    packet: String,
    payload: String,
    next_header: u8,
}

impl Published {
    fn parameters(&self) -> SaParameters {
        let suite = match self.transform.as_str() {
            "aes-gcm-16" => Suite::AesGcm {
                icv: 16,
                iv: IvOrigin::Explicit,
            },
            "aes-gmac" => Suite::AesGmac,
            "chacha20-poly1305" => Suite::ChaCha20Poly1305 {
                iv: IvOrigin::Explicit,
            },
            "aes-cbc-hmac-sha256" => Suite::AesCbc(Integrity::HmacSha256),
            "aes-cbc-hmac-sha512" => Suite::AesCbc(Integrity::HmacSha512),
            other => panic!("{}: no suite '{other}'", self.name),
        };
        let spi = u32::from_be_bytes(hex(&self.packet)[..4].try_into().unwrap());
        let keys = Keys::pair(&hex(&self.encryption_key), &hex(&self.integrity_key));
        let mut parameters = SaParameters::new(spi, suite, keys);
        parameters.esn = self.esn;
        parameters.mode = match self.next_header {
            4 => Mode::Tunnel,
            _ => Mode::Transport,
        };
        // The receiver is where the sender was: so it infers the upper half.
        let sequence: u64 = self.sequence.parse().unwrap();
        parameters.resume_after(sequence.saturating_sub(2));
        parameters
    }
}

fn published() -> Vec<Published> {
    let mut all = Vec::new();
    for text in [
        include_str!("../../../vectors/esp/mcgrew-gcm-test-01.json"),
        include_str!("../../../vectors/esp/rfc3602-section-4.json"),
        include_str!("../../../vectors/esp/rfc7634-appendix-a.json"),
    ] {
        let file: File = serde_json::from_str(text).unwrap();
        assert_eq!(file.layout, "cipherlane-esp-1");
        all.extend(file.packets);
    }
    all
}

#[test]
fn published_packets_are_opened() {
    let framework = framework();
    let mut opened = 0;
    for published in published() {
        let name = &published.name;
        let parameters = published.parameters();
        let sa = match InboundSa::new(&framework, parameters.clone()) {
            Ok(sa) => sa,
            Err(Error::ReservedSpi { spi }) => {
                assert!(spi < 256, "{name}");
                continue;
            }
            Err(error) => panic!("{name}: {error}"),
        };
        let mut buffer = Buffer::new(&hex(&published.packet));
        let mut packets = [buffer.packet()];
        sa.open(&mut packets);
        assert_eq!(packets[0].verdict(), Verdict::Accepted, "{name}");
        assert_eq!(packets[0].content(), hex(&published.payload), "{name}");
        assert_eq!(packets[0].next_header(), published.next_header, "{name}");
        let sequence = packets[0].sequence().to_string();
        assert_eq!(sequence, published.sequence, "{name}");
        opened += 1;
    }
    assert!(opened > 25);
}

#[test]
fn a_flipped_bit_anywhere_is_noticed_and_what_was_decrypted_is_wiped() {
    let framework = framework();
    for published in published() {
        let packet = hex(&published.packet);
        let parameters = published.parameters();
        let Ok(sa) = InboundSa::new(&framework, parameters.clone()) else {
            continue;
        };
        // The header has its own refusals; the ICV covers all of it.
        for byte in 8..packet.len() {
            let mut damaged = packet.clone();
            damaged[byte] ^= 1 << (byte % 8);
            let mut buffer = Buffer::new(&damaged);
            let mut packets = [buffer.packet()];
            sa.open(&mut packets);
            let refused = Verdict::Refused(Refusal::BadIcv);
            assert_eq!(packets[0].verdict(), refused, "{}", published.name);
            let payload = hex(&published.payload);
            let leaked = packets[0]
                .buffer()
                .windows(16)
                .any(|seen| payload.chunks_exact(16).any(|secret| seen == secret));
            let encrypted = !matches!(parameters.suite, Suite::AesGmac);
            assert!(
                !(encrypted && leaked),
                "{}: plaintext is left",
                published.name
            );
        }
        // None of them touched the SA.
        let mut buffer = Buffer::new(&packet);
        let mut packets = [buffer.packet()];
        sa.open(&mut packets);
        assert_eq!(
            packets[0].verdict(),
            Verdict::Accepted,
            "{}",
            published.name
        );
    }
}

/// The counter modes' IV is the sequence number here, so a published packet is reproduced
/// only where its IV is. The others are reproduced by independent decoders.
#[test]
fn the_published_payload_is_sealed_to_a_packet_of_the_published_form() {
    let framework = framework();
    for published in published() {
        let mut parameters = published.parameters();
        let sequence: u64 = published.sequence.parse().unwrap();
        parameters.resume_after(sequence - 1);
        let Ok(sa) = OutboundSa::new(&framework, parameters.clone()) else {
            continue;
        };
        let mut buffer = Buffer::new(&hex(&published.payload));
        let mut packets = [buffer.packet().with_next_header(published.next_header)];
        sa.seal(&mut packets);
        assert_eq!(packets[0].verdict(), Verdict::Sealed);
        let expected = hex(&published.packet);
        assert_eq!(
            packets[0].content()[..8],
            expected[..8],
            "{}",
            published.name
        );
        assert_eq!(packets[0].len(), expected.len(), "{}", published.name);
    }
}
