//! IKEv2 by Debian's charon and swanctl, which drive the gateway through the plugin.

mod addresses;
mod certificates;
mod liveness;
mod load;
mod moving;
mod selectors;
mod xfrm;

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use crate::charon::{Carrier, Charon, Daemon, INNER, Settings, is_there};
use crate::rig::{Host, Rig, rig};

/// What no packet on the wire may hold.
const MARK: &[u8] = b"this must not be seen by anybody";

const PROPOSAL: &str = "esp_proposals = aes256-sha512-esn";

const CHILD: [&str; 2] = ["--child", "net"];

/// Hosts whose gateways wait for IKE.
fn gateways(hosts: &[Host]) -> Option<Rig> {
    let mut rig = rig()?;
    if !is_there() {
        return None;
    }
    for &host in hosts {
        wait_for_ike(&mut rig, host);
    }
    Some(rig)
}

/// Starts a gateway that has no tunnels but those of IKE.
fn wait_for_ike(rig: &mut Rig, host: Host) {
    let directory = rig.path(["a", "b"][host as usize]);
    std::fs::create_dir_all(&directory).unwrap();
    // One end has many threads: IKE comes to the first of their sockets.
    let threads = 1 + host as usize;
    let text = format!(
        "threads = {threads}\nsocket = \"status\"\ncontrol = \"control\"\n[interface]\naddresses = [\"{}/32\"]\n",
        INNER[host as usize]
    );
    std::fs::write(directory.join("gateway.toml"), text).unwrap();
    rig.start(host);
}

/// The far end is charon's own ESP.
fn beside_libipsec([of_a, of_b]: [&Settings; 2]) -> Option<(Rig, Charon, Charon)> {
    let rig = gateways(&[Host::A])?;
    rig.ip(Host::B, &format!("addr add {}/32 dev lo", INNER[1]));
    let b = Charon::start(&rig, Host::B, Carrier::Libipsec, of_b);
    let a = Charon::start(&rig, Host::A, Carrier::Gateway, of_a);
    Some((rig, a, b))
}

/// Asks and answers through the tunnel, one datagram at a time, until it is told to stop.
struct Traffic {
    stop: Arc<AtomicBool>,
    done: Arc<AtomicU32>,
    /// Gives how many answers have not come.
    thread: JoinHandle<u32>,
}

impl Traffic {
    fn begin(rig: &Rig) -> Traffic {
        let stop = Arc::new(AtomicBool::new(false));
        let done = Arc::new(AtomicU32::new(0));
        let (stopped, count) = (stop.clone(), done.clone());
        let thread = rig.beside(Host::A, move || {
            let socket = UdpSocket::bind((INNER[0], 0)).unwrap();
            let mut answer = [0; 64];
            // Who answers may just begin.
            socket
                .set_read_timeout(Some(Duration::from_millis(200)))
                .unwrap();
            while {
                let _ = socket.send_to(b"hello", (INNER[1], 7));
                socket.recv(&mut answer).is_err() && !stopped.load(Ordering::Relaxed)
            } {}
            while socket.recv(&mut answer).is_ok() {}
            socket
                .set_read_timeout(Some(Duration::from_secs(10)))
                .unwrap();
            let (mut number, mut lost) = (0u32, 0);
            while !stopped.load(Ordering::Relaxed) {
                number += 1;
                let asked = [&number.to_be_bytes()[..], MARK].concat();
                socket.send_to(&asked, (INNER[1], 7)).unwrap();
                loop {
                    match socket.recv(&mut answer) {
                        Ok(len) if answer[..len] == asked => {
                            count.fetch_add(1, Ordering::Relaxed);
                            break;
                        }
                        // An answer that was given up.
                        Ok(_) => {}
                        Err(_) => {
                            lost += 1;
                            break;
                        }
                    }
                }
            }
            lost
        });
        Traffic { stop, done, thread }
    }

    /// Waits until some more answers have come.
    fn wait_for_more(&self) {
        let before = self.done.load(Ordering::Relaxed);
        let begin = Instant::now();
        while self.done.load(Ordering::Relaxed) < before + 50 && !self.thread.is_finished() {
            assert!(begin.elapsed() < Duration::from_secs(60), "no answers come");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Ends it, and gives how many answers have not come.
    fn end(self) -> u32 {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

fn wait_until(what: &str, logs: &[&dyn Daemon], is_so: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        let is_late = begin.elapsed() > Duration::from_secs(60);
        let logs = || logs.iter().map(|charon| charon.log()).collect::<String>();
        assert!(!is_late, "{what} has not happened\n{}", logs());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Rekeys the CHILD_SA and then the IKE_SA from each side, under traffic that the far end sends
/// back. Returns how many answers have not come.
fn rekey_from_both_sides(rig: &Rig, ends: [&dyn Daemon; 2]) -> u32 {
    let traffic = Traffic::begin(rig);
    traffic.wait_for_more();
    for round in 0..2 {
        for end in ends {
            let count = |end: &dyn Daemon| end.count("established with SPIs");
            let before = count(end);
            end.swanctl(&["--rekey", "--child", "net"]);
            wait_until("a new CHILD_SA", &ends, || count(end) > before);
            traffic.wait_for_more();
            if round == 0 {
                let count = |end: &dyn Daemon| end.count("rekeyed between");
                let before = count(end);
                end.swanctl(&["--rekey", "--ike", "net"]);
                wait_until("a new IKE_SA", &ends, || count(end) > before);
                traffic.wait_for_more();
            }
        }
    }
    // The old inbound SAs go some seconds after the outbound ones.
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(6) && !traffic.thread.is_finished() {
        std::thread::sleep(Duration::from_millis(50));
    }
    traffic.end()
}

fn refused(status: &Value) -> Vec<&Value> {
    let tunnels = status["tunnels"].as_array().unwrap().iter();
    tunnels
        .map(|tunnel| &tunnel["inbound"]["refused"])
        .collect()
}

#[test]
fn charon_of_another_esp_talks_to_the_gateway() {
    let Some((rig, a, b)) = beside_libipsec([&Settings::default(); 2]) else {
        return;
    };
    a.swanctl(&["--initiate", CHILD[0], CHILD[1]]);
    rig.wait_until_connected();
    let before = rig.wait_for(Host::A, "the tunnel", |status| {
        status["tunnels"][0]["inbound"]["packets"].as_u64() > Some(0)
    });
    assert_eq!(before["tunnels"][0]["transform"], "aes-gcm-16");
    // charon sees what was carried.
    let shown = a.swanctl(&["--list-sas", "--raw"]);
    for count in ["packets-in=", "packets-out="] {
        let shown_count = shown.split(count).nth(1).unwrap_or("0");
        assert!(!shown_count.starts_with('0'), "{shown}");
    }
    let echo = rig.echo(&format!("{}:7", INNER[1]));
    let lost = rekey_from_both_sides(&rig, [&a, &b]);
    assert_eq!(lost, 0, "{}{}", a.log(), b.log());
    drop(echo);
    let status = rig.wait_for(Host::A, "the end of the old SAs", |status| {
        status["tunnels"]
            .as_array()
            .is_some_and(|tunnels| tunnels.len() == 1)
    });
    assert_eq!(refused(&status), [&serde_json::json!({})]);
    a.swanctl(&["--terminate", "--ike", "net"]);
    rig.wait_for(Host::A, "the end", |status| {
        status["tunnels"] == serde_json::json!([])
    });
    assert!(
        !rig.log(Host::A).contains("was refused"),
        "{}",
        rig.log(Host::A)
    );
}

#[test]
fn a_packet_asks_for_an_sa_and_none_leaves_without() {
    let settings = Settings {
        child: "start_action = trap".to_owned(),
        ..Settings::default()
    };
    let Some(mut rig) = gateways(&[Host::A, Host::B]) else {
        return;
    };
    let b = Charon::start(&rig, Host::B, Carrier::Gateway, &Settings::default());
    let mut a = Charon::start(&rig, Host::A, Carrier::Gateway, &settings);
    let watch = rig.watch();
    rig.wait_until_connected();
    assert!(a.count("creating acquire job") > 0, "{}", a.log());
    // Nobody answers where the tunnel is closed, until a packet opens it again.
    b.swanctl(&["--terminate", "--ike", "net"]);
    rig.wait_until_connected();
    // charon dies: its SAs go on, and the next charon makes others.
    a.kill();
    rig.wait_until_connected();
    a = Charon::start(&rig, Host::A, Carrier::Gateway, &settings);
    rig.wait_until_connected();
    // The gateway dies, at one side and then at the other.
    for host in [Host::A, Host::B] {
        rig.end(host, Signal::KILL);
        send_in_vain(&rig);
        rig.start(host);
        rig.wait_until_connected();
    }
    assert!(a.count("the gateway was started anew") > 0, "{}", a.log());
    let echo = rig.echo(&format!("{}:7", INNER[1]));
    let traffic = Traffic::begin(&rig);
    traffic.wait_for_more();
    assert_eq!(traffic.end(), 0);
    drop(echo);
    for packet in watch.packets() {
        let shown = &packet[..packet.len().min(60)];
        let is_clear = packet.windows(MARK.len()).any(|window| window == MARK);
        assert!(!is_clear, "clear text: {shown:02x?}");
        let inner = [[10, 9, 0, 1], [10, 9, 0, 2]];
        let is_inner = packet[0] == 0x45 && inner.iter().any(|one| packet[16..20] == *one);
        assert!(!is_inner, "an inner packet: {shown:02x?}");
    }
}

/// Sends what must not leave in the clear while no gateway runs.
fn send_in_vain(rig: &Rig) {
    rig.within(Host::A, || {
        // Without its device the host does not have the address.
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        for _ in 0..20 {
            let _ = socket.send_to(MARK, (INNER[1], 7));
        }
    });
}

#[test]
fn the_control_socket_stands_anything() {
    use rustix::net::{
        AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketType, connect, recv, send,
        socket,
    };
    let Some(rig) = rig() else {
        return;
    };
    let mut rig = rig;
    wait_for_ike(&mut rig, Host::A);
    let path = rig.path("a").join("control");
    let mode = std::os::unix::fs::PermissionsExt::mode(&path.metadata().unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    let address = SocketAddrUnix::new(&path).unwrap();
    let hello = [&[0, 1, 0, 0, 0, 0, 0, 1][..], b"CLGW", &[0, 1, 1, 0]].concat();
    let mut seed = 1u64;
    let mut reply = [0; 2048];
    for round in 0..200 {
        let client = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
        connect(&client, &address).unwrap();
        let mut messages = vec![hello.clone()];
        if round % 4 == 0 {
            messages.clear();
        }
        for _ in 0..8 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let len = (seed >> 33) as usize % if round % 10 == 0 { 9000 } else { 200 } + 1;
            let mut message: Vec<u8> = (0..len).map(|at| (seed >> (at % 57)) as u8).collect();
            // Mostly a kind that there is.
            if len > 8 && round % 3 > 0 {
                message[..2].copy_from_slice(&[0, (seed >> 40) as u8 % 12]);
            }
            messages.push(message);
        }
        for message in messages {
            if send(&client, &message, SendFlags::NOSIGNAL).is_err() {
                break;
            }
            // A reply, or the end of the connection.
            match recv(&client, &mut reply[..], RecvFlags::empty()) {
                Ok((len, _)) if len >= 8 => assert_eq!(reply[0] & 0x80, 0x80),
                other => {
                    assert!(matches!(other, Ok((0, _)) | Err(_)), "{other:?}");
                    break;
                }
            }
        }
    }
    let status = rig.status(Host::A).expect("the gateway lives");
    assert_eq!(status["tunnels"], serde_json::json!([]));
    assert!(rig.end(Host::A, Signal::TERM));
    assert!(!path.exists());
}

#[test]
fn both_ends_rekey_and_lose_nothing() {
    let Some(rig) = gateways(&[Host::A, Host::B]) else {
        return;
    };
    let settings = Settings {
        child: "esp_proposals = chacha20poly1305-esn".to_owned(),
        ..Settings::default()
    };
    let b = Charon::start(&rig, Host::B, Carrier::Gateway, &settings);
    let a = Charon::start(&rig, Host::A, Carrier::Gateway, &settings);
    a.swanctl(&["--initiate", CHILD[0], CHILD[1]]);
    rig.wait_until_connected();
    let echo = rig.echo(&format!("{}:7", INNER[1]));
    let lost = rekey_from_both_sides(&rig, [&a, &b]);
    assert_eq!(lost, 0, "{}{}", a.log(), b.log());
    drop(echo);
    for host in [Host::A, Host::B] {
        let status = rig.status(host).unwrap();
        assert!(
            refused(&status)
                .iter()
                .all(|refused| **refused == serde_json::json!({}))
        );
        assert_eq!(status["tunnels"][0]["transform"], "chacha20-poly1305");
        crate::schema::judge("gateway-status", &rig.shown(host));
    }
}

#[test]
fn lifetimes_are_told_and_children_replaced_in_time() {
    let Some(rig) = gateways(&[Host::A, Host::B]) else {
        return;
    };
    let short = Settings {
        child: format!("rekey_time = 2s\n life_time = 20s\n rand_time = 0s\n {PROPOSAL}"),
        ..Settings::default()
    };
    let long = Settings {
        child: PROPOSAL.to_owned(),
        ..Settings::default()
    };
    let b = Charon::start(&rig, Host::B, Carrier::Gateway, &long);
    let a = Charon::start(&rig, Host::A, Carrier::Gateway, &short);
    a.swanctl(&["--initiate", CHILD[0], CHILD[1]]);
    rig.wait_until_connected();
    let echo = rig.echo(&format!("{}:7", INNER[1]));
    let traffic = Traffic::begin(&rig);
    wait_until("four CHILD_SAs", &[&a, &b], || {
        a.count("outbound CHILD_SA net") >= 3 || traffic.thread.is_finished()
    });
    assert_eq!(traffic.end(), 0, "{}{}", a.log(), b.log());
    drop(echo);
    assert!(a.count("creating rekey job") >= 3, "{}", a.log());
}
