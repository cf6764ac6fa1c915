//! CHILD_SAs are replaced every two seconds, while a TCP stream and 50,000 datagrams per second
//! pass. `CIPHERLANE_REKEY_SECONDS` says how long; `make soak` takes five minutes.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use super::{CHILD, PROPOSAL, gateways};
use crate::charon::{Carrier, Charon, Daemon, INNER, Settings};
use crate::rig::{Host, Rig};
use crate::seconds;

const PER_SECOND: u64 = 50_000;

/// What a gateway may drop here, none of which is the work of a new SA: keepalives, packets that are
/// too long, packets for which the system has no room.
const HARMLESS: [&str; 3] = ["keepalives", "too_big", "not_sent"];

/// Sends datagrams at the rate, as far as the machine keeps up; returns how many.
fn send_datagrams(stop: &AtomicBool) -> u64 {
    let socket = UdpSocket::bind((INNER[0], 0)).unwrap();
    socket.connect((INNER[1], 90)).unwrap();
    let (begin, mut sent) = (Instant::now(), 0u64);
    while !stop.load(Relaxed) {
        let due = (begin.elapsed().as_secs_f64() * PER_SECOND as f64) as u64;
        // What a stall has delayed is not sent in one burst, which would fill every queue.
        for _ in 0..due.saturating_sub(sent).min(50) {
            let mut bytes = [0; 200];
            bytes[..8].copy_from_slice(&sent.to_be_bytes());
            socket.send(&bytes).unwrap();
            sent += 1;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    sent
}

/// Counts the datagrams that come, until none has come for a second after the end.
fn count_datagrams(socket: &UdpSocket, stop: &AtomicBool) -> u64 {
    let limit = Some(Duration::from_secs(1));
    socket.set_read_timeout(limit).unwrap();
    let (mut bytes, mut came) = ([0; 300], 0);
    loop {
        match socket.recv(&mut bytes) {
            Ok(_) => came += 1,
            Err(_) if stop.load(Relaxed) => return came,
            Err(_) => {}
        }
    }
}

/// Waits until a gateway has sent and written all that it took, but for what it counts as dropped
/// and for what charon has received.
fn wait_for_balance(rig: &Rig, host: Host, charon: &Charon) {
    rig.wait_for(host, "an equal count of packets", |status| {
        let number = |name: &str| status["calls"][name].as_u64().unwrap();
        let dropped = |name: &str| status["calls"]["dropped"][name].as_u64().unwrap();
        let out = number("sent_packets") + dropped("too_big") + dropped("not_sent");
        let written = number("written_packets") + dropped("keepalives");
        let ike = charon.count("received packet: from") as u64;
        number("tun_packets") == out && number("received_packets") <= written + ike
    });
}

/// Packets that the gateways have dropped and their SAs have refused so far, by reason.
fn dropped_by_gateways(rig: &Rig) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for host in [Host::A, Host::B] {
        let calls = rig.status(host).unwrap()["calls"].clone();
        for counts in [&calls["dropped"], &calls["refused"]] {
            for (reason, count) in counts.as_object().unwrap() {
                *sums.entry(reason.clone()).or_insert(0) += count.as_u64().unwrap();
            }
        }
    }
    sums
}

#[test]
fn replacing_children_under_load_loses_nothing() {
    let Some(rig) = gateways(&[Host::A, Host::B]) else {
        return;
    };
    let duration = seconds("CIPHERLANE_REKEY_SECONDS").unwrap_or(Duration::from_secs(8));
    let settings = |rekey: &str| Settings {
        child: format!("{rekey} {PROPOSAL}"),
        ..Settings::default()
    };
    let b = Charon::start(&rig, Host::B, Carrier::Gateway, &settings(""));
    let short = settings("rekey_time = 2s\n life_time = 30s\n rand_time = 0s\n");
    let a = Charon::start(&rig, Host::A, Carrier::Gateway, &short);
    a.swanctl(&["--initiate", CHILD[0], CHILD[1]]);
    rig.wait_until_connected();

    // The system's own packets by IPv6 have no tunnel here.
    for host in [Host::A, Host::B] {
        rig.within(host, || {
            std::fs::write("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1").unwrap();
        });
    }
    let earlier = dropped_by_gateways(&rig);

    let stop = Arc::new(AtomicBool::new(false));
    let ended = Arc::new(AtomicBool::new(false));
    let carried = Arc::new(AtomicU64::new(0));
    let (udp, tcp) = rig.within(Host::B, || {
        let udp = UdpSocket::bind((INNER[1], 90)).unwrap();
        // A reader who has to wait for a processor loses nothing.
        let _ = rustix::net::sockopt::set_socket_recv_buffer_size_force(&udp, 64 << 20);
        (udp, TcpListener::bind((INNER[1], 91)).unwrap())
    });
    let counting = std::thread::spawn({
        let ended = ended.clone();
        move || count_datagrams(&udp, &ended)
    });
    let reading = std::thread::spawn({
        let carried = carried.clone();
        move || {
            let (mut stream, _) = tcp.accept().unwrap();
            let mut bytes = vec![0; 1 << 16];
            while let Ok(len @ 1..) = stream.read(&mut bytes) {
                carried.fetch_add(len as u64, Relaxed);
            }
        }
    });
    let sending = rig.beside(Host::A, {
        let stop = stop.clone();
        move || send_datagrams(&stop)
    });
    let writing = rig.beside(Host::A, {
        let stop = stop.clone();
        move || {
            let mut stream = TcpStream::connect((INNER[1], 91)).unwrap();
            while !stop.load(Relaxed) {
                stream.write_all(&[7; 1 << 16]).unwrap();
            }
        }
    });
    let begin = Instant::now();
    let (mut last, mut since) = (0, Instant::now());
    while begin.elapsed() < duration {
        std::thread::sleep(Duration::from_millis(200));
        assert!(!writing.is_finished() && !sending.is_finished());
        let now = carried.load(Relaxed);
        if now != last {
            (last, since) = (now, Instant::now());
        }
        let stands = since.elapsed() > Duration::from_secs(20);
        assert!(!stands, "TCP stands still\n{}{}", a.log(), b.log());
    }
    stop.store(true, Relaxed);
    let sent = sending.join().unwrap();
    writing.join().unwrap();
    reading.join().unwrap();
    ended.store(true, Relaxed);
    let came = counting.join().unwrap();

    let rekeyed = a.count("creating rekey job");
    let mut by_gateways = dropped_by_gateways(&rig);
    for (reason, count) in &mut by_gateways {
        *count -= earlier.get(reason).unwrap_or(&0);
    }
    by_gateways.retain(|_, count| *count > 0);
    let said = format!(
        "{rekeyed} times a new CHILD_SA in {duration:?}; {sent} datagrams sent, {came} came; TCP \
         carried {} MB; the gateways dropped and refused {by_gateways:?}",
        carried.load(Relaxed) / 1_000_000
    );
    println!("{said}");
    assert!(rekeyed as u64 >= duration.as_secs() / 4, "{said}");
    let mut reasons = by_gateways.keys();
    assert!(
        reasons.all(|reason| HARMLESS.contains(&reason.as_str())),
        "{said}"
    );
    assert!(came > 0, "{said}");
    wait_for_balance(&rig, Host::A, &a);
    wait_for_balance(&rig, Host::B, &b);
}
