//! What anybody on the way can send: it is refused, counted by its reason, and harms nobody.

use std::net::UdpSocket;

use crate::rig::{Host, OUTER, Rig, bound, pair, rig};

/// Sends payloads to gateway b, from the port that it expects.
fn attack(rig: &Rig, payloads: Vec<Vec<u8>>) {
    rig.within(Host::Router, move || {
        let socket = bound(|| UdpSocket::bind("198.51.100.254:4500"));
        for payload in payloads {
            socket.send_to(&payload, (OUTER[1], 4500)).unwrap();
        }
    });
}

#[test]
fn forged_and_replayed_packets_are_refused_by_their_reasons() {
    let Some(mut rig) = rig() else {
        return;
    };
    rig.configure(&[]);
    rig.start(Host::A);
    rig.start(Host::B);
    let watch = rig.watch();
    rig.wait_until_connected();
    let good = watch.esp_from(OUTER[0]).into_iter().next().unwrap();
    let changed = |at: usize| {
        let mut packet = good.clone();
        packet[at] ^= 1;
        packet
    };
    let ahead = |flip: usize| {
        let mut packet = good.clone();
        // Far in the window's future, so that only the ICV can tell.
        packet[6] = packet[6].wrapping_add(1);
        packet[flip] ^= 1;
        packet
    };
    let ten = |packet: Vec<u8>| std::iter::repeat_n(packet, 10);
    let end = good.len() - 1;
    attack(&rig, ten(good.clone()).collect());
    attack(&rig, ten(ahead(end)).chain(ten(ahead(20))).collect());
    attack(&rig, ten(changed(0)).collect());
    attack(&rig, ten(vec![0xff]).collect());
    attack(&rig, ten([vec![0; 4], good.clone()].concat()).collect());
    attack(&rig, ten(vec![1, 2, 3]).chain(ten(vec![])).collect());
    attack(
        &rig,
        (8..good.len()).map(|len| good[..len].to_vec()).collect(),
    );
    // A train of everything at once: GRO may join what has one length.
    let mixed = (0..100).map(|n| match n % 4 {
        0 => good.clone(),
        1 => changed(0),
        2 => ahead(end),
        _ => vec![0; good.len()],
    });
    attack(&rig, mixed.collect());
    let status = rig.wait_for(Host::B, "the last refusal", |status| {
        status["calls"]["dropped"]["ike"] == 35
    });
    let dropped = &status["calls"]["dropped"];
    assert_eq!(dropped["keepalives"], 10);
    assert_eq!(dropped["unknown_spi"], 35);
    assert_eq!(dropped["truncated"], 20);
    let inbound = &status["tunnels"][0]["inbound"];
    let refused = &inbound["refused"];
    // What is cut short but has the number of a packet that came is a replay first.
    assert!(refused["replayed"].as_u64().unwrap() >= 35, "{refused}");
    assert_eq!(refused["integrity_failures"], 45, "{refused}");
    rig.wait_until_connected();
}

#[test]
fn what_no_tunnel_carries_does_not_leave() {
    let Some(rig) = pair() else {
        return;
    };
    // An administrator's mistake: a route without a tunnel, and a source that no selector holds.
    rig.ip(Host::A, "route add 10.66.0.0/16 dev cipherlane0");
    rig.ip(Host::A, "addr add 10.55.0.1/32 dev lo");
    let watch = rig.watch();
    rig.within(Host::A, || {
        for (own, to) in [("10.9.0.1:0", "10.66.0.1:9"), ("10.55.0.1:0", "10.9.0.2:9")] {
            let socket = UdpSocket::bind(own).unwrap();
            for _ in 0..20 {
                socket.send_to(b"this must not leave", to).unwrap();
            }
        }
    });
    rig.wait_for(Host::A, "40 drops", |status| {
        let dropped = &status["calls"]["dropped"]["no_policy"];
        dropped.as_u64().is_some_and(|count| count >= 40)
    });
    for packet in watch.packets() {
        let seen = packet
            .windows(19)
            .any(|window| window == b"this must not leave");
        assert!(!seen, "{packet:02x?}");
    }
    // A peer that seals what it should not: its selectors are those of b.
    rig.edit("a", |text| {
        text.replace("local = [", "local = [\"10.55.0.1/32\", ")
    });
    rig.signal(Host::A, rustix::process::Signal::HUP);
    rig.wait_for(Host::A, "the change", |status| {
        status["tunnels"][0]["local"]
            .as_array()
            .is_some_and(|local| local.len() == 3)
    });
    rig.within(Host::A, || {
        let socket = UdpSocket::bind("10.55.0.1:0").unwrap();
        for _ in 0..20 {
            socket.send_to(b"from elsewhere", "10.9.0.2:9").unwrap();
        }
    });
    rig.wait_for(Host::B, "20 refusals", |status| {
        status["calls"]["dropped"]["selectors"] == 20
    });
}

#[test]
fn a_silent_tunnel_keeps_nats_awake() {
    let Some(mut rig) = rig() else {
        return;
    };
    rig.configure(&[]);
    rig.edit("a", |text| {
        text.replace("transform", "keepalive = 1\ntransform")
    });
    rig.start(Host::A);
    rig.start(Host::B);
    rig.wait_for(Host::B, "a keepalive", |status| {
        status["calls"]["dropped"]["keepalives"] != 0
    });
}
