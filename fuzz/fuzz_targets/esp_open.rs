//! `InboundSa::open` over batches of what anybody can send, of damaged packets, and of
//! authentic ones with any bytes for payload and trailer.
#![no_main]

use std::sync::{Arc, OnceLock};

use arbitrary::Arbitrary;
use cipherlane_core::{Direction, Framework, Request};
use cipherlane_drivers::software::Software;
use cipherlane_esp::{
    Encapsulation, InboundSa, Integrity, IvOrigin, Keys, Mode, OutboundSa, Packet, SaParameters,
    Suite, Verdict,
};
use libfuzzer_sys::fuzz_target;

const SPI: u32 = 0x0102_0304;
const KEY: [u8; 20] = [7; 20];
const ROOM: usize = 80;

#[derive(Arbitrary, Debug)]
struct Input {
    transform: u8,
    esn: bool,
    transport: bool,
    udp: bool,
    window: Option<u16>,
    packets: Vec<Kind>,
}

#[derive(Arbitrary, Debug)]
enum Kind {
    /// Any bytes.
    Raw(Vec<u8>),
    /// Any bytes behind the right SPI.
    Addressed(Vec<u8>),
    /// Sealed, then some bytes changed, some cut off and some added.
    Damaged {
        len: u8,
        flips: Vec<(u16, u8)>,
        cut: u8,
        more: Vec<u8>,
    },
    /// Authentic, with these bytes for payload and trailer. AES-GCM without ESN only.
    Forged { sequence: u32, plaintext: Vec<u8> },
}

fn framework() -> &'static Framework {
    static FRAMEWORK: OnceLock<Framework> = OnceLock::new();
    FRAMEWORK.get_or_init(|| {
        let builder = Framework::builder(Arc::new(Software));
        builder.build().expect("software serves")
    })
}

fn parameters(input: &Input) -> SaParameters {
    let iv = match input.transform & 8 {
        0 => IvOrigin::Explicit,
        _ => IvOrigin::Implicit,
    };
    let pair = |len| Keys::pair(&vec![7; len], &[8; 32]);
    let (transform, keys) = match input.transform & 7 {
        0 => (Suite::AesCbc(Integrity::HmacSha256), pair(16)),
        1 => (Suite::AesCtr(Integrity::HmacSha256), pair(20)),
        2 => (Suite::Null(Integrity::HmacSha256), pair(0)),
        3 => (Suite::ChaCha20Poly1305 { iv }, Keys::combined(&[7; 36])),
        4 => (Suite::AesGmac, Keys::combined(&KEY)),
        5 => (Suite::AesGcm { icv: 8, iv }, Keys::combined(&KEY)),
        _ => {
            let iv = IvOrigin::Explicit;
            (Suite::AesGcm { icv: 16, iv }, Keys::combined(&KEY))
        }
    };
    let mut parameters = SaParameters::new(SPI, transform, keys);
    parameters.esn = input.esn;
    parameters.replay_window = input.window.map(|width| u32::from(width).max(32));
    if input.transport {
        parameters.mode = Mode::Transport;
    }
    if input.udp {
        parameters.encapsulation = Encapsulation::Udp {
            source: 4500,
            destination: 4500,
        };
    }
    parameters
}

/// A packet, and the content it has to be opened to where it may be opened at all.
struct Case {
    packet: Vec<u8>,
    content: Option<Vec<u8>>,
}

fn inner(len: u8) -> Vec<u8> {
    let mut packet = vec![len; 20 + usize::from(len)];
    packet[..4].copy_from_slice(&[0x45, 0, 0, 0]);
    let total = packet.len() as u16;
    packet[2..4].copy_from_slice(&total.to_be_bytes());
    packet
}

fn seal(sa: &OutboundSa, content: &[u8]) -> Vec<u8> {
    let mut buffer = [&[0; ROOM], content, &[0; ROOM]].concat();
    let mut packets = [Packet::new(&mut buffer, ROOM..ROOM + content.len())];
    sa.seal(&mut packets);
    assert_eq!(packets[0].verdict(), Verdict::Sealed);
    packets[0].content().to_vec()
}

fn forge(sequence: u32, plaintext: &[u8]) -> Vec<u8> {
    let session = framework().session("rfc4106(gcm(aes))", &KEY);
    let session = session.and_then(|s| s.open()).expect("a right key");
    let mut head = [SPI.to_be_bytes(), sequence.to_be_bytes()].concat();
    let (mut data, mut tag, iv) = (plaintext.to_vec(), [0; 16], [9; 8]);
    let request = Request::in_place(&mut data)
        .iv(&iv)
        .aad(&head)
        .tag(&mut tag);
    let sealed = session.process(Direction::Encrypt, &mut [request]);
    sealed.expect("a right request");
    head.extend(iv);
    [head, data, tag.to_vec()].concat()
}

/// What RFC 4303 says of decrypted bytes, slowly.
fn unframe(plaintext: &[u8], transport: bool) -> Option<Vec<u8>> {
    let (&next, rest) = plaintext.split_last()?;
    let (&pad_len, rest) = rest.split_last()?;
    if plaintext.len() % 4 != 0 || usize::from(pad_len) > rest.len() {
        return None;
    }
    let (payload, padding) = rest.split_at(rest.len() - usize::from(pad_len));
    if !padding
        .iter()
        .enumerate()
        .all(|(i, &b)| usize::from(b) == i + 1)
    {
        return None;
    }
    if transport || next == 59 {
        return Some(payload.to_vec());
    }
    let word = |at: usize| usize::from(payload[at]) * 256 + usize::from(payload[at + 1]);
    let (header, len) = match next {
        4 if payload.len() >= 20 && payload[0] / 16 == 4 => {
            (usize::from(payload[0] % 16) * 4, word(2))
        }
        41 if payload.len() >= 40 && payload[0] / 16 == 6 => (40, 40 + word(4)),
        _ => return None,
    };
    (header >= 20 && header <= len && len <= payload.len()).then(|| payload[..len].to_vec())
}

fn case(kind: &Kind, input: &Input, parameters: &SaParameters, sa: &OutboundSa) -> Case {
    let never = |packet| Case {
        packet,
        content: None,
    };
    match kind {
        Kind::Raw(bytes) => never(bytes.clone()),
        Kind::Addressed(bytes) => never([&SPI.to_be_bytes()[..], bytes].concat()),
        Kind::Damaged {
            len,
            flips,
            cut,
            more,
        } => {
            let content = inner(*len);
            let sealed = seal(sa, &content);
            let mut packet = sealed.clone();
            for &(at, bits) in flips {
                let at = usize::from(at) % packet.len();
                packet[at] ^= bits;
            }
            packet.truncate(packet.len().saturating_sub(usize::from(*cut)));
            packet.extend(more);
            let content = (packet == sealed).then_some(content);
            Case { packet, content }
        }
        Kind::Forged {
            sequence,
            plaintext,
        } => {
            let explicit = Suite::AesGcm {
                icv: 16,
                iv: IvOrigin::Explicit,
            };
            if parameters.suite != explicit || input.esn {
                return never(plaintext.clone());
            }
            let content = unframe(plaintext, input.transport);
            let content = content.filter(|_| *sequence != 0);
            Case {
                packet: forge(*sequence, plaintext),
                content,
            }
        }
    }
}

fuzz_target!(|input: Input| {
    let parameters = parameters(&input);
    let outbound = OutboundSa::new(framework(), parameters.clone()).expect("right parameters");
    let inbound = InboundSa::new(framework(), parameters.clone()).expect("right parameters");
    let kinds = input.packets.iter().take(70);
    let cases: Vec<Case> = kinds
        .map(|kind| case(kind, &input, &parameters, &outbound))
        .collect();
    let mut buffers: Vec<Vec<u8>> = cases.iter().map(|case| case.packet.clone()).collect();
    let mut packets: Vec<Packet<'_>> = buffers
        .iter_mut()
        .map(|buffer| {
            let len = buffer.len();
            Packet::new(buffer, 0..len)
        })
        .collect();
    inbound.open(&mut packets);
    let mut accepted = std::collections::HashSet::new();
    for (packet, case) in packets.iter().zip(&cases) {
        match packet.verdict() {
            Verdict::Accepted | Verdict::Dummy => {
                assert_eq!(Some(packet.content()), case.content.as_deref());
                let is_new = accepted.insert(packet.sequence());
                assert!(is_new || input.window.is_none(), "accepted twice");
            }
            Verdict::Refused(_) => {}
            other => panic!("{other:?} is no verdict of open"),
        }
    }
    let statistics = inbound.statistics();
    let refused: u64 = statistics.refused.iter().sum();
    assert_eq!(statistics.packets + refused, cases.len() as u64);
    // A good packet alone is never refused: the SA works on.
    if let [case] = &cases[..] {
        let opened = packets[0].verdict() != Verdict::Refused(cipherlane_esp::Refusal::BadIcv);
        assert!(opened || case.content.is_none());
    }
});
