//! Every way to be refused, by its own name, with its own counter, and without a trace in
//! the SA.

mod support;

use cipherlane_core::{Direction, Request};
use cipherlane_esp::{
    Encapsulation, Error, InboundSa, IvOrigin, Keys, Malformed, Mode, OutboundSa, Packet, Refusal,
    SaParameters, Suite, Verdict,
};
use support::{SPI, framework, ipv4, parameters, suites, with_packets};

const GCM: Suite = Suite::AesGcm {
    icv: 16,
    iv: IvOrigin::Explicit,
};

fn gcm() -> SaParameters {
    let mut parameters = SaParameters::new(SPI, GCM, Keys::combined(&[9; 20]));
    parameters.esn = false;
    parameters
}

/// An authentic packet with these bytes where payload and trailer belong.
fn forge(sequence: u32, plaintext: &[u8]) -> Vec<u8> {
    let session = framework().session("rfc4106(gcm(aes))", &[9; 20]).unwrap();
    let session = session.open().unwrap();
    let mut head = [SPI.to_be_bytes(), sequence.to_be_bytes()].concat();
    let iv = [3; 8];
    let (mut data, mut tag) = (plaintext.to_vec(), [0; 16]);
    let request = Request::in_place(&mut data)
        .iv(&iv)
        .aad(&head)
        .tag(&mut tag);
    session.process(Direction::Encrypt, &mut [request]).unwrap();
    head.extend(iv);
    [head, data, tag.to_vec()].concat()
}

fn refused(sa: &InboundSa, packet: Vec<u8>, expected: Refusal) {
    let before = sa.statistics();
    let result = with_packets(&[packet], |packets| sa.open(packets));
    assert_eq!(result[0].0, Verdict::Refused(expected));
    let after = sa.statistics();
    for refusal in Refusal::ALL {
        let counted = u64::from(refusal == expected);
        let index = refusal.index();
        assert_eq!(
            after.refused[index] - before.refused[index],
            counted,
            "{refusal:?}"
        );
    }
    assert_eq!(after.packets, before.packets);
    assert_eq!(after.bytes, before.bytes);
}

#[test]
fn inbound() {
    let sa = InboundSa::new(&framework(), gcm()).unwrap();
    let malformed = Refusal::Malformed;
    let inner = ipv4(30, 0);
    let plaintext = |rest: &[u8]| [&inner, rest].concat();
    let good = forge(7, &plaintext(&[0, 4]));

    for len in [0, 1, 7, 8, 31] {
        let mut short = good.clone();
        short.truncate(len);
        refused(&sa, short, malformed(Malformed::Truncated));
    }
    refused(&sa, vec![0xff], malformed(Malformed::Truncated));
    refused(&sa, vec![0; 64], Refusal::WrongSpi);
    refused(
        &sa,
        good[..good.len() - 1].to_vec(),
        malformed(Malformed::Unaligned),
    );
    refused(&sa, good[..good.len() - 4].to_vec(), Refusal::BadIcv);
    refused(
        &sa,
        forge(0, &plaintext(&[0, 4])),
        malformed(Malformed::ZeroSequence),
    );
    let mut jumbo = good.clone();
    jumbo.resize(70_000, 0);
    refused(&sa, jumbo, Refusal::TooLong);

    // Authentic, whatever it holds: its number is used up (RFC 4303 section 3.4.3).
    let mut longer = plaintext(&[0, 4]);
    longer[3] = 31;
    let authentic = [
        (plaintext(&[255, 4]), Malformed::PadLength),
        (plaintext(&[31, 4]), Malformed::PadLength),
        (plaintext(&[1, 3, 2, 2, 2, 4]), Malformed::Padding),
        (plaintext(&[0, 6]), Malformed::NextHeader),
        (plaintext(&[0, 41]), Malformed::InnerHeader),
        (vec![0x45, 0, 4, 4], Malformed::PadLength),
        (vec![0x45, 0, 0, 4], Malformed::InnerHeader),
        (longer, Malformed::InnerLength),
    ];
    for ((plaintext, kind), number) in authentic.into_iter().zip(100u32..) {
        let packet = forge(number, &plaintext);
        let before = sa.statistics().packets;
        refused(&sa, packet.clone(), malformed(kind));
        assert_eq!(sa.highest_sequence(), u64::from(number));
        refused(&sa, packet, Refusal::Replayed);
        assert_eq!(sa.statistics().packets, before);
    }
    refused(
        &sa,
        forge(7, &ipv4(26, 0)[..22]),
        malformed(Malformed::Unaligned),
    );
    let mut damaged = good.clone();
    damaged[20] ^= 1;
    refused(&sa, damaged, Refusal::BadIcv);

    // Nothing of what was not authentic used the number up.
    let accepted = with_packets(std::slice::from_ref(&good), |packets| sa.open(packets));
    assert_eq!(accepted[0], (Verdict::Accepted, inner.clone()));
    refused(&sa, good, Refusal::Replayed);
    let far = forge(100_000, &plaintext(&[0, 4]));
    with_packets(&[far], |packets| sa.open(packets));
    refused(&sa, forge(8, &plaintext(&[0, 4])), Refusal::TooOld);
}

#[test]
fn a_number_twice_in_one_batch_is_accepted_once() {
    let sa = InboundSa::new(&framework(), gcm()).unwrap();
    let packet = forge(5, &[ipv4(30, 0), vec![0, 4]].concat());
    let result = with_packets(&vec![packet; 40], |packets| sa.open(packets));
    assert_eq!(result[0].0, Verdict::Accepted);
    for (verdict, packet) in &result[1..] {
        assert_eq!(*verdict, Verdict::Refused(Refusal::Replayed));
        // Those that were decrypted beside the first are wiped; later ones were never touched.
        assert!(!packet.windows(8).any(|w| w == &ipv4(30, 0)[10..18]));
    }
}

#[test]
fn behind_udp() {
    let mut udp = gcm();
    udp.encapsulation = Encapsulation::Udp {
        source: 4500,
        destination: 4500,
    };
    let sa = InboundSa::new(&framework(), udp.clone()).unwrap();
    refused(&sa, vec![0xff], Refusal::Keepalive);
    refused(&sa, vec![0; 4], Refusal::NonEspMarker);
    refused(&sa, vec![0; 40], Refusal::NonEspMarker);
    refused(&sa, vec![1], Refusal::Malformed(Malformed::Truncated));
    refused(&sa, vec![9; 64], Refusal::WrongSpi);
}

#[test]
fn tfc_padding_is_cut_off_and_dummies_are_marked() {
    let sa = InboundSa::new(&framework(), gcm()).unwrap();
    let inner = ipv4(30, 0);
    let padded = forge(1, &[&inner[..], &[0xaa; 64], &[0, 4]].concat());
    let dummy = forge(2, &[&[0x55; 18][..], &[0, 59]].concat());
    let result = with_packets(&[padded, dummy], |packets| sa.open(packets));
    assert_eq!(result[0], (Verdict::Accepted, inner));
    assert_eq!(result[1].0, Verdict::Dummy);
    assert_eq!(sa.highest_sequence(), 2);
}

#[test]
fn dummies_are_sent_on_demand_and_only_then() {
    let framework = framework();
    let outbound = OutboundSa::new(&framework, gcm()).unwrap();
    let inbound = InboundSa::new(&framework, gcm()).unwrap();
    let mut buffer = vec![7; 200];
    let mut packets = [Packet::new(&mut buffer, 50..90).with_next_header(59)];
    outbound.seal(&mut packets);
    inbound.open(&mut packets);
    assert_eq!(packets[0].verdict(), Verdict::Dummy);
    // The buffer of a dummy carries a packet next.
    packets[0].reset(50..80);
    packets[0].content_mut().copy_from_slice(&ipv4(30, 0));
    outbound.seal(&mut packets);
    inbound.open(&mut packets);
    assert_eq!(packets[0].verdict(), Verdict::Accepted);
}

#[test]
fn outbound() {
    let sa = OutboundSa::new(&framework(), gcm()).unwrap();
    let refused = |content: &[u8], range: std::ops::Range<usize>, room: usize, expected| {
        let mut buffer = vec![0; range.end + room];
        buffer[range.clone()].copy_from_slice(content);
        let before = buffer.clone();
        let mut packets = [Packet::new(&mut buffer, range.clone())];
        sa.seal(&mut packets);
        assert_eq!(packets[0].verdict(), Verdict::Refused(expected));
        assert_eq!(packets[0].range(), range);
        assert_eq!(packets[0].buffer(), before, "the content is as it was");
        assert_eq!(sa.next_sequence(), 1, "no number was taken");
    };
    let inner = ipv4(30, 0);
    refused(&inner, 15..45, 64, Refusal::NoRoom);
    refused(&inner, 16..46, 17, Refusal::NoRoom);
    refused(&[], 64..64, 64, Refusal::NotTunnelled);
    refused(&[0x50; 40], 64..104, 64, Refusal::NotTunnelled);
    refused(&inner[..29], 64..93, 64, Refusal::NotTunnelled);
    refused(&ipv4(65_500, 0), 64..65_564, 64, Refusal::TooLong);

    // The least room is enough.
    let mut buffer = [vec![0; 16], inner.clone(), vec![0; 18]].concat();
    let mut packets = [Packet::new(&mut buffer, 16..46)];
    sa.seal(&mut packets);
    assert_eq!(packets[0].verdict(), Verdict::Sealed);
    assert_eq!(packets[0].range(), 0..64);
}

#[test]
fn parameters_that_make_no_sa() {
    let framework = framework();
    let both = |change: &dyn Fn(&mut SaParameters)| {
        let mut parameters = gcm();
        change(&mut parameters);
        let outbound = OutboundSa::new(&framework, parameters.clone()).map(|_| ());
        let inbound = InboundSa::new(&framework, parameters.clone()).map(|_| ());
        (outbound, inbound)
    };
    for width in [0, 1, 31, 65_537] {
        let (_, inbound) = both(&|p| p.replay_window = Some(width));
        assert!(matches!(inbound, Err(Error::ReplayWindow { given }) if given == width));
    }
    for spi in [0, 255] {
        let (outbound, inbound) = both(&|p| p.spi = spi);
        assert!(matches!(outbound, Err(Error::ReservedSpi { .. })));
        assert!(matches!(inbound, Err(Error::ReservedSpi { .. })));
    }
    for icv in [0, 7, 13, 17] {
        let iv = IvOrigin::Explicit;
        let (outbound, _) = both(&|p| p.suite = Suite::AesGcm { icv, iv });
        assert!(matches!(outbound, Err(Error::IcvLength { given, .. }) if given == icv));
    }
    for sent in [u64::from(u32::MAX), 1 << 32, u64::MAX] {
        let (outbound, inbound) = both(&|p| _ = p.resume_after(sent));
        assert!(matches!(outbound, Err(Error::Exhausted { last, .. }) if last == sent));
        assert!(matches!(inbound, Err(Error::Exhausted { last, .. }) if last == sent));
    }
    // More forged packets than the draft allows.
    let (_, inbound) = both(&|p| {
        p.suite = Suite::Gost4mImit(cipherlane_esp::GostSbox::ParamZ);
        p.keys = Keys::combined(&[1; 36]);
        p.lifetimes.forgeries.hard = Some(100_001);
    });
    assert!(matches!(
        inbound,
        Err(Error::Forgeries {
            given: 100_001,
            most: 100_000
        })
    ));
    let (outbound, _) = both(&|p| {
        (p.lifetimes.bytes.soft, p.lifetimes.bytes.hard) = (Some(2), Some(1));
    });
    assert!(matches!(
        outbound,
        Err(Error::Lifetime { soft: 2, hard: 1 })
    ));
}

#[test]
fn keys_of_a_wrong_length_make_no_sa() {
    let framework = framework();
    for (suite, keys) in suites() {
        for esn in [false, true] {
            for change in [-1i32, 1] {
                let resize = |key: &[u8]| {
                    let mut key = key.to_vec();
                    key.resize((key.len() as i32 + change).max(0) as usize, 0);
                    key
                };
                let (encryption, integrity) = (&keys.encryption, &keys.integrity);
                if resize(encryption) != **encryption {
                    let keys = Keys::pair(&resize(encryption), integrity);
                    let sa = OutboundSa::new(&framework, parameters(suite, &keys, esn));
                    assert!(matches!(sa, Err(Error::EncryptionKey { .. })), "{suite:?}");
                }
                if resize(integrity) != **integrity {
                    let keys = Keys::pair(encryption, &resize(integrity));
                    let sa = InboundSa::new(&framework, parameters(suite, &keys, esn));
                    assert!(matches!(sa, Err(Error::IntegrityKey { .. })), "{suite:?}");
                }
            }
        }
    }
}

#[test]
fn transport_mode_takes_what_it_is_given() {
    let mut transport = gcm();
    transport.mode = Mode::Transport;
    let framework = framework();
    let outbound = OutboundSa::new(&framework, transport.clone()).unwrap();
    let inbound = InboundSa::new(&framework, transport.clone()).unwrap();
    for len in 0..40 {
        let mut buffer = vec![7; 200];
        let mut packets = [Packet::new(&mut buffer, 50..50 + len).with_next_header(17)];
        outbound.seal(&mut packets);
        inbound.open(&mut packets);
        assert_eq!(packets[0].verdict(), Verdict::Accepted);
        assert_eq!(packets[0].next_header(), 17);
        assert_eq!(packets[0].content(), vec![7; len]);
    }
}
