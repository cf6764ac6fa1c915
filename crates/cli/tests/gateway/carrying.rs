//! What is carried arrives whole, and nobody on the way can read it.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use rustix::process::Signal;

use crate::rig::{Host, Rig, bound, pair, rig};

/// What no packet on the wire may hold.
pub(crate) const MARK: &[u8] = b"this must not be seen by anybody";

/// Bytes that look random, with the mark in them now and then.
fn stream(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed | 1;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        match state % 1024 {
            0 => bytes.extend_from_slice(MARK),
            _ => bytes.extend_from_slice(&state.to_le_bytes()),
        }
    }
    bytes.truncate(len);
    bytes
}

/// Sends `len` bytes over TCP in both directions at once, and compares them.
pub(crate) fn transfer(rig: &Rig, addresses: [&'static str; 2], port: u16, len: usize) {
    let [a, b] = addresses.map(|address| (address.parse::<std::net::IpAddr>().unwrap(), port));
    let talk = move |stream_: TcpStream, own: u64, other: u64| {
        stream_
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        let mut writer = stream_.try_clone().unwrap();
        let sender = std::thread::spawn(move || {
            writer.write_all(&stream(own, len)).unwrap();
            writer.shutdown(std::net::Shutdown::Write).unwrap();
        });
        let mut received = Vec::with_capacity(len);
        (&stream_).read_to_end(&mut received).unwrap();
        sender.join().unwrap();
        assert_eq!(received.len(), len);
        assert!(received == stream(other, len), "the bytes have changed");
    };
    let (ready, is_ready) = std::sync::mpsc::channel();
    let server = rig.beside(Host::B, move || {
        let listener = bound(|| TcpListener::bind(b));
        ready.send(()).unwrap();
        let (stream, from) = listener.accept().unwrap();
        assert_eq!(from.ip(), a.0);
        talk(stream, 2, 1);
    });
    is_ready.recv().unwrap();
    rig.within(Host::A, move || {
        let stream = TcpStream::connect_timeout(&b.into(), Duration::from_secs(30)).unwrap();
        talk(stream, 1, 2);
    });
    server.join().unwrap();
}

/// Sends datagrams of many lengths and back; each must come back as it was. One that was lost, as
/// where a path has become narrower, is sent again.
pub(crate) fn datagrams(rig: &Rig, own: &'static str, other: &'static str) {
    let echo = rig.echo(other);
    rig.within(Host::A, move || {
        let socket = UdpSocket::bind(own).unwrap();
        let limit = Duration::from_millis(500);
        socket.set_read_timeout(Some(limit)).unwrap();
        let mut bytes = vec![0; 65536];
        for len in [
            1, 2, 3, 64, 100, 1000, 1300, 1399, 1400, 1411, 1412, 3000, 9000, 40000,
        ] {
            let sent = stream(len as u64, len);
            let came = (0..60).any(|_| {
                let _ = socket.send_to(&sent, other);
                let received = socket.recv(&mut bytes).unwrap_or(0);
                received == len && bytes[..len] == sent
            });
            assert!(came, "{len} bytes");
        }
    });
    drop(echo);
}

pub(crate) fn holds(packet: &[u8], mark: &[u8]) -> bool {
    packet.windows(mark.len()).any(|window| window == mark)
}

fn carries(transform: &str, more: fn(String) -> String) {
    let Some(mut rig) = rig() else {
        return;
    };
    rig.configure(&["--transform", transform]);
    for end in ["a", "b"] {
        rig.edit(end, more);
    }
    let watch = rig.watch();
    rig.start_both();
    transfer(&rig, ["10.9.0.1", "10.9.0.2"], 5001, 20 << 20);
    transfer(&rig, ["fd09::1", "fd09::2"], 5001, 8 << 20);
    datagrams(&rig, "10.9.0.1:0", "10.9.0.2:9");
    datagrams(&rig, "[fd09::1]:0", "[fd09::2]:9");
    let packets = watch.packets();
    assert!(packets.len() > 100);
    for packet in &packets {
        let is_ours = packet[0] == 0x45 && packet[9] == 17;
        let shown = &packet[..packet.len().min(60)];
        // The rest is what hosts say to find each other: ARP, and multicast of IPv6.
        let is_local = packet[0] >> 4 == 6 && packet[24] == 0xff || packet[..2] == [0, 1];
        assert!(is_ours || is_local, "{shown:02x?}");
        assert!(
            !is_ours || packet[22..24] == 4500u16.to_be_bytes(),
            "{shown:02x?}"
        );
        assert!(
            !is_ours || packet[6] & 0x40 != 0,
            "DF is not set: {shown:02x?}"
        );
        assert!(!holds(packet, MARK), "clear text: {shown:02x?}");
    }
    let status = rig.status(Host::B).unwrap();
    assert_eq!(
        status["tunnels"][0]["inbound"]["refused"],
        serde_json::json!({})
    );
    crate::schema::judge("gateway-status", &rig.shown(Host::B));
    assert!(rig.end(Host::A, Signal::TERM) && rig.end(Host::B, Signal::TERM));
}

#[test]
fn tcp_and_udp_arrive_whole_and_unread() {
    carries("aes-gcm-16", |text| text);
}

#[test]
fn they_do_with_another_transform_and_many_threads() {
    carries("aes-cbc-hmac-sha256", |text| format!("threads = 3\n{text}"));
}

#[test]
fn they_do_over_ipv6() {
    let Some(mut rig) = rig() else {
        return;
    };
    rig.add_ipv6();
    rig.configure(&[]);
    for end in ["a", "b"] {
        rig.edit(end, |text| {
            let text = text.replace("198.51.100.1:4500", "[2001:db8:b::1]:4500");
            text.replace("192.0.2.1:4500", "[2001:db8:a::1]:4500")
        });
    }
    rig.start_both();
    transfer(&rig, ["10.9.0.1", "10.9.0.2"], 5001, 8 << 20);
    transfer(&rig, ["fd09::1", "fd09::2"], 5001, 8 << 20);
    datagrams(&rig, "10.9.0.1:0", "10.9.0.2:9");
}

#[test]
fn a_path_that_becomes_narrower_is_noticed() {
    let Some(rig) = pair() else {
        return;
    };
    transfer(&rig, ["10.9.0.1", "10.9.0.2"], 5001, 1 << 20);
    // Behind the router: it answers by ICMP.
    rig.ip(Host::Router, "link set to-b mtu 1300");
    rig.ip(Host::B, "link set wire mtu 1300");
    transfer(&rig, ["10.9.0.1", "10.9.0.2"], 5002, 4 << 20);
    let status = rig.wait_for(Host::A, "the path's MTU", |status| {
        status["tunnels"][0]["path_mtu"] == 1300
    });
    assert!(status["tunnels"][0]["inner_mtu"].as_u64().unwrap() < 1260);
    // Inner packets of both kinds: those that may be cut, and TCP that must be told.
    datagrams(&rig, "10.9.0.1:0", "10.9.0.2:9");
    transfer(&rig, ["fd09::1", "fd09::2"], 5003, 1 << 20);
}

#[test]
fn it_goes_on_after_its_device_or_its_link_was_gone() {
    let Some(rig) = pair() else {
        return;
    };
    rig.ip(Host::A, "link set wire down");
    rig.within(Host::A, || {
        let socket = UdpSocket::bind("10.9.0.1:0").unwrap();
        for _ in 0..10 {
            let _ = socket.send_to(b"lost", "10.9.0.2:9");
        }
    });
    let failed = |status: &serde_json::Value| status["tunnels"][0]["send_failures"] != 0;
    let status = rig.wait_for(Host::A, "a failure to send", failed);
    assert!(status["tunnels"][0]["last_failure"].is_string());
    rig.ip(Host::A, "link set wire up");
    rig.ip(Host::A, "route add default via 192.0.2.254");
    rig.wait_until_connected();
    rig.ip(Host::A, "link set cipherlane0 down");
    rig.ip(Host::A, "link set cipherlane0 up");
    rig.ip(Host::A, "route replace 10.9.0.2/32 dev cipherlane0");
    rig.wait_until_connected();
    rig.ip(Host::A, "link del cipherlane0");
    rig.wait_until_connected();
    assert!(
        rig.log(Host::A).contains("making it again"),
        "{}",
        rig.log(Host::A)
    );
}
