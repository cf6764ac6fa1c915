//! What anybody can send: nothing is accepted that was not sealed, nothing panics, and the SA
//! works on.

mod support;

use std::sync::OnceLock;

use cipherlane_esp::headers::{Arrival, Ecn, Fields, decrement_hop_limit, leave_tunnel};
use cipherlane_esp::{Encapsulation, InboundSa, Mode, OutboundSa, Verdict};
use proptest::prelude::*;
use proptest::sample::Index;
use support::{Buffer, framework, ipv4, parameters, suites, with_packets};

/// Pairs of SAs, one for each suite, mode and ESN.
fn pairs() -> &'static [(OutboundSa, InboundSa)] {
    static PAIRS: OnceLock<Vec<(OutboundSa, InboundSa)>> = OnceLock::new();
    PAIRS.get_or_init(|| {
        let framework = framework();
        let mut pairs = Vec::new();
        for (number, (suite, keys)) in suites().iter().enumerate() {
            for esn in [false, true] {
                let mut parameters = parameters(*suite, keys, esn);
                parameters.encapsulation = Encapsulation::Udp {
                    source: 4500,
                    destination: 4500,
                };
                // Transport mode takes any plaintext.
                parameters.mode = match number % 2 {
                    0 => Mode::Tunnel,
                    _ => Mode::Transport,
                };
                pairs.push((
                    OutboundSa::new(&framework, parameters.clone()).unwrap(),
                    InboundSa::new(&framework, parameters.clone()).unwrap(),
                ));
            }
        }
        pairs
    })
}

#[derive(Clone, Debug)]
enum Damage {
    Flip(Index, u8),
    Cut(Index),
    Extend(Vec<u8>),
    Remove(Index),
    Number(u32),
    Replace(Vec<u8>),
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        (any::<Index>(), 1u8..).prop_map(|(at, bits)| Damage::Flip(at, bits)),
        any::<Index>().prop_map(Damage::Cut),
        prop::collection::vec(any::<u8>(), 1..80).prop_map(Damage::Extend),
        any::<Index>().prop_map(Damage::Remove),
        any::<u32>().prop_map(Damage::Number),
        prop::collection::vec(any::<u8>(), 0..200).prop_map(Damage::Replace),
    ]
}

fn apply(damage: &Damage, packet: &mut Vec<u8>) {
    match damage {
        Damage::Flip(at, bits) if !packet.is_empty() => {
            let at = at.index(packet.len());
            packet[at] ^= bits;
        }
        Damage::Cut(at) => packet.truncate(at.index(packet.len() + 1)),
        Damage::Extend(bytes) => packet.extend(bytes),
        Damage::Remove(at) if !packet.is_empty() => {
            packet.remove(at.index(packet.len()));
        }
        Damage::Number(number) if packet.len() >= 8 => {
            packet[4..8].copy_from_slice(&number.to_be_bytes());
        }
        Damage::Replace(bytes) => *packet = bytes.clone(),
        _ => {}
    }
}

proptest! {
    #[test]
    fn a_damaged_packet_is_never_accepted_and_the_sa_works_on(
        pair in any::<Index>(),
        len in 20usize..200,
        damages in prop::collection::vec(damage(), 1..4),
    ) {
        let (outbound, inbound) = pair.get(pairs());
        let inner = ipv4(len, 3);
        let sealed = with_packets(std::slice::from_ref(&inner), |p| outbound.seal(p));
        let sealed = sealed[0].1.clone();
        let mut damaged = sealed.clone();
        damages.iter().for_each(|damage| apply(damage, &mut damaged));
        if damaged != sealed {
            let before = inbound.statistics();
            let top = inbound.highest_sequence();
            // The damaged one between good ones, as in a batch from the network.
            let result = with_packets(&[damaged.clone()], |p| inbound.open(p));
            let refused = matches!(result[0].0, Verdict::Refused(_));
            prop_assert!(refused, "{:?} of {damaged:02x?}", result[0].0);
            let after = inbound.statistics();
            prop_assert_eq!(after.packets, before.packets);
            let refusals = |s: &cipherlane_esp::statistics::Statistics| s.refused.iter().sum::<u64>();
            prop_assert_eq!(refusals(&after), refusals(&before) + 1);
            prop_assert_eq!(inbound.highest_sequence(), top);
        }
        let result = with_packets(&[damaged, sealed], |p| inbound.open(p));
        let good = result.iter().find(|(verdict, _)| *verdict == Verdict::Accepted);
        prop_assert_eq!(good.map(|(_, content)| content), Some(&inner));
    }

    #[test]
    fn headers_of_any_bytes_are_read_or_refused(
        bytes in prop::collection::vec(any::<u8>(), 0..120),
        version in prop_oneof![Just(0x45u8), Just(0x46), Just(0x60), any::<u8>()],
        protocol in prop_oneof![Just(50u8), Just(17), Just(0), Just(43), Just(44), Just(60)],
        whole in any::<bool>(),
    ) {
        let mut bytes = bytes;
        if let Some(first) = bytes.first_mut() {
            *first = version;
        }
        let len = bytes.len();
        match version >> 4 {
            4 if len > 9 => {
                bytes[9] = protocol;
                if whole {
                    bytes[2..4].copy_from_slice(&(len as u16).to_be_bytes());
                }
            }
            6 if len > 40 => {
                bytes[6] = protocol;
                if whole {
                    bytes[4..6].copy_from_slice(&((len - 40) as u16).to_be_bytes());
                }
            }
            _ => {}
        }
        let _ = Fields::of(&bytes);
        let _ = decrement_hop_limit(&mut bytes.clone());
        for ecn in [Ecn::NotEct, Ecn::Ce] {
            let _ = leave_tunnel(&mut bytes.clone(), ecn);
        }
        let mut buffer = Buffer::new(&bytes);
        let mut packet = buffer.packet();
        let range = packet.range();
        if Arrival::strip(&mut packet, &[4500]).is_ok() {
            let esp = packet.range();
            prop_assert!(range.start < esp.start && esp.end <= range.end);
        } else {
            prop_assert_eq!(packet.range(), range);
        }
    }
}
