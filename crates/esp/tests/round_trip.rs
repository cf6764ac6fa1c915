//! What one SA seals, its peer opens: every suite, ESN on and off, all batch lengths.

mod support;

use cipherlane_esp::{InboundSa, IvOrigin, Keys, OutboundSa, Refusal, Suite, Verdict};
use support::{framework, ipv4, parameters, suites, with_packets};

#[test]
fn what_is_sealed_is_opened_once() {
    let framework = framework();
    for (suite, keys) in suites() {
        for esn in [false, true] {
            let parameters = parameters(suite, &keys, esn);
            let outbound = OutboundSa::new(&framework, parameters.clone()).unwrap();
            let inbound = InboundSa::new(&framework, parameters.clone()).unwrap();
            let mut total = 0;
            for count in [1, 2, 31, 32, 33, 64, 100] {
                let inner: Vec<_> = (0..count).map(|i| ipv4(20 + i * 13, i as u8)).collect();
                let sealed = with_packets(&inner, |packets| outbound.seal(packets));
                for (i, (verdict, packet)) in sealed.iter().enumerate() {
                    assert_eq!(*verdict, Verdict::Sealed, "{suite:?}");
                    let number = (total + i + 1) as u32;
                    assert_eq!(packet[4..8], number.to_be_bytes());
                }
                total += count;
                let sealed: Vec<_> = sealed.into_iter().map(|(_, packet)| packet).collect();
                let opened = with_packets(&sealed, |packets| inbound.open(packets));
                for (opened, inner) in opened.into_iter().zip(&inner) {
                    assert_eq!(opened, (Verdict::Accepted, inner.clone()), "{suite:?}");
                }
                let again = with_packets(&sealed, |packets| inbound.open(packets));
                for ((verdict, packet), sealed) in again.into_iter().zip(&sealed) {
                    assert_eq!(verdict, Verdict::Refused(Refusal::Replayed));
                    assert_eq!(packet, *sealed, "a replay is not touched");
                }
            }
            assert_eq!(inbound.highest_sequence(), total as u64);
            let (sent, received) = (outbound.statistics(), inbound.statistics());
            assert_eq!(sent.packets, total as u64);
            assert_eq!(received.packets, total as u64);
            assert_eq!(sent.bytes, received.bytes);
            assert_eq!(received.refused[Refusal::Replayed.index()], total as u64);
        }
    }
}

/// What other implementations judge is the explicit IV and the whole ICV; here the IV is the
/// sequence number, so the other forms are that packet with parts left out (RFC 8750 section
/// 3, RFC 4106 section 6).
#[test]
fn an_implicit_iv_and_a_shorter_icv_leave_parts_out_of_the_same_packet() {
    let framework = framework();
    let seal = |suite, keys: &Keys, esn| {
        let parameters = parameters(suite, keys, esn);
        let sa = OutboundSa::new(&framework, parameters.clone()).unwrap();
        let sealed = with_packets(&vec![ipv4(90, 5); 3], |packets| sa.seal(packets));
        sealed
            .into_iter()
            .map(|(_, packet)| packet)
            .collect::<Vec<_>>()
    };
    let (gcm, chacha) = (Keys::combined(&[3; 20]), Keys::combined(&[4; 36]));
    for esn in [false, true] {
        let (explicit, implicit) = (IvOrigin::Explicit, IvOrigin::Implicit);
        let whole = seal(
            Suite::AesGcm {
                icv: 16,
                iv: explicit,
            },
            &gcm,
            esn,
        );
        for icv in [8, 12, 16] {
            let short = seal(Suite::AesGcm { icv, iv: explicit }, &gcm, esn);
            let bare = seal(Suite::AesGcm { icv, iv: implicit }, &gcm, esn);
            for ((whole, short), bare) in whole.iter().zip(&short).zip(&bare) {
                assert_eq!(short[..], whole[..whole.len() - (16 - icv)]);
                assert_eq!(*bare, [&short[..8], &short[16..]].concat());
            }
        }
        let whole = seal(Suite::ChaCha20Poly1305 { iv: explicit }, &chacha, esn);
        let bare = seal(Suite::ChaCha20Poly1305 { iv: implicit }, &chacha, esn);
        for (number, (whole, bare)) in (1u64..).zip(whole.iter().zip(&bare)) {
            assert_eq!(whole[8..16], number.to_be_bytes());
            assert_eq!(*bare, [&whole[..8], &whole[16..]].concat());
        }
    }
}
