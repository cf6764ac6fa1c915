//! The slow work beside the packets: sequence numbers reserved, keepalives, the path's MTU, a TUN
//! device that was deleted, and the log of what went wrong.

use std::collections::{HashMap, HashSet};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use crate::Error;
use crate::shared::Shared;
use crate::state::{Block, Identity, Store};
use crate::sys::udp::{Sending, UdpSocket, path_mtu};
use crate::tunnel::Tunnel;

/// How often it looks by itself.
const TICK: Duration = Duration::from_secs(1);

/// How often it asks for the path's MTU: the system forgets what it learned after 10 minutes.
const PATH: Duration = Duration::from_secs(10);

/// Reserves numbers, in its own thread or before the first packet.
pub(crate) struct Reserve {
    store: Option<Box<dyn Store>>,
    blocks: HashMap<Identity, (Block, Instant)>,
    /// What was written last of inbound SAs.
    received: HashMap<Identity, u64>,
}

impl Reserve {
    pub(crate) fn new(store: Option<Box<dyn Store>>) -> Self {
        Reserve {
            store,
            blocks: HashMap::new(),
            received: HashMap::new(),
        }
    }

    /// The number after which an SA goes on.
    pub(crate) fn mark(&self, identity: Identity) -> u64 {
        self.store.as_ref().map_or(0, |store| store.mark(identity))
    }

    /// Gives each of `tunnels` that is short another block, all by one writing. Marks are raised
    /// only after they are safe.
    pub(crate) fn refill(&mut self, tunnels: &[&Arc<Tunnel>]) -> Result<(), Error> {
        let now = Instant::now();
        let mut raised = Vec::with_capacity(tunnels.len());
        let mut blocks = Vec::with_capacity(tunnels.len());
        for tunnel in tunnels {
            let identity = tunnel.outbound_identity;
            let known = self.blocks.entry(identity);
            let (block, since) = known
                .and_modify(|(block, since)| block.adapt(now.duration_since(*since).as_secs_f64()))
                .or_insert((Block::FIRST, now));
            *since = now;
            let next = tunnel.outbound.next_sequence();
            raised.push((identity, (next - 1).saturating_add(block.numbers())));
            blocks.push(*block);
        }
        if let Some(store) = &mut self.store {
            store.set(&raised)?;
        }
        for ((tunnel, (_, mark)), block) in tunnels.iter().zip(raised).zip(blocks) {
            tunnel.raise(mark, block);
        }
        Ok(())
    }

    /// Writes the highest numbers received, where they have changed.
    fn note_received(&mut self, tunnels: &[Arc<Tunnel>]) -> Result<(), Error> {
        let Some(store) = &mut self.store else {
            return Ok(());
        };
        let highest = tunnels
            .iter()
            .map(|tunnel| (tunnel.inbound_identity, tunnel.inbound.highest_sequence()));
        let changed: Vec<_> = highest
            .filter(|(identity, highest)| {
                self.received.get(identity).copied().unwrap_or(0) < *highest
            })
            .collect();
        if changed.is_empty() {
            return Ok(());
        }
        store.set(&changed)?;
        self.received.extend(changed);
        Ok(())
    }

    /// The gateway or a tunnel stops: what was reserved and not used is given back.
    pub(crate) fn give_back(&mut self, tunnels: &[Arc<Tunnel>]) -> Result<(), Error> {
        self.note_received(tunnels)?;
        let Some(store) = &mut self.store else {
            return Ok(());
        };
        let used = tunnels.iter().map(|tunnel| {
            let last = tunnel.outbound.next_sequence() - 1;
            (tunnel.outbound_identity, last)
        });
        store.set(&used.collect::<Vec<_>>())
    }
}

/// Works until the gateway stops.
pub(crate) struct Keeper {
    pub(crate) shared: Arc<Shared>,
    pub(crate) reserve: Arc<std::sync::Mutex<Reserve>>,
    /// Its own sockets cannot send from the port, so it has a copy of the first thread's.
    pub(crate) sockets: Vec<UdpSocket>,
}

impl Keeper {
    pub(crate) fn run(self) {
        let mut seen = HashMap::new();
        let mut generation = self.shared.generation.load(Relaxed);
        let (mut last_tick, mut last_path) = (Instant::now(), Instant::now());
        let mut is_ill = false;
        while !self.shared.is_stopping() {
            self.shared.wait_as_keeper(TICK);
            if self.shared.is_stopping() {
                break;
            }
            match self.shared.make_devices() {
                Ok(0) => {}
                Ok(_) => tracing::info!("the TUN device is back"),
                Err(error) => tracing::error!("{error}; trying again in {} s", TICK.as_secs()),
            }
            let table = self.shared.table();
            let is_tick = last_tick.elapsed() >= TICK;
            let done = self.reserve(table.configured(), is_tick);
            match done {
                Err(error) if !is_ill => {
                    tracing::error!("{error}");
                    is_ill = true;
                }
                Ok(()) if is_ill => {
                    tracing::info!("sequence numbers can be reserved again");
                    is_ill = false;
                }
                _ => {}
            }
            if is_ill {
                // Whoever is short stays so and does not wake it again.
                std::thread::sleep(Duration::from_millis(100));
            }
            if !is_tick {
                continue;
            }
            last_tick = Instant::now();
            let now = self.shared.generation.load(Relaxed);
            if now != generation {
                let there: HashSet<_> = table.tunnels().iter().map(|t| t.name()).collect();
                seen.retain(|name: &String, _| there.contains(name.as_str()));
                generation = now;
            }
            let mut paths = (last_path.elapsed() >= PATH).then(Paths::default);
            for tunnel in table.tunnels() {
                if !seen.contains_key(tunnel.name()) {
                    seen.insert(tunnel.name().to_owned(), Seen::new(tunnel));
                }
                if let Some(seen) = seen.get_mut(tunnel.name()) {
                    self.keep_alive(tunnel, seen);
                    tell_failures(tunnel, seen);
                }
                if let Some(paths) = &mut paths {
                    look_at_path(tunnel, paths);
                }
            }
            if paths.is_some() {
                last_path = Instant::now();
            }
        }
    }

    fn reserve(&self, tunnels: &[Arc<Tunnel>], is_tick: bool) -> Result<(), Error> {
        let mut reserve = crate::shared::lock(&self.reserve);
        let short: Vec<_> = tunnels.iter().filter(|tunnel| tunnel.is_short()).collect();
        if !short.is_empty() {
            reserve.refill(&short)?;
        }
        if is_tick {
            reserve.note_received(tunnels)?;
        }
        Ok(())
    }

    /// One byte, so that a NAT on the way does not forget (RFC 3948 section 2.3).
    fn keep_alive(&self, tunnel: &Tunnel, seen: &mut Seen) {
        let Some(interval) = tunnel.config.keepalive else {
            return;
        };
        let next = tunnel.outbound.next_sequence();
        if seen.next != next {
            (seen.sent, seen.next) = (Instant::now(), next);
            return;
        }
        let is_v4 = tunnel.peer().is_ipv4();
        let socket = self.sockets.iter().find(|socket| socket.is_v4() == is_v4);
        if seen.sent.elapsed() < interval {
            return;
        }
        seen.sent = Instant::now();
        if let Some(socket) = socket {
            let sending = Sending {
                to: &tunnel.to,
                from: tunnel.config.source,
                segment: None,
                traffic_class: 0,
            };
            // The next one follows soon, and what fails is told with the packets.
            let _ = socket.send(&[0xff], sending);
        }
    }
}

/// What the keeper saw of a tunnel when it looked last.
struct Seen {
    /// The next sequence number, and when it was another one.
    next: u64,
    sent: Instant,
    /// Packets that the system had refused to send.
    failures: u64,
}

impl Seen {
    fn new(tunnel: &Tunnel) -> Self {
        Seen {
            next: tunnel.outbound.next_sequence(),
            sent: Instant::now(),
            failures: 0,
        }
    }
}

/// The MTUs of paths, each asked for once: many tunnels may lead to one peer.
#[derive(Default)]
pub(crate) struct Paths(HashMap<IpAddr, Option<usize>>);

impl Paths {
    /// `None`: there is no path now.
    pub(crate) fn mtu(&mut self, peer: SocketAddr) -> Option<usize> {
        let known = self.0.entry(peer.ip());
        *known.or_insert_with(|| path_mtu(peer).ok())
    }
}

fn look_at_path(tunnel: &Tunnel, paths: &mut Paths) {
    if let Some(path) = paths.mtu(tunnel.peer())
        && tunnel.learn_path_mtu(path)
    {
        tracing::info!(
            tunnel = tunnel.name(),
            path_mtu = path,
            inner_mtu = tunnel.inner_mtu(),
            "the path's MTU has changed"
        );
    }
}

/// Once per second at most, whatever the rate of failures.
fn tell_failures(tunnel: &Tunnel, seen: &mut Seen) {
    let failures = tunnel.send_failures.load(Relaxed);
    // Tunnels of IKE that follow each other have one name.
    if failures <= seen.failures {
        return;
    }
    let error = io::Error::from_raw_os_error(tunnel.last_failure.load(Relaxed));
    let remedy = match error.raw_os_error() {
        Some(libc::ENETUNREACH | libc::EHOSTUNREACH) => "check the route to the peer",
        Some(libc::ENOBUFS | libc::EAGAIN) => "the outer interface is full or stopped",
        Some(libc::EMSGSIZE | libc::EINVAL) => "the path is narrower than it was",
        Some(libc::EPERM) => "a packet filter forbids it",
        Some(libc::EADDRNOTAVAIL) => "the source address is gone",
        Some(libc::ENETDOWN) => "the outer interface is down",
        _ => "look at the outer interface",
    };
    tracing::warn!(
        tunnel = tunnel.name(),
        packets = failures - seen.failures,
        "not sent: {error}; {remedy}"
    );
    seen.failures = failures;
}
