//! scapy (PyPI) as an independent peer: what we seal it opens, what it seals we open, in
//! tunnel and transport mode, IPv4 and IPv6, with and without ESN and UDP encapsulation.

#[path = "../support/mod.rs"]
mod support;

use std::io::{BufRead, BufReader, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::OnceLock;

use cipherlane_esp::headers::{Arrival, Detached, Fields, NatChecksums, Tunnel};
use cipherlane_esp::{
    Encapsulation, InboundSa, Integrity, IvOrigin, Keys, Mode, OutboundSa, Refusal, SaParameters,
    Suite, Verdict,
};
use serde::{Deserialize, Serialize};
use support::{Buffer, framework, hex};

/// Says that the test proves nothing here: to the stream itself, since the harness keeps what
/// `eprintln!` writes to itself unless the test fails.
fn skip(reason: &str) {
    let message = format!("SKIPPED, no scapy: {reason}\n");
    std::io::stderr().write_all(message.as_bytes()).unwrap();
}

/// A Python with scapy; `Err` says why there is none.
fn python() -> Result<PathBuf, String> {
    // Once, for tests that run side by side.
    static PYTHON: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    PYTHON.get_or_init(install).clone()
}

/// Installs it at the first run.
fn install() -> Result<PathBuf, String> {
    let environment = Path::new(env!("CARGO_TARGET_TMPDIR")).join("scapy");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/scapy");
    let made = Command::new(script).arg(&environment).output();
    let made = made.map_err(|error| error.to_string())?;
    match made.status.success() {
        true => Ok(environment.join("bin/python")),
        false => Err(String::from_utf8_lossy(&made.stderr).into_owned()),
    }
}

/// The process with scapy in it.
struct Scapy {
    process: Child,
    questions: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

#[derive(Serialize)]
struct Question<'a> {
    #[serde(rename = "do")]
    what: &'a str,
    sa: &'a Association,
    sequence: String,
    packet: String,
}

/// An SA in scapy's words.
#[derive(Clone, Debug, Serialize)]
struct Association {
    spi: u32,
    cipher: &'static str,
    integrity: Option<&'static str>,
    encryption_key: String,
    integrity_key: String,
    esn: bool,
    tunnel: Option<[&'static str; 2]>,
    udp: Option<[u16; 2]>,
}

#[derive(Deserialize)]
struct Answer {
    packet: Option<String>,
    refused: Option<String>,
}

impl Scapy {
    fn start() -> Result<Self, String> {
        let peer = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scapy/peer.py");
        let mut process = Command::new(python()?)
            .arg(peer)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| error.to_string())?;
        let questions = process.stdin.take();
        let answers = BufReader::new(process.stdout.take().unwrap());
        Ok(Scapy {
            process,
            questions,
            answers,
        })
    }

    /// The packet that scapy made of `packet`, or `Err` where it refused.
    fn ask(
        &mut self,
        what: &str,
        sa: &Association,
        sequence: u64,
        packet: &[u8],
    ) -> Result<Vec<u8>, String> {
        let question = serde_json::to_string(&Question {
            what,
            sa,
            sequence: sequence.to_string(),
            packet: hex::encode(packet),
        });
        writeln!(self.questions.as_ref().unwrap(), "{}", question.unwrap()).unwrap();
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        assert!(!line.is_empty(), "scapy has died over {what} {sa:?}");
        let answer: Answer = serde_json::from_str(&line).unwrap();
        match answer.packet {
            Some(packet) => Ok(hex(&packet)),
            None => Err(answer.refused.unwrap()),
        }
    }
}

impl Drop for Scapy {
    fn drop(&mut self) {
        // The end of its input is its end.
        self.questions = None;
        let _ = self.process.wait();
    }
}

/// What both know: the suite, its keys, scapy's names.
fn suites() -> Vec<(Suite, Keys, &'static str, Option<&'static str>)> {
    let key = |len: u8| {
        (0..len)
            .map(|i| i.wrapping_mul(37) ^ len)
            .collect::<Vec<_>>()
    };
    let iv = IvOrigin::Explicit;
    let mut all = vec![(
        Suite::ChaCha20Poly1305 { iv },
        Keys::combined(&key(36)),
        "CHACHA20-POLY1305",
        None,
    )];
    for len in [16, 24, 32] {
        let keys = Keys::combined(&key(len + 4));
        all.push((Suite::AesGcm { icv: 16, iv }, keys.clone(), "AES-GCM", None));
        all.push((Suite::AesGmac, keys, "AES-NULL-GMAC", None));
        for (integrity, mac, name) in [
            (Integrity::HmacSha256, 32, "SHA2-256-128"),
            (Integrity::HmacSha512, 64, "SHA2-512-256"),
        ] {
            let pair = |bytes| Keys::pair(&key(bytes), &key(mac));
            all.push((Suite::AesCbc(integrity), pair(len), "AES-CBC", Some(name)));
            all.push((
                Suite::AesCtr(integrity),
                pair(len + 4),
                "AES-CTR",
                Some(name),
            ));
            if len == 16 {
                all.push((Suite::Null(integrity), pair(0), "NULL", Some(name)));
            }
        }
    }
    all
}

/// UDP in IPv4 or IPv6, all checksums right.
fn inner_packets(len: usize) -> [Vec<u8>; 2] {
    let mut udp = vec![0x04, 0x57, 0x08, 0xae];
    udp.extend(((8 + len) as u16).to_be_bytes());
    udp.extend([0, 0]);
    udp.extend((0..len).map(|i| i as u8));
    let mut v4 = support::ipv4(28 + len, 0);
    v4[20..].copy_from_slice(&udp);
    let sum = cipherlane_esp::headers::checksum(&[&v4[..20]]);
    v4[10..12].copy_from_slice(&sum.to_be_bytes());

    let mut v6 = vec![0; 40];
    v6[0] = 0x60;
    v6[4..6].copy_from_slice(&(udp.len() as u16).to_be_bytes());
    (v6[6], v6[7]) = (17, 64);
    (v6[8], v6[23], v6[24], v6[39]) = (0xfd, 1, 0xfd, 2);
    let pseudo = [0, 17];
    let len = (udp.len() as u16).to_be_bytes();
    let sum = cipherlane_esp::headers::checksum(&[&v6[8..40], &pseudo, &len, &udp]);
    udp[6..8].copy_from_slice(&sum.to_be_bytes());
    v6.extend(udp);
    [v4, v6]
}

/// One way of sending, for both peers.
struct Way {
    /// The first sequence number.
    first: u64,
    parameters: SaParameters,
    association: Association,
    tunnel: Option<Tunnel>,
}

const TUNNELS: [Option<[&str; 2]>; 3] = [
    Some(["192.0.2.1", "192.0.2.2"]),
    Some(["2001:db8::1", "2001:db8::2"]),
    None,
];

fn ways() -> Vec<Way> {
    let mut ways = Vec::new();
    for (suite, keys, cipher, integrity) in suites() {
        for esn in [false, true] {
            for ends in TUNNELS {
                for udp in [None, Some([4500, 4500])] {
                    let mut parameters = SaParameters::new(0x1234, suite, keys.clone());
                    parameters.esn = esn;
                    parameters.encapsulation = match udp {
                        None => Encapsulation::None,
                        Some([source, destination]) => Encapsulation::Udp {
                            source,
                            destination,
                        },
                    };
                    parameters.mode = match ends {
                        Some(_) => Mode::Tunnel,
                        None => Mode::Transport,
                    };
                    // The last number of a half, then the first of the next: lower half 0.
                    let first = if esn { 0x5_ffff_ffff } else { 77 };
                    parameters.resume_after(first - 1);
                    let tunnel = ends.map(|[source, destination]| Tunnel {
                        encapsulation: parameters.encapsulation,
                        ..Tunnel::new(source.parse().unwrap(), destination.parse().unwrap())
                    });
                    ways.push(Way {
                        first,
                        association: Association {
                            spi: 0x1234,
                            cipher,
                            integrity,
                            encryption_key: hex::encode(&*keys.encryption),
                            integrity_key: hex::encode(&*keys.integrity),
                            esn,
                            tunnel: ends,
                            udp,
                        },
                        parameters,
                        tunnel,
                    });
                }
            }
        }
    }
    ways
}

/// Seals a whole IP packet to a whole IP packet; its sequence number too.
fn seal(sa: &OutboundSa, way: &Way, packet: &[u8]) -> (Vec<u8>, u64) {
    let mut buffer = Buffer::new(packet);
    let mut packets = [buffer.packet()];
    let encapsulation = way.parameters.encapsulation;
    match &way.tunnel {
        Some(tunnel) => {
            let fields = Fields::of(packet).unwrap();
            sa.seal(&mut packets);
            tunnel.encapsulate(&mut packets[0], fields).unwrap();
        }
        None => {
            let detached = Detached::take_off(&mut packets[0], sa, encapsulation).unwrap();
            sa.seal(&mut packets);
            detached.put_back(&mut packets[0]).unwrap();
        }
    }
    assert_eq!(packets[0].verdict(), Verdict::Sealed);
    (packets[0].content().to_vec(), packets[0].sequence())
}

/// Opens a whole IP packet to a whole IP packet.
fn open(sa: &InboundSa, way: &Way, packet: &[u8]) -> Result<Vec<u8>, Verdict> {
    open_behind_nat(sa, way, packet, NatChecksums::Recompute)
}

fn open_behind_nat(
    sa: &InboundSa,
    way: &Way,
    packet: &[u8],
    checksums: NatChecksums,
) -> Result<Vec<u8>, Verdict> {
    let mut buffer = Buffer::new(packet);
    let mut packets = [buffer.packet()];
    let arrival = Arrival::strip(&mut packets[0], &[4500]).unwrap();
    let arrival = arrival.with_checksums(checksums);
    sa.open(&mut packets);
    if packets[0].verdict() != Verdict::Accepted {
        return Err(packets[0].verdict());
    }
    match way.tunnel {
        Some(_) => arrival.leave_tunnel(&mut packets[0]).unwrap(),
        None => arrival.put_back(&mut packets[0]).unwrap(),
    }
    Ok(packets[0].content().to_vec())
}

#[test]
fn scapy_opens_what_we_seal_and_we_open_what_scapy_seals() {
    let mut scapy = match Scapy::start() {
        Ok(scapy) => scapy,
        Err(reason) => return skip(&reason),
    };
    let framework = framework();
    for (number, way) in ways().iter().enumerate() {
        let association = &way.association;
        let outbound = OutboundSa::new(&framework, way.parameters.clone()).unwrap();
        let inbound = InboundSa::new(&framework, way.parameters.clone()).unwrap();
        for (packet, next) in inner_packets(1 + number % 41).iter().zip(0..) {
            let sequence = way.first + next;
            let (sealed, sent) = seal(&outbound, way, packet);
            assert_eq!(sent, sequence);
            let theirs = scapy.ask("open", association, sequence, &sealed);
            assert_eq!(theirs.as_ref(), Ok(packet), "{association:?}");

            let sealed = scapy.ask("seal", association, sequence, packet).unwrap();
            // A damaged copy first: it does not use the number up.
            let mut damaged = sealed.clone();
            *damaged.last_mut().unwrap() ^= 0x10;
            let refused = Err(Verdict::Refused(Refusal::BadIcv));
            assert_eq!(open(&inbound, way, &damaged), refused, "{association:?}");
            let ours = open(&inbound, way, &sealed);
            assert_eq!(ours.as_ref(), Ok(packet), "{association:?}");
        }
    }
}

#[test]
fn scapy_refuses_what_was_changed_after_we_sealed_it() {
    let mut scapy = match Scapy::start() {
        Ok(scapy) => scapy,
        Err(reason) => return skip(&reason),
    };
    let framework = framework();
    let [packet, _] = inner_packets(33);
    for way in ways() {
        let is_plain = way.parameters.encapsulation == Encapsulation::None;
        if !is_plain || way.association.tunnel != TUNNELS[0] {
            continue;
        }
        let outbound = OutboundSa::new(&framework, way.parameters.clone()).unwrap();
        let (mut sealed, sequence) = seal(&outbound, &way, &packet);
        *sealed.last_mut().unwrap() ^= 1;
        let theirs = scapy.ask("open", &way.association, sequence, &sealed);
        assert!(theirs.is_err(), "{:?}", way.association);
    }
}

/// The addresses of an IP packet changed, with the checksum of its own header.
fn behind_nat(packet: &[u8], ends: [IpAddr; 2]) -> Vec<u8> {
    let mut packet = packet.to_vec();
    for (place, end) in ends.into_iter().enumerate() {
        match end {
            IpAddr::V4(end) => packet[12 + 4 * place..][..4].copy_from_slice(&end.octets()),
            IpAddr::V6(end) => packet[8 + 16 * place..][..16].copy_from_slice(&end.octets()),
        }
    }
    if packet[0] >> 4 == 4 {
        packet[10..12].fill(0);
        let sum = cipherlane_esp::headers::checksum(&[&packet[..20]]);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
    }
    packet
}

/// TCP in place of the UDP of [`inner_packets`]; checksums are missing.
fn with_tcp(mut packet: Vec<u8>) -> Vec<u8> {
    let (header, protocol) = match packet[0] >> 4 {
        4 => (20, 9),
        _ => (40, 6),
    };
    packet[protocol] = 6;
    // No options.
    packet[header + 12] = 0x50;
    packet
}

#[test]
fn scapy_finds_the_checksums_right_that_we_repaired_behind_a_nat() {
    let mut scapy = match Scapy::start() {
        Ok(scapy) => scapy,
        Err(reason) => return skip(&reason),
    };
    let framework = framework();
    let addresses = |packet: &[u8]| -> [IpAddr; 2] {
        match packet[0] >> 4 {
            4 => [12, 16].map(|at| <[u8; 4]>::try_from(&packet[at..at + 4]).unwrap().into()),
            _ => [8, 24].map(|at| <[u8; 16]>::try_from(&packet[at..at + 16]).unwrap().into()),
        }
    };
    let mut judged = 0;
    for way in ways() {
        if way.tunnel.is_some() || way.parameters.encapsulation == Encapsulation::None {
            continue;
        }
        let inbound = InboundSa::new(&framework, way.parameters.clone()).unwrap();
        let plain = inner_packets(33);
        let tcp = plain.clone().map(with_tcp);
        let mut sequence = way.first;
        for packet in plain.into_iter().chain(tcp) {
            let mut right = |packet: &[u8]| {
                let made = scapy.ask("checksums", &way.association, 0, packet);
                made.unwrap()
            };
            let packet = right(&packet);
            let [source, destination] = addresses(&packet);
            let received: [IpAddr; 2] = match source {
                IpAddr::V4(_) => ["198.51.100.9".parse().unwrap(), destination],
                IpAddr::V6(_) => [
                    "2001:db8::9".parse().unwrap(),
                    "2001:db8::8".parse().unwrap(),
                ],
            };
            let expected = right(&behind_nat(&packet, received));
            for checksums in [
                NatChecksums::Recompute,
                NatChecksums::Original {
                    source,
                    destination,
                },
            ] {
                let sealed = scapy.ask("seal", &way.association, sequence, &packet);
                let arrived = behind_nat(&sealed.unwrap(), received);
                let ours = open_behind_nat(&inbound, &way, &arrived, checksums);
                assert_eq!(ours.as_ref(), Ok(&expected), "{checksums:?}");
                sequence += 1;
                judged += 1;
            }
        }
    }
    assert!(judged > 100);
}
