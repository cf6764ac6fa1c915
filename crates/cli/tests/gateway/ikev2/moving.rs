//! Peers whose addresses change: behind a NAT that forgets, and by MOBIKE.

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::Value;

use super::{CHILD, gateways};
use crate::charon::{Carrier, Charon, Daemon, Settings};
use crate::rig::{Host, OUTER, Rig};

/// A NAT on the router: a talks to its address, and b sees datagrams of a port of the NAT's.
struct Nat {
    stop: Arc<AtomicBool>,
    /// Raised when the NAT has forgotten its ports.
    lives: Arc<AtomicU32>,
    thread: Option<JoinHandle<()>>,
}

impl Nat {
    fn start(rig: &Rig) -> Nat {
        let (stop, lives) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicU32::new(0)),
        );
        let (stopped, wanted) = (stop.clone(), lives.clone());
        let thread = rig.beside(Host::Router, move || {
            let bind = |address: &str, port: u16| {
                let socket = UdpSocket::bind((address, port)).unwrap();
                socket.set_nonblocking(true).unwrap();
                socket
            };
            let upstream = || [500u16, 4500].map(|_| bind("198.51.100.254", 0));
            let downstream = [500u16, 4500].map(|port| bind("192.0.2.254", port));
            let (mut upstream_now, mut life) = (upstream(), 0);
            let mut bytes = vec![0; 65536];
            while !stopped.load(Ordering::Relaxed) {
                if wanted.load(Ordering::Relaxed) != life {
                    life = wanted.load(Ordering::Relaxed);
                    upstream_now = upstream();
                }
                let mut is_idle = true;
                for (at, port) in [500u16, 4500].into_iter().enumerate() {
                    while let Ok((len, _)) = downstream[at].recv_from(&mut bytes) {
                        let _ = upstream_now[at].send_to(&bytes[..len], (OUTER[1], port));
                        is_idle = false;
                    }
                    while let Ok((len, _)) = upstream_now[at].recv_from(&mut bytes) {
                        let _ = downstream[at].send_to(&bytes[..len], (OUTER[0], port));
                        is_idle = false;
                    }
                }
                if is_idle {
                    std::thread::sleep(Duration::from_micros(500));
                }
            }
        });
        Nat {
            stop,
            lives,
            thread: Some(thread),
        }
    }
}

impl Drop for Nat {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[test]
fn a_nat_that_forgets_is_followed() {
    let Some(rig) = gateways(&[Host::A, Host::B]) else {
        return;
    };
    let nat = Nat::start(&rig);
    let behind = |own: &str, other: &str| Settings {
        addresses: Some([own.to_owned(), other.to_owned()]),
        ..Settings::default()
    };
    let b = Charon::start(&rig, Host::B, Carrier::Gateway, &behind(OUTER[1], "%any"));
    let a = Charon::start(
        &rig,
        Host::A,
        Carrier::Gateway,
        &behind(OUTER[0], "192.0.2.254"),
    );
    a.swanctl(&["--initiate", CHILD[0], CHILD[1]]);
    rig.wait_until_connected();
    let peer = |status: &Value| status["tunnels"][0]["peer"].as_str().map(str::to_owned);
    let before = peer(&rig.status(Host::B).unwrap()).unwrap();
    assert!(
        before.starts_with("198.51.100.254:") && !before.ends_with(":4500"),
        "{before}"
    );
    nat.lives.store(1, Ordering::Relaxed);
    rig.wait_until_connected();
    let after = rig.wait_for(Host::B, "the new port", |status| {
        peer(status).is_some_and(|peer| peer != before)
    });
    assert!(peer(&after).unwrap().starts_with("198.51.100.254:"));
    assert!(b.count("NAT mappings of CHILD_SA") > 0, "{}", b.log());
}

#[test]
fn a_host_that_moves_keeps_its_tunnel() {
    let Some(rig) = gateways(&[Host::A, Host::B]) else {
        return;
    };
    let anywhere = Settings {
        addresses: Some(["%any".to_owned(), OUTER[1].to_owned()]),
        ..Settings::default()
    };
    let from_anywhere = Settings {
        addresses: Some([OUTER[1].to_owned(), "%any".to_owned()]),
        ..Settings::default()
    };
    let b = Charon::start(&rig, Host::B, Carrier::Gateway, &from_anywhere);
    let a = Charon::start(&rig, Host::A, Carrier::Gateway, &anywhere);
    a.swanctl(&["--initiate", CHILD[0], CHILD[1]]);
    rig.wait_until_connected();
    let spi = |status: &Value| status["tunnels"][0]["inbound"]["spi"].clone();
    let before = spi(&rig.status(Host::B).unwrap());
    rig.ip(Host::A, "addr add 192.0.2.77/24 dev wire");
    // The first address of a network takes the others with it.
    rig.within(Host::A, || {
        std::fs::write("/proc/sys/net/ipv4/conf/wire/promote_secondaries", "1").unwrap();
    });
    rig.ip(Host::A, "addr del 192.0.2.1/24 dev wire");
    rig.ip(Host::A, "route replace default via 192.0.2.254");
    let moved = rig.wait_for(Host::B, "the new address", |status| {
        status["tunnels"][0]["peer"] == "192.0.2.77:4500"
    });
    rig.wait_until_connected();
    // MOBIKE: the SAs are the same.
    assert_eq!(spi(&moved), before, "{}", b.log());
}
