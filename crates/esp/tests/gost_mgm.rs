//! The four suites of RFC 9227: the published packets, the way from leaf to leaf of the
//! key tree, and packets that are not right.

mod support;

use cipherlane_esp::{InboundSa, Keys, Mode, OutboundSa, Refusal, SaParameters, Suite, Verdict};
use serde_json::Value;
use support::{framework, hex, with_packets};

/// All four, by their names in the RFC.
fn all() -> [(&'static str, Suite, Keys); 4] {
    let keymat: Vec<u8> = (0..44).map(|i| i * 5 + 3).collect();
    let keys = |len| Keys::combined(&keymat[..len]);
    [
        ("ENCR_KUZNYECHIK_MGM_KTREE", Suite::KuznyechikMgm, keys(44)),
        ("ENCR_MAGMA_MGM_KTREE", Suite::MagmaMgm, keys(36)),
        (
            "ENCR_KUZNYECHIK_MGM_MAC_KTREE",
            Suite::KuznyechikMgmMac,
            keys(44),
        ),
        ("ENCR_MAGMA_MGM_MAC_KTREE", Suite::MagmaMgmMac, keys(36)),
    ]
}

/// Payload and padding of at least the last bytes of a published packet, without its trailer.
fn payload_of(plaintext: &[u8]) -> &[u8] {
    let pad = usize::from(plaintext[plaintext.len() - 2]);
    &plaintext[..plaintext.len() - 2 - pad]
}

fn seal(sa: &OutboundSa, payloads: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let sealed = with_packets(payloads, |packets| {
        packets.iter_mut().for_each(|p| p.set_next_header(4));
        sa.seal(packets);
    });
    let packet = |(verdict, packet)| {
        assert_eq!(verdict, Verdict::Sealed);
        packet
    };
    sealed.into_iter().map(packet).collect()
}

#[test]
fn the_published_packets() {
    let framework = framework();
    let text = include_str!("../../../vectors/gost/rfc9227.json");
    let file: Value = serde_json::from_str(text).unwrap();
    let mut reproduced = 0;
    for vector in file["vectors"].as_array().unwrap() {
        let field = |name: &str| hex(vector[name].as_str().unwrap());
        let name = vector["transform"].as_str().unwrap();
        let (_, suite, _) = all().into_iter().find(|t| t.0 == name).unwrap();
        // Behind an IPv4 header of 20 bytes.
        let packet = field("ESP_packet").split_off(20);
        let word = |at: usize| u32::from_be_bytes(packet[at..at + 4].try_into().unwrap());
        let keys = Keys::combined(&field("transform_key"));
        let mut parameters = SaParameters::new(word(0), suite, keys);
        parameters.esn = false;
        parameters.mode = Mode::Transport;
        parameters.resume_after(u64::from(word(4)) - 1);
        let sa = InboundSa::new(&framework, parameters.clone()).unwrap();
        let opened = with_packets(std::slice::from_ref(&packet), |packets| sa.open(packets));
        let plaintext = match field("plaintext") {
            // Only authenticated: it stands in the packet.
            none if none.is_empty() => packet[16..packet.len() - field("ESP_ICV").len()].to_vec(),
            plaintext => plaintext,
        };
        let payload = payload_of(&plaintext);
        assert_eq!(opened[0], (Verdict::Accepted, payload.to_vec()), "{vector}");
        // A sender begins with the indexes that are all 0.
        if field("IV") == [0; 8] {
            parameters.resume_after(0);
            assert_eq!(word(4), 1);
            let sa = OutboundSa::new(&framework, parameters.clone()).unwrap();
            assert_eq!(seal(&sa, &[payload.to_vec()]), [packet], "{vector}");
            reproduced += 1;
        }
    }
    assert_eq!(reproduced, 4);
}

#[test]
fn the_indexes_count_packets_and_carry_to_the_next_leaf() {
    let framework = framework();
    for (name, suite, keys) in all() {
        let leaf: u64 = match suite {
            Suite::MagmaMgm | Suite::MagmaMgmMac => 1 << 12,
            _ => 1 << 16,
        };
        // The number of packets after which the next leaf begins, and with it the indexes above.
        for packets in [leaf, 2 * leaf, leaf << 16, leaf << 32] {
            let mut parameters = support::parameters(suite, &keys, true);
            parameters.mode = Mode::Transport;
            parameters.resume_after(packets - 20);
            let outbound = OutboundSa::new(&framework, parameters.clone()).unwrap();
            let payloads: Vec<_> = (0..40).map(|i| vec![i as u8; 3 * i]).collect();
            let sealed = seal(&outbound, &payloads);
            for (i, packet) in (0u64..).zip(&sealed) {
                let number = packets - 20 + i;
                let iv = ((number / leaf) << 24) | (number % leaf);
                assert_eq!(packet[8..16], iv.to_be_bytes(), "{name}");
            }
            let inbound = InboundSa::new(&framework, parameters.clone()).unwrap();
            let mut order: Vec<usize> = (0..40).collect();
            order[5..35].reverse();
            let shuffled: Vec<_> = order.iter().map(|&i| sealed[i].clone()).collect();
            let opened = with_packets(&shuffled, |packets| inbound.open(packets));
            for (opened, i) in opened.into_iter().zip(order) {
                assert_eq!(opened, (Verdict::Accepted, payloads[i].clone()), "{name}");
            }
        }
    }
}

#[test]
fn when_the_leaves_are_used_up_nothing_is_sent() {
    let framework = framework();
    for (name, suite, keys) in all() {
        let most: u64 = match suite {
            Suite::MagmaMgm | Suite::MagmaMgmMac => 1 << 52,
            _ => 1 << 56,
        };
        let mut parameters = support::parameters(suite, &keys, true);
        parameters.mode = Mode::Transport;
        parameters.resume_after(most - 1);
        let sa = OutboundSa::new(&framework, parameters.clone()).unwrap();
        let sealed = with_packets(&vec![vec![1; 50]; 2], |packets| sa.seal(packets));
        assert_eq!(sealed[0].0, Verdict::Sealed, "{name}");
        assert_eq!(sealed[0].1[8..11], [0xff; 3]);
        let exhausted = Verdict::Refused(Refusal::SequenceExhausted);
        assert_eq!(sealed[1].0, exhausted, "{name}");
    }
}

#[test]
fn packets_of_every_length() {
    let framework = framework();
    for (name, suite, keys) in all() {
        for esn in [false, true] {
            let mut parameters = support::parameters(suite, &keys, esn);
            parameters.mode = Mode::Transport;
            // With ESN the upper half is part of what is authenticated.
            parameters.resume_after(if esn { (7 << 32) - 1 } else { 0 });
            let lengths = (0..70).chain([500, 1023, 1400, 9000, (65_515 - 8 - 8 - 12) / 4 * 4 - 2]);
            let payloads: Vec<_> = lengths.map(|len| vec![0x5a; len]).collect();
            let outbound = OutboundSa::new(&framework, parameters.clone()).unwrap();
            let sealed = seal(&outbound, &payloads);
            let inbound = InboundSa::new(&framework, parameters.clone()).unwrap();
            for (packet, payload) in sealed.iter().zip(payloads) {
                let opened = with_packets(std::slice::from_ref(packet), |p| inbound.open(p));
                assert_eq!(opened[0], (Verdict::Accepted, payload), "{name}");
            }
        }
    }
}

#[test]
fn a_flipped_bit_anywhere_is_noticed() {
    let framework = framework();
    for (name, suite, keys) in all() {
        for esn in [false, true] {
            let mut parameters = support::parameters(suite, &keys, esn);
            parameters.mode = Mode::Transport;
            let outbound = OutboundSa::new(&framework, parameters.clone()).unwrap();
            let sealed = seal(&outbound, &[vec![7; 61]]).remove(0);
            let inbound = InboundSa::new(&framework, parameters.clone()).unwrap();
            for byte in 8..sealed.len() {
                let mut damaged = sealed.clone();
                damaged[byte] ^= 0x10;
                let opened = with_packets(&[damaged], |packets| inbound.open(packets));
                assert_eq!(opened[0].0, Verdict::Refused(Refusal::BadIcv), "{name}");
                assert!(opened[0].1.iter().all(|&b| b == 0), "{name}: not wiped");
            }
            let opened = with_packets(&[sealed], |packets| inbound.open(packets));
            assert_eq!(opened[0], (Verdict::Accepted, vec![7; 61]), "{name}");
        }
    }
}
