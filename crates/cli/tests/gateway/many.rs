//! Ten thousand tunnels in one process.

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use cipherlane_gateway::pair::{inner_of_many, write_many};
use rustix::process::Signal;

use crate::rig::{Host, OUTER, Rig, rig};

const TUNNELS: u32 = 10_000;

/// Bytes that a tunnel may cost: two SAs with their keys, windows and counters.
const MEMORY: u64 = 16 << 10;

/// A datagram through a tunnel and back.
fn passes(rig: &Rig, number: u32) {
    let [own, other] = inner_of_many(number).map(|address| SocketAddr::new(address, 7));
    let echo = rig.echo(&other.to_string());
    let passed = rig.within(Host::A, move || {
        let socket = UdpSocket::bind(own).unwrap();
        let limit = Duration::from_millis(200);
        socket.set_read_timeout(Some(limit)).unwrap();
        (0..300).any(|_| {
            let _ = socket.send_to(b"hello", other);
            socket.recv(&mut [0; 16]).is_ok()
        })
    });
    drop(echo);
    assert!(
        passed,
        "tunnel {number}: {}{}",
        rig.log(Host::A),
        rig.log(Host::B)
    );
}

#[test]
fn ten_thousand_tunnels_start_and_carry() {
    let Some(mut rig) = rig() else {
        return;
    };
    let outer = OUTER.map(|address| address.parse().unwrap());
    write_many(&rig.path(""), outer, TUNNELS).unwrap();
    for (host, network) in [(Host::A, "10.64.0.0/12"), (Host::B, "10.128.0.0/12")] {
        rig.ip(host, &format!("route add local {network} dev lo"));
    }
    rig.start(Host::A);
    rig.start(Host::B);
    for number in [0, 1, TUNNELS / 2, TUNNELS - 1] {
        passes(&rig, number);
    }
    let status = rig.status(Host::A).unwrap();
    assert_eq!(
        status["tunnels"].as_array().unwrap().len(),
        TUNNELS as usize
    );
    let memory = std::fs::read_to_string(format!("/proc/{}/status", status["pid"])).unwrap();
    let memory = memory.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let memory = memory.unwrap().trim().trim_end_matches(" kB");
    let memory = memory.parse::<u64>().unwrap() << 10;
    assert!(
        memory < u64::from(TUNNELS) * MEMORY + (64 << 20),
        "{memory} bytes"
    );
    // One tunnel goes; the others notice nothing.
    rig.edit("a", |text| {
        let first = text.find("[[tunnel]]").unwrap();
        let second = first + 1 + text[first + 1..].find("[[tunnel]]").unwrap();
        format!("{}{}", &text[..first], &text[second..])
    });
    rig.signal(Host::A, Signal::HUP);
    rig.wait_for(Host::A, "the change", |status| {
        status["tunnels"].as_array().unwrap().len() == TUNNELS as usize - 1
    });
    passes(&rig, TUNNELS - 1);
    rig.wait_for_words(Host::A, "unchanged=9999");
    assert!(rig.end(Host::A, Signal::TERM));
}
