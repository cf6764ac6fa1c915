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

/// Receives until nothing more comes, and calls `then` with each datagram's place among those that
/// came, and where it came from.
fn receive(socket: &UdpSocket, mut then: impl FnMut(u32, SocketAddr)) -> Seen {
    let limit = Duration::from_secs(2);
    socket.set_read_timeout(Some(limit)).unwrap();
    let (mut seen, mut bytes) = (Seen::default(), [0; 2048]);
    while let Ok((len, from)) = socket.recv_from(&mut bytes) {
        seen.note(&bytes[..len]);
        then(seen.count, from);
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
            // What has come out of order goes back in order.
            let mut bytes = [7; 1000];
            receive(&socket, |place, from| {
                bytes[..4].copy_from_slice(&place.to_be_bytes());
                let _ = socket.send_to(&bytes, from);
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

/// One test at a time: each has many threads.
static ALONE: Mutex<()> = Mutex::new(());

/// How often it is tried: other programs may keep threads from their processors.
const TRIES: usize = 3;

/// Packets that may be late where a thread did not wait for another one any more: what that one had
/// opened.
const HELD: u64 = 256;

/// How many datagrams may be late: one of a thousand, since the pair of devices between the ends has
/// a queue for each processor, and some for each turn that did not come in time. By threads that
/// do not wait for each other, or queues that flows do not keep to, it is every tenth to fiftieth,
/// and no turn is missed.
fn allowed(all: &Seen, missed: u64) -> u64 {
    u64::from(all.count) / 1000 + HELD * missed
}

fn keeps_order(configure: &[&str]) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let addresses = ["10.9.0.1", "10.9.0.2"].map(|address| address.parse().unwrap());
    let mut found = String::new();
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
        let turns = |host, name: &str| {
            let status = rig.status(host).unwrap();
            status["calls"][name].as_u64().unwrap()
        };
        let ways = [Host::B, Host::A].into_iter().zip(&seen);
        let is_kept = ways.clone().all(|(host, seen)| {
            let all = Seen::of_all(seen);
            let is_enough = all.count > 1000;
            let missed = turns(host, "turns_missed");
            let is_kept = u64::from(all.late) <= allowed(&all, missed);
            is_enough && is_kept && turns(host, "turns_awaited") > 0
        });
        if is_kept {
            return;
        }
        for (host, seen) in ways {
            let missed = turns(host, "turns_missed");
            found += &format!("{missed} turns missed: {seen:?}\n");
        }
    }
    panic!("{found}");
}

#[test]
fn flows_keep_their_order_by_many_threads() {
    keeps_order(&[]);
}

#[test]
fn flows_of_plain_esp_keep_their_order_by_many_threads() {
    keeps_order(&["--plain"]);
}
