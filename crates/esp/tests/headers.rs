//! Whole IP packets through tunnel and transport mode and back.

mod support;

use std::net::IpAddr;

use cipherlane_esp::headers::{
    Arrival, Detached, DfPolicy, DscpPolicy, Ecn, EcnPolicy, Fields, Problem, Tunnel, checksum,
};
use cipherlane_esp::{
    Encapsulation, InboundSa, IvOrigin, Keys, Mode, OutboundSa, Packet, SaParameters, Suite,
    Verdict,
};
use support::{Buffer, framework, ipv4};

const NAT: Encapsulation = Encapsulation::Udp {
    source: 4500,
    destination: 4500,
};

fn pair(mode: Mode, encapsulation: Encapsulation) -> (OutboundSa, InboundSa) {
    let iv = IvOrigin::Explicit;
    let suite = Suite::AesGcm { icv: 16, iv };
    let mut parameters = SaParameters::new(4711, suite, Keys::combined(&[5; 36]));
    (parameters.mode, parameters.encapsulation) = (mode, encapsulation);
    let framework = framework();
    (
        OutboundSa::new(&framework, parameters.clone()).unwrap(),
        InboundSa::new(&framework, parameters.clone()).unwrap(),
    )
}

/// An IPv6 packet with a hop-by-hop header, a routing header and destination options, then UDP.
fn ipv6_with_extensions() -> Vec<u8> {
    let mut packet = vec![0; 40];
    packet[..2].copy_from_slice(&[0x6b, 0x85]);
    (packet[6], packet[7]) = (0, 63);
    packet[8..40].fill(0x20);
    packet.extend([43, 0, 1, 4, 0, 0, 0, 0]);
    packet.extend([60, 0, 253, 0, 0, 0, 0, 0]);
    packet.extend([17, 0, 1, 4, 0, 0, 0, 0]);
    packet.extend([0x12, 0x34, 0x56, 0x78, 0, 19, 0, 0]);
    packet.extend(b"hello world");
    let payload = (packet.len() - 40) as u8;
    packet[5] = payload;
    packet
}

/// An IPv4 packet with a DSCP, an ECN mark, DF and options.
fn ipv4_with_options(ecn: Ecn) -> Vec<u8> {
    let mut packet = ipv4(80, 3);
    (packet[0], packet[1], packet[6]) = (0x46, 46 << 2 | ecn as u8, 0x40);
    packet[20..24].copy_from_slice(&[1, 1, 1, 0]);
    packet[10..12].fill(0);
    let sum = checksum(&[&packet[..24]]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet
}

#[test]
fn a_tunnel_carries_every_family_in_every_other() {
    let ends: [(IpAddr, IpAddr); 2] = [
        ("192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap()),
        (
            "2001:db8::1".parse().unwrap(),
            "2001:db8::2".parse().unwrap(),
        ),
    ];
    for (source, destination) in ends {
        for encapsulation in [Encapsulation::None, NAT] {
            let (outbound, inbound) = pair(Mode::Tunnel, encapsulation);
            for inner in [ipv4_with_options(Ecn::Ect0), ipv6_with_extensions()] {
                let mut tunnel = Tunnel::new(source, destination);
                tunnel.encapsulation = encapsulation;
                let mut buffer = Buffer::new(&inner);
                let mut packets = [buffer.packet()];
                let fields = Fields::of(packets[0].content()).unwrap();
                outbound.seal(&mut packets);
                let sealed = packets[0].len();
                tunnel.encapsulate(&mut packets[0], fields).unwrap();

                let outer = packets[0].content();
                assert_eq!(outer.len(), sealed + tunnel.head_room());
                let seen = Fields::of(outer).unwrap();
                assert_eq!((seen.dscp, seen.ecn), (fields.dscp, fields.ecn));
                assert_eq!((seen.df, seen.hop_limit), (true, 64));
                if source.is_ipv4() {
                    assert_eq!(checksum(&[&outer[..20]]), 0);
                }

                let arrival = Arrival::strip(&mut packets[0], &[4500]).unwrap();
                assert_eq!(packets[0].len(), sealed);
                let udp = encapsulation != Encapsulation::None;
                assert_eq!(arrival.ports(), udp.then_some((4500, 4500)));
                inbound.open(&mut packets);
                assert_eq!(packets[0].verdict(), Verdict::Accepted);
                arrival.leave_tunnel(&mut packets[0]).unwrap();
                assert_eq!(packets[0].content(), inner);
            }
        }
    }
}

#[test]
fn a_congestion_mark_on_the_way_reaches_the_inner_packet_or_drops_it() {
    let (outbound, inbound) = pair(Mode::Tunnel, Encapsulation::None);
    let tunnel = Tunnel::new("10.1.1.1".parse().unwrap(), "10.1.1.2".parse().unwrap());
    for (ecn, expected) in [
        (Ecn::Ect0, Ok(Ecn::Ce)),
        (Ecn::NotEct, Err(Problem::Congested)),
    ] {
        let mut buffer = Buffer::new(&ipv4_with_options(ecn));
        let mut packets = [buffer.packet()];
        let fields = Fields::of(packets[0].content()).unwrap();
        outbound.seal(&mut packets);
        tunnel.encapsulate(&mut packets[0], fields).unwrap();
        packets[0].content_mut()[1] |= Ecn::Ce as u8;
        let arrival = Arrival::strip(&mut packets[0], &[]).unwrap();
        inbound.open(&mut packets);
        let left = arrival.leave_tunnel(&mut packets[0]);
        assert_eq!(
            left.map(|()| Fields::of(packets[0].content()).unwrap().ecn),
            expected
        );
        if left.is_ok() {
            assert_eq!(checksum(&[&packets[0].content()[..24]]), 0);
        }
    }
}

#[test]
fn policies_decide_df_dscp_and_ecn() {
    let mut tunnel = Tunnel::new("10.1.1.1".parse().unwrap(), "10.1.1.2".parse().unwrap());
    let mut inner = Fields::of(&ipv4_with_options(Ecn::Ce)).unwrap();
    assert_eq!(tunnel.traffic_class(inner), 46 << 2 | 3);
    (tunnel.dscp, tunnel.ecn) = (DscpPolicy::Fixed(10), EcnPolicy::Compatibility);
    assert_eq!(tunnel.traffic_class(inner), 10 << 2);
    for (policy, copied) in [(DfPolicy::Set, true), (DfPolicy::Clear, false)] {
        tunnel.df = policy;
        for df in [false, true] {
            inner.df = df;
            assert_eq!(tunnel.dont_fragment(inner), copied);
        }
    }
    tunnel.df = DfPolicy::Copy;
    assert!(tunnel.dont_fragment(inner));
    inner.df = false;
    assert!(!tunnel.dont_fragment(inner));
    tunnel.destination = "::1".parse().unwrap();
    let mut buffer = Buffer::new(&ipv4(40, 0));
    let refused = tunnel.encapsulate(&mut buffer.packet(), inner);
    assert_eq!(refused, Err(Problem::MixedFamilies));
}

#[test]
fn transport_mode_gives_the_packet_back_as_it_was() {
    for encapsulation in [Encapsulation::None, NAT] {
        let (outbound, inbound) = pair(Mode::Transport, encapsulation);
        for inner in [ipv4_with_options(Ecn::Ect1), ipv6_with_extensions()] {
            let mut buffer = Buffer::new(&inner);
            let mut packets = [buffer.packet()];
            let detached = Detached::take_off(&mut packets[0], &outbound, encapsulation).unwrap();
            let header = inner.len() - packets[0].len();
            outbound.seal(&mut packets);
            assert_eq!(packets[0].verdict(), Verdict::Sealed);
            detached.put_back(&mut packets[0]).unwrap();

            // The header is the same but for length, protocol and checksum.
            let sealed = packets[0].content().to_vec();
            let seen = Fields::of(&sealed).unwrap();
            assert_eq!(seen, Fields::of(&inner).unwrap());
            let udp = encapsulation != Encapsulation::None;
            let protocol = if udp { 17 } else { 50 };
            if inner[0] >> 4 == 4 {
                assert_eq!((header, sealed[9]), (24, protocol));
                assert_eq!(sealed[12..24], inner[12..24]);
                assert_eq!(checksum(&[&sealed[..24]]), 0);
            } else {
                // Hop-by-hop and routing header stay before ESP, destination options do not.
                assert_eq!((header, sealed[48]), (56, protocol));
                assert_eq!(sealed[8..48], inner[8..48]);
            }

            let arrival = Arrival::strip(&mut packets[0], &[4500]).unwrap();
            inbound.open(&mut packets);
            assert_eq!(packets[0].verdict(), Verdict::Accepted);
            arrival.put_back(&mut packets[0]).unwrap();
            assert_eq!(packets[0].content(), inner);
        }
    }
}

#[test]
fn what_cannot_be_stripped_says_why() {
    let problem = |bytes: &[u8]| {
        let mut buffer = Buffer::new(bytes);
        let mut packet = buffer.packet();
        Arrival::strip(&mut packet, &[4500])
            .map(|_| ())
            .unwrap_err()
    };
    assert_eq!(problem(&[]), Problem::NotIp);
    assert_eq!(problem(&ipv4(60, 0)[..59]), Problem::NotIp);
    let mut tcp = ipv4(60, 0);
    tcp[9] = 6;
    assert_eq!(problem(&tcp), Problem::NotEsp(6));
    assert_eq!(problem(&ipv6_with_extensions()), Problem::NotEsp(17));
    let mut fragment = ipv4(60, 0);
    (fragment[9], fragment[6]) = (50, 0x20);
    assert_eq!(problem(&fragment), Problem::Fragment);
    // UDP that is longer than its IP packet.
    let mut udp = ipv4(60, 0);
    udp[20..28].copy_from_slice(&[0, 0, 0x11, 0x94, 0, 41, 0, 0]);
    assert_eq!(problem(&udp), Problem::NotIp);
}

#[test]
fn a_header_needs_room() {
    let (outbound, _) = pair(Mode::Transport, NAT);
    let inner = ipv4(60, 0);
    let room = Detached::head_room(&outbound);
    let mut buffer = [vec![0; room - 1], inner.clone(), vec![0; 64]].concat();
    let mut packet = Packet::new(&mut buffer, room - 1..room - 1 + 60);
    let refused = Detached::take_off(&mut packet, &outbound, NAT).map(|_| ());
    assert_eq!(refused, Err(Problem::NoRoom));
    assert_eq!(packet.content(), inner);
}
