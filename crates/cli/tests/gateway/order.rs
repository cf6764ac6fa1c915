//! Packets of a flow keep their order, whatever number of threads carries them.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::rig::{Host, Rig, bound, rig};

const FLOWS: u16 = 6;
/// Datagrams of a flow.
const COUNT: u32 = 12_000;
/// Datagrams sent one behind the other, and the time until the next ones.
const BURST: u32 = 8;
const PAUSE: Duration = Duration::from_micros(500);

/// What came of a flow.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    count: u32,
    /// Datagrams with a lower number than one before them.
    late: u32,
    highest: u32,
}

impl Seen {
    fn note(&mut self, bytes: &[u8]) {
        let number = u32::from_be_bytes(*bytes.first_chunk().unwrap());
        self.count += 1;
        self.late += u32::from(number < self.highest);
        self.highest = self.highest.max(number);
    }

    fn of_all(flows: &[Seen]) -> Seen {
        flows.iter().fold(Seen::default(), |sum, seen| Seen {
            count: sum.count + seen.count,
            late: sum.late + seen.late,
            highest: 0,
        })
    }
}

/// Receives until nothing more comes, and calls `then` with each datagram.
fn receive(socket: &UdpSocket, mut then: impl FnMut(&[u8], SocketAddr)) -> Seen {
    let limit = Duration::from_secs(2);
    socket.set_read_timeout(Some(limit)).unwrap();
    let (mut seen, mut bytes) = (Seen::default(), [0; 2048]);
    while let Ok((len, from)) = socket.recv_from(&mut bytes) {
        seen.note(&bytes[..len]);
        then(&bytes[..len], from);
    }
    seen
}

/// Numbered datagrams there and back, of all flows at once: what came there, and back.
fn exchange(rig: &Rig, own: IpAddr, other: IpAddr) -> [Vec<Seen>; 2] {
    let (ready, are_ready) = std::sync::mpsc::channel();
    let far = (0..FLOWS).map(|flow| {
        let ready = ready.clone();
        rig.beside(Host::B, move || {
            let socket = bound(|| UdpSocket::bind((other, 7000 + flow)));
            ready.send(()).unwrap();
            receive(&socket, |bytes, from| {
                let _ = socket.send_to(bytes, from);
            })
        })
    });
    let far: Vec<_> = far.collect();
    (0..FLOWS).for_each(|_| are_ready.recv().unwrap());
    let near = (0..FLOWS).map(|flow| {
        rig.beside(Host::A, move || {
            let socket = UdpSocket::bind((own, 0)).unwrap();
            let sending = socket.try_clone().unwrap();
            let sender = std::thread::spawn(move || {
                let mut bytes = [7; 1000];
                for number in 0..COUNT {
                    bytes[..4].copy_from_slice(&number.to_be_bytes());
                    let _ = sending.send_to(&bytes, (other, 7000 + flow));
                    if number % BURST == 0 {
                        std::thread::sleep(PAUSE);
                    }
                }
            });
            let seen = receive(&socket, |_, _| {});
            sender.join().unwrap();
            seen
        })
    });
    let near: Vec<_> = near.collect();
    let all = |threads: Vec<std::thread::JoinHandle<Seen>>| -> Vec<Seen> {
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    };
    let back = all(near);
    [all(far), back]
}

/// One test at a time: each wants the processors for itself.
static ALONE: Mutex<()> = Mutex::new(());

/// How often it is tried to have a run in which no thread was kept from its processor for longer
/// than others wait for it.
const TRIES: usize = 5;

/// One datagram of a thousand may be late where every turn was kept: the pair of devices between
/// the ends has a queue for each processor. By threads that do not wait for each other, or queues
/// that flows do not keep to, it was every tenth to fiftieth.
fn keeps_order(configure: &[&str]) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let addresses = ["10.9.0.1", "10.9.0.2"].map(|address| address.parse().unwrap());
    for _ in 0..TRIES {
        let Some(mut rig) = rig() else {
            return;
        };
        rig.configure(configure);
        for end in ["a", "b"] {
            rig.edit(end, |text| format!("threads = 4\n{text}"));
        }
        rig.start_both();
        let seen = exchange(&rig, addresses[0], addresses[1]);
        let turns = |name: &str| {
            let of = |host| rig.status(host).unwrap()["calls"][name].as_u64().unwrap();
            of(Host::A) + of(Host::B)
        };
        assert!(turns("turns_awaited") > 0, "{seen:?}");
        if turns("turns_missed") > 0 {
            eprintln!("threads were kept from their processors: {seen:?}");
            continue;
        }
        for (way, seen) in ["there", "back"].iter().zip(&seen) {
            let all = Seen::of_all(seen);
            assert!(all.count > u32::from(FLOWS) * COUNT / 20, "{way}: {seen:?}");
            assert!(all.late * 1000 <= all.count, "{way}: {seen:?}");
        }
        return;
    }
    let message = "SKIPPED, the order of flows is NOT tested: the machine has too much to do\n";
    std::io::Write::write_all(&mut std::io::stderr(), message.as_bytes()).unwrap();
}

#[test]
fn flows_keep_their_order_by_many_threads() {
    keeps_order(&[]);
}

#[test]
fn flows_of_plain_esp_keep_their_order_by_many_threads() {
    keeps_order(&["--plain"]);
}
