//! A thread that panics costs the packets that it held: the others arrive, and it is told.
//! The panic comes from a driver, as a mistake in a kernel would.

mod support;

use std::net::UdpSocket;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use cipherlane_core::{Direction, Framework, Request, Transform};
use cipherlane_test_driver::TestDriver;
use support::{namespaces, start, within};

/// Calls that will panic.
static PANICS: AtomicU32 = AtomicU32::new(0);

struct ClumsyTransform(Box<dyn Transform>);

impl Transform for ClumsyTransform {
    fn run(&self, direction: Direction, requests: &mut [Request<'_>]) {
        let left = PANICS.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1));
        assert!(left.is_err(), "a panic to order");
        self.0.run(direction, requests);
    }
}

fn framework() -> Framework {
    let clumsy = TestDriver::new("clumsy").wrap(ClumsyTransform);
    Framework::builder(Arc::new(clumsy)).build().unwrap()
}

#[test]
fn a_panic_costs_packets_and_no_tunnel() {
    let Some(ends) = namespaces() else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    for threads in [1, 3] {
        panics_of(&ends, &directory.path().join(threads.to_string()), threads);
    }
}

fn panics_of(ends: &[OwnedFd; 2], place: &Path, threads: usize) {
    let gateways = start(ends, place, "aes-gcm-16", threads, framework);
    for round in 0..3 {
        // One at each end, or two at one of them: whoever comes first.
        PANICS.store(2, Relaxed);
        within(&ends[0], || {
            let socket = UdpSocket::bind("10.9.0.1:0").unwrap();
            while PANICS.load(Relaxed) > 0 {
                let _ = socket.send_to(b"lost", "10.9.0.2:9");
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        // Nobody waits for what a thread held that has panicked.
        support::wait_until_connected(ends);
        let panics = || -> u64 { gateways.iter().map(|g| g.status().calls.panics).sum() };
        // Where there are other threads, one that panics may not have counted it yet.
        while panics() < 2 * (round + 1) {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(panics(), 2 * (round + 1));
    }
    for gateway in gateways {
        assert!(!gateway.is_broken());
        gateway.stop().unwrap();
    }
}
