//! Two namespaces joined by a veth pair, and gateways of this process in them.

use std::io::Write;
use std::net::UdpSocket;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use cipherlane_core::Framework;
use cipherlane_gateway::pair::{self, Common, End};
use cipherlane_gateway::{Config, Gateway, Steering};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};

/// How long packets may take to pass for the first time.
const PATIENCE: Duration = Duration::from_secs(30);

fn ip(arguments: &str) {
    let output = Command::new("ip").args(arguments.split(' ')).output();
    let output = output.unwrap();
    assert!(output.status.success(), "ip {arguments}: {output:?}");
}

/// Two namespaces without names, joined by a veth pair: they go when the last descriptor and
/// thread have gone. `None` where they cannot be had.
fn bare() -> Option<[OwnedFd; 2]> {
    let made = || {
        std::thread::spawn(|| {
            // SAFETY: this thread has nothing that depends on its network namespace.
            unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) }.ok()?;
            ip("link set lo up");
            Some(OwnedFd::from(
                std::fs::File::open("/proc/thread-self/ns/net").unwrap(),
            ))
        })
        .join()
        .unwrap()
    };
    let can = Path::new("/dev/net/tun").exists() && Command::new("ip").arg("-V").output().is_ok();
    let ends = can.then(|| Some([made()?, made()?])).flatten();
    if ends.is_none() {
        let message = "SKIPPED, the gateway is NOT tested: that needs root, /dev/net/tun, the program ip and \
                       network namespaces\n";
        // Past the harness, which shows nothing of a test that passes.
        std::io::stderr().write_all(message.as_bytes()).unwrap();
    }
    ends
}

/// The namespaces with their outer addresses, 192.0.2.1 and 192.0.2.2.
pub(crate) fn namespaces() -> Option<[OwnedFd; 2]> {
    let ends = bare()?;
    let far = format!("/proc/{}/fd/{}", std::process::id(), ends[1].as_raw_fd());
    within(&ends[0], move || {
        ip(&format!(
            "link add wire type veth peer name wire netns {far}"
        ));
        ip("addr add 192.0.2.1/24 dev wire");
        ip("link set wire up");
    });
    within(&ends[1], || {
        ip("addr add 192.0.2.2/24 dev wire");
        ip("link set wire up");
    });
    Some(ends)
}

/// Starts both gateways of this number of threads, with one tunnel between 10.9.0.1 and 10.9.0.2.
pub(crate) fn start(
    ends: &[OwnedFd; 2],
    place: &Path,
    transform: &str,
    threads: usize,
    framework: fn() -> Framework,
) -> [Gateway; 2] {
    let end = |name: &str, last: u8| End {
        name: name.to_owned(),
        outer: [192, 0, 2, last].into(),
        inner: vec![[10, 9, 0, last].into()],
        networks: Vec::new(),
    };
    let common = Common {
        transform: transform.to_owned(),
        port: Some(4500),
        interface: "vpn0".to_owned(),
    };
    pair::write(place, &[end("a", 1), end("b", 2)], &common).unwrap();
    let gateways = [0, 1].map(|number| {
        let path = place.join(["a", "b"][number]).join("gateway.toml");
        let mut config = Config::read(&path).unwrap();
        config.threads = threads;
        config.socket = place.join(format!("socket-{number}"));
        within(&ends[number], move || {
            Gateway::start(&framework(), config, Steering::of(threads)).unwrap()
        })
    });
    wait_until_connected(ends);
    gateways
}

/// Does `work` in a namespace.
pub(crate) fn within<T: Send + 'static>(
    space: &OwnedFd,
    work: impl FnOnce() -> T + Send + 'static,
) -> T {
    beside(space, work).join().unwrap()
}

pub(crate) fn beside<T: Send + 'static>(
    space: &OwnedFd,
    work: impl FnOnce() -> T + Send + 'static,
) -> std::thread::JoinHandle<T> {
    let space = space.try_clone().unwrap();
    std::thread::spawn(move || {
        move_into_link_name_space(space.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
        work()
    })
}

/// Until a packet passes and comes back.
pub(crate) fn wait_until_connected(ends: &[OwnedFd; 2]) {
    let far = ends[1].try_clone().unwrap();
    let echo = beside(&far, || {
        let socket = UdpSocket::bind("10.9.0.2:8").unwrap();
        let (_, from) = socket.recv_from(&mut [0; 16]).unwrap();
        socket.send_to(b"here", from).unwrap();
    });
    within(&ends[0], || {
        let begin = Instant::now();
        let socket = UdpSocket::bind("10.9.0.1:0").unwrap();
        let limit = Duration::from_millis(200);
        socket.set_read_timeout(Some(limit)).unwrap();
        while begin.elapsed() < PATIENCE {
            let _ = socket.send_to(b"hello", "10.9.0.2:8");
            if socket.recv(&mut [0; 16]).is_ok() {
                return;
            }
        }
        panic!("no packet passes");
    });
    echo.join().unwrap();
}
