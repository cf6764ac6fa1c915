//! A long run: the far end is killed and started again, the near end is given other
//! configurations, and packets pass all the time. Memory stays flat, and in the end both count the
//! same. `CIPHERLANE_GATEWAY_SECONDS` says how long; `make soak` runs it for half an hour.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use crate::rig::{Host, Rig, pair};
use crate::seconds;

/// Without the variable: long enough to see that it works.
const SHORT: Duration = Duration::from_secs(12);

/// Resident bytes that may come on top of what there is after the first quarter: allocators keep
/// some.
const GROWTH: u64 = 4 << 20;

/// Numbers that differ from run to run; a run that fails says which they were.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

fn memory(rig: &Rig, host: Host) -> u64 {
    let pid = rig.wait_for(host, "an answer", |_| true)["pid"].clone();
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.unwrap().trim().trim_end_matches(" kB");
    kilobytes.parse::<u64>().unwrap() << 10
}

/// `count` tunnels to nobody, which have one of eight sets of keys. The state file has a line for
/// each key that was ever used, and so has memory: with new keys in each change it could not stay
/// flat.
fn others(count: u64, random: &mut Random) -> String {
    let mut text = String::new();
    let set = random.below(8);
    for number in 0..count {
        let key = |end: u64| format!("{set:08x}{number:032x}{end:032x}");
        let (out, into) = (key(0), key(1));
        let spi = 0x2000_0000 + 2 * number;
        text += &format!(
            "[[tunnel]]\nname = \"other-{number}\"\npeer = \"192.0.2.77\"\nlocal = [\"10.9.0.1\"]\n\
             remote = [\"10.77.{number}.0/24\"]\nout = {{ spi = {spi}, key = \"{out}\" }}\nin = {{ \
             spi = {}, key = \"{into}\" }}\n",
            spi + 1
        );
    }
    text
}

/// Datagrams to b that come back now and then.
fn chatter(
    rig: &Rig,
    stop: &Arc<AtomicBool>,
    came: &Arc<AtomicU64>,
) -> std::thread::JoinHandle<()> {
    let (stop, came) = (stop.clone(), came.clone());
    rig.beside(Host::A, move || {
        let socket = UdpSocket::bind("10.9.0.1:0").unwrap();
        let limit = Duration::from_millis(20);
        socket.set_read_timeout(Some(limit)).unwrap();
        let mut bytes = vec![0; 2000];
        let mut number = 0usize;
        while !stop.load(Relaxed) {
            number += 1;
            // The device or its route may be gone for a moment.
            let _ = socket.send_to(&bytes[..100 + number % 1300], "10.9.0.2:70");
            if socket.recv(&mut bytes).is_ok() {
                came.fetch_add(1, Relaxed);
            }
        }
    })
}

/// A stream of some megabytes; it may break where the far end dies.
fn stream(rig: &Rig, port: u16) {
    // Before anybody connects, who would be refused.
    let bound = rig.beside(Host::B, move || TcpListener::bind(("10.9.0.2", port)).ok());
    let listener = bound.join().unwrap();
    let far = std::thread::spawn(move || {
        let listener = listener?;
        listener.set_nonblocking(true).ok()?;
        let begin = Instant::now();
        let mut stream = loop {
            match listener.accept() {
                Ok((stream, _)) => break stream,
                Err(_) if begin.elapsed() > Duration::from_secs(3) => return None,
                Err(_) => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        stream.set_nonblocking(false).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(3))).ok()?;
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).ok()
    });
    let near = rig.beside(Host::A, move || {
        let address = std::net::SocketAddr::from(([10, 9, 0, 2], port));
        let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(3)).ok()?;
        stream
            .set_write_timeout(Some(Duration::from_secs(3)))
            .ok()?;
        stream.write_all(&vec![1; 4 << 20]).ok()
    });
    let _ = near.join().unwrap();
    let _ = far.join().unwrap();
}

/// Packets that a seals and b opens.
fn counts(rig: &Rig) -> (u64, u64) {
    let of = |host, sa: &str| {
        let status = rig.wait_for(host, "an answer", |_| true);
        let tunnels = status["tunnels"].as_array().unwrap().iter();
        let name = ["b", "a"][host as usize];
        let found = tunnels.clone().find(|tunnel| tunnel["name"] == name);
        found.unwrap()[sa]["packets"].as_u64().unwrap()
    };
    (of(Host::A, "outbound"), of(Host::B, "inbound"))
}

#[test]
fn it_lasts() {
    let Some(mut rig) = pair() else {
        return;
    };
    let duration = seconds("CIPHERLANE_GATEWAY_SECONDS").unwrap_or(SHORT);
    let seed = u64::from(std::process::id()) << 20 | 1;
    println!("seed {seed}, {} s", duration.as_secs());
    let mut random = Random(seed);
    let (stop, came) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicU64::new(0)),
    );
    let echo = rig.echo("0.0.0.0:70");
    let talking = chatter(&rig, &stop, &came);
    let plain = std::fs::read_to_string(rig.path("a").join("gateway.toml")).unwrap();
    let begin = Instant::now();
    let (mut flat, mut rounds, mut kills, mut changes) = (None, 0u16, 0, 0);
    while begin.elapsed() < duration {
        rounds += 1;
        match random.below(4) {
            0 => {
                let signal = [Signal::KILL, Signal::TERM][random.below(2) as usize];
                rig.end(Host::B, signal);
                rig.start(Host::B);
                kills += 1;
            }
            1 => {
                let count = random.below(100);
                let text = format!("{plain}{}", others(count, &mut random));
                rig.edit("a", |_| text.clone());
                rig.signal(Host::A, Signal::HUP);
                rig.wait_for(Host::A, "the change", |status| {
                    status["tunnels"].as_array().unwrap().len() as u64 == count + 1
                });
                changes += 1;
            }
            _ => stream(&rig, 5000 + rounds % 1000),
        }
        rig.wait_until_connected();
        if begin.elapsed() > duration / 4 && flat.is_none() {
            // The most tunnels that there may be were there before memory is looked at.
            let text = format!("{plain}{}", others(100, &mut random));
            rig.edit("a", |_| text.clone());
            rig.signal(Host::A, Signal::HUP);
            rig.wait_for(Host::A, "100 more", |status| {
                status["tunnels"].as_array().unwrap().len() == 101
            });
            flat = Some(memory(&rig, Host::A));
        }
    }
    stop.store(true, Relaxed);
    talking.join().unwrap();
    let (before, after) = (flat.unwrap(), memory(&rig, Host::A));
    let said = format!(
        "{rounds} rounds, {kills} restarts of the peer, {changes} changes, {} datagrams came back, \
         memory {before} and then {after} bytes",
        came.load(Relaxed)
    );
    println!("{said}");
    assert!(after < before + GROWTH, "{said}");
    assert!(came.load(Relaxed) > 100, "{said}");
    // Everything on its way has arrived.
    rig.edit("a", |_| plain.clone());
    rig.signal(Host::A, Signal::HUP);
    rig.wait_until_connected();
    std::thread::sleep(Duration::from_millis(500));
    let earlier = counts(&rig);
    for port in 0..3 {
        stream(&rig, 4000 + port);
    }
    rig.wait_for(Host::A, "silence", |_| {
        let now = counts(&rig);
        std::thread::sleep(Duration::from_millis(300));
        now == counts(&rig)
    });
    let later = counts(&rig);
    assert!(later.0 > earlier.0 + 3000, "{earlier:?} {later:?}");
    assert_eq!(
        later.0 - earlier.0,
        later.1 - earlier.1,
        "{earlier:?} {later:?}"
    );
    let none: Value = serde_json::json!(0);
    for host in [Host::A, Host::B] {
        let status = rig.status(host).unwrap();
        assert_eq!(status["calls"]["panics"], none, "{said}");
    }
    drop(echo);
    assert!(rig.end(Host::A, Signal::TERM) && rig.end(Host::B, Signal::TERM));
}
