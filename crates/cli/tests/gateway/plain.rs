//! Plain ESP, IP protocol 50: carried as ESP in UDP is, and nothing else is on the wire.

use std::net::UdpSocket;

use rustix::process::Signal;

use crate::carrying::{MARK, datagrams, holds, transfer};
use crate::rig::{Host, Rig, rig};

fn start(rig: &mut Rig) {
    rig.start(Host::A);
    rig.start(Host::B);
    rig.wait_until_connected();
}

/// Everything that passes a tunnel, and that nothing of it is seen.
fn carries(mut rig: Rig, is_esp: fn(&[u8]) -> bool) {
    let watch = rig.watch();
    start(&mut rig);
    transfer(&rig, ["10.9.0.1", "10.9.0.2"], 5001, 8 << 20);
    transfer(&rig, ["fd09::1", "fd09::2"], 5001, 4 << 20);
    datagrams(&rig, "10.9.0.1:0", "10.9.0.2:9");
    datagrams(&rig, "[fd09::1]:0", "[fd09::2]:9");
    let packets = watch.packets();
    assert!(packets.iter().filter(|packet| is_esp(packet)).count() > 1000);
    for packet in &packets {
        let shown = &packet[..packet.len().min(60)];
        // The rest is what hosts say to find each other: ARP, and ICMPv6 to neighbours.
        let is_local = packet[..2] == [0, 1]
            || packet[0] >> 4 == 6 && packet[7] == 255
            || packet[0] >> 4 == 6 && packet[24] == 0xff;
        assert!(is_esp(packet) || is_local, "{shown:02x?}");
        assert!(!holds(packet, MARK), "clear text: {shown:02x?}");
    }
    for host in [Host::A, Host::B] {
        let status = rig.status(host).unwrap();
        let tunnel = &status["tunnels"][0];
        assert_eq!(tunnel["encapsulation"], "none");
        assert_eq!(tunnel["inbound"]["refused"], serde_json::json!({}));
        crate::schema::judge("gateway-status", &rig.shown(host));
    }
    assert!(rig.end(Host::A, Signal::TERM) && rig.end(Host::B, Signal::TERM));
}

#[test]
fn it_carries_over_ipv4() {
    let Some(rig) = rig() else {
        return;
    };
    rig.configure(&["--plain"]);
    // DF is set but in the pieces of what may be cut.
    carries(rig, |packet| {
        packet[0] == 0x45 && packet[9] == 50 && packet[6] & 0x40 != 0
    });
}

#[test]
fn it_carries_over_ipv6_with_many_threads() {
    let Some(rig) = rig() else {
        return;
    };
    rig.add_ipv6();
    rig.configure(&["--plain", "--transform", "aes-cbc-hmac-sha256"]);
    for end in ["a", "b"] {
        rig.edit(end, |text| {
            let text = text.replace("\"198.51.100.1\"", "\"2001:db8:b::1\"");
            let text = text.replace("\"192.0.2.1\"", "\"2001:db8:a::1\"");
            format!("threads = 3\n{text}")
        });
    }
    carries(rig, |packet| packet[0] >> 4 == 6 && packet[6] == 50);
}

#[test]
fn both_encapsulations_live_side_by_side() {
    let Some(mut rig) = rig() else {
        return;
    };
    rig.configure(&[]);
    let digits = |n: u8| format!("{n:02x}").repeat(36);
    let plain = |peer: &str, local: &str, remote: &str, (out, into): (u8, u8)| {
        format!(
            "[[tunnel]]\nname = \"plain\"\npeer = \"{peer}\"\nencapsulation = \"none\"\nlocal = \
             [\"{local}\"]\nremote = [\"{remote}\"]\nout = {{ spi = {out}000, key = \"{}\" }}\nin \
             = {{ spi = {into}000, key = \"{}\" }}\n",
            digits(out),
            digits(into)
        )
    };
    rig.edit("a", |text| {
        text + &plain("198.51.100.1", "10.9.0.1", "10.8.0.2", (1, 2))
    });
    rig.edit("b", |text| {
        let more = plain("192.0.2.1", "10.8.0.2", "10.9.0.1", (2, 1));
        text.replace("addresses = [", "addresses = [\"10.8.0.2/32\", ") + &more
    });
    let watch = rig.watch();
    start(&mut rig);
    transfer(&rig, ["10.9.0.1", "10.9.0.2"], 5001, 2 << 20);
    transfer(&rig, ["10.9.0.1", "10.8.0.2"], 5001, 2 << 20);
    let packets = watch.packets();
    for protocol in [17, 50] {
        let is_such = |packet: &&Vec<u8>| packet[0] == 0x45 && packet[9] == protocol;
        assert!(packets.iter().filter(is_such).count() > 20, "{protocol}");
    }
    // What was sealed for one encapsulation is not taken in the other.
    let sealed = packets
        .iter()
        .find(|packet| packet[0] == 0x45 && packet[9] == 50);
    let payload = sealed.unwrap()[20..].to_vec();
    rig.within(Host::Router, move || {
        let socket = UdpSocket::bind("198.51.100.254:4500").unwrap();
        for to in ["192.0.2.1:4500", "198.51.100.1:4500"] {
            socket.send_to(&payload, to).unwrap();
        }
    });
    let unknown = |host| {
        let status = rig.status(host).unwrap();
        status["calls"]["dropped"]["unknown_spi"].as_u64().unwrap()
    };
    let begin = std::time::Instant::now();
    while unknown(Host::A) == 0 || unknown(Host::B) == 0 {
        assert!(begin.elapsed().as_secs() < 60);
    }
}

#[test]
fn a_narrower_path_is_noticed() {
    let Some(mut rig) = rig() else {
        return;
    };
    rig.configure(&["--plain"]);
    start(&mut rig);
    transfer(&rig, ["10.9.0.1", "10.9.0.2"], 5001, 1 << 20);
    rig.ip(Host::Router, "link set to-b mtu 1300");
    rig.ip(Host::B, "link set wire mtu 1300");
    transfer(&rig, ["10.9.0.1", "10.9.0.2"], 5002, 2 << 20);
    let status = rig.wait_for(Host::A, "the path's MTU", |status| {
        status["tunnels"][0]["path_mtu"] == 1300
    });
    assert!(status["tunnels"][0]["inner_mtu"].as_u64().unwrap() < 1270);
    datagrams(&rig, "10.9.0.1:0", "10.9.0.2:9");
}

#[test]
fn only_plain_esp_keeps_the_right_to_raw_sockets() {
    for (options, is_kept) in [(&["--plain"][..], true), (&[], false)] {
        let Some(mut rig) = rig() else {
            return;
        };
        rig.configure(options);
        rig.start(Host::A);
        let pid = rig.status(Host::A).unwrap()["pid"].as_u64().unwrap();
        let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let kept = text.lines().find_map(|line| line.strip_prefix("CapEff:"));
        let kept = u64::from_str_radix(kept.unwrap().trim(), 16).unwrap();
        // CAP_NET_ADMIN is 12, CAP_NET_RAW 13.
        let wanted = 1 << 12 | u64::from(is_kept) << 13;
        assert_eq!(kept, wanted, "{options:?}");
    }
}
