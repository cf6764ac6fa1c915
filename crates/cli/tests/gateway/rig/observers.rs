//! Threads beside the gateways: one that sends back what comes, and one that notes what passes.

use std::net::UdpSocket;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, Protocol, RecvFlags, SocketType, sockopt};

use super::{Host, PATIENCE, Rig};

/// How long what watches a network may need for what it has not read yet.
const CATCH_UP: Duration = Duration::from_secs(10);

impl Rig {
    /// Sends back, at b, what comes to an address.
    pub(crate) fn echo(&self, address: &str) -> Running {
        self.echo_at(Host::B, address)
    }

    /// The same at any host.
    pub(super) fn echo_at(&self, host: Host, address: &str) -> Running {
        let address = address.to_owned();
        let (stop, stopped) = running();
        let (ready, is_ready) = std::sync::mpsc::channel();
        let thread = self.beside(host, move || {
            let socket = bound(|| UdpSocket::bind(&address));
            ready.send(()).unwrap();
            socket
                .set_read_timeout(Some(Duration::from_millis(50)))
                .unwrap();
            let mut bytes = vec![0; 65536];
            while !stopped.load(Ordering::Relaxed) {
                if let Ok((len, from)) = socket.recv_from(&mut bytes) {
                    let _ = socket.send_to(&bytes[..len], from);
                }
            }
        });
        // What comes before is answered by "port unreachable".
        is_ready.recv().expect("the address can be bound");
        Running {
            stop,
            thread: Some(thread),
        }
    }

    /// Notes every packet that the router sees, from its IP header on.
    pub(crate) fn watch(&self) -> Watch {
        let packets = Arc::new(Mutex::new(Vec::new()));
        let (stop, stopped) = running();
        let noted = packets.clone();
        let ready = Arc::new(AtomicBool::new(false));
        let is_ready = ready.clone();
        let read_all = Arc::new(AtomicU64::new(0));
        let reads_all = read_all.clone();
        let thread = self.beside(Host::Router, move || {
            // Protocol numbers of AF_PACKET are in network order: all of them.
            let all = Protocol::from_raw(u32::from(3u16.to_be()).try_into().unwrap());
            let kind = SocketType::DGRAM;
            let socket: OwnedFd =
                rustix::net::socket(AddressFamily::PACKET, kind, Some(all)).unwrap();
            let limit = Some(Duration::from_millis(50));
            sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, limit).unwrap();
            let _ = sockopt::set_socket_recv_buffer_size_force(&socket, 64 << 20);
            is_ready.store(true, Ordering::Release);
            let mut bytes = vec![0u8; 1 << 17];
            while !stopped.load(Ordering::Relaxed) {
                if let Ok((len, _)) = rustix::net::recv(&socket, &mut bytes[..], RecvFlags::empty())
                {
                    noted.lock().unwrap().push(bytes[..len].to_vec());
                } else {
                    reads_all.fetch_add(1, Ordering::Release);
                }
            }
        });
        while !ready.load(Ordering::Acquire) {
            std::thread::sleep(Duration::from_millis(1));
        }
        Watch {
            packets,
            read_all,
            _running: Running {
                stop,
                thread: Some(thread),
            },
        }
    }
}

/// A socket at an address that was used before. A program that another test starts has the old
/// socket too for a moment, between fork and exec.
pub(crate) fn bound<T>(bind: impl Fn() -> std::io::Result<T>) -> T {
    let begin = Instant::now();
    loop {
        match bind() {
            Err(error)
                if error.kind() == std::io::ErrorKind::AddrInUse && begin.elapsed() < PATIENCE =>
            {
                std::thread::sleep(Duration::from_millis(10));
            }
            bound => return bound.unwrap(),
        }
    }
}

fn running() -> (Arc<AtomicBool>, Arc<AtomicBool>) {
    let flag = Arc::new(AtomicBool::new(false));
    (flag.clone(), flag)
}

/// A thread that ends with its scope.
pub(crate) struct Running {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What the router has seen.
pub(crate) struct Watch {
    packets: Arc<Mutex<Vec<Vec<u8>>>>,
    /// How often there was nothing to read.
    read_all: Arc<AtomicU64>,
    _running: Running,
}

impl Watch {
    /// What passed so far. On a busy machine the thread that reads is behind: it is waited for.
    pub(crate) fn packets(&self) -> Vec<Vec<u8>> {
        let (begin, before) = (Instant::now(), self.read_all.load(Ordering::Acquire));
        // The read that ends next may have begun before the last packet came.
        while self.read_all.load(Ordering::Acquire) < before + 2 && begin.elapsed() < CATCH_UP {
            std::thread::sleep(Duration::from_millis(5));
        }
        self.packets.lock().unwrap().clone()
    }

    /// The UDP payloads of ESP that came from an address. A train is one payload.
    pub(crate) fn esp_from(&self, source: &str) -> Vec<Vec<u8>> {
        let source: std::net::Ipv4Addr = source.parse().unwrap();
        let is_esp = |packet: &&Vec<u8>| {
            packet[0] == 0x45
                && packet[9] == 17
                && packet[12..16] == source.octets()
                && packet.len() > 28 + 8
                && packet[28..32] != [0; 4]
        };
        let packets = self.packets();
        let esp = packets.iter().filter(is_esp);
        esp.map(|packet| packet[28..].to_vec()).collect()
    }
}
