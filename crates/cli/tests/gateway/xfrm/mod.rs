//! Linux's own IPsec as the far end: an ESP that was not written here, in another machine.

mod tunnels;

use std::io::{Read, Write};
use std::net::{IpAddr, TcpStream, UdpSocket};
use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use self::tunnels::{CASES, GATEWAY, GUEST, Tunnel};
use crate::guest::Guest;
use crate::rig::{Host, OUTER, Rig, bound, rig};

/// The tunnel whose sequence numbers are short: which of them the window refuses can be told.
const SHORT: usize = 1;

/// A gateway at a, and a guest with the same tunnels.
fn both(in_udp: bool) -> Option<(Rig, Guest, Vec<Tunnel>)> {
    let mut rig = rig()?;
    let guest = Guest::start(&rig)?;
    let tunnels: Vec<_> = CASES
        .iter()
        .enumerate()
        .map(|(number, &case)| Tunnel {
            case,
            number,
            in_udp,
        })
        .collect();
    let directory = rig.path("a");
    std::fs::create_dir(&directory).unwrap();
    let mut text = "socket = \"status\"\nstate = \"gateway.state\"\n[interface]\naddresses = \
                    [\"10.9.0.1/32\", \"fd09::1/128\"]\n"
        .to_owned();
    let mut script = String::from("set -e\n");
    for tunnel in &tunnels {
        text += &tunnel.config();
        script += &tunnel.guest_script();
    }
    let config = directory.join("gateway.toml");
    std::fs::write(&config, text).unwrap();
    new_state(&rig, &config);
    guest.run(&rig, &script);
    rig.start(Host::A);
    Some((rig, guest, tunnels))
}

fn new_state(rig: &Rig, config: &Path) {
    let config = config.to_str().unwrap();
    let mut made = rig.command(Host::A, &["gateway", "new-state", "--config", config]);
    assert!(made.output().unwrap().status.success());
}

/// Bytes of a pattern that no packet repeats.
fn pattern(len: usize) -> Vec<u8> {
    (0..len as u32)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect()
}

/// Sends `len` bytes over TCP to the guest's echo, and compares what comes back.
fn tcp(rig: &Rig, to: &str, len: usize) {
    let to: IpAddr = to.parse().unwrap();
    rig.within(Host::A, move || {
        let limit = Duration::from_secs(60);
        let mut stream = TcpStream::connect_timeout(&(to, 7).into(), limit).unwrap();
        stream.set_read_timeout(Some(limit)).unwrap();
        let mut writer = stream.try_clone().unwrap();
        let sender = std::thread::spawn(move || {
            writer.write_all(&pattern(len)).unwrap();
            writer.shutdown(std::net::Shutdown::Write).unwrap();
        });
        let mut came = Vec::with_capacity(len);
        stream.read_to_end(&mut came).unwrap();
        sender.join().unwrap();
        assert_eq!(came.len(), len, "{to}");
        assert!(came == pattern(len), "{to}: the bytes have changed");
    });
}

/// Sends datagrams of many lengths to the guest's echo; each comes back as it was.
fn udp(rig: &Rig, to: &str) {
    let to: IpAddr = to.parse().unwrap();
    rig.within(Host::A, move || {
        let own = if to.is_ipv4() {
            "10.9.0.1:0"
        } else {
            "[fd09::1]:0"
        };
        let socket = UdpSocket::bind(own).unwrap();
        let limit = Duration::from_millis(500);
        socket.set_read_timeout(Some(limit)).unwrap();
        let mut bytes = vec![0; 65536];
        for len in [1, 2, 3, 15, 16, 17, 200, 1300, 1380, 1400, 1420, 3000, 9000] {
            let sent = pattern(len);
            // The path's MTU may have to be learned first.
            let came = (0..60).any(|_| {
                let _ = socket.send_to(&sent, (to, 7));
                let received = socket.recv(&mut bytes).unwrap_or(0);
                received == len && bytes[..len] == sent
            });
            assert!(came, "{to}: {len} bytes");
        }
    });
}

/// What the guest has counted of an SA.
#[derive(Debug, PartialEq)]
struct Counted {
    packets: u64,
    /// Below the window.
    late: u64,
    replayed: u64,
    failed: u64,
}

/// Reads the counters of an SPI in what `ip -s xfrm state` prints.
fn counted(text: &str, spi: u32) -> Counted {
    let named = format!("spi {spi:#010x}");
    let states: Vec<_> = text.split("\nsrc ").collect();
    let state = states.iter().find(|state| state.contains(&named));
    let state = state.unwrap_or_else(|| panic!("no {named} in {text}"));
    let words: Vec<_> = state.split_whitespace().collect();
    let after = |name: &str| {
        let stats = words.iter().position(|word| *word == "stats:").unwrap();
        let at = words[stats..].iter().position(|word| *word == name);
        words[stats + at.unwrap() + 1].parse().unwrap()
    };
    // A limit is '(INF)(packets)'.
    let mut packets = words
        .iter()
        .filter_map(|word| word.strip_suffix("(packets)")?.parse().ok());
    Counted {
        packets: packets.next().unwrap(),
        late: after("replay-window"),
        replayed: after("replay"),
        failed: after("failed"),
    }
}

/// Waits until both have counted the same of each tunnel; nobody has refused anything.
fn agree(rig: &Rig, guest: &Guest, tunnels: &[Tunnel]) {
    let mut last = String::new();
    for _ in 0..100 {
        let status = rig.status(Host::A).unwrap();
        let text = guest.run(rig, "ip -s xfrm state");
        let wrong = tunnels.iter().find(|tunnel| {
            let ours = &status["tunnels"][tunnel.number];
            let sent = counted(&text, tunnel.spi_to_gateway());
            let received = counted(&text, tunnel.spi_to_guest());
            last = format!("tunnel {}: {ours}, {sent:?}, {received:?}", tunnel.number);
            let packets = |direction: &str| ours[direction]["packets"].as_u64();
            let has_refused =
                |counted: &Counted| counted.late + counted.replayed + counted.failed != 0;
            packets("outbound") != Some(received.packets)
                || packets("inbound") != Some(sent.packets)
                || ours["inbound"]["refused"] != serde_json::json!({})
                || has_refused(&sent)
                || has_refused(&received)
        });
        if wrong.is_none() {
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("the counters do not agree: {last}\n{}", rig.log(Host::A));
}

/// All that is carried by every tunnel, in both directions.
fn carries(in_udp: bool) {
    let Some((mut rig, guest, tunnels)) = both(in_udp) else {
        return;
    };
    for tunnel in &tunnels {
        let [v4, v6] = tunnel.inner();
        let mut script = String::new();
        for size in [0, 1, 56, 1000, 1380, 1472, 3000] {
            script += &format!("ping -c 1 -W 5 -s {size} -I {v4} 10.9.0.1 || exit 1\n");
            script += &format!("ping -6 -c 1 -W 5 -s {size} -I {v6} fd09::1 || exit 1\n");
        }
        guest.run(&rig, &script);
        udp(&rig, &v4);
        udp(&rig, &v6);
        tcp(&rig, &v4, 256 << 10);
        tcp(&rig, &v6, 256 << 10);
    }
    tcp(&rig, &tunnels[0].inner()[0], 4 << 20);
    agree(&rig, &guest, &tunnels);
    assert!(guest.end(&rig));
    assert!(rig.end(Host::A, Signal::TERM));
}

#[test]
fn linux_carries_what_the_gateway_does_in_udp() {
    carries(true);
}

#[test]
fn linux_carries_what_the_gateway_does_by_plain_esp() {
    carries(false);
}

/// Sends small datagrams into a tunnel, one a packet of its own, while the router lets nothing
/// through; the packets of ESP that should have gone to the guest, and the socket that waits for
/// answers, without which the answers would be answered.
fn withheld(rig: &Rig, tunnel: &Tunnel, count: u64) -> (Vec<Vec<u8>>, UdpSocket) {
    rig.ip(Host::Router, "route add blackhole 203.0.113.1/32");
    let watch = rig.watch();
    let sent = |status: &Value| {
        let packets = &status["tunnels"][tunnel.number]["outbound"]["packets"];
        packets.as_u64().unwrap()
    };
    let before = sent(&rig.status(Host::A).unwrap());
    let to: IpAddr = tunnel.inner()[0].parse().unwrap();
    let socket = rig.within(Host::A, || UdpSocket::bind("10.9.0.1:0").unwrap());
    for number in 1..=count {
        socket.send_to(&[number as u8; 16], (to, 7)).unwrap();
        rig.wait_for(Host::A, "a packet", |status| {
            sent(status) == before + number
        });
    }
    let packets = watch.esp_from(OUTER[0]);
    rig.ip(Host::Router, "route del blackhole 203.0.113.1/32");
    assert_eq!(packets.len() as u64, count);
    (packets, socket)
}

/// Sends payloads of UDP from the router's side.
fn inject(rig: &Rig, to: &'static str, payloads: &[&[u8]]) {
    let payloads: Vec<Vec<u8>> = payloads.iter().map(|payload| payload.to_vec()).collect();
    rig.within(Host::Router, move || {
        let socket = bound(|| UdpSocket::bind("0.0.0.0:4500"));
        for payload in payloads {
            socket.send_to(&payload, (to, 4500)).unwrap();
            // Each is judged before the next one comes.
            std::thread::sleep(Duration::from_millis(5));
        }
    });
}

#[test]
fn both_refuse_what_was_there_already_and_what_is_forged() {
    let Some((rig, guest, tunnels)) = both(true) else {
        return;
    };
    let tunnel = &tunnels[SHORT];
    let (packets, _socket) = withheld(&rig, tunnel, 100);
    let now = || counted(&guest.run(&rig, "ip -s xfrm state"), tunnel.spi_to_guest());
    let wait = |wanted: Counted| {
        for _ in 0..100 {
            if now() == wanted {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        assert_eq!(now(), wanted);
    };
    let watch = rig.watch();
    // The last one moves the window of 64; what is just inside it is taken.
    inject(&rig, GUEST[0], &[&packets[99], &packets[99 - 63]]);
    wait(Counted {
        packets: 2,
        late: 0,
        replayed: 0,
        failed: 0,
    });
    let mut forged = packets[90].clone();
    *forged.last_mut().unwrap() ^= 1;
    let refused: [&[u8]; 5] = [
        &packets[99 - 64],
        &packets[0],
        &packets[99],
        &packets[99 - 63],
        &forged,
    ];
    inject(&rig, GUEST[0], &refused);
    wait(Counted {
        packets: 2,
        late: 2,
        replayed: 2,
        failed: 1,
    });
    // The guest has answered twice. The gateway takes neither a second time.
    let mut answers = watch.esp_from(GUEST[0]);
    // The router sees each when it comes and when it goes.
    answers.sort();
    answers.dedup();
    assert_eq!(answers.len(), 2);
    let mut forged = answers[1].clone();
    forged[10] ^= 1;
    // A number that has not come yet, so that the ICV decides.
    forged[7] += 1;
    inject(&rig, GATEWAY[0], &[&answers[0], &answers[1], &forged]);
    rig.wait_for(Host::A, "three refusals", |status| {
        let inbound = &status["tunnels"][SHORT]["inbound"];
        inbound["packets"] == 2
            && inbound["refused"]["replayed"] == 2
            && inbound["refused"]["integrity_failures"] == 1
    });
    assert!(guest.end(&rig));
}

#[test]
fn a_path_that_loses_and_reorders_changes_nothing() {
    let Some((rig, guest, tunnels)) = both(true) else {
        return;
    };
    guest.run(
        &rig,
        "tc qdisc add dev eth0 root netem delay 4ms loss 1% reorder 30% 50% duplicate 1%",
    );
    for tunnel in [&tunnels[0], &tunnels[SHORT]] {
        tcp(&rig, &tunnel.inner()[0], 1 << 20);
        tcp(&rig, &tunnel.inner()[1], 1 << 20);
    }
    let status = rig.status(Host::A).unwrap();
    let inbound = [0, SHORT].map(|number| status["tunnels"][number]["inbound"].clone());
    // What came twice was taken once, and nothing else was refused.
    for inbound in &inbound {
        let refused = inbound["refused"].as_object().unwrap();
        assert!(
            refused.keys().all(|reason| reason == "replayed"),
            "{inbound}"
        );
    }
    let number = |inbound: &Value, name: &str| inbound[name].as_u64().unwrap();
    let lost = |inbound: &Value| number(inbound, "sequence") - number(inbound, "packets");
    assert!(inbound.iter().map(lost).sum::<u64>() > 0, "{inbound:?}");
    guest.run(&rig, "tc qdisc del dev eth0 root");
    assert!(guest.end(&rig));
}
