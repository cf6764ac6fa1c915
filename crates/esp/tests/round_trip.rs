//! What one SA seals, its peer opens: every transform, ESN on and off, all batch lengths.

mod support;

use cipherlane_esp::{InboundSa, OutboundSa, Refusal, Verdict};
use support::{framework, ipv4, parameters, transforms, with_packets};

#[test]
fn what_is_sealed_is_opened_once() {
    let framework = framework();
    for (transform, keys) in transforms() {
        for esn in [false, true] {
            let parameters = parameters(transform, &keys, esn);
            let outbound = OutboundSa::new(&framework, &parameters).unwrap();
            let inbound = InboundSa::new(&framework, &parameters).unwrap();
            let mut total = 0;
            for count in [1, 2, 31, 32, 33, 64, 100] {
                let inner: Vec<_> = (0..count).map(|i| ipv4(20 + i * 13, i as u8)).collect();
                let sealed = with_packets(&inner, |packets| outbound.seal(packets));
                for (i, (verdict, packet)) in sealed.iter().enumerate() {
                    assert_eq!(*verdict, Verdict::Sealed, "{transform:?}");
                    let number = (total + i + 1) as u32;
                    assert_eq!(packet[4..8], number.to_be_bytes());
                }
                total += count;
                let sealed: Vec<_> = sealed.into_iter().map(|(_, packet)| packet).collect();
                let opened = with_packets(&sealed, |packets| inbound.open(packets));
                for (opened, inner) in opened.into_iter().zip(&inner) {
                    assert_eq!(opened, (Verdict::Accepted, inner.clone()), "{transform:?}");
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
